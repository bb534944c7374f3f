//! The parts of a run, and their datasets.

use std::path::Path;

use adamant_bench::harness::data::Data;
use adamant_bench::harness::error::Result;
use adamant_bench::harness::records::read_records;

/// The part with the judged dataset.
pub const MAIN: &str = "main";
/// The part that watches throughput over time.
pub const WATCH: &str = "watch";
/// The part whose system calls are traced.
pub const CALLS: &str = "calls";
/// The part that loads in yet another process and asks what memory that took.
pub const MEMORY: &str = "memory";
/// The part whose changes are one transaction each.
pub const BULK: &str = "bulk";
/// The part with the workloads of YCSB.
pub const YCSB: &str = "ycsb";

/// All but the datasets beside the judged one.
const PARTS: [&str; 6] = [MAIN, BULK, YCSB, WATCH, MEMORY, CALLS];

/// The parts with these names, or suffixes of datasets.
///
/// # Errors
/// A name that is none.
pub fn parts(names: &str) -> Result<Vec<String>> {
    let mut parts = Vec::new();
    for name in names.split(',') {
        if !PARTS.contains(&name) && Dataset::find(name).is_none() {
            return Err(format!("there is no part {name}: see --help").into());
        }
        parts.push(name.to_owned());
    }
    Ok(parts)
}

/// A dataset beside the judged one.
#[derive(Clone, Copy, Debug)]
pub struct Dataset {
    /// What its rows end with, and its name in arguments of child processes.
    pub suffix: &'static str,
    /// For the report.
    pub about: &'static str,
}

/// All of them.
pub const DATASETS: [Dataset; 4] = [
    Dataset { suffix: ".v800", about: "keys of 20 B, incompressible values of 800 B" },
    Dataset { suffix: ".half100", about: "keys of 20 B, half-compressible values of 100 B" },
    Dataset { suffix: ".half800", about: "keys of 20 B, half-compressible values of 800 B" },
    Dataset { suffix: ".real", about: "descriptions of packages, about 670 B each, by name" },
];

impl Dataset {
    /// The dataset whose rows end with `suffix`.
    pub fn find(suffix: &str) -> Option<&'static Self> {
        DATASETS.iter().find(|dataset| dataset.suffix == suffix)
    }

    /// Its records, so many of them.
    ///
    /// # Errors
    /// When the file of the real ones cannot be read.
    pub fn data(&self, seed: u64, entries: u64, records: Option<&Path>) -> Result<Data> {
        Ok(match self.suffix {
            ".v800" => Data::new(seed, 800),
            ".half100" => Data::half_compressible(seed, 100),
            ".half800" => Data::half_compressible(seed, 800),
            _ => Data::repeated(seed, read_records(records)?, entries),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_can_be_read() {
        let data = Dataset::find(".real").unwrap().data(1, 5_000, None).unwrap();
        assert_ne!(data.key(0), data.key(4_999));
        assert!(data.value(17, 0).starts_with(b"Package: "));
    }
}
