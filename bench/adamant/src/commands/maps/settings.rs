//! Settings of `maps`.

use std::path::PathBuf;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs that are inserted, found and removed.
    pub pairs: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// The only structure to measure; all, if none.
    pub structure: Option<String>,
    /// A working directory, whose content is removed at the end. If none, memory (a tmpfs) where
    /// available, else the current directory.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// The full run, as rated: many minutes.
    pub fn full() -> Self {
        Self { pairs: 1_000_000, rounds: 1, structure: None, path: None }
    }

    /// A tenth of it.
    pub fn quick() -> Self {
        Self { pairs: 100_000, ..Self::full() }
    }
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A word.
    Word,
    /// A pointer to an object of 8 bytes, allocated with the insert and freed with the remove.
    Object,
}

impl Value {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Word, Self::Object];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Object => "object",
        }
    }
}
