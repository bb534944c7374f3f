//! Figures of a run, by row and engine.
//!
//! Purpose: medians, ranges and ratios of what the children printed.
//! Invariants: an engine has one sample of a row in a round; where a child printed several (the raw
//! disk, measured beside every engine) it is their median.

use std::collections::BTreeMap;

use adamant_bench::harness::error::Result;
use serde_json::Value;

/// Name of the raw disk in the column of engines.
pub use adamant_bench::workload::durable::RAW;

/// Fewer syncs than this for a durable put on one thread, and one was left out.
const SYNCS_MIN: f64 = 0.99;

/// Faster than this share of the raw disk's rate, an engine cannot have synced each commit of one
/// thread: the rest is for a disk whose speed changes.
pub const UNSYNCED_RATIO: f64 = 1.5;

/// Samples of a row and an engine, by round.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    by_round: BTreeMap<u64, Vec<f64>>,
    user_nanoseconds: Vec<f64>,
    system_nanoseconds: Vec<f64>,
}

/// A figure over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of samples; `None` if there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let (min, max) = (*samples.first()?, *samples.last()?);
        let middle = samples.len() / 2;
        let median = if samples.len() % 2 == 1 {
            samples[middle]
        } else {
            (samples[middle - 1] + samples[middle]) / 2.0
        };
        Some(Self { median, min, max })
    }
}

/// All figures of a run.
#[derive(Debug)]
pub struct Figures {
    /// What describes the run.
    pub header: Value,
    samples: BTreeMap<(String, String), Samples>,
    /// Lines that are no rows: latencies, throughput, how busy the machine was, failures.
    pub others: Vec<Value>,
}

impl Figures {
    /// Collects the lines of a run.
    ///
    /// # Errors
    /// When they are none of a run.
    pub fn of(lines: &[Value]) -> Result<Self> {
        let (header, lines) = lines.split_first().ok_or("there are no rows")?;
        if header["run"].is_null() {
            return Err("the first line does not describe a run".into());
        }
        let mut figures =
            Self { header: header.clone(), samples: BTreeMap::new(), others: Vec::new() };
        for line in lines {
            let Some(row) = line["row"].as_str() else {
                figures.others.push(line.clone());
                continue;
            };
            let (Some(engine), Some(round), Some(median)) =
                (line["engine"].as_str(), line["round"].as_u64(), line["median"].as_f64())
            else {
                return Err(format!("a row without engine, round or median: {line}").into());
            };
            let samples = figures.samples.entry((row.to_owned(), engine.to_owned())).or_default();
            samples.by_round.entry(round).or_default().push(median);
            samples.user_nanoseconds.extend(line["user_ns_per_operation"].as_f64());
            samples.system_nanoseconds.extend(line["system_ns_per_operation"].as_f64());
        }
        Ok(figures)
    }

    fn samples(&self, row: &str, engine: &str) -> Option<&Samples> {
        self.samples.get(&(row.to_owned(), engine.to_owned()))
    }

    fn rounds(&self, row: &str, engine: &str) -> BTreeMap<u64, f64> {
        let samples = self.samples(row, engine).into_iter();
        let rounds = samples.flat_map(|samples| &samples.by_round);
        rounds.filter_map(|(&round, all)| Some((round, Spread::of(all.clone())?.median))).collect()
    }

    /// A figure of an engine, over rounds.
    pub fn spread(&self, row: &str, engine: &str) -> Option<Spread> {
        Spread::of(self.rounds(row, engine).into_values().collect())
    }

    /// One engine's figure by another's, round by round.
    pub fn ratio(&self, row: &str, above: &str, below: &str) -> Option<Spread> {
        let below = self.rounds(row, below);
        let ratios = self.rounds(row, above).into_iter().filter_map(|(round, upper)| {
            let lower = *below.get(&round)?;
            (lower > 0.0).then(|| upper / lower)
        });
        Spread::of(ratios.collect())
    }

    /// Nanoseconds of processors for an operation, outside the kernel and in it.
    pub fn nanoseconds(&self, row: &str, engine: &str) -> Option<(f64, f64)> {
        let samples = self.samples(row, engine)?;
        let user = Spread::of(samples.user_nanoseconds.clone())?;
        let system = Spread::of(samples.system_nanoseconds.clone())?;
        Some((user.median, system.median))
    }

    /// System calls of a kind for an operation of a traced workload.
    pub fn calls(&self, row: &str, engine: &str, kind: &str) -> Option<f64> {
        let is_its = |line: &&Value| line["calls"] == row && line["engine"] == engine;
        let line = self.others.iter().find(is_its)?;
        Some(line[kind].as_f64()? / line["operations"].as_f64()?)
    }

    /// Whether durable puts of an engine on one thread were seen not to sync: in a trace of its
    /// system calls, or, where none could be taken, because they were much faster than the disk.
    pub fn is_unsynced(&self, engine: &str) -> bool {
        match self.calls("put.sync.1t", engine, "syncs") {
            Some(syncs) => syncs < SYNCS_MIN,
            None => {
                let ratio = self.spread("put.sync.1t.vs_raw", engine);
                ratio.is_some_and(|ratio| ratio.median > UNSYNCED_RATIO)
            }
        }
    }

    /// Engines of the run, in its order.
    pub fn engines(&self) -> Vec<&str> {
        let peers = self.header["peers"].as_array();
        peers.into_iter().flatten().filter_map(|peer| peer["engine"].as_str()).collect()
    }

    /// `tree`, `LSM` or `reference`.
    pub fn kind(&self, engine: &str) -> &str {
        let peers = self.header["peers"].as_array().into_iter().flatten();
        let kinds = peers.filter(|peer| peer["engine"] == engine);
        kinds.filter_map(|peer| peer["kind"].as_str()).next().unwrap_or_default()
    }

    /// Names of all rows.
    pub fn rows(&self) -> Vec<&str> {
        let mut rows: Vec<&str> = self.samples.keys().map(|(row, _)| row.as_str()).collect();
        rows.dedup();
        rows
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn medians_and_ratios_are_by_round() {
        let row = |engine: &str, round: u64, median: f64| {
            json!({"row": "get", "engine": engine, "round": round, "median": median,
                   "with": "redb", "user_ns_per_operation": 10.0, "system_ns_per_operation": 5.0})
        };
        let lines = [
            json!({"run": "quick", "peers": [{"engine": "redb", "kind": "tree"}]}),
            row("adamant", 0, 10.0),
            row("adamant", 1, 30.0),
            row("redb", 0, 10.0),
            row("redb", 1, 10.0),
            row(RAW, 0, 1.0),
            row(RAW, 0, 3.0),
            json!({"busy": "main"}),
        ];
        let figures = Figures::of(&lines).unwrap();
        let ratio = figures.ratio("get", "adamant", "redb").unwrap();
        assert_eq!(ratio, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(figures.spread("get", RAW).unwrap().median, 2.0);
        assert_eq!(figures.nanoseconds("get", "redb"), Some((10.0, 5.0)));
        assert_eq!((figures.kind("redb"), figures.others.len()), ("tree", 1));
        assert!(figures.ratio("get", "adamant", "none").is_none());
    }

    #[test]
    fn who_does_not_sync_is_found_by_counts_or_by_speed() {
        let calls = |engine: &str, syncs: u64| json!({"calls": "put.sync.1t", "engine": engine, "operations": 100, "syncs": syncs});
        let speed = |engine: &str, ratio: f64| json!({"row": "put.sync.1t.vs_raw", "engine": engine, "round": 0, "median": ratio});
        let lines = [
            json!({"run": "quick", "peers": []}),
            calls("redb", 200),
            calls("sled", 2),
            speed("redb", 9.0),
            speed("lmdb", 0.5),
            speed("fjall", 9.0),
        ];
        let figures = Figures::of(&lines).unwrap();
        let unsynced = ["redb", "sled", "lmdb", "fjall"].map(|name| figures.is_unsynced(name));
        assert_eq!(unsynced, [false, true, false, true]);
        assert_eq!(figures.calls("put.sync.1t", "redb", "syncs"), Some(2.0));
    }
}
