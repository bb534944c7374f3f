//! Command line arguments.

use std::path::PathBuf;
use std::time::Duration;

use adamant_bench::commands::heap::{self, Medium};
use adamant_bench::commands::{
    beside, bounded, bplus, kv, large, lsm, maps, slice, splits, transactions, values,
};
use clap::{Args, Parser, Subcommand};

/// Measures Adamant. Data goes to standard output, progress to standard error; files are removed at
/// the end. Commas and underscores may stand between the digits of a number.
#[derive(Debug, Parser)]
#[command(name = "adamant-bench")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A keyspace of byte strings, beside the raw disk and a BTreeMap
    Kv(Kv),
    /// The persistent heap by itself, on each medium
    Heap(Heap),
    /// The ordered maps on a heap: random u64 keys, by transactions of all, one, and 1,000
    Maps(Maps),
    /// The B+ tree: keys of 20 bytes, values of 800 and 15, in order and at random
    Bplus(Bplus),
    /// Three ways of splitting a leaf, and what each costs
    Splits(Splits),
    /// The string of bytes that keys and values are, beside a vector
    Slice(Slice),
    /// Snapshots, transactions, and how long readers and writers wait for one another
    Transactions(Transactions),
    /// A store of three times the memory that it may take, beside one without a bound
    Memory(Memory),
    /// The log-structured merge tree, with a cache of a tenth of the data
    Lsm(Lsm),
    /// Data of five times the memory that the process may have
    Large(Large),
    /// Readers in other processes, and the feed of changes
    Beside(Beside),
    /// Records, with compressed values and encrypted files
    Values(Values),
}

/// Options of all subcommands.
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// Less of everything, and fewer rounds
    #[arg(long)]
    quick: bool,
    /// Rounds that every engine takes part in
    #[arg(long, value_parser = at_least::<1, u32>)]
    rounds: Option<u32>,
    /// Also write the rows as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// The place of stores, where the default is the current directory.
#[derive(Args, Debug)]
pub(crate) struct Place {
    /// Where to work
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Where everything random comes from
    #[arg(long, value_parser = at_least::<0, u64>)]
    seed: Option<u64>,
}

/// Time limit of a row, per entry.
const ENTRY_TIME_MAX: Duration = Duration::from_micros(5);

#[derive(Args, Debug)]
pub(crate) struct Kv {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// Entries of 20 + 100 bytes
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    entries: Option<u64>,
    /// Entries of 20 + 800 bytes
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    large_entries: Option<u64>,
    /// Bytes of log that a store may keep
    #[arg(long, value_parser = at_least::<1, u64>)]
    log_bytes_max: Option<u64>,
    /// Beside them a store with a filled image
    #[arg(long)]
    filled: bool,
    /// Beside them an encrypted store
    #[arg(long)]
    encrypted: bool,
}

impl Kv {
    pub(crate) fn settings(&self) -> kv::Settings {
        let path = self.place.path.clone();
        let mut settings =
            if self.common.quick { kv::Settings::quick(path) } else { kv::Settings::full(path) };
        set(&mut settings.entries, self.entries);
        set(&mut settings.large_entries, self.large_entries);
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.log_bytes_max, self.log_bytes_max);
        settings.is_filled_beside = self.filled;
        settings.is_encrypted_beside = self.encrypted;
        set(&mut settings.seed, self.place.seed);
        // No row does more operations than there are entries.
        settings.gets = settings.gets.min(settings.entries);
        settings.puts = settings.puts.min(settings.entries);
        settings.killed_puts = settings.killed_puts.min(settings.entries);
        // A small run only shows that it works, not how fast.
        let entries = u32::try_from(settings.entries).unwrap_or(u32::MAX);
        settings.row_time = settings.row_time.min(ENTRY_TIME_MAX.saturating_mul(entries));
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Heap {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Only this medium: memory or files
    #[arg(long, value_parser = medium)]
    medium: Option<Medium>,
    /// Only this group of rows
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Single operations of a row
    #[arg(long, value_parser = at_least::<1, u64>)]
    operations: Option<u64>,
    /// Inserts of one transaction, objects of a heap
    #[arg(long, value_parser = at_least::<1, u64>)]
    inserts: Option<u64>,
    /// Objects freed by the largest transaction
    #[arg(long, value_parser = at_least::<10, u64>)]
    frees: Option<u64>,
    /// Operations of a transaction whose memory is measured
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    large: Option<u64>,
    /// Sizes, of 41,943, whose fragmentation is measured
    #[arg(long, value_parser = at_least::<1, u64>)]
    sizes: Option<u64>,
    /// Where to work; memory (a tmpfs) by default, where there is some
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

impl Heap {
    pub(crate) fn settings(&self) -> heap::Settings {
        let mut settings =
            if self.common.quick { heap::Settings::quick() } else { heap::Settings::full() };
        set(&mut settings.media, self.medium.map(|medium| vec![medium]));
        settings.group.clone_from(&self.group);
        set(&mut settings.operations, self.operations);
        set(&mut settings.inserts, self.inserts);
        set(&mut settings.frees_max, self.frees);
        set(&mut settings.large_operations, self.large);
        set(&mut settings.sizes, self.sizes);
        set(&mut settings.rounds, self.common.rounds);
        settings.path.clone_from(&self.path);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Maps {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Pairs
    #[arg(long, value_parser = at_least::<1, u64>)]
    pairs: Option<u64>,
    /// Only this structure, such as critbit or btree-16
    #[arg(long, value_name = "NAME")]
    structure: Option<String>,
    /// Where to work; memory (a tmpfs) by default, where there is some
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

impl Maps {
    pub(crate) fn settings(&self) -> maps::Settings {
        let mut settings =
            if self.common.quick { maps::Settings::quick() } else { maps::Settings::full() };
        set(&mut settings.pairs, self.pairs);
        settings.structure.clone_from(&self.structure);
        set(&mut settings.rounds, self.common.rounds);
        settings.path.clone_from(&self.path);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Bplus {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Pairs
    #[arg(long, value_parser = at_least::<1_000, u32>)]
    pairs: Option<u32>,
    /// Scans of 100 pairs
    #[arg(long, value_parser = at_least::<1, u64>)]
    scans: Option<u64>,
    /// Where to work; memory (a tmpfs) by default, where there is some
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

impl Bplus {
    pub(crate) fn settings(&self) -> bplus::Settings {
        let mut settings =
            if self.common.quick { bplus::Settings::quick() } else { bplus::Settings::full() };
        set(&mut settings.pairs, self.pairs.map(u64::from));
        set(&mut settings.scans, self.scans);
        set(&mut settings.rounds, self.common.rounds);
        settings.path.clone_from(&self.path);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Splits {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Pairs
    #[arg(long, value_parser = at_least::<100, u64>)]
    pairs: Option<u64>,
    /// Also write a page: docs/splits.md
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Where to work; memory (a tmpfs) by default, where there is some
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

impl Splits {
    pub(crate) fn settings(&self) -> splits::Settings {
        let mut settings =
            if self.common.quick { splits::Settings::quick() } else { splits::Settings::full() };
        set(&mut settings.pairs, self.pairs);
        set(&mut settings.rounds, self.common.rounds);
        settings.path.clone_from(&self.path);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Slice {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Operations of a batch
    #[arg(long, value_parser = at_least::<1, u64>)]
    operations: Option<u64>,
    /// Strings that are sorted and searched
    #[arg(long, value_parser = at_least::<100, usize>)]
    strings: Option<usize>,
    /// Records of a block that is read
    #[arg(long, value_parser = at_least::<1, usize>)]
    records: Option<usize>,
}

impl Slice {
    pub(crate) fn settings(&self) -> slice::Settings {
        let mut settings =
            if self.common.quick { slice::Settings::quick() } else { slice::Settings::full() };
        set(&mut settings.operations, self.operations);
        set(&mut settings.strings, self.strings);
        set(&mut settings.records, self.records);
        set(&mut settings.rounds, self.common.rounds);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Transactions {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// Entries of 20 + 100 bytes
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    entries: Option<u64>,
    /// Bytes of the batch beside which gets are timed
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    batch_bytes: Option<u64>,
    /// Seconds of the load that lasts
    #[arg(long, value_parser = at_least::<1, u64>)]
    load_seconds: Option<u64>,
    /// Bytes of the log that is filled twice
    #[arg(long, value_parser = at_least::<{ 4 << 20 }, u64>)]
    full_log_bytes: Option<u64>,
}

impl Transactions {
    pub(crate) fn settings(&self) -> transactions::Settings {
        let mut settings = match self.common.quick {
            true => transactions::Settings::quick(),
            false => transactions::Settings::full(),
        };
        set(&mut settings.entries, self.entries);
        set(&mut settings.batch_bytes, self.batch_bytes);
        set(&mut settings.load_time, self.load_seconds.map(Duration::from_secs));
        set(&mut settings.full_log_bytes, self.full_log_bytes);
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings.path.clone_from(&self.place.path);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Memory {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// The bound
    #[arg(long, value_parser = at_least::<{ 4 << 20 }, u64>)]
    memory_bytes: Option<u64>,
}

impl Memory {
    pub(crate) fn settings(&self) -> bounded::Settings {
        let path = self.place.path.clone();
        let mut settings = match (self.memory_bytes, self.common.quick) {
            (Some(bytes), _) => bounded::Settings::of(path, bytes),
            (None, true) => bounded::Settings::quick(path),
            (None, false) => bounded::Settings::full(path),
        };
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Beside {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// Entries of 20 + 100 bytes
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    entries: Option<u64>,
}

impl Beside {
    pub(crate) fn settings(&self) -> beside::Settings {
        let path = self.place.path.clone();
        let mut settings = match self.common.quick {
            true => beside::Settings::quick(path),
            false => beside::Settings::full(path),
        };
        set(&mut settings.entries, self.entries);
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Values {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// Entries
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    entries: Option<u64>,
    /// JSON lines of the records, instead of the repository's sample
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
}

impl Values {
    pub(crate) fn settings(&self) -> values::Settings {
        let mut settings = values::settings_in(&self.place.path, self.common.quick);
        set(&mut settings.entries, self.entries);
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings.reads = settings.reads.min(settings.entries);
        settings.records.clone_from(&self.records);
        settings
    }
}

#[derive(Args, Debug)]
pub(crate) struct Lsm {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    place: Place,
    /// Entries of 20 + 100 bytes; of 20 + 1,024 a fifth of that
    #[arg(long, value_parser = at_least::<1_000, u64>, conflicts_with = "sources")]
    entries: Option<u64>,
    /// Measure parts of the engine instead, each by itself
    #[arg(long)]
    pub(crate) sources: bool,
    /// Pairs of a table
    #[arg(long, value_parser = at_least::<1_000, u64>, requires = "sources")]
    pairs: Option<u64>,
    /// JSON lines of records that are compressed, instead of the repository's sample
    #[arg(long, value_name = "FILE", requires = "sources")]
    records: Option<PathBuf>,
    /// Only this part: merging, gets, blobs, compressions, values
    #[arg(long, value_name = "NAME", requires = "sources")]
    part: Option<String>,
}

impl Lsm {
    pub(crate) fn settings(&self) -> lsm::Settings {
        let path = self.place.path.clone();
        let mut settings =
            if self.common.quick { lsm::Settings::quick(path) } else { lsm::Settings::full(path) };
        if let Some(entries) = self.entries {
            settings = settings.with_entries(entries);
        }
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings
    }

    pub(crate) fn sources_settings(&self) -> lsm::SourcesSettings {
        let path = self.place.path.clone();
        let mut settings = match self.common.quick {
            true => lsm::SourcesSettings::quick(path),
            false => lsm::SourcesSettings::full(path),
        };
        set(&mut settings.pairs, self.pairs);
        settings.records.clone_from(&self.records);
        settings.part.clone_from(&self.part);
        set(&mut settings.rounds, self.common.rounds);
        set(&mut settings.seed, self.place.seed);
        settings
    }
}

/// Rows are printed as a table.
#[derive(Args, Debug)]
pub(crate) struct Large {
    /// A quarter of the memory, and less time
    #[arg(long)]
    quick: bool,
    /// Rounds that every engine takes part in
    #[arg(long, value_parser = at_least::<1, u32>)]
    rounds: Option<u32>,
    #[command(flatten)]
    place: Place,
    /// Memory of a process; data are five times as much
    #[arg(long, value_parser = at_least::<{ 64 << 20 }, u64>)]
    memory_bytes: Option<u64>,
    /// Entries of 20 + 1,024 bytes, instead
    #[arg(long, value_parser = at_least::<1_000, u64>)]
    entries: Option<u64>,
    /// Seconds of a row
    #[arg(long, value_parser = at_least::<1, u64>)]
    row_seconds: Option<u64>,
}

impl Large {
    pub(crate) fn settings(&self) -> large::Settings {
        let path = self.place.path.clone();
        let mut settings =
            if self.quick { large::Settings::quick(path) } else { large::Settings::full(path) };
        set(&mut settings.memory_bytes, self.memory_bytes);
        settings.entries = self.entries;
        set(&mut settings.row_time, self.row_seconds.map(Duration::from_secs));
        set(&mut settings.rounds, self.rounds);
        set(&mut settings.seed, self.place.seed);
        settings
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn medium(name: &str) -> Result<Medium, String> {
    Medium::of(name).ok_or_else(|| format!("there is no medium {name}"))
}

/// A whole number of at least `LEAST`; commas and underscores may stand between digits.
fn at_least<const LEAST: u64, N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let digits: String = text.chars().filter(|char| !matches!(char, ',' | '_')).collect();
    let number = digits.parse::<u64>().ok().filter(|&number| number >= LEAST);
    let number = number.and_then(|number| N::try_from(number).ok());
    number
        .ok_or_else(|| format!("expected a whole number of at least {LEAST} that is not too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        let words = ["adamant-bench"].into_iter().chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| arguments.command)
    }

    #[test]
    fn options_are_read() {
        let line = "kv --quick --entries 400,000 --rounds 2 --path here --json rows";
        let Ok(Command::Kv(arguments)) = parse(line) else { panic!("not read") };
        let settings = arguments.settings();
        assert_eq!((settings.entries, settings.rounds), (400_000, 2));
        assert_eq!(settings.path, PathBuf::from("here"));
        assert_eq!(arguments.common.json, Some(PathBuf::from("rows")));
        assert!(settings.large_entries < 300_000, "quick");
        let line = "lsm --quick --sources --pairs 5,000";
        let Ok(Command::Lsm(arguments)) = parse(line) else { panic!("not read") };
        let settings = arguments.sources_settings();
        assert_eq!((settings.pairs, settings.reads), (5_000, 100_000));
    }

    #[test]
    fn mistakes_are_named() {
        for line in [
            "heap --medium none",
            "heap --frees 1",
            "maps --pairs 0",
            "bplus --pairs 5000000000",
            "slice --strings 1",
            "lsm --pairs 5000",
            "lsm --sources --pairs 12",
            "lsm --sources --entries 400000",
            "put",
            "kv --fast",
            "kv --entries",
            "kv --entries 12",
            "kv --rounds x",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn quick_keeps_enough_entries_on_judged_rows() {
        assert!(kv::Settings::quick(PathBuf::new()).entries >= 300_000);
    }
}
