//! Settings of `memory`.

use std::path::PathBuf;

/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 800;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The working directory.
    pub path: PathBuf,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of repetitions.
    pub rounds: u32,
    /// The bound.
    pub memory_bytes_max: u64,
    /// Entries: three times the bound.
    pub entries: u64,
    /// Gets of a row.
    pub gets: u64,
    /// Bytes of log.
    pub log_bytes_max: u64,
}

impl Settings {
    /// About a minute.
    pub fn full(path: PathBuf) -> Settings {
        Self::of(path, 128 << 20)
    }

    /// Some seconds.
    pub fn quick(path: PathBuf) -> Settings {
        Self::of(path, 32 << 20)
    }

    /// Settings for a bound.
    pub fn of(path: PathBuf, memory_bytes_max: u64) -> Settings {
        // A key and a value take some 850 bytes of the pool, including its leaf.
        let entries = 3 * memory_bytes_max / 800;
        let gets = entries;
        let log_bytes_max = memory_bytes_max.clamp(16 << 20, 64 << 20);
        Settings { path, seed: 1, rounds: 1, memory_bytes_max, entries, gets, log_bytes_max }
    }
}
