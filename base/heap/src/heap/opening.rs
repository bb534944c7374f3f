//! Opening: the lock, the journal with its recovery, and the image of a heap.
//!
//! Invariants: only an empty directory becomes a heap; nothing is written before the lock is held.
//! Thread safety: runs alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_medium::storage::{Directory, Lock};

use super::options::Options;
use crate::error::{Error, Result};
use crate::image::class::ClassTable;
use crate::image::heap_root::{initial_pages, read_root};
use crate::image::mapping::Image;
use crate::image::pool_file::PoolFile;
use crate::journal::{
    Journal, JournalOptions, Opened, READERS_NAME, RECOVERY_BYTES, ReadOnly, Recovery,
};
use crate::layout::{
    CLASS_TABLE_OFFSET, FIRST_PAGE, LOG_NAME, LOG_NEW_NAME, PAGE_BYTES, POOL_NAME, POOL_NEW_NAME,
    ROOT_OFFSET, file_offset,
};
use crate::space::arena::CHUNK_PAGES;

/// The result of opening: the lock, the journal, the image as recovered, and the recovery's
/// figures.
pub(super) type Found = (Box<dyn Lock>, Opened, Image, Recovery);

/// Opens a heap for writing; creates it if there is none.
pub(super) fn open_writable(directory: &Arc<dyn Directory>, options: &Options) -> Result<Found> {
    let names = directory.list()?;
    let is_heap = names.iter().any(|name| name == POOL_NAME);
    if !is_heap {
        refuse_strangers(directory.as_ref(), &names, options)?;
    }
    let lock = directory.lock("lock")?;
    let journal_options = JournalOptions {
        log_bytes_max: options.log_bytes_max,
        held_bytes_max: options.log_held_bytes_max,
        background: options.background,
        deferred_ms_max: options.deferred_ms_max,
        deferred_bytes_max: options.deferred_bytes_max,
        recovery_bytes_max: RECOVERY_BYTES.min(options.memory_bytes_max / 2),
        reader_bytes_max: options.reader_bytes_max,
        commits_before: options.commits_before,
    };
    // Another process may have created the heap between the listing and the lock.
    let is_heap = is_heap || directory.list()?.iter().any(|name| name == POOL_NAME);
    let (journal, recovery) = if is_heap {
        Journal::open(directory, journal_options)?
    } else {
        let pages = initial_pages();
        let pages = pages.each_ref().map(|(offset, page)| (*offset, page.as_slice()));
        let journal = Journal::create(directory, journal_options, &pages, CHUNK_PAGES)?;
        (journal, Recovery::default())
    };
    let backed = journal.pool().pages_backed();
    let pages = backed.next_multiple_of(CHUNK_PAGES);
    if pages > backed {
        journal.grow(pages)?;
    }
    let (bytes_max, bounds) = (options.address_bytes_max, options.bounds());
    let image = Image::map(journal.pool().file(), pages, bytes_max, bounds, options.image)?;
    Ok((lock, Opened::Writable(journal), image, recovery))
}

/// Opens a heap read-only.
pub(super) fn open_read_only(directory: &Arc<dyn Directory>, options: &Options) -> Result<Found> {
    if !directory.list()?.iter().any(|name| name == POOL_NAME) {
        return Err(no_pool(directory.as_ref(), NO_POOL));
    }
    let (bytes_max, bounds) = (options.address_bytes_max, options.bounds());
    let (lock, (journal, image, recovery)) = match options.beside_writer {
        true => ReadOnly::open_beside(directory, bytes_max, bounds)?,
        false => {
            let lock = directory.lock_shared("lock")?;
            (lock, ReadOnly::open(directory, bytes_max, bounds, options.image)?)
        }
    };
    Ok((lock, Opened::ReadOnly(Box::new(journal)), image, recovery))
}

/// Only an empty directory, or one where an earlier creation was interrupted, becomes a heap.
fn refuse_strangers(directory: &dyn Directory, names: &[String], options: &Options) -> Result<()> {
    let ours: BTreeSet<&str> =
        [POOL_NEW_NAME, LOG_NAME, LOG_NEW_NAME, READERS_NAME, "lock", "tables", "blobs"].into();
    if let Some(stranger) = names.iter().find(|name| !ours.contains(name.as_str())) {
        let what = format!(
            "expected a pool or an empty directory, found \"{stranger}\" and no pool; choose \
             another directory"
        );
        return Err(no_pool(directory, &what));
    }
    if !options.create {
        return Err(no_pool(directory, NO_POOL));
    }
    Ok(())
}

const NO_POOL: &str = "expected a pool, found none; create the store first";

fn no_pool(directory: &dyn Directory, what: &str) -> Error {
    Error::Unsupported { file: directory.path().join(POOL_NAME), what: what.into() }
}

/// Reads and validates the root page and the class table.
pub(super) fn load_root(pool: &PoolFile, image: &Image) -> Result<(ClassTable, u64)> {
    let file = pool.file().path();
    for offset in [ROOT_OFFSET, CLASS_TABLE_OFFSET] {
        image.verify(offset, PAGE_BYTES)?;
    }
    let (root, classes) = read_root(image, file)?;
    let damaged =
        |what: String| Error::Damaged { file: file.into(), offset: file_offset(ROOT_OFFSET), what };
    let pages_end = root.pages_end.get();
    if pages_end < FIRST_PAGE {
        return Err(damaged(format!(
            "expected a root page that says of at least {FIRST_PAGE} pages, found {pages_end}; \
             restore a backup"
        )));
    }
    if pages_end > image.pages() {
        return Err(damaged(format!(
            "expected a pool of at least {pages_end} pages as its root page says, found {}; \
             the file was cut off",
            image.pages()
        )));
    }
    Ok((classes, pages_end))
}
