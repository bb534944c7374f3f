//! The pool file as of a moment, beside a process that writes it.
//!
//! Purpose: reads give no page that a later batch has overwritten, but what was kept of it
//! (`old_pages.rs`). So all that reads a pool that nobody writes reads this as well: image, check,
//! backup.
//! Invariants: bytes are read first, and then the table of doubt that names what may be written by
//! now: a batch whose table comes later has written no page that was read. Pages and checksums fit
//! together whatever happens between two calls, since both are as they were after the same batch.
//! Thread safety: any thread.

use std::io;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::address::bell::Bell;
use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::File;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::old_pages::OldPages;
use crate::journal::checkpoints::table;
use crate::journal::readers::{BatchId, Place, Registration};
use crate::layout::{
    HEAD_BYTES, PAGE_BYTES, TABLE_BASE, ZONE_PAGES, ZONE_STRIDE, ZONE_SUMS_PAGES, ZONE_TABLE_PAGES,
};

/// Bytes of a checksum in the file.
const CHECKSUM_BYTES: u64 = 4;

/// A pool file, as it was after a batch.
#[derive(Debug)]
pub(crate) struct PoolAsOf {
    pool: PoolFile,
    registration: Arc<Registration>,
    /// `None` once something that it needs is not kept any more.
    old: Mutex<Option<OldPages>>,
}

impl PoolAsOf {
    /// A pool as it is now, for a reader that registered before it read the number of the newest
    /// checkpoint.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn new(
        pool: PoolFile,
        number: u64,
        registration: Arc<Registration>,
    ) -> Result<Arc<Self>> {
        let known = known_at(&pool, number)?;
        let old = Mutex::new(Some(OldPages::after(known, Arc::clone(registration.directory()))));
        Ok(Arc::new(Self { pool, registration, old }))
    }

    /// Moves on: from now on reads give the pool as it is when another checkpoint is the newest.
    /// Heap offsets of the pages that may be otherwise since, but for those that records name;
    /// `None` if that is not known any more. The place that the writer knows stays.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn advance(&self, number: u64) -> Result<Option<Vec<u64>>> {
        let mut guard = self.old.lock();
        let Some(old) = &mut *guard else { return Ok(None) };
        // First: from then on batches keep all of their pages, as copies of earlier ones will not
        // be asked for. It needs what it needed until it is there.
        self.registration.set(Place { moment: 0, known: old.known() })?;
        let known = known_at(&self.pool, number)?;
        if !old.refresh(&self.pool, known)? || self.registration.is_overtaken()? {
            return Ok(None);
        }
        let overwritten = old.pages();
        *old = OldPages::after(known, Arc::clone(self.registration.directory()));
        Ok(Some(overwritten))
    }

    /// Whether nothing is kept for its reader any more.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn is_overtaken(&self) -> Result<bool> {
        Ok(self.old.lock().is_none() || self.registration.is_overtaken()?)
    }

    /// The pool as it is now: of its head there is no other.
    pub(in crate::journal) fn now(&self) -> &PoolFile {
        &self.pool
    }

    /// Tells the writer which commit is the last one that its reader sees.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn set_moment(&self, moment: u64) -> Result<()> {
        let known = self.old.lock().as_ref().map(OldPages::known);
        known.map_or(Ok(()), |known| self.registration.set(Place { moment, known }))
    }

    /// Lays what was kept until now over bytes of the file that were read before. False if
    /// something was not kept.
    fn lay(&self, old: &mut OldPages, buffer: &mut [u8], offset: u64) -> Result<bool> {
        let begun = table::newest_begun(self.pool.file().as_ref())?;
        // In this order: what a process does not keep any more it overwrites only then.
        if begun > old.last()
            && (!old.refresh(&self.pool, begun)? || self.registration.is_overtaken()?)
        {
            return Ok(false);
        }
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        while at < end {
            let part = Part::at(at);
            let stop = end.min(part.end);
            let bytes = &mut buffer[(at - offset) as usize..(stop - offset) as usize];
            part.lay(old, at, bytes)?;
            at = stop;
        }
        Ok(true)
    }

    fn overtaken(&self) -> MediumError {
        let source = io::Error::other(
            "the process that writes keeps no more for this reader, which is too old; open it \
             again, or allow the writer more bytes for its readers",
        );
        MediumError::io("read", self.pool.file().path(), None, 0, source)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.pool.file().read_at(buffer, offset)?;
        if offset + buffer.len() as u64 <= HEAD_BYTES {
            return Ok(());
        }
        let mut guard = self.old.lock();
        let Some(old) = &mut *guard else { return Err(self.overtaken().into()) };
        match self.lay(old, buffer, offset) {
            Ok(true) => Ok(()),
            // For good: what is kept for later readers has gaps for this one.
            Ok(false) => {
                *guard = None;
                Err(self.overtaken().into())
            }
            Err(_) if self.registration.is_overtaken()? => {
                *guard = None;
                Err(self.overtaken().into())
            }
            Err(error) => Err(error),
        }
    }
}

/// The last batch whose pages a reader knows that found a checkpoint the newest: all of that one,
/// and what was begun of the next. A table that is not whole is being written, or was never: its
/// batch finds the reader registered.
fn known_at(pool: &PoolFile, number: u64) -> Result<BatchId> {
    Ok(table::newest_whole(pool)?.max(BatchId { number, batch: u64::MAX }))
}

/// A part of the file whose pages are consecutive.
struct Part {
    start: u64,
    end: u64,
    what: What,
}

/// The contents of a part: heap offset of the first page, or of the first whose checksum it has.
enum What {
    Head,
    Checksums(u64),
    Pages(u64),
}

impl Part {
    /// That of a byte of the file.
    fn at(offset: u64) -> Self {
        let Some(behind) = offset.checked_sub(HEAD_BYTES) else {
            return Self { start: 0, end: HEAD_BYTES, what: What::Head };
        };
        let zone = behind / ZONE_STRIDE;
        let start = HEAD_BYTES + zone * ZONE_STRIDE;
        let tables = TABLE_BASE + zone * ZONE_TABLE_PAGES * PAGE_BYTES;
        let data = zone * ZONE_PAGES * PAGE_BYTES;
        let sums_end = start + ZONE_TABLE_PAGES * CHECKSUM_BYTES;
        let tables_start = start + ZONE_SUMS_PAGES * PAGE_BYTES;
        let data_start = tables_start + ZONE_TABLE_PAGES * PAGE_BYTES;
        let parts = [
            (start, sums_end, What::Checksums(tables)),
            (sums_end, tables_start, What::Checksums(data)),
            (tables_start, data_start, What::Pages(tables)),
            (data_start, start + ZONE_STRIDE, What::Pages(data)),
        ];
        let found = parts.into_iter().find(|(_, end, _)| offset < *end);
        let (start, end, what) = found.unwrap_or((0, u64::MAX, What::Head));
        Self { start, end, what }
    }

    /// Lays what was kept over bytes that were read of it, from a byte of the file on.
    fn lay(&self, old: &mut OldPages, at: u64, bytes: &mut [u8]) -> Result<()> {
        let stop = at + bytes.len() as u64;
        let (first, item_bytes) = match self.what {
            What::Head => return Ok(()),
            What::Checksums(first) => (first, CHECKSUM_BYTES),
            What::Pages(first) => (first, PAGE_BYTES),
        };
        let page_at = |at: u64| first + (at - self.start) / item_bytes * PAGE_BYTES;
        for (page, kept) in old.range(page_at(at), page_at(stop - 1) + PAGE_BYTES) {
            let item = self.start + (page - first) / PAGE_BYTES * item_bytes;
            let (from, to) = (item.max(at), (item + item_bytes).min(stop));
            let target = &mut bytes[(from - at) as usize..(to - at) as usize];
            match self.what {
                What::Pages(_) => old.read(kept, target, from - item)?,
                _ => {
                    let checksum = kept.checksum.to_le_bytes();
                    target.copy_from_slice(&checksum[(from - item) as usize..(to - item) as usize]);
                }
            }
        }
        Ok(())
    }
}

impl File for PoolAsOf {
    fn path(&self) -> &Path {
        self.pool.file().path()
    }

    fn len(&self) -> MediumResult<u64> {
        self.pool.file().len()
    }

    fn expect_random(&self) {
        self.pool.file().expect_random();
    }

    fn bell(&self, offset: u64, rings: bool) -> Option<Arc<dyn Bell>> {
        self.pool.file().bell(offset, rings)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        self.read(buffer, offset).map_err(|error| match error {
            Error::Medium(error) => error,
            other => {
                let source = io::Error::other(other.to_string());
                MediumError::io("read", self.pool.file().path(), Some(offset), 0, source)
            }
        })
    }

    fn write_at(&self, _bytes: &[u8], offset: u64) -> MediumResult<()> {
        Err(self.refused("write", Some(offset)))
    }

    fn allocate(&self, offset: u64, _len: u64) -> MediumResult<()> {
        Err(self.refused("allocate", Some(offset)))
    }

    fn punch(&self, offset: u64, _len: u64) -> MediumResult<()> {
        Err(self.refused("punch a hole into", Some(offset)))
    }

    fn set_len(&self, _len: u64) -> MediumResult<()> {
        Err(self.refused("set the length of", None))
    }

    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }
}

impl PoolAsOf {
    fn refused(&self, operation: &'static str, offset: Option<u64>) -> MediumError {
        let source = io::ErrorKind::ReadOnlyFilesystem.into();
        MediumError::io(operation, self.pool.file().path(), offset, 0, source)
    }
}
