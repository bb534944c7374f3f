//! The undo journal of an open heap.
//!
//! Purpose: what transactions call, as of the redo journal, and what only this one has.
//! Invariants: see the modules below. Nothing is written before the first commit, except by
//! recovery, so a heap that is only read is not changed.
//! Thread safety: any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_medium::persist::{Flushing, Persist};
use adamant_medium::storage::Directory;
use parking_lot::Mutex;

use super::append::{Appended, Fresh, Undo};
use super::lane::Lane;
use super::lanes_file::LanesFile;
use super::large::{self, LargeFiles};
use super::layout::entry_seed;
use super::order::Order;
use super::recover::judge;
use super::replay::replay;
use super::scan::{Source, scan};
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::image::{Image, Mapping};
use crate::journal::{JournalStats, Poison, RecordBuilder, Recovery};
use crate::pool_file::PoolFile;

/// Name of the directory of the log.
const LOG_NAME: &str = "log";

/// The undo journal. Dropping it leaves to the next opening what `close` would have done.
#[derive(Debug)]
pub(crate) struct Lanes {
    pub(super) shared: Shared,
    directory: Arc<dyn Directory>,
    pool: PoolFile,
    raised: AtomicU64,
}

impl Lanes {
    /// Makes the file of lanes of a new pool, durably.
    ///
    /// # Errors
    /// `NotDirect` of the medium where memory is none; others of the medium.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        uuid: [u8; 16],
        flushing: Flushing,
    ) -> Result<()> {
        let log_directory = directory.subdirectory(LOG_NAME)?;
        // Refused before anything is made.
        log_directory.persist(flushing)?;
        LanesFile::create(log_directory.as_ref(), uuid)?;
        // Its sync of the directory makes both names durable.
        LargeFiles::new(log_directory)?.create_spare()
    }

    /// Opens the lanes of a pool. Nothing may be read of the pool before [`Lanes::recover`].
    ///
    /// # Errors
    /// `Error::Damaged` for a file that is not what was written; those of the medium.
    pub(crate) fn open(
        directory: &Arc<dyn Directory>,
        pool: PoolFile,
        flushing: Flushing,
    ) -> Result<Self> {
        let log_directory = directory.subdirectory(LOG_NAME)?;
        // The pool's name was found, but whoever gave it may have died before its sync, or goes on
        // here. Names in the log were durable before that.
        directory.sync()?;
        let persist = log_directory.persist(flushing)?;
        let file = LanesFile::open(log_directory.as_ref(), *pool.uuid(), Mapping::Shared)?;
        let watermark = file.watermark()?;
        let lanes = (0..file.lane_count as usize).map(Lane::new).collect();
        let shared = Shared {
            persist,
            order: Order::new(file.lane_count as usize, watermark),
            lanes,
            large: LargeFiles::new(Arc::clone(&log_directory))?,
            seed: entry_seed(pool.uuid()),
            watermark: AtomicU64::new(watermark),
            raising: Mutex::new(()),
            poison: Poison::default(),
            closed: AtomicBool::new(false),
            has_unproven: AtomicBool::new(false),
            file,
        };
        Ok(Self { shared, directory: log_directory, pool, raised: AtomicU64::new(0) })
    }

    /// Brings memory up to date with what the lanes hold beyond the watermark, durably. Work is
    /// bounded by the lanes.
    ///
    /// # Errors
    /// `Error::Damaged` when something durable is not what was written; those of the medium.
    pub(crate) fn recover(&self, image: &Image) -> Result<Recovery> {
        let shared = &self.shared;
        let files = large::left(self.directory.as_ref(), Mapping::Shared)?;
        let lane = |index| Source {
            mapped: &shared.file.mapped,
            start: shared.file.lane_offset(index),
            len: shared.file.lane_bytes,
            path: shared.path(),
        };
        let lanes = (0..shared.lanes.len()).map(lane);
        let sources = lanes.chain(files.iter().map(|left| Source {
            mapped: &left.mapped,
            start: 0,
            len: left.mapped.len(),
            path: &left.path,
        }));
        let watermark = shared.covered();
        let mut found = Vec::new();
        let persist = shared.persist.as_ref();
        for source in sources {
            let known = found.len();
            let end = scan(&source, shared.seed, watermark, &mut found)?;
            if found.len() > known {
                source.mapped.flush(persist, source.start, end);
            }
        }
        let was_closed = found.is_empty();
        let mut recovery = Recovery { was_closed, last_sequence: watermark, ..Recovery::default() };
        if found.is_empty() {
            // What it covers is about to be written over.
            shared.file.settle(persist);
        } else {
            let plan = judge(found, watermark, image)?;
            // Entries that were found may be in the cache alone, because the process died before
            // their fence. Memory must not get ahead of them.
            plan.flush_fresh(persist, image)?;
            persist.fence();
            recovery.pool_bytes = replay(&plan, persist, image)?;
            recovery.records = plan.commits.len() as u64;
            recovery.last_sequence = plan.last;
            shared.file.raise(persist, plan.last);
            shared.watermark.store(plan.last, Ordering::Release);
            shared.order.skip_to(plan.last);
        }
        files.into_iter().for_each(|left| shared.large.give_back_left(left));
        Ok(recovery)
    }

    /// A commit beside transactions shares its fence with what it wrote in place. To be called before
    /// a transaction can begin.
    #[inline]
    pub(crate) fn note_unproven(&self) {
        self.shared.has_unproven.store(true, Ordering::Release);
    }

    /// A transaction has appended an entry: it proves all that ended before the transaction began.
    #[inline]
    pub(crate) fn note_proven(&self) {
        if self.has_unproven() {
            self.shared.has_unproven.store(false, Ordering::Release);
        }
    }

    /// Whether there may be such a commit without an entry behind it.
    #[inline]
    pub(crate) fn has_unproven(&self) -> bool {
        self.shared.has_unproven.load(Ordering::Acquire)
    }

    /// Refuses to go on once writing has ended.
    ///
    /// # Errors
    /// `Error::Poisoned`, `Error::Misuse` once closed.
    pub(crate) fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// Makes a record durable, and void what `undo` saved. See `Shared::append`.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them. Then nothing was appended.
    #[inline(always)]
    pub(crate) fn append<'j>(
        &'j self,
        record: &RecordBuilder,
        fresh: Fresh,
        undo: &mut Option<Undo<'j>>,
        image: &Image,
    ) -> Result<Appended<'j>> {
        self.shared.append(record, fresh, undo, image)
    }

    /// To be told when a record was applied to memory.
    #[inline]
    pub(crate) fn applied(&self, appended: Appended<'_>, record: &RecordBuilder, image: &Image) {
        self.shared.applied(appended, record, image);
    }

    /// Begins a transaction that changes bytes in place.
    ///
    /// # Errors
    /// `Error::Poisoned`.
    pub(crate) fn begin_undo(&self) -> Result<Undo<'_>> {
        self.shared.begin_undo()
    }

    /// How stores to memory become durable.
    #[inline]
    pub(crate) fn persist(&self) -> &dyn Persist {
        self.shared.persist.as_ref()
    }

    /// Backs data pages `0 .. pages` of the pool, durably.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium. Then the pool is as large as it was.
    pub(crate) fn grow(&self, pages: u64) -> Result<()> {
        self.shared.poison.check()?;
        self.pool.grow(pages)?;
        Ok(self.pool.file().sync()?)
    }

    /// Backs data pages that may be holes of the pool, durably.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(crate) fn back(&self, start: u64, pages: u64) -> Result<()> {
        self.shared.poison.check()?;
        self.pool.back(start, pages)?;
        Ok(self.pool.file().sync()?)
    }

    /// Gives the space of free pages back. Nobody needs that to be durable. The watermark must cover
    /// all entries that name them: to replay one would be a store to a hole. That the system has no
    /// space for the way in which a hole is noted is no error.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium.
    pub(crate) fn punch(&self, holes: &[(u64, u64)]) -> Result<()> {
        self.shared.poison.check()?;
        for &(start, end) in holes {
            match self.pool.punch(start, end - start) {
                Err(error) if error.is_out_of_space() => break,
                result => result?,
            }
        }
        Ok(())
    }

    /// Cuts the pool off. The watermark must cover all entries that name pages beyond.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium. The pool may be as long as it was then.
    pub(crate) fn truncate(&self, pages: u64) -> Result<()> {
        self.shared.poison.check()?;
        self.pool.truncate(pages)
    }

    /// The pool file.
    pub(crate) fn pool(&self) -> &PoolFile {
        &self.pool
    }

    /// Ends writing.
    pub(crate) fn poison(&self, error: Error) {
        let _ = self.shared.poison.set(error);
    }

    /// Gives up all entries, as far as no transaction is in progress: memory holds what they say.
    ///
    /// # Errors
    /// `Error::Poisoned`.
    pub(crate) fn checkpoint(&self, image: &Image) -> Result<()> {
        self.shared.poison.check()?;
        if !self.shared.closed.load(Ordering::Acquire)
            && self.shared.order.last() > self.shared.covered()
        {
            self.raise(image);
        }
        Ok(())
    }

    fn raise(&self, image: &Image) {
        self.shared.advance(None, image);
        self.shared.large.remove_covered(self.shared.covered());
        self.raised.fetch_add(1, Ordering::Relaxed);
    }

    /// Sequence number of the last record.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.shared.order.last()
    }

    /// Counters.
    pub(crate) fn stats(&self) -> JournalStats {
        let shared = &self.shared;
        let counts = shared.persist.counts();
        let last = shared.order.last();
        let lanes_bytes = shared.file.mapped.len();
        JournalStats {
            last_sequence: last,
            durable_sequence: last,
            applied_sequence: shared.covered(),
            log_appended_bytes: shared.order.sum(|slot| &slot.bytes),
            log_used_bytes: 0,
            log_held_bytes: 0,
            log_allocated_bytes: lanes_bytes + shared.large.bytes(),
            records: shared.order.sum(|slot| &slot.records),
            syncs: 0,
            checkpoints: self.raised.load(Ordering::Relaxed),
            pool_written_bytes: 0,
            fences: counts.fences,
            flushed_lines: counts.lines,
        }
    }

    /// Gives up all entries, so that the next opening has nothing to do. Waits for commits in
    /// progress; later ones are refused.
    ///
    /// # Errors
    /// `Error::Poisoned`.
    pub(crate) fn close(&self, image: &Image) -> Result<()> {
        let was_closed = self.shared.closed.swap(true, Ordering::AcqRel);
        // Whoever held a lane before has let go of it after this; who comes later is refused.
        for lane in &self.shared.lanes {
            drop(lane.state.take());
        }
        self.shared.poison.check()?;
        if !was_closed && self.shared.order.last() > self.shared.covered() {
            self.raise(image);
        }
        Ok(())
    }
}
