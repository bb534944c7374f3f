//! The journal of a read-only heap.
//!
//! Purpose: recovery in memory, for any number of processes at once: the tail of the log is applied
//! to a private image.
//! Invariants: no file is written, nor made. The image is what recovery would make of the pool;
//! where recovery would refuse, so does this.
//! Thread safety: any thread; nothing changes once it is open.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::collections::range_set::RangeSet;
use crate::error::{Error, Result};
use crate::image::kind::ImageKind;
use crate::image::mapping::Image;
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::table::Doubt;
use crate::journal::recovery::backup::{Still, back_up_still};
use crate::journal::recovery::overlay::Private;
use crate::journal::recovery::recover::Recovery;
use crate::journal::recovery::tail::Tail;
use crate::journal::recovery::validate::validate;
use crate::journal::stats::JournalStats;
use crate::layout::{LOG_NAME, PAGE_BYTES, TABLE_BASE, descriptor_offset, file_offset};

/// A pool, and its log beyond it.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    pool: PoolFile,
    tail: Option<Tail>,
    doubt: Doubt,
    torn_pages: u64,
    /// Heap offsets of the pages whose checksum in the file does not apply: the tail names them, or
    /// they are in doubt.
    unlike: RangeSet,
    last_sequence: u64,
    checkpoints: u64,
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
    ) -> Result<(Self, Image, Recovery)> {
        let pool = PoolFile::open_in(directory.as_ref())?;
        // Nothing is stored to a mapped image, but a filled one grows by what is read.
        let bounds = if kind.is_filled() { bounds } else { Bounds::NONE };
        let image = Image::map(pool.file(), pool.pages_backed(), bytes_max, bounds, kind)?;
        // Opening the subdirectory would create it. A closed store does not need it.
        let has_log = directory.list()?.iter().any(|name| name == LOG_NAME);
        let log = has_log.then(|| directory.subdirectory(LOG_NAME)).transpose()?;
        let mut opened = Self {
            pool,
            tail: None,
            doubt: Doubt::default(),
            torn_pages: 0,
            unlike: RangeSet::default(),
            last_sequence: 0,
            checkpoints: 0,
            log_bytes: log.as_deref().map_or(Ok(0), log_bytes)?,
        };
        let records = opened.replay(log.as_deref(), &image)?;
        let recovery = Recovery {
            was_closed: records == 0 && opened.tail.is_none(),
            records,
            last_sequence: opened.last_sequence,
            torn_pages: opened.torn_pages,
            ..Recovery::default()
        };
        Ok((opened, image, recovery))
    }

    /// Applies the tail of the log to the image; returns the number of its records.
    fn replay(&mut self, log: Option<&dyn Directory>, image: &Image) -> Result<u64> {
        let mut validated = validate(&self.pool, log, &mut Err)?;
        let Some(newest) = validated.newest else { return Err(self.pool.no_checkpoint()) };
        self.last_sequence = newest.applied.get();
        self.checkpoints = newest.number.get();
        let Some(tail) = validated.tails.pop() else { return Ok(0) };
        self.last_sequence = tail.last_sequence();
        self.doubt = Doubt::read(&self.pool, self.checkpoints)?;
        self.torn_pages = self.doubt.torn(&self.pool)?;
        let mut private = Private::new(&self.pool, image, &self.doubt, BTreeSet::new())?;
        private.lay(&tail, &mut Err)?;
        let (unlike, lost) = private.finish()?;
        if let Some(page) = lost.first() {
            let mut bytes = vec![0; PAGE_BYTES as usize];
            self.pool.file().read_at(&mut bytes, file_offset(*page))?;
            self.pool.verify_page(*page, &bytes)?;
        }
        let records = tail.records();
        self.unlike = unlike;
        self.tail = Some(tail);
        Ok(records)
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
        while let Some((start, end)) = self.unlike.first_in(at, u64::MAX) {
            // No further than the end of the heap: the log may name pages that were cut off since.
            let heap_end = if start < TABLE_BASE { pages * PAGE_BYTES } else { table_end(pages) };
            each(start, end.min(heap_end).saturating_sub(start))?;
            at = end;
        }
        each(backed * PAGE_BYTES, (pages - backed) * PAGE_BYTES)?;
        each(table_end(backed), table_end(pages) - table_end(backed))
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
        self.unlike.first_in(page, page + PAGE_BYTES).is_some()
    }

    /// Makes an empty file a pool with the contents of this one; see `Journal::back_up`.
    ///
    /// # Errors
    /// As `Journal::back_up`.
    pub(crate) fn back_up(&self, target: &PoolFile, go_on: &dyn Fn() -> Result<()>) -> Result<u64> {
        let is_unlike = |page| self.is_unlike(page);
        let still = Still { pool: &self.pool, tail: self.tail.as_ref(), doubt: &self.doubt };
        back_up_still(still, self.last_sequence, target, &is_unlike, go_on)
    }

    /// Sequence number of the last record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Counters; those of work done are 0.
    pub(crate) fn stats(&self) -> JournalStats {
        let records = self.tail.as_ref().map_or(0, Tail::records);
        JournalStats {
            last_sequence: self.last_sequence,
            durable_sequence: self.last_sequence,
            applied_sequence: self.last_sequence - records,
            log_allocated_bytes: self.log_bytes,
            checkpoints: self.checkpoints,
            ..JournalStats::default()
        }
    }
}

/// Bytes of all files of the log.
fn log_bytes(log: &dyn Directory) -> Result<u64> {
    let mut bytes = 0;
    for name in log.list()? {
        bytes += log.open(&name)?.map_or(Ok(0), |file| file.len())?;
    }
    Ok(bytes)
}
