//! A journal under measurement: where it works, what commits wait for, and what they cost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Durability, Flushing, Heap, JournalKind, Options, OsDirectory};

use crate::error::Result;
use crate::report::Unit;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A journal under measurement: how commits become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Lanes on directly accessed memory, flushed by cache lines.
    Undo,
    /// Records appended to log files, on any file system; commits wait for no disk.
    Redo,
}

impl Journal {
    /// All of them, the judged one first.
    pub const ALL: &'static [Self] = &[Self::Undo, Self::Redo];

    /// As the engine of rows, and in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
        }
    }

    /// The journal of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|journal| journal.name() == name)
    }

    /// What commits wait for. The redo journal's wait for no disk: a sync measures the disk, and
    /// `kv` has rows for that.
    pub fn durability(self) -> Durability {
        match self {
            Self::Undo => Durability::Sync,
            Self::Redo => Durability::Buffered,
        }
    }

    /// Where it works if nobody says where.
    pub fn default_path(self) -> PathBuf {
        match self {
            Self::Undo if Path::new(MEMORY).is_dir() => PathBuf::from(MEMORY),
            Self::Undo | Self::Redo => PathBuf::from("."),
        }
    }

    /// Opens the heap in a directory with so many threads for what commits leave to do, creating
    /// both if there is nothing.
    ///
    /// # Errors
    /// The heap's.
    pub fn open(self, directory: &Path, workers: u8) -> Result<Heap> {
        let directory = Arc::new(OsDirectory::create(directory)?);
        let mut options = Options::default();
        options.post_commit_workers = workers;
        if self == Self::Undo {
            options.journal = JournalKind::Undo;
            options.flushing = Flushing::Volatile;
        }
        Ok(Heap::open(directory, options)?.0)
    }
}

/// What a heap had cost its medium at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Fences.
    pub fences: u64,
    /// Flushed cache lines.
    pub lines: u64,
}

impl Costs {
    /// Until now.
    pub fn of(heap: &Heap) -> Self {
        let journal = heap.stats().journal;
        Self {
            log_bytes: journal.log_appended_bytes,
            fences: journal.fences,
            lines: journal.flushed_lines,
        }
    }

    /// For each of the `operations` done since `before`.
    pub fn since(self, before: Self, operations: u64) -> CostsEach {
        let each = |before: u64, after: u64| (after - before) as f64 / operations as f64;
        CostsEach {
            log_bytes: each(before.log_bytes, self.log_bytes),
            fences: each(before.fences, self.fences),
            lines: each(before.lines, self.lines),
        }
    }
}

/// What an operation cost the medium.
#[derive(Clone, Copy, Debug)]
pub struct CostsEach {
    /// Bytes appended to the log, or to a lane.
    pub log_bytes: f64,
    /// Fences.
    pub fences: f64,
    /// Flushed cache lines.
    pub lines: f64,
}

impl CostsEach {
    /// What there is to say of them by a journal: how their rows begin, and the figure.
    pub fn figures(self, journal: Journal) -> Vec<(&'static str, Unit, f64)> {
        match journal {
            Journal::Undo => {
                vec![("fences", Unit::Fences, self.fences), ("lines", Unit::Lines, self.lines)]
            }
            Journal::Redo => vec![("log", Unit::Bytes, self.log_bytes)],
        }
    }
}

/// Bytes of the pages of a heap that are in use.
///
/// # Errors
/// The heap's.
pub fn used_bytes(heap: &Heap) -> Result<u64> {
    const PAGE_BYTES: u64 = 4096;
    let found = heap.occupancy()?;
    let pages: u64 = found.stretches.iter().map(|stretch| stretch.pages).sum();
    Ok((pages - found.free_pages) * PAGE_BYTES)
}
