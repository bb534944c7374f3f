//! Heap locations: files in memory, written as such.
//!
//! Purpose: keeps disks out of the figures. A commit on memory costs its own work, with one fence
//! at the end; `kv` measures a sync of a disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Durability, Flushing, Heap, Options, OsDirectory};
use tempfile::TempDir;

use crate::harness::error::Result;

/// The engine name of heap rows.
pub(crate) const ENGINE: &str = "adamant";
/// The durability of commits.
pub(crate) const DURABILITY: Durability = Durability::Sync;

/// The directory in which Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A working directory, removed with the value: in `path`, else in memory where the system has such
/// a place, else in the current directory.
pub(crate) fn work(path: Option<&Path>) -> Result<TempDir> {
    let memory = || PathBuf::from(if Path::new(MEMORY).is_dir() { MEMORY } else { "." });
    let parent = path.map_or_else(memory, Path::to_path_buf);
    std::fs::create_dir_all(&parent)?;
    Ok(tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(parent)?)
}

/// Opens the heap in a directory; creates both if there is nothing.
pub(crate) fn open(directory: &Path) -> Result<Heap> {
    let directory = Arc::new(OsDirectory::create(directory)?);
    let mut options = Options::default();
    options.post_commit_workers = 0;
    options.flushing = Flushing::Volatile;
    Ok(Heap::open(directory, options)?.0)
}
