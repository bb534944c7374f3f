//! Checkpoints: how far the pool file has taken the log.
//!
//! Purpose: the order of R1, in one place: log sync, apply, pool sync, durable position, and only
//! then reuse of log files.
//! Invariants: no step follows a failed one: every error here ends writing. A generation of the
//! log starts durably before its first record (R4). Position 0 says that the pool holds
//! everything: so a store that was closed has nothing to look for in its log.
//! Thread safety: `Applied` belongs to whoever holds its lock.

use std::sync::Arc;

use adamant_wire::frame::log_seed;
use adamant_wire::mutants::is_planted;

use super::apply::{Purpose, apply};
use super::chain::Cursor;
use super::files::Used;
use super::holds::{Filter, GivingUp, Holds, Kept};
use super::log::Log;
use super::log_file::LogFile;
use crate::error::{Error, Result};
use crate::layout::Checkpoint;
use crate::pool_file::PoolFile;

/// Recovery where an applier was at work: what does not fit its checksum may be its doing.
const TORN: Purpose = Purpose::Recovery { torn: true };

/// What the pool file holds of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applied {
    /// Number of the newest checkpoint.
    pub(super) number: u64,
    /// Generation of the log; until it is started, the highest one ever seen.
    pub(super) generation: u64,
    /// After the last record in the pool; until the log is started, the highest ordinal ever seen.
    pub(super) cursor: Cursor,
    /// After the last record of which all that came before is in the pool, too, where something of later
    /// ones is held back.
    pub(super) held: Option<Kept>,
    /// Whether this process made the newest checkpoint durable. One that was only read may be in
    /// the page cache alone, after a sync that failed (R4).
    pub(super) is_durable: bool,
    /// Data pages that the file backs durably.
    pub(super) pages: u64,
    /// Bytes appended when the newest checkpoint was made.
    pub(super) appended_bytes: u64,
    /// Bytes of data pages written.
    pub(super) pool_bytes: u64,
}

/// What a checkpoint is made for.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// No record follows if nothing is left behind.
    pub(super) is_last: bool,
    /// Which holds are given up.
    pub(super) gives_up: GivingUp,
    /// Bytes of the log that they may keep.
    pub(super) held_bytes_max: u64,
    /// Whether somebody waits.
    pub(super) is_waited: &'a dyn Fn() -> bool,
}

impl Applied {
    /// From where on the log is needed.
    pub(super) fn needed(&self) -> Cursor {
        self.held.map_or(self.cursor, |held| held.cursor)
    }

    /// Bytes of the log that are in the pool but for what is held back, and kept for that.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held.map_or(0, |held| self.appended_bytes.saturating_sub(held.appended_bytes))
    }

    /// Writes the next checkpoint, which says what `self` says, and makes it durable. `applying`
    /// says that pages are changed next.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn publish(&mut self, pool: &PoolFile, durable: u64, applying: bool) -> Result<()> {
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
    /// Those of the medium. Out of space leaves all as it was; any other one ends writing.
    pub(super) fn start(&mut self, pool: &PoolFile, log: &Log) -> Result<()> {
        log.files.prepare_first()?;
        let Some(file) = log.files.take_spare() else {
            debug_assert!(false, "files were made ready, and none is in use");
            return Ok(());
        };
        self.start_in(pool, log, file).map_err(|error| log.poison.set(error))
    }

    fn start_in(&mut self, pool: &PoolFile, log: &Log, file: Arc<LogFile>) -> Result<()> {
        if !self.is_durable && !is_planted("R4.goes-on-from-a-checkpoint-in-the-cache") {
            // What is overwritten next may be needed by the checkpoint before this one.
            self.publish(pool, self.cursor.sequence, false)?;
        }
        self.generation += u64::from(!is_planted("R4.goes-on-in-the-same-generation"));
        self.cursor = log.start(file, self.generation, self.cursor.ordinal + 1)?;
        if is_planted("R4.appends-before-the-generation-is-durable") {
            return Ok(());
        }
        self.publish(pool, self.cursor.sequence, false)
    }

    /// Takes what is appended by now to the pool, durably, and gives the log files back that nothing
    /// needs any more; only a piece of it, up to where the log went on to another file, once
    /// somebody waits for that. Not always: a page that is changed by several pieces is written to the
    /// device once if they are synced together. What is held back is left out, unless it is given up.
    /// Returns whether there was anything to do.
    ///
    /// # Errors
    /// `Error::Poisoned`; `Error::Damaged` for a page or a record that is not what was written;
    /// those of the medium. Any of them ends writing.
    pub(super) fn checkpoint(
        &mut self,
        pool: &PoolFile,
        log: &Log,
        holds: &Holds,
        asked: Asked<'_>,
    ) -> Result<bool> {
        log.poison.check()?;
        let Asked { is_last, is_waited, .. } = asked;
        let last = log.stats().last;
        if last == self.cursor.sequence && !is_last {
            return self.checkpoint_held(pool, log, holds, asked);
        }
        let (end, mut appended_bytes) = log.next_stop(self.cursor.sequence);
        if is_planted("R1.applies-before-the-log-is-durable") {
            log.write(end.sequence)?;
        } else {
            log.sync(end.sequence)?;
        }
        let mut go_on = |sequence| {
            if sequence >= last || is_waited() {
                return Ok(None);
            }
            let (stop, bytes) = log.next_stop(sequence);
            log.sync(stop.sequence)?;
            appended_bytes = bytes;
            Ok(Some((stop, log.files.in_use())))
        };
        let (seed, files) = (log_seed(pool.uuid(), self.generation), log.files.in_use());
        let purpose = Purpose::Checkpoint;
        let applied = self.replay(pool, (files, seed), end, purpose, Some(holds), &mut go_on);
        self.appended_bytes = appended_bytes;
        let applied = applied.and_then(|()| self.give_up(pool, log, holds, asked).map(|_| ()));
        let made = applied.and_then(|()| self.give_back(pool, log, holds, is_last));
        made.map_err(|error| log.poison.set(error))?;
        Ok(true)
    }

    /// A checkpoint that has no record to apply: only what is held back, if that is given up or need not
    /// be any more. Returns whether there was anything to do.
    fn checkpoint_held(
        &mut self,
        pool: &PoolFile,
        log: &Log,
        holds: &Holds,
        asked: Asked<'_>,
    ) -> Result<bool> {
        let place = |kept: Option<Kept>| kept.map(|kept| kept.cursor);
        let made = self.give_up(pool, log, holds, asked).and_then(|has_given_up| {
            let oldest = holds.oldest(log.stats().durable);
            let moves = has_given_up || place(self.held) != place(oldest);
            if moves {
                self.give_back(pool, log, holds, false)?;
            }
            Ok(moves)
        });
        made.map_err(|error| log.poison.set(error))
    }

    /// Takes what was held back of holds that are given up to the pool, and syncs it. Nobody reads the
    /// pages in the file meanwhile: memory keeps its own. Returns whether there was any.
    fn give_up(
        &mut self,
        pool: &PoolFile,
        log: &Log,
        holds: &Holds,
        asked: Asked<'_>,
    ) -> Result<bool> {
        let durable = log.stats().durable;
        let which = if asked.is_last { GivingUp::All } else { asked.gives_up };
        let given_up = holds.to_give_up(which, durable, self.appended_bytes, asked.held_bytes_max);
        let Some((mut filter, start)) = given_up else { return Ok(false) };
        // As in `replay`: recovery begins before all that is written here. What the last records made it
        // hold back was not published yet.
        self.held = holds.oldest(durable);
        self.publish(pool, durable, true)?;
        let (seed, files) = (log_seed(pool.uuid(), self.generation), log.files.in_use());
        let (end, purpose) = (self.cursor, Purpose::Checkpoint);
        let applied = apply(pool, &files, seed, &start, &end, purpose, &mut filter);
        self.judge(pool, durable, purpose, &applied)?;
        self.pool_bytes += applied?;
        pool.file().sync()?;
        holds.end(&filter);
        Ok(true)
    }

    /// Looks for damage that an applier has met. What was written until then is whole, so what is judged
    /// again next time is, too: else the damage would pass for a torn page and get a checksum of its own.
    fn judge(
        &mut self,
        pool: &PoolFile,
        durable: u64,
        purpose: Purpose,
        applied: &Result<u64>,
    ) -> Result<()> {
        let is_left = is_planted("R7.damage-is-taken-for-a-torn-page");
        if let (Err(Error::Damaged { .. }), true) = (applied, purpose != TORN && !is_left) {
            pool.file().sync()?;
            self.publish(pool, durable, false)?;
        }
        Ok(())
    }

    /// Says durably how far the pool is, and only then gives log files back.
    fn give_back(
        &mut self,
        pool: &PoolFile,
        log: &Log,
        holds: &Holds,
        is_last: bool,
    ) -> Result<()> {
        let durable = log.stats().durable;
        self.held = holds.oldest(durable);
        holds.settle(durable, self.cursor.sequence);
        if is_last {
            debug_assert!(self.held.is_none(), "all holds were given up");
            debug_assert_eq!(self.cursor.sequence, log.stats().last, "nothing is left behind");
            self.cursor.position = 0;
        }
        let free_below = if is_last { u64::MAX } else { self.needed().ordinal };
        if is_planted("R1.reuses-the-log-before-the-position") {
            log.files.recycle(free_below)?;
            return self.publish(pool, durable, false);
        }
        self.publish(pool, durable, false)?;
        log.files.recycle(free_below)
    }

    /// Applies the records up to `end`, all of which are durable, then those up to where `go_on` says,
    /// who gets the last sequence number so far, and syncs the pool. Nothing to apply costs nothing.
    ///
    /// Before the first page changes, a checkpoint says so durably, and one behind it takes that
    /// back: so recovery can tell pages that a crash tore from pages that are damaged, and judges
    /// all it lays changes over unless an applier was at work (R7). Costs one sync a checkpoint.
    ///
    /// # Errors
    /// As `apply`.
    pub(super) fn replay(
        &mut self,
        pool: &PoolFile,
        (mut files, seed): (Vec<Used>, u32),
        mut end: Cursor,
        purpose: Purpose,
        holds: Option<&Holds>,
        go_on: &mut dyn FnMut(u64) -> Result<Option<(Cursor, Vec<Used>)>>,
    ) -> Result<()> {
        if end.sequence > self.cursor.sequence {
            self.publish(pool, end.sequence, true)?;
            let mut start = self.cursor;
            let applied = loop {
                // Who holds an extent says so before a record names it: after `end` was found.
                let mut filter = holds.map_or_else(Filter::default, Holds::to_hold_back);
                let applied = apply(pool, &files, seed, &start, &end, purpose, &mut filter);
                if let Some(holds) = holds {
                    holds.note(&filter, self.appended_bytes);
                }
                self.pool_bytes += *applied.as_ref().unwrap_or(&0);
                if applied.is_err() {
                    break applied;
                }
                let Some(next) = go_on(end.sequence)? else { break applied };
                start = end;
                (end, files) = next;
            };
            self.judge(pool, end.sequence, purpose, &applied)?;
            applied?;
            if purpose != Purpose::Checkpoint {
                // What was allocated but not written is named by no record.
                pool.grow(pool.pages_allocated()?)?;
            }
            // The pool may grow meanwhile: what is backed now is durable after the sync.
            let pages = pool.pages_backed();
            if !is_planted("R1.position-before-the-pool-is-durable") {
                pool.file().sync()?;
            }
            self.pages = pages;
        }
        self.cursor = end;
        Ok(())
    }
}
