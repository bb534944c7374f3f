//! The journal of a read-only heap.
//!
//! Purpose: recovery in memory, for any number of processes at once: the tail of the log is applied
//! to a private image.
//! Invariants: no file is written, nor made. The image is what recovery would make of the pool;
//! where recovery would refuse, so does this.
//! Thread safety: any thread; nothing changes once it is open.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File, Lock};

use crate::collections::range_set::RangeSet;
use crate::error::{Error, Result};
use crate::image::kind::ImageKind;
use crate::image::mapping::Image;
use crate::image::memory_bounds::Bounds;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::table::Doubt;
use crate::journal::readers::{ReaderLock, Registration};
use crate::journal::recovery::as_of::PoolAsOf;
use crate::journal::recovery::backup::{Still, back_up_still};
use crate::journal::recovery::overlay::Private;
use crate::journal::recovery::recover::Recovery;
use crate::journal::recovery::validate::validate;
use crate::journal::stats::JournalStats;
use crate::layout::{LOG_NAME, PAGE_BYTES, TABLE_BASE, descriptor_offset, file_offset};

/// The result of opening: the journal, the image as recovered, and the recovery's figures.
type Found = (ReadOnly, Image, Recovery);

/// Attempts to open beside a process that writes, those of them that may find damage, and the pause
/// between two.
const ATTEMPTS_MAX: u32 = 200;
const DAMAGED_ATTEMPTS_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// A pool, and its log beyond it.
#[derive(Debug)]
pub(crate) struct ReadOnly {
    pool: PoolFile,
    /// Those of the log beyond it; `None`: it has no log.
    records: Option<u64>,
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
    ) -> Result<Found> {
        Self::open_pool(directory, PoolFile::open_in(directory.as_ref())?, bytes_max, bounds, kind)
    }

    /// The same beside a process that may write the heap meanwhile, as of some commit of it.
    ///
    /// # Errors
    /// As [`ReadOnly::open`]; an error of kind `ResourceBusy` if checkpoints follow each other too
    /// fast.
    pub(crate) fn open_beside(
        directory: &Arc<dyn Directory>,
        bytes_max: u64,
        bounds: Bounds,
    ) -> Result<(Box<dyn Lock>, Found)> {
        let number = |pool: &PoolFile| {
            Ok::<_, Error>(pool.newest_checkpoint()?.map_or(0, |newest| newest.number.get()))
        };
        let mut damaged = 0;
        for _ in 0..ATTEMPTS_MAX {
            let registration = Arc::new(Registration::new(directory.as_ref())?);
            let lock = ReaderLock(Arc::clone(&registration));
            let now = PoolFile::open_in(directory.as_ref())?;
            // First: pages as they are before a checkpoint, with the log behind it, lack something.
            let before = number(&now)?;
            let file = PoolAsOf::new(now, before, Arc::clone(&registration))?;
            let opened = PoolFile::open(Arc::clone(&file) as Arc<dyn File>).and_then(|pool| {
                Self::open_pool(directory, pool, bytes_max, bounds, ImageKind::Filled)
            });
            // Behind a checkpoint log files are given back, and may be overwritten while they are
            // read.
            let after = number(file.now())?;
            match opened {
                Ok(opened) if after == before => {
                    file.set_moment(opened.0.last_sequence().max(1))?;
                    if !registration.is_overtaken()? {
                        return Ok((Box::new(lock), opened));
                    }
                }
                // A record that is half written looks like damage, too.
                Err(Error::Damaged { .. }) if after == before && damaged < DAMAGED_ATTEMPTS_MAX => {
                    damaged += 1;
                }
                Err(error) if after == before && !registration.is_overtaken()? => {
                    return Err(error);
                }
                _ => {}
            }
            thread::sleep(PAUSE);
        }
        let source = io::Error::new(
            io::ErrorKind::ResourceBusy,
            "each attempt met the end of a checkpoint, or was too slow for what is kept for readers; allow \
             the process that writes a longer log, and more bytes for its readers",
        );
        Err(MediumError::io("read beside a writer", directory.path(), None, 0, source).into())
    }

    fn open_pool(
        directory: &Arc<dyn Directory>,
        pool: PoolFile,
        bytes_max: u64,
        bounds: Bounds,
        kind: ImageKind,
    ) -> Result<Found> {
        // Nothing is stored to a mapped image, but a filled one grows by what is read.
        let bounds = if kind.is_filled() { bounds } else { Bounds::NONE };
        let image = Image::map(pool.file(), pool.pages_backed(), bytes_max, bounds, kind)?;
        // Opening the subdirectory would create it. A closed store does not need it.
        let has_log = directory.list()?.iter().any(|name| name == LOG_NAME);
        let log = has_log.then(|| directory.subdirectory(LOG_NAME)).transpose()?;
        let mut opened = Self {
            pool,
            records: None,
            torn_pages: 0,
            unlike: RangeSet::default(),
            last_sequence: 0,
            checkpoints: 0,
            log_bytes: log.as_deref().map_or(Ok(0), log_bytes)?,
        };
        let records = opened.replay(log.as_deref(), &image)?;
        let recovery = Recovery {
            was_closed: records == 0 && opened.records.is_none(),
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
        let doubt = Doubt::read(&self.pool, self.checkpoints)?;
        self.torn_pages = doubt.torn(&self.pool)?;
        let mut private = Private::new(&self.pool, image, &doubt, BTreeSet::new())?;
        private.lay(&tail, &mut Err)?;
        let (unlike, lost) = private.finish()?;
        if let Some(page) = lost.first() {
            let mut bytes = vec![0; PAGE_BYTES as usize];
            self.pool.file().read_at(&mut bytes, file_offset(*page))?;
            self.pool.verify_page(*page, &bytes)?;
        }
        let records = tail.records();
        self.unlike = unlike;
        self.records = Some(records);
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
        back_up_still(still, self.last_sequence, target, go_on)
    }

    /// Sequence number of the last record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Counters; those of work done are 0.
    pub(crate) fn stats(&self) -> JournalStats {
        let records = self.records.unwrap_or(0);
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
