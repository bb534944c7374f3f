//! Which golden stores there are.

use std::path::{Path, PathBuf};

use adamant::{Flushing, JournalKind, LsmOptions, Options, Result, Store};

use crate::content::{fill, fill_engines, fill_lsm};

/// Tmpfs, as most Linux systems have one: files there are memory.
const MEMORY: &str = "/dev/shm";

/// A store of which there are two images, closed and crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The default engine in several keyspaces.
    First,
    /// Every engine that is a tree on the heap.
    Engines,
    /// Every engine that is a tree on the heap, by the undo journal.
    Undo,
    /// Log-structured merge trees of several levels, with blob files, beside a tree on the heap.
    Lsm,
    /// The same by the undo journal.
    LsmUndo,
}

impl Set {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::First, Self::Engines, Self::Undo, Self::Lsm, Self::LsmUndo];

    /// The folder of its images.
    pub fn folder(self) -> PathBuf {
        let format = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1");
        match self {
            Self::First => format,
            Self::Engines => format.join("engines"),
            Self::Undo => format.join("undo"),
            Self::Lsm => format.join("lsm-2"),
            Self::LsmUndo => format.join("lsm-2-undo"),
        }
    }

    /// The folder of images whose keyspaces of the engine lsm have version 1 of its format, which had no
    /// checksums on the heap and is no longer read.
    pub fn folder_before(self) -> Option<PathBuf> {
        let name = match self {
            Self::Lsm => "lsm",
            Self::LsmUndo => "lsm-undo",
            Self::First | Self::Engines | Self::Undo => return None,
        };
        Some(Self::First.folder().join(name))
    }

    /// How commits of its stores become durable.
    pub fn journal(self) -> JournalKind {
        match self {
            Self::Undo | Self::LsmUndo => JournalKind::Undo,
            Self::First | Self::Engines | Self::Lsm => JournalKind::Redo,
        }
    }

    /// How its stores are opened. Sizes of log-structured merge trees are small, so that little data
    /// makes many files.
    pub fn options(self) -> Options {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = 3 << 10;
        lsm.table_bytes_max = 2 << 10;
        lsm.block_bytes = 512;
        lsm.level0_tables_max = 2;
        lsm.base_bytes_min = 2 << 10;
        lsm.level_ratio = 2;
        lsm.blob_bytes_min = Some(600);
        lsm.blob_file_bytes_max = 4 << 10;
        lsm.blob_stale_percent_max = 95;
        Options::new().journal(self.journal()).flushing(Flushing::Volatile).lsm(lsm)
    }

    /// Where its stores can be; `None` where this system has no such place.
    pub fn place(self) -> Option<PathBuf> {
        match self.journal() {
            JournalKind::Undo => Path::new(MEMORY).is_dir().then(|| MEMORY.into()),
            JournalKind::Redo => Some(std::env::temp_dir()),
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
            Self::Lsm | Self::LsmUndo => fill_lsm(store),
        }
    }
}
