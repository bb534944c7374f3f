//! Settings of `heap`.

use std::path::PathBuf;

use crate::commands::heap::medium::Medium;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Single operations of a row.
    pub operations: u64,
    /// Inserts of one transaction, and objects of a heap whose size or opening time is measured.
    pub inserts: u64,
    /// Objects freed by the largest transaction.
    pub frees_max: u64,
    /// Operations of a transaction whose memory is measured.
    pub large_operations: u64,
    /// How many of the 41,943 sizes from 100 B to 4 MiB are allocated.
    pub sizes: u64,
    /// Rounds of every backend.
    pub rounds: u32,
    /// Storage backends, in the order of the first round.
    pub media: Vec<Medium>,
    /// The only group to measure; all, if none.
    pub group: Option<String>,
    /// A working directory, whose content is removed at the end. If none, memory (a tmpfs) for
    /// memory where available, and the current directory for files.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// The full run, as rated: some minutes.
    pub fn full() -> Self {
        Self {
            operations: 200_000,
            inserts: 1_000_000,
            frees_max: 100_000,
            large_operations: 10_000_000,
            sizes: 41_943,
            rounds: 5,
            media: Medium::ALL.to_vec(),
            group: None,
            path: None,
        }
    }

    /// Fewer rounds of the same: rows that depend on the amount of work stay comparable.
    pub fn quick() -> Self {
        Self {
            operations: 100_000,
            inserts: 300_000,
            large_operations: 2_000_000,
            rounds: 3,
            ..Self::full()
        }
    }
}
