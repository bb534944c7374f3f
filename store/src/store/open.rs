//! Opening a store: what a path holds, and opening its heap.
//!
//! Purpose: a clear answer for every path: a store, room for a new one, or what it is instead.
//! Invariants: a directory with foreign files is never written to.

use std::any::Any;
use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::{Heap, ImageKind, Recovery};
use adamant_lsm::CacheOptions;
use adamant_medium::error::Error as MediumError;
use adamant_medium::names::{name_of, text_of};
use adamant_medium::storage::Directory;
use adamant_medium::system::memory_limit::process_memory_bytes;
use adamant_medium::system::os::OsDirectory;

use crate::encryption::{created, decrypted, is_encrypted};
use crate::engine::lsm_trees::LsmTrees;
use crate::error::{Error, Result};
use crate::increment::{View, increment_in, is_increment};
use crate::options::Options;
use crate::savepoint_view::SavepointView;
use crate::store::replacement::{LOCK_NAME, POOL_NAME, io_kind, is_lost, settle};

/// The only files in a directory whose store was not created completely.
const UNFINISHED_NAMES: [&str; 5] = ["key.new", "lock", "log", "log.new", "pool.new"];
/// Messages for paths without a store.
const NOTHING: &str = "expected a store, found nothing; check the path, or let one be created";
const DANGLING: &str =
    "expected a store, found a link to where nothing is; mend the link, or remove it";
const REPLACED: &str = "expected a store, found that a process ended while it replaced the one \
                        that was here; open it once for more than reading, which gives it its \
                        name back";
const EMPTY: &str =
    "expected a store, found an empty directory; check the path, or let one be created in it";
const BEGUN: &str = "expected a store, found what is left of one whose making did not come to its \
                     end; let it be created anew";
pub(crate) const NO_FOLDER: &str =
    "expected the folder that it is to be made in, found nothing; make that first";
/// The least limit of a log: it always keeps half of that, and a flush takes some beside its table.
const LOG_BYTES_MIN: u64 = 4 << 20;
/// How many names of foreign files an error lists.
const FOREIGN_NAMES_MAX: usize = 3;

/// The directory at a path, created if it is missing and the options say so.
pub(crate) fn directory_at(path: &Path, options: &Options) -> Result<Arc<dyn Directory>> {
    // Before a directory is made that would stay empty.
    options.check()?;
    let create = options.create && !options.only_reads();
    if !options.only_reads() {
        settle(path)?;
    }
    // A reader beside a writer makes a file that says so.
    let opened = match options.only_reads() && !options.beside_writer {
        true => OsDirectory::open_read_only(path),
        false => OsDirectory::open(path),
    };
    let error = match opened {
        // The name of what is made there must be durable, whoever gave it.
        Ok(_) if create && !path.join(POOL_NAME).exists() => return create_at(path),
        Ok(directory) => return Ok(Arc::new(directory)),
        Err(error) => error,
    };
    match io_kind(&error) {
        Some(NotFound) if create && !is_link(path) => create_at(path),
        Some(kind) => Err(no_store(path, kind).unwrap_or_else(|| error.into())),
        None => Err(error.into()),
    }
}

/// The directory that opens a store, and the options for it: an increment is shown as one that
/// nothing writes.
pub(crate) fn shown(
    path: &Path,
    directory: Arc<dyn Directory>,
    options: Options,
) -> Result<(Arc<dyn Directory>, Options)> {
    if !options.only_reads() || !is_increment(&directory.list()?) {
        return Ok((directory, options));
    }
    let path = resolved(path)?;
    let (Some(siblings), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::NotAStore { path, found: "a path without a name".into() });
    };
    let siblings: Arc<dyn Directory> = Arc::new(OsDirectory::open_read_only(siblings)?);
    let directory = increment_in(&siblings, &text_of(name), &options)?;
    let options = options.beside_writer(false).read_only(true).image(ImageKind::Filled);
    Ok((directory, options))
}

/// The directory of a store with plain contents, and the options for it: where it is encrypted, the
/// image is filled. A directory that is to become that of an encrypted store gets its key file.
///
/// # Errors
/// As [`decrypted`]; [`Error::NotAStore`] for a directory with foreign files, [`Error::Locked`] if
/// another process makes a store there.
pub(crate) fn plain_of(
    directory: Arc<dyn Directory>,
    options: &Options,
) -> Result<(Arc<dyn Directory>, Options)> {
    let is_store = |names: &[String]| names.iter().any(|name| name == POOL_NAME);
    let key = options.key.as_ref();
    let find = |directory| decrypted(directory, (key, options.beside_writer), is_store);
    // What shows an increment, or a savepoint, has opened the files already.
    let shown = directory.as_ref() as &dyn Any;
    let is_shown = shown.is::<View>() || shown.is::<SavepointView>();
    let mut plain = if is_shown { directory } else { find(directory)? };
    let makes = !is_shown && key.is_some() && options.create && !options.only_reads();
    if makes && !is_encrypted(&plain) {
        refuse_foreign(plain.path(), &plain.list()?)?;
        let _lock = plain.lock(LOCK_NAME)?;
        // Another process may have made one before.
        plain = find(plain)?;
        if !is_encrypted(&plain) {
            plain = created(plain, key)?;
        }
    }
    let options = match is_encrypted(&plain) {
        true => options.clone().image(ImageKind::Filled),
        false => options.clone(),
    };
    Ok((plain, options))
}

/// A new directory for a store.
fn create_at(path: &Path) -> Result<Arc<dyn Directory>> {
    OsDirectory::create(path).map_or_else(
        |error| match io_kind(&error) {
            Some(NotFound) => Err(Error::Missing { path: path.into(), what: NO_FOLDER }),
            _ => Err(error.into()),
        },
        |directory| Ok(Arc::new(directory) as Arc<dyn Directory>),
    )
}

/// The canonical path of an existing store.
///
/// # Errors
/// [`Error::Missing`], [`Error::NotAStore`]; those of the system.
pub(crate) fn resolved(path: &Path) -> Result<PathBuf> {
    let mut found = path.canonicalize();
    if found.as_ref().is_err_and(|error| error.kind() == NotFound) {
        settle(path)?;
        found = path.canonicalize();
    }
    found.map(plain).map_err(|error| {
        no_store(path, error.kind())
            .unwrap_or_else(|| MediumError::io("find", path, None, 0, error).into())
    })
}

/// A canonical path as people write it: on Windows without the prefix for calls.
pub(crate) fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix(r"\\?\")) {
        Some(rest) if cfg!(windows) && rest.as_bytes().get(1) == Some(&b':') => rest.into(),
        _ => path,
    }
}

/// The error for a path where the system finds no directory.
fn no_store(path: &Path, kind: io::ErrorKind) -> Option<Error> {
    match kind {
        NotFound => {
            let what = match is_link(path) {
                _ if is_lost(path) => REPLACED,
                true => DANGLING,
                false => NOTHING,
            };
            Some(Error::Missing { path: path.into(), what })
        }
        io::ErrorKind::NotADirectory => {
            Some(Error::NotAStore { path: path.into(), found: "a file".into() })
        }
        _ => None,
    }
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

/// The memory of the process by what a store takes at most where nobody set it: the rest is the
/// program's, and the system's cache of what is only read.
const PROCESS_MEMORIES: u64 = 2;
/// The least of that: with less nearly every commit would wait.
const MEMORY_BYTES_MIN: u64 = 32 << 20;

/// The heap in a directory, created if the directory is empty and the options say so.
pub(crate) fn heap_in(
    directory: Arc<dyn Directory>,
    options: &Options,
) -> Result<(Heap, Recovery)> {
    options.check()?;
    let names = directory.list()?;
    if is_increment(&names) {
        return Err(Error::Increment { path: directory.path().into() });
    }
    if !names.iter().any(|name| name == POOL_NAME) {
        refuse_foreign(directory.path(), &names)?;
        if !options.create || options.only_reads() {
            let what = if names.is_empty() { EMPTY } else { BEGUN };
            return Err(Error::Missing { path: directory.path().into(), what });
        }
    }
    Ok(Heap::open(directory, heap_options_of(options))?)
}

/// The options of a heap for those of a store.
pub(crate) fn heap_options_of(options: &Options) -> adamant_heap::Options {
    let mut heap_options = adamant_heap::Options::default();
    heap_options.create = options.create;
    heap_options.commits_before = options.commits_before;
    heap_options.read_only = options.only_reads();
    heap_options.beside_writer = options.beside_writer;
    heap_options.reader_bytes_max = options.reader_bytes_max;
    heap_options.flushing = options.flushing;
    heap_options.log_bytes_max = options.log_bytes_max;
    heap_options.deferred_ms_max = options.deferred_ms_max;
    heap_options.deferred_bytes_max = options.deferred_bytes_max;
    heap_options.background = options.background;
    heap_options.verify_first_touch = options.verify_first_touch;
    heap_options.memory_bytes_max = options.memory_bytes_max.unwrap_or_else(|| {
        let bytes = process_memory_bytes().map(|bytes| bytes / PROCESS_MEMORIES);
        bytes.map_or(u64::MAX, |bytes| bytes.max(MEMORY_BYTES_MIN))
    });
    heap_options.address_bytes_max = options.address_bytes_max;
    heap_options.huge_bytes_max = options.huge_bytes_max;
    heap_options.image = options.image;
    heap_options
}

/// The LSM trees in a directory.
pub(crate) fn lsm_trees_in(directory: Arc<dyn Directory>, options: &Options) -> LsmTrees {
    let cache = CacheOptions {
        block_bytes: options.cache_bytes_max,
        pinned_bytes: options.pinned_bytes_max,
        file_count: options.open_files_max,
    };
    let mut lsm = options.lsm.clone();
    // On a full device a memtable is written to space from the log.
    let room = options.log_bytes_max.max(LOG_BYTES_MIN) - LOG_BYTES_MIN / 4 * 3;
    lsm.memtable_bytes_max = lsm.memtable_bytes_max.min(room / 4 * 3);
    let operators = options.merge_operators.clone();
    let filters = options.compaction_filters.clone();
    LsmTrees::new(directory, lsm, cache, operators).with_filters(filters)
}

/// Fails if a directory without a pool holds foreign files.
fn refuse_foreign(path: &Path, names: &[String]) -> Result<()> {
    let foreign: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !UNFINISHED_NAMES.contains(name)).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let shown = foreign.iter().take(FOREIGN_NAMES_MAX);
    let shown: Vec<_> = shown.map(|name| name_of(name).to_string_lossy().into_owned()).collect();
    let listed = shown.join(", ");
    let more = foreign.len().saturating_sub(FOREIGN_NAMES_MAX);
    let found = match more {
        0 => format!("a directory without one that holds {listed}"),
        _ => format!("a directory without one that holds {listed} and {more} more"),
    };
    Err(Error::NotAStore { path: path.into(), found })
}
