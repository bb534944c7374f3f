//! Checkpoints: bring the pool file up to date with the log.
//!
//! Purpose: a checkpoint copies dirty pages out of memory and writes them to the pool: it reads
//! neither the log nor the pool, except for checksums. The order of R1, in one place: log sync,
//! table, pages, pool sync, durable position, and only then reuse of log files. Rules C1 to C10 and
//! why recovery is right: docs/decisions/0107-checkpoint-from-the-image.md.
//! Invariants: no step follows a failed one: every error here ends writing. A generation of the log
//! starts durably before its first record (R4). Position 0 says that the pool holds everything: so
//! a closed store does not search its log.
//! Thread safety: `CheckpointState` belongs to the holder of its lock.

use std::sync::Arc;

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::batch::{BatchWriter, Copies};
use crate::journal::checkpoints::holds::{GivingUp, Holds, Kept};
use crate::journal::checkpoints::keepers::Keepers;
use crate::journal::checkpoints::pace::Pace;
use crate::journal::checkpoints::source::PageSource;
use crate::journal::records::chain::Cursor;
use crate::journal::records::log::Log;
use crate::journal::records::log_file::LogFile;
use crate::layout::{Checkpoint, PAGE_BYTES};

/// The state of checkpoints: the newest one, how much of the log the pool file holds, and figures.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct CheckpointState {
    /// Number of the newest checkpoint.
    pub(in crate::journal) number: u64,
    /// Generation of the log; until it is started, the highest one ever seen.
    pub(in crate::journal) generation: u64,
    /// Start of the newest checkpoint: all records before it are in the pool. Until the log is
    /// started, the highest ordinal ever seen.
    pub(in crate::journal) cursor: Cursor,
    /// If later records are held back: the position after the last record of which everything
    /// before is in the pool, too.
    pub(in crate::journal) held: Option<Kept>,
    /// Whether this process made the newest checkpoint durable. One that was only read may be in
    /// the page cache alone, after a failed sync (R4).
    pub(in crate::journal) is_durable: bool,
    /// Data pages that the file backs durably.
    pub(in crate::journal) pages: u64,
    /// Bytes appended when the newest checkpoint began.
    pub(in crate::journal) appended_bytes: u64,
    /// Bytes of pages written, of data and of descriptors.
    pub(in crate::journal) written_bytes: u64,
}

/// Options of a checkpoint.
#[derive(Clone, Copy)]
pub(in crate::journal) struct CheckpointOptions<'a> {
    /// No record follows, if nothing is left behind.
    pub(in crate::journal) is_last: bool,
    /// Whether the caller keeps all other threads from writing.
    pub(in crate::journal) is_alone: bool,
    /// Which holds are given up.
    pub(in crate::journal) gives_up: GivingUp,
    /// Bytes of the log that they may keep.
    pub(in crate::journal) held_bytes_max: u64,
    /// Data pages, by number, that records have made free: zeros in the file, or holes.
    pub(in crate::journal) holes: &'a [(u64, u64)],
}

/// The parts that a checkpoint works on.
#[derive(Clone, Copy)]
pub(in crate::journal) struct Target<'a> {
    pub(in crate::journal) pool: &'a PoolFile,
    pub(in crate::journal) log: &'a Log,
    pub(in crate::journal) source: &'a dyn PageSource,
    pub(in crate::journal) holds: &'a Holds,
    pub(in crate::journal) pace: &'a Pace,
    pub(in crate::journal) keepers: &'a Keepers,
    /// Called when a checkpoint is durable, before any log file is reused.
    pub(in crate::journal) published: &'a dyn Fn(&CheckpointState),
}

impl CheckpointState {
    /// The position from which on the log is needed.
    pub(in crate::journal) fn needed(&self) -> Cursor {
        self.held.map_or(self.cursor, |held| held.cursor)
    }

    /// Bytes of the log that are in the pool except for held extents, and are kept for these.
    pub(in crate::journal) fn held_bytes(&self) -> u64 {
        self.held.map_or(0, |held| self.appended_bytes.saturating_sub(held.appended_bytes))
    }

    /// Writes the next checkpoint from the state of `self`, and makes it durable. `applying` says
    /// that pages are changed next.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn publish(
        &mut self,
        pool: &PoolFile,
        durable: u64,
        applying: bool,
    ) -> Result<()> {
        self.number += 1;
        let needed = self.needed();
        pool.write_checkpoint(Checkpoint {
            number: self.number.into(),
            generation: self.generation.into(),
            applied: needed.sequence.into(),
            durable: durable.into(),
            ordinal: needed.ordinal.into(),
            position: needed.position.into(),
            pages: self.pages.into(),
            applying: u64::from(applying).into(),
            previous: needed.previous.into(),
            checksum: 0.into(),
        })?;
        pool.file().sync()?;
        self.is_durable = true;
        Ok(())
    }

    /// Starts the next generation of the log. The pool must hold all of the one before.
    ///
    /// # Errors
    /// Those of the medium. One that comes while the file is made, such as out of space, leaves all
    /// as it was; any later one ends writing.
    pub(in crate::journal) fn start(&mut self, pool: &PoolFile, log: &Log) -> Result<()> {
        log.files.prepare_first()?;
        let Some(file) = log.files.take_spare() else {
            debug_assert!(false, "files were made ready, and none is in use");
            return Ok(());
        };
        self.start_in(pool, log, file).map_err(|error| log.poison.set(error))
    }

    fn start_in(&mut self, pool: &PoolFile, log: &Log, file: Arc<LogFile>) -> Result<()> {
        if !self.is_durable {
            // The checkpoint before this one may need the log file that is overwritten next.
            self.publish(pool, self.cursor.sequence, false)?;
        }
        self.generation += 1;
        self.cursor = log.start(file, self.generation, self.cursor.ordinal + 1)?;
        self.publish(pool, self.cursor.sequence, false)
    }

    /// Brings what is appended by now into the pool, durably, and gives back the log files that are
    /// no longer needed. Held extents stay out, unless they are given up. Returns whether there was
    /// anything to do.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium. Any of them ends writing (R1).
    pub(in crate::journal) fn checkpoint(
        &mut self,
        to: Target<'_>,
        asked: CheckpointOptions<'_>,
    ) -> Result<bool> {
        let Target { log, source, holds, .. } = to;
        log.poison.check()?;
        let stats = log.stats();
        let bytes_max = asked.held_bytes_max;
        let has_given_up =
            holds.give_up(asked.gives_up, stats.durable, log.appended_bytes(), bytes_max);
        let has_news = stats.last > self.cursor.sequence || !asked.holes.is_empty();
        let place = |kept: Option<Kept>| kept.map(|kept| kept.cursor.sequence);
        let moves = place(self.held) != place(holds.oldest(stats.durable));
        if has_news || has_given_up || moves || asked.is_last {
            self.copy_pages(to, asked).map_err(|error| log.poison.set(error))?;
            return Ok(true);
        }
        // Bytes that were stored and are in no record were undone, or belong to no block.
        source.hold(asked.is_alone, &mut || {
            if log.end().sequence == self.cursor.sequence
                && log.poison.check().is_ok()
                && let Some(epoch) = source.end_epoch()
            {
                source.note_covered(epoch);
            }
        });
        Ok(false)
    }

    /// Copies dirty pages, from the first to the last, and writes them in batches.
    fn copy_pages(&mut self, to: Target<'_>, asked: CheckpointOptions<'_>) -> Result<()> {
        let Target { pool, log, source, .. } = to;
        let before = Kept { cursor: self.cursor, appended_bytes: self.appended_bytes };
        let mut begin = None;
        source.hold(asked.is_alone, &mut || {
            begin = Some((log.end(), log.appended_bytes(), source.end_epoch()));
        });
        let Some((begin, appended_bytes, epoch)) = begin else { return Ok(()) };
        // After each hold: the writer before may have ended writing with memory that is not in the
        // log (C2), and its appended record may be durable.
        log.poison.check()?;
        let mut step = to.pace.begin(appended_bytes, log.room_bytes(), source.dirty_pages());
        let mut writer = BatchWriter::new(self.number + 1, 0, to.keepers.clone());
        let (mut copies, mut next) = (Copies::default(), Some(0));
        let (mut last, mut held) = (begin.sequence, None);
        while next.is_some() {
            copies.clear();
            while let Some(page) = next.filter(|_| !copies.is_full()) {
                let mut copied = Ok(None);
                source.hold(asked.is_alone, &mut || {
                    let held_end = |page| to.holds.hold_back(page, before);
                    copied = source.copy(page, epoch, &mut copies, &held_end);
                    // Includes the pages that were left out: they were free by then (C4).
                    last = log.stats().last;
                    // Here: extents freed later are forgotten, and their free may not be durable.
                    held = to.holds.oldest(last);
                });
                log.poison.check()?;
                next = copied?;
            }
            let batch = copies.batch();
            if !batch.is_empty() {
                log.sync(last)?;
                writer.write(pool, &batch, last)?;
                self.written_bytes += batch.len() as u64 * PAGE_BYTES;
                step.advance(batch.len() as u64);
            }
        }
        log.sync(last)?;
        debug_assert!(
            asked.holes.is_empty() || !to.keepers.savepoints.has_any(),
            "nothing is given back while there is a savepoint"
        );
        for &(start, end) in asked.holes {
            let _no_reader = pool.hold_pages();
            pool.clear(start, end - start)?;
        }
        // The pool may grow meanwhile: pages backed now are durable after the sync.
        let pages = pool.pages_backed();
        pool.file().sync()?;
        self.pages = pages;
        self.cursor = begin;
        self.appended_bytes = appended_bytes;
        self.held = held;
        self.give_back(to, asked.is_last)?;
        epoch.into_iter().for_each(|epoch| source.note_covered(epoch));
        Ok(())
    }

    /// Publishes durably how far the pool is, and only then gives log files back (C9).
    fn give_back(&mut self, to: Target<'_>, is_last: bool) -> Result<()> {
        let Target { pool, log, published, .. } = to;
        #[cfg(test)]
        to.holds.meanwhile();
        let durable = log.stats().durable;
        if is_last {
            debug_assert!(self.held.is_none(), "all holds were given up");
            debug_assert_eq!(self.cursor.sequence, log.stats().last, "nothing is left behind");
            self.cursor.position = 0;
        }
        let free_below = if is_last { u64::MAX } else { self.needed().ordinal };
        self.publish(pool, durable, false)?;
        // Before that: a backup begins at the published position, and holds the files first.
        published(self);
        log.files.recycle(free_below)
    }
}
