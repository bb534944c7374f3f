//! Finding out whether a path is a store, and opening its heap.
//!
//! Purpose: a clear answer for every path: a store, room for a new one, or what it is instead.
//! Invariants: a directory that holds anything that is not ours is never written to.

use std::io;
use std::path::Path;
use std::sync::Arc;

use adamant_heap::{Flushing, Heap, JournalKind, Recovery};
use adamant_lsm::CacheOptions;
use adamant_medium::error::Error as MediumError;
use adamant_medium::os::OsDirectory;
use adamant_medium::storage::Directory;

use crate::error::{Error, Result};
use crate::forest::Forest;
use crate::options::Options;

/// The file that makes a directory a store.
const POOL_NAME: &str = "pool";
/// What may be in a directory whose store was not created to the end.
const UNFINISHED_NAMES: [&str; 4] = ["lock", "log", "log.new", "pool.new"];
/// How many names of a foreign directory an error lists.
const FOREIGN_NAMES_MAX: usize = 3;

/// The directory at a path, created if it is missing and the options say so.
pub(crate) fn directory_at(path: &Path, options: &Options) -> Result<Arc<dyn Directory>> {
    let create = options.create && !options.read_only;
    let opened = match options.read_only {
        true => OsDirectory::open_read_only(path),
        false => OsDirectory::open(path),
    };
    let error = match opened {
        Ok(directory) => return Ok(Arc::new(directory)),
        Err(error) => error,
    };
    match io_kind(&error) {
        Some(io::ErrorKind::NotFound) if create => Ok(Arc::new(OsDirectory::create(path)?)),
        Some(io::ErrorKind::NotFound) => Err(Error::Missing { path: path.into() }),
        Some(io::ErrorKind::NotADirectory) => {
            Err(Error::NotAStore { path: path.into(), found: "a file".into() })
        }
        _ => Err(error.into()),
    }
}

/// The heap in a directory, created if the directory is empty and the options say so.
pub(crate) fn heap_in(
    directory: Arc<dyn Directory>,
    options: &Options,
) -> Result<(Heap, Recovery)> {
    let names = directory.list()?;
    if !names.iter().any(|name| name == POOL_NAME) {
        refuse_foreign(directory.path(), &names)?;
        if !options.create || options.read_only {
            return Err(Error::Missing { path: directory.path().into() });
        }
    }
    let mut heap_options = adamant_heap::Options::default();
    heap_options.create = options.create;
    heap_options.read_only = options.read_only;
    heap_options.journal = options.journal;
    heap_options.flushing = options.flushing;
    heap_options.log_bytes_max = options.log_bytes_max;
    heap_options.deferred_ms_max = options.deferred_ms_max;
    heap_options.deferred_bytes_max = options.deferred_bytes_max;
    heap_options.background = options.background;
    heap_options.verify_first_touch = options.verify_first_touch;
    heap_options.memory_bytes_max = options.memory_bytes_max;
    heap_options.huge_bytes_max = options.huge_bytes_max;
    Ok(Heap::open(directory, heap_options)?)
}

/// The log-structured merge trees in a directory.
pub(crate) fn forest_in(directory: Arc<dyn Directory>, options: &Options) -> Forest {
    let cache =
        CacheOptions { block_bytes: options.cache_bytes_max, file_count: options.open_files_max };
    Forest::new(directory, options.lsm.clone(), cache)
}

/// The journal of a new store in a directory that is made from one of some journal: the same, unless
/// that is the undo journal and files are no memory there: it could not be opened.
pub(crate) fn journal_for(directory: &dyn Directory, journal: JournalKind) -> Result<JournalKind> {
    if journal == JournalKind::Redo {
        return Ok(journal);
    }
    match directory.persist(Flushing::Volatile) {
        Ok(_) => Ok(journal),
        Err(MediumError::NotDirect { .. }) => Ok(JournalKind::Redo),
        Err(error) => Err(error.into()),
    }
}

/// How such a store is opened. Whoever made one on tmpfs has agreed to that.
pub(crate) fn options_for(journal: JournalKind) -> Options {
    Options::new().journal(journal).flushing(Flushing::Volatile)
}

/// Fails if a directory without a pool holds things that no store puts there.
fn refuse_foreign(path: &Path, names: &[String]) -> Result<()> {
    let foreign: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !UNFINISHED_NAMES.contains(name)).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let listed = foreign[..foreign.len().min(FOREIGN_NAMES_MAX)].join(", ");
    let more = foreign.len().saturating_sub(FOREIGN_NAMES_MAX);
    let found = match more {
        0 => format!("a directory without one that holds {listed}"),
        _ => format!("a directory without one that holds {listed} and {more} more"),
    };
    Err(Error::NotAStore { path: path.into(), found })
}

fn io_kind(error: &MediumError) -> Option<io::ErrorKind> {
    match error {
        MediumError::Io { source, .. } => Some(source.kind()),
        _ => None,
    }
}
