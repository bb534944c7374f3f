//! Which golden stores there are.

use std::path::{Path, PathBuf};

use adamant::{Flushing, JournalKind, Options, Result, Store};

use crate::content::{fill, fill_engines};

/// Tmpfs, as most Linux systems have one: files there are memory.
const MEMORY: &str = "/dev/shm";

/// A store of which there are two images, closed and crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The default engine in several keyspaces.
    First,
    /// Every engine.
    Engines,
    /// Every engine, by the undo journal.
    Undo,
}

impl Set {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::First, Self::Engines, Self::Undo];

    /// The folder of its images.
    pub fn folder(self) -> PathBuf {
        let format = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1");
        match self {
            Self::First => format,
            Self::Engines => format.join("engines"),
            Self::Undo => format.join("undo"),
        }
    }

    /// How its stores are opened.
    pub fn options(self) -> Options {
        match self {
            Self::Undo => Options::new().journal(JournalKind::Undo).flushing(Flushing::Volatile),
            Self::First | Self::Engines => Options::new(),
        }
    }

    /// Where its stores can be; `None` where this system has no such place.
    pub fn place(self) -> Option<PathBuf> {
        match self {
            Self::Undo => Path::new(MEMORY).is_dir().then(|| MEMORY.into()),
            Self::First | Self::Engines => Some(std::env::temp_dir()),
        }
    }

    /// Puts into an empty store what it is to hold.
    ///
    /// # Errors
    /// Those of writing to the store.
    pub fn fill(self, store: &Store) -> Result<()> {
        match self {
            Self::First => fill(store),
            Self::Engines | Self::Undo => fill_engines(store),
        }
    }
}
