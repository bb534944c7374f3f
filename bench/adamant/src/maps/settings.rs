//! How much of everything `maps` does.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::error::Result;
use crate::heap::Journal;

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pairs that are inserted, found and removed.
    pub pairs: u64,
    /// Rounds; a figure is the median over them.
    pub rounds: u32,
    /// Journals, in this order.
    pub journals: Vec<Journal>,
    /// The only structure to measure; all, if none.
    pub structure: Option<String>,
    /// A directory to work in; what is made there is removed at the end. If none, memory (a tmpfs)
    /// for the undo journal where there is one, and the current directory for the redo journal.
    pub path: Option<PathBuf>,
}

impl Settings {
    /// Everything, as judged: many minutes.
    pub fn full() -> Self {
        Self {
            pairs: 1_000_000,
            rounds: 1,
            journals: Journal::ALL.to_vec(),
            structure: None,
            path: None,
        }
    }

    /// A directory for a heap on a journal, removed with the value.
    pub(super) fn work(&self, journal: Journal) -> Result<TempDir> {
        let parent = self.path.clone().unwrap_or_else(|| journal.default_path());
        Ok(tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(parent)?)
    }

    /// A tenth of it.
    pub fn quick() -> Self {
        Self { pairs: 100_000, ..Self::full() }
    }
}

/// What a value is.
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

    /// As in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Object => "object",
        }
    }
}
