//! Recovery on open: brings the log's tail into the pool (R3, R4).
//!
//! Purpose: after this the pool file alone is the store, as of its last whole record, durably. It
//! is an ordinary checkpoint, whose pages come from the pool and the log: batches, each named by a
//! table before it is written (C5), then the next slot.
//! Invariants: nothing of a record counts before its valid commit frame: `validate` finds the end
//! of the log, and the records up to there are applied. The log's tail is made durable first, then
//! the pages that the tables name. Nothing is appended after an old tail. Memory does not grow with
//! pool or log.
//! Thread safety: runs alone, under the store's lock.

use std::ops::Range;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::collections::range_set::RangeSet;
use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::batch::{BatchWriter, settle};
use crate::journal::checkpoints::checkpoint::CheckpointState;
use crate::journal::checkpoints::keepers::Keepers;
use crate::journal::checkpoints::table::Doubt;
use crate::journal::records::chain::Cursor;
use crate::journal::records::files::Used;
use crate::journal::records::layout::LOG_HEAD_BYTES;
use crate::journal::records::log_file::LogFile;
use crate::journal::recovery::dirty::DirtyPages;
use crate::journal::recovery::overlay::lay_over;
use crate::journal::recovery::tail::{Tail, start_of};
use crate::journal::recovery::validate::{Validated, validate};

/// Bytes of log written again by one call.
const REWRITE_BYTES: u64 = 1 << 20;

/// The result of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Whether the store had been closed: then there was nothing to recover.
    pub was_closed: bool,
    /// Records of the log that were brought into the pool.
    pub records: u64,
    /// Bytes of data pages written for that.
    pub written_bytes: u64,
    /// Sequence number of the last commit that is in the store.
    pub last_sequence: u64,
    /// Pages that the crash had torn while they were written; the log has repaired them.
    pub torn_pages: u64,
}

/// A pool that holds everything, and the log files, none of which is needed.
pub(in crate::journal) struct Recovered {
    pub(in crate::journal) applied: CheckpointState,
    /// That of the newest header first.
    pub(in crate::journal) files: Vec<Arc<LogFile>>,
    pub(in crate::journal) recovery: Recovery,
}

/// Brings the log into the pool, with at most `bytes_max` bytes of pages in memory.
///
/// # Errors
/// `Error::Damaged` when durable data is damaged, `Error::Unsupported` for a
/// log of a newer format; those of the medium.
pub(in crate::journal) fn recover(
    pool: &PoolFile,
    directory: &dyn Directory,
    bytes_max: u64,
    keepers: &Keepers,
) -> Result<Recovered> {
    let validated = validate(pool, Some(directory), &mut Err)?;
    let Validated { newest, mut tails, files, generation, ordinal, is_old } = validated;
    let Some(newest) = newest else { return Err(pool.no_checkpoint()) };
    if pool.file().is_direct() {
        // It may be in the caches alone, and the next one overwrites the one before it. A disk
        // writes a sector atomically; memory only 8 bytes, and both checkpoints may be lost.
        pool.write_checkpoint(newest)?;
        pool.file().sync()?;
    }
    let start = start_of(&newest);
    let mut applied = CheckpointState {
        number: newest.number.get(),
        generation: newest.generation.get(),
        cursor: start,
        held: None,
        is_durable: false,
        pages: newest.pages.get(),
        appended_bytes: 0,
        written_bytes: 0,
    };
    let was_closed = start.position == 0;
    let mut torn_pages = 0;
    if let Some(tail) = tails.pop() {
        make_durable(&tail.files, &start, &tail.end)?;
        let doubt = Doubt::read(pool, applied.number)?;
        torn_pages = settle(pool, &doubt)?;
        if is_old && tail.records() > 0 {
            // Versions that know no other log know no tables: tell them by a checkpoint.
            applied.publish(pool, newest.durable.get(), true)?;
        }
        let writer = BatchWriter::new(applied.number + 1, doubt.next_batch, keepers.clone());
        applied.take_in(pool, tail, writer, bytes_max)?;
    }
    // Never one that was used before, so that no file is ever taken for another.
    applied.generation = generation;
    applied.cursor.ordinal = ordinal;
    if !was_closed {
        applied.cursor.position = 0;
        applied.publish(pool, applied.cursor.sequence, false)?;
    }
    let recovery = Recovery {
        was_closed,
        records: applied.cursor.sequence - start.sequence,
        written_bytes: applied.written_bytes,
        last_sequence: applied.cursor.sequence,
        torn_pages,
    };
    Ok(Recovered { applied, files, recovery })
}

impl CheckpointState {
    /// Brings a tail into the pool, durably.
    fn take_in(
        &mut self,
        pool: &PoolFile,
        tail: Tail,
        writer: BatchWriter,
        bytes_max: u64,
    ) -> Result<()> {
        if tail.records() > 0 {
            let mut pages = DirtyPages::new(pool, &tail, writer, bytes_max);
            lay_over(&tail, &mut pages, &mut RangeSet::default(), &mut Err)?;
            self.written_bytes += pages.finish()?;
            pool.file().sync()?;
            self.pages = pool.pages_backed();
        }
        self.cursor = tail.end;
        Ok(())
    }
}

/// Makes the records that are to be replayed durable (R1, R4): they may be in the page cache alone,
/// because the process died before it synced them. After a failed sync the cache looks clean, so
/// they are written again. Otherwise a power cut within the replay would leave pages with changes
/// of records that no longer exist.
fn make_durable(files: &[Used], start: &Cursor, end: &Cursor) -> Result<()> {
    if start.sequence == end.sequence {
        return Ok(());
    }
    let mut buffer = Vec::new();
    let tail = |used: &&Used| (start.ordinal..=end.ordinal).contains(&used.ordinal);
    for used in files.iter().filter(tail) {
        let from = if used.ordinal == start.ordinal { start.position } else { LOG_HEAD_BYTES };
        let to = if used.ordinal == end.ordinal { end.position } else { used.file.bytes };
        rewrite(used, 0..LOG_HEAD_BYTES, &mut buffer)?;
        rewrite(used, from..to, &mut buffer)?;
        used.file.file.sync()?;
    }
    Ok(())
}

/// Writes bytes of a log file again, unchanged.
fn rewrite(used: &Used, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
    let mut offset = range.start;
    while offset < range.end {
        buffer.resize((range.end - offset).min(REWRITE_BYTES) as usize, 0);
        used.file.file.read_at(buffer, offset)?;
        used.file.file.write_at(buffer, offset)?;
        offset += buffer.len() as u64;
    }
    Ok(())
}
