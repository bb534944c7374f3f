//! Settings of `beside`.

use std::path::PathBuf;
use std::time::Duration;

use ::adamant::{Durability, Options};

/// Bytes of a value.
pub(super) const VALUE_BYTES: usize = 100;
/// The keyspace.
pub(super) const KEYSPACE: &str = "bench";

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The working directory.
    pub path: PathBuf,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of repetitions.
    pub rounds: u32,
    /// Entries of the store.
    pub entries: u64,
    /// Time of a row of commits.
    pub row_time: Duration,
    /// Refreshes.
    pub refreshes: u64,
    /// Commits that are noticed.
    pub stamps: u64,
    /// Bytes of log.
    pub log_bytes_max: u64,
}

impl Settings {
    /// About a minute.
    pub fn full(path: PathBuf) -> Settings {
        Settings {
            path,
            seed: 1,
            rounds: 3,
            entries: 1_000_000,
            row_time: Duration::from_secs(3),
            refreshes: 20_000,
            stamps: 500,
            log_bytes_max: 64 << 20,
        }
    }

    /// Some seconds.
    pub fn quick(path: PathBuf) -> Settings {
        Settings {
            rounds: 1,
            entries: 20_000,
            row_time: Duration::from_millis(200),
            refreshes: 500,
            stamps: 20,
            ..Self::full(path)
        }
    }
}

/// The options of a store.
pub(super) fn options(settings: &Settings) -> Options {
    Options::new().durability(Durability::Buffered).log_bytes_max(settings.log_bytes_max)
}
