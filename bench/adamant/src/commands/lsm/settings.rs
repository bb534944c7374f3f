//! Settings of `lsm`.

use std::path::PathBuf;
use std::time::Duration;

/// Entries of one size.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// The suffix of its row names.
    pub name: &'static str,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Entries.
    pub entries: u64,
}

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The working directory.
    pub path: PathBuf,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of repetitions.
    pub rounds: u32,
    /// The sets, loaded one after the other.
    pub sets: Vec<Set>,
    /// Maximum gets of a row.
    pub gets_max: u64,
    /// Bytes of memtables and tables.
    pub memtable_bytes: u64,
    /// How long the raw disk is measured.
    pub raw_time: Duration,
}

impl Settings {
    /// 5,000,000 entries of 100 B, 1,000,000 of 1 KiB.
    pub fn full(path: PathBuf) -> Self {
        let raw_time = Duration::from_secs(5);
        let (gets_max, memtable_bytes) = (1_000_000, 64 << 20);
        let sets = vec![
            Set { name: "100", value_bytes: 100, entries: 5_000_000 },
            Set { name: "1024", value_bytes: 1_024, entries: 1_000_000 },
        ];
        Self { path, seed: 1, rounds: 1, sets, gets_max, memtable_bytes, raw_time }
    }

    /// Under a minute: a tenth of everything, including memtables, so that there are as many
    /// tables.
    pub fn quick(path: PathBuf) -> Self {
        let full = Self::full(path);
        let raw_time = Duration::from_secs(1);
        let (gets_max, memtable_bytes) = (full.gets_max / 10, full.memtable_bytes / 10);
        let sets = full.sets.iter().map(|set| Set { entries: set.entries / 10, ..*set }).collect();
        Self { sets, gets_max, memtable_bytes, raw_time, ..full }
    }

    /// This many of the small entries, and a fifth of that of the large ones.
    #[must_use]
    pub fn with_entries(mut self, entries: u64) -> Self {
        let first = self.sets.first().map_or(1, |set| set.entries);
        for set in &mut self.sets {
            set.entries =
                (u128::from(set.entries) * u128::from(entries) / u128::from(first)) as u64;
        }
        self
    }
}
