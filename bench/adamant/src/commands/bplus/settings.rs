//! Settings of `bplus`.

use std::path::PathBuf;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs of a tree.
    pub pairs: u64,
    /// Scans of 100 pairs.
    pub scans: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// A working directory, whose content is removed at the end. If none, memory (a tmpfs) where
    /// available, else the current directory.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// The full run, as rated: some minutes.
    pub fn full() -> Self {
        Self { pairs: 1_000_000, scans: 100_000, rounds: 1, path: None }
    }

    /// Smaller trees: under a minute.
    pub fn quick() -> Self {
        Self { pairs: 150_000, scans: 20_000, ..Self::full() }
    }
}
