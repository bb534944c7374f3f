//! Settings of `large`.

use std::path::PathBuf;
use std::time::Duration;

use crate::harness::data::KEY_BYTES;

/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 1_024;
/// Data, as a multiple of the memory.
const MEMORIES: u64 = 5;
/// Bytes of data where memory cannot be limited.
const UNLIMITED_BYTES: u64 = 30 << 30;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The working directory.
    pub path: PathBuf,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of repetitions.
    pub rounds: u32,
    /// Bytes of memory that an engine's process may have.
    pub memory_bytes: u64,
    /// Entries of 20 + 1,024 bytes; `None`: five times the memory.
    pub entries: Option<u64>,
    /// Time of a row of reads, or of reads and writes.
    pub row_time: Duration,
    /// Maximum time of the load: what is not loaded by then is left out.
    pub load_time_max: Duration,
}

impl Settings {
    /// 512 MiB of memory.
    pub fn full(path: PathBuf) -> Self {
        let (row_time, load_time_max) = (Duration::from_secs(20), Duration::from_secs(900));
        Self {
            path,
            seed: 1,
            rounds: 1,
            memory_bytes: 512 << 20,
            entries: None,
            row_time,
            load_time_max,
        }
    }

    /// 128 MiB, and less time.
    pub fn quick(path: PathBuf) -> Self {
        let (row_time, load_time_max) = (Duration::from_secs(3), Duration::from_secs(120));
        Self { memory_bytes: 128 << 20, row_time, load_time_max, ..Self::full(path) }
    }

    /// Entries, where memory is limited or not.
    pub(super) fn entries(&self, is_limited: bool) -> u64 {
        let bytes = if is_limited { MEMORIES * self.memory_bytes } else { UNLIMITED_BYTES };
        self.entries.unwrap_or(bytes / (KEY_BYTES + VALUE_BYTES) as u64)
    }
}
