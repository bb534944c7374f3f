//! How much of everything `bplus` does.

use std::path::PathBuf;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs of a tree.
    pub pairs: u64,
    /// Scans of 100 pairs.
    pub scans: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// A directory to work in; what is made there is removed at the end. If none, memory (a tmpfs)
    /// where there is some, else the current directory.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// Everything, as judged: some minutes.
    pub fn full() -> Self {
        Self { pairs: 1_000_000, scans: 100_000, rounds: 1, path: None }
    }

    /// Smaller trees: under a minute.
    pub fn quick() -> Self {
        Self { pairs: 150_000, scans: 20_000, ..Self::full() }
    }
}
