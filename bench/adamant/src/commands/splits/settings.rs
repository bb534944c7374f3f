//! Settings of `splits`.

use std::path::PathBuf;

/// Bytes of values.
pub(super) const VALUE_BYTES: [usize; 2] = [800, 15];

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs of a tree.
    pub pairs: u64,
    /// Rounds; a time is the median over them. Counts are those of the first.
    pub rounds: u32,
    /// A working directory in memory, if not that of the system; its content is removed.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// Everything.
    pub fn full() -> Self {
        Self { pairs: 1_000_000, rounds: 3, path: None }
    }

    /// A tenth of it, once.
    pub fn quick() -> Self {
        Self { pairs: 100_000, rounds: 1, path: None }
    }
}
