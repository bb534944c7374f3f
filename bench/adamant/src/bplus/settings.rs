//! How much of everything `bplus` does.

use std::path::PathBuf;

use crate::heap::Journal;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs of a tree.
    pub pairs: u64,
    /// Scans of 100 pairs.
    pub scans: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// Journals, in the order of the first round.
    pub journals: Vec<Journal>,
    /// A directory to work in; what is made there is removed at the end. If none, memory (a tmpfs)
    /// for the undo journal where there is one, and the current directory for the redo journal.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// Everything, as judged: some minutes.
    pub fn full() -> Self {
        Self {
            pairs: 1_000_000,
            scans: 100_000,
            rounds: 1,
            journals: Journal::ALL.to_vec(),
            path: None,
        }
    }

    /// Smaller trees: under a minute.
    pub fn quick() -> Self {
        Self { pairs: 150_000, scans: 20_000, ..Self::full() }
    }
}
