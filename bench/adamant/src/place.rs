//! Where heaps are measured: in files that are memory, written as such.
//!
//! Purpose: nothing of a disk is in the figures. What a commit costs on memory is its own work, with
//! one fence at the end; a sync of a disk is measured by `kv`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Durability, Flushing, Heap, Options, OsDirectory};
use tempfile::TempDir;

use crate::error::Result;

/// Names the rows of heaps.
pub(crate) const ENGINE: &str = "adamant";
/// What commits wait for.
pub(crate) const DURABILITY: Durability = Durability::Sync;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";

/// A directory to work in, removed with the value: in `path`, or if that is none in memory where the
/// system has such a place, else in the current directory.
pub(crate) fn work(path: Option<&Path>) -> Result<TempDir> {
    let memory = || PathBuf::from(if Path::new(MEMORY).is_dir() { MEMORY } else { "." });
    let parent = path.map_or_else(memory, Path::to_path_buf);
    std::fs::create_dir_all(&parent)?;
    Ok(tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(parent)?)
}

/// Opens the heap in a directory, creating both if there is nothing.
pub(crate) fn open(directory: &Path) -> Result<Heap> {
    let directory = Arc::new(OsDirectory::create(directory)?);
    let mut options = Options::default();
    options.post_commit_workers = 0;
    options.flushing = Flushing::Volatile;
    Ok(Heap::open(directory, options)?.0)
}
