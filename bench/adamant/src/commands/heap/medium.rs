//! The storage backends under measurement: location, durability of commits, and costs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Durability, Flushing, Heap, Options, OsDirectory};

use crate::harness::error::Result;
use crate::harness::report::Unit;

/// The directory in which Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A storage backend under measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Files in memory, written by stores and flushed by cache lines.
    Memory,
    /// Files of any file system, written by calls; commits wait for no disk.
    Files,
}

impl Medium {
    /// All of them, the rated one first.
    pub const ALL: &'static [Self] = &[Self::Memory, Self::Files];

    /// The engine name in rows and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Files => "files",
        }
    }

    /// The backend with that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|medium| medium.name() == name)
    }

    /// The durability of commits. Those on files wait for no disk: a sync measures the disk, and
    /// `kv` has rows for that.
    pub fn durability(self) -> Durability {
        match self {
            Self::Memory => Durability::Sync,
            Self::Files => Durability::Buffered,
        }
    }

    /// The default working directory.
    pub fn default_path(self) -> PathBuf {
        match self {
            Self::Memory if Path::new(MEMORY).is_dir() => PathBuf::from(MEMORY),
            Self::Memory | Self::Files => PathBuf::from("."),
        }
    }

    /// Opens the heap in a directory with this many threads for work after commits; creates both if
    /// there is nothing.
    ///
    /// # Errors
    /// The heap's.
    pub fn open(self, directory: &Path, workers: u8) -> Result<Heap> {
        let directory = Arc::new(OsDirectory::create(directory)?);
        let mut options = Options::default();
        options.post_commit_workers = workers;
        if self == Self::Memory {
            options.flushing = Flushing::Volatile;
        }
        Ok(Heap::open(directory, options)?.0)
    }
}

/// The storage costs of a heap up to some moment.
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
    /// The costs until now.
    pub fn of(heap: &Heap) -> Self {
        let journal = heap.stats().journal;
        Self {
            log_bytes: journal.log_appended_bytes,
            fences: journal.fences,
            lines: journal.flushed_lines,
        }
    }

    /// The costs of each of the `operations` since `before`.
    pub fn since(self, before: Self, operations: u64) -> CostsEach {
        let each = |before: u64, after: u64| (after - before) as f64 / operations as f64;
        CostsEach {
            log_bytes: each(before.log_bytes, self.log_bytes),
            fences: each(before.fences, self.fences),
            lines: each(before.lines, self.lines),
        }
    }
}

/// The storage costs of an operation.
#[derive(Clone, Copy, Debug)]
pub struct CostsEach {
    /// Bytes appended to the log.
    pub log_bytes: f64,
    /// Fences.
    pub fences: f64,
    /// Flushed cache lines.
    pub lines: f64,
}

impl CostsEach {
    /// The figures for a backend: how their rows begin, and the values.
    pub fn figures(self, medium: Medium) -> Vec<(&'static str, Unit, f64)> {
        match medium {
            Medium::Memory => {
                vec![("fences", Unit::Fences, self.fences), ("lines", Unit::Lines, self.lines)]
            }
            Medium::Files => vec![("log", Unit::Bytes, self.log_bytes)],
        }
    }
}

/// Bytes of the used pages of a heap.
///
/// # Errors
/// The heap's.
pub fn used_bytes(heap: &Heap) -> Result<u64> {
    const PAGE_BYTES: u64 = 4096;
    let found = heap.occupancy()?;
    let pages: u64 = found.page_ranges.iter().map(|page_range| page_range.pages).sum();
    Ok((pages - found.free_pages) * PAGE_BYTES)
}
