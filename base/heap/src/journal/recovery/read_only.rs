//! The journal of a read-only heap.
//!
//! Purpose: recovery in memory, for any number of processes at once: the tail of the log is applied
//! to a private image.
//! Invariants: no file is written, nor made. The image is what recovery would make of the pool;
//! where recovery would refuse, so does this.
//! Thread safety: any thread; nothing changes once it is open.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use adamant_medium::address::bell::Bell;
use adamant_medium::storage::Directory;
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::image::kind::ImageKind;
use crate::image::mapping::Image;
use crate::image::mapping::guards::Exclusive;
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::page_checksums::verify_page;
use crate::journal::checkpoints::table::Doubt;
use crate::journal::records::chain::Cursor;
use crate::journal::recovery::as_of::PoolAsOf;
use crate::journal::recovery::backup::{Still, back_up_still};
use crate::journal::recovery::overlay::{Overlaid, Private};
use crate::journal::recovery::recover::Recovery;
use crate::journal::recovery::tail::Tail;
use crate::journal::recovery::validate::validate;
use crate::journal::stats::JournalStats;
use crate::layout::{LOG_NAME, PAGE_BYTES, TABLE_BASE, descriptor_offset, file_offset};

/// The result of opening: the journal, the image as recovered, and the recovery's figures.
pub(super) type Found = (ReadOnly, Image, Recovery);

/// A pool, and its log beyond it.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    pub(super) pool: PoolFile,
    /// The same as of a moment, if another process may write it.
    pub(super) as_of: Option<Arc<PoolAsOf>>,
    /// Ends waits for the process that writes; empty until that has one, and a thread waits.
    pub(super) bell: OnceLock<Arc<dyn Bell>>,
    /// Changed only by a refresh.
    pub(super) applied: RwLock<Applied>,
}

/// The log beyond a pool, as it was applied to an image.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// Its records; `None`: there is no log.
    records: Option<u64>,
    torn_pages: u64,
    /// Heap offsets of the pages whose checksum in the file does not apply: the tail names them, or
    /// they are in doubt.
    pub(super) overlaid: Overlaid,
    /// The end of the tail.
    pub(super) end: Option<Cursor>,
    pub(super) last_sequence: u64,
    /// Number of the newest checkpoint.
    pub(super) checkpoints: u64,
    log_bytes: u64,
}

impl ReadOnly {
    /// Reads a pool and its journal, and returns the image that recovery would make of it.
    ///
    /// # Errors
    /// `Error::Unsupported` for a file that is no pool or a newer one, `Error::Damaged` when
    /// durable data is damaged; those of the medium.
    pub(crate) fn open(
        directory: &Arc<dyn Directory>,
        bytes_max: u64,
        bounds: Bounds,
        kind: ImageKind,
    ) -> Result<Found> {
        Self::open_pool(directory, PoolFile::open_in(directory.as_ref())?, bytes_max, bounds, kind)
    }

    pub(super) fn open_pool(
        directory: &Arc<dyn Directory>,
        pool: PoolFile,
        bytes_max: u64,
        bounds: Bounds,
        kind: ImageKind,
    ) -> Result<Found> {
        // Nothing is stored to a mapped image, but a filled one grows by what is read.
        let bounds = if kind.is_filled() { bounds } else { Bounds::NONE };
        let image = Image::map(pool.file(), pool.pages_backed(), bytes_max, bounds, kind)?;
        let applied = Applied::new(directory.as_ref(), &pool, &mut image.write())?;
        let recovery = Recovery {
            was_closed: applied.records.is_none(),
            records: applied.records.unwrap_or(0),
            last_sequence: applied.last_sequence,
            torn_pages: applied.torn_pages,
            ..Recovery::default()
        };
        let (as_of, bell, applied) = (None, OnceLock::new(), RwLock::new(applied));
        Ok((Self { pool, as_of, bell, applied }, image, recovery))
    }

    /// Calls `each` with the pages of the image that differ from the file: heap offset and length
    /// of each range.
    ///
    /// # Errors
    /// Those of `each`.
    pub(crate) fn unlike_file(
        &self,
        image: &Image,
        each: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let table_end = |pages| descriptor_offset(pages).next_multiple_of(PAGE_BYTES);
        let (backed, pages) = (self.pool.pages_backed(), image.pages());
        let mut at = 0;
        let applied = self.applied.read();
        while let Some((start, end)) = applied.overlaid.unlike.first_in(at, u64::MAX) {
            // No further than the end of the heap: the log may name pages that were cut off since.
            let heap_end = if start < TABLE_BASE { pages * PAGE_BYTES } else { table_end(pages) };
            each(start, end.min(heap_end).saturating_sub(start))?;
            at = end;
        }
        each(backed * PAGE_BYTES, (pages - backed) * PAGE_BYTES)?;
        each(table_end(backed), table_end(pages) - table_end(backed))
    }

    /// Whether another process may write the pool.
    pub(crate) fn is_beside_writer(&self) -> bool {
        self.as_of.is_some()
    }

    /// The pool file.
    pub(crate) fn pool(&self) -> &PoolFile {
        &self.pool
    }

    /// Verifies all pages of the file except those that the log names, which were verified before.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(Error)) -> Result<u64> {
        self.pool.verify(&mut |page, error| {
            if !self.is_unlike(page) {
                on_damage(error);
            }
        })
    }

    fn is_unlike(&self, page: u64) -> bool {
        self.applied.read().overlaid.unlike.first_in(page, page + PAGE_BYTES).is_some()
    }

    /// Makes an empty file a pool with the contents of this one; see `Journal::back_up`.
    ///
    /// # Errors
    /// As `Journal::back_up`.
    pub(crate) fn back_up(
        &self,
        image: &Image,
        target: &PoolFile,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let mut unlike = Vec::new();
        self.unlike_file(image, &mut |offset, len| {
            unlike.push((offset, len));
            Ok(())
        })?;
        let is_named = &|page| self.is_unlike(page);
        let still = Still { pool: &self.pool, image, unlike, is_named };
        back_up_still(still, self.last_sequence(), target, go_on)
    }

    /// Sequence number of the last record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.applied.read().last_sequence
    }

    /// Counters; those of work done are 0.
    pub(crate) fn stats(&self) -> JournalStats {
        let applied = self.applied.read();
        JournalStats {
            last_sequence: applied.last_sequence,
            durable_sequence: applied.last_sequence,
            applied_sequence: applied.last_sequence - applied.records.unwrap_or(0),
            log_allocated_bytes: applied.log_bytes,
            checkpoints: applied.checkpoints,
            ..JournalStats::default()
        }
    }
}

impl Applied {
    /// Applies the log of a directory to an image of its pool.
    ///
    /// # Errors
    /// As [`ReadOnly::open`].
    pub(super) fn new(
        directory: &dyn Directory,
        pool: &PoolFile,
        image: &mut Exclusive<'_>,
    ) -> Result<Self> {
        let log = log_of(directory)?;
        let log_bytes = log.as_deref().map_or(Ok(0), log_bytes)?;
        let mut validated = validate(pool, log.as_deref(), &mut Err)?;
        let Some(newest) = validated.newest else { return Err(pool.no_checkpoint()) };
        let (last_sequence, checkpoints) = (newest.applied.get(), newest.number.get());
        let mut applied = Self { last_sequence, checkpoints, log_bytes, ..Self::default() };
        let Some(tail) = validated.tails.pop() else { return Ok(applied) };
        let doubt = Doubt::read(pool, checkpoints)?;
        applied.torn_pages = doubt.torn(pool)?;
        applied.lay(pool, &tail, Private::new(pool, image, &doubt, BTreeSet::new())?)?;
        Ok(applied)
    }

    /// Applies a tail to a private image.
    ///
    /// # Errors
    /// As [`ReadOnly::open`].
    pub(super) fn lay(
        &mut self,
        pool: &PoolFile,
        tail: &Tail,
        mut private: Private<'_, '_>,
    ) -> Result<()> {
        private.lay(tail, &mut Err)?;
        let (overlaid, lost) = private.finish()?;
        if let Some(page) = lost.first() {
            let mut bytes = vec![0; PAGE_BYTES as usize];
            pool.file().read_at(&mut bytes, file_offset(*page))?;
            verify_page(&**pool.file(), *page, &bytes)?;
        }
        self.overlaid = overlaid;
        self.records = Some(self.records.unwrap_or(0) + tail.records());
        self.last_sequence = tail.last_sequence();
        self.end = Some(tail.end);
        Ok(())
    }
}

/// The log of a store; `None` if it has none, as a closed one may. Opening the directory would make
/// it.
pub(super) fn log_of(directory: &dyn Directory) -> Result<Option<Arc<dyn Directory>>> {
    let is_there = directory.list()?.iter().any(|name| name == LOG_NAME);
    Ok(is_there.then(|| directory.subdirectory(LOG_NAME)).transpose()?)
}

/// Bytes of all files of the log.
fn log_bytes(log: &dyn Directory) -> Result<u64> {
    let mut bytes = 0;
    for name in log.list()? {
        bytes += log.open(&name)?.map_or(Ok(0), |file| file.len())?;
    }
    Ok(bytes)
}
