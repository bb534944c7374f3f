//! How much of everything `splits` does.

use std::path::PathBuf;

/// Bytes of values.
pub(super) const VALUE_BYTES: [usize; 2] = [800, 15];

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs of a tree.
    pub pairs: u64,
    /// Rounds; a time is the median over them. Counts are those of the first.
    pub rounds: u32,
    /// A directory of memory to work in, if not that of the system; what is made there is removed.
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
