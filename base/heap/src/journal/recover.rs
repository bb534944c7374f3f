//! Opening: what the log holds beyond the pool is brought into it (R3, R4).
//!
//! Purpose: after this the pool file alone is the store, as of its last whole record, durably.
//! Invariants: nothing of a record counts before its valid commit frame: a first pass finds where
//! the log ends, a second one applies up to there. Nothing is appended after an old tail. Memory
//! does not grow with pool or log.
//! Thread safety: runs alone, under the store's lock.

use std::ops::Range;
use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_wire::checksum::crc32c;
use adamant_wire::frame::{FRAME_HEADER_BYTES, Kind, log_seed};
use adamant_wire::le;
use adamant_wire::mutants::is_planted;

use super::apply::{Purpose, damaged_record};
use super::chain::{ChainReader, Cursor, End, Step};
use super::checkpoint::Applied;
use super::files::Used;
use super::layout::LOG_HEAD_BYTES;
use super::log_file::{self, LogFile};
use super::record::CommitHead;
use super::search::{Beyond, search};
use super::tail::{Tail, start_of};
use crate::error::{Error, Result};
use crate::layout::{CHECKPOINT_OFFSETS, Checkpoint};
use crate::pool_file::PoolFile;

/// Bytes of log written again at once.
const REWRITE_BYTES: u64 = 1 << 20;

/// What opening found and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Whether the store had been closed: then there was nothing to look for.
    pub was_closed: bool,
    /// Records of the log that were brought into the pool.
    pub records: u64,
    /// Bytes of data pages written for that.
    pub pool_bytes: u64,
    /// Sequence number of the last commit that is in the store.
    pub last_sequence: u64,
}

/// A pool that holds everything, and the log files, none of which is needed.
pub(super) struct Recovered {
    pub(super) applied: Applied,
    pub(super) files: Vec<Arc<LogFile>>,
    pub(super) recovery: Recovery,
}

/// Brings the log into the pool.
///
/// # Errors
/// `Error::Damaged` when something durable is not what was written, `Error::Unsupported` for a
/// log of a newer format; those of the medium.
pub(super) fn recover(pool: &PoolFile, directory: &dyn Directory) -> Result<Recovered> {
    let newest = pool.read_checkpoint()?;
    let files = log_file::list(directory)?.into_iter().map(Arc::new).collect::<Vec<_>>();
    let (headed, headless) = headed_files(pool, &files)?;
    judge_generations(pool, &newest, &headed)?;
    let (generation, start) = (newest.generation.get(), start_of(&newest));
    let mut applied = Applied {
        number: newest.number.get(),
        generation,
        cursor: start,
        held: None,
        is_durable: false,
        pages: newest.pages.get(),
        appended_bytes: 0,
        pool_bytes: 0,
    };
    let was_closed = start.position == 0;
    if !was_closed {
        let Tail { files: used, seed, end, .. } = find(pool, &newest, &headed, &headless)?;
        if !is_planted("R4.replays-what-is-not-durable") {
            make_durable(&used, &start, &end)?;
        }
        let torn = newest.applying.get() != 0;
        let purpose = Purpose::Recovery { torn };
        applied.replay(pool, (used, seed), end, purpose, None, &mut |_| Ok(None))?;
    }
    // Never one that was used before, so that no file is ever taken for another.
    let is_left = is_planted("R4.goes-on-in-the-same-generation");
    let seen = |value: fn(&Headed) -> u64, least: u64| {
        headed.iter().filter(|_| !is_left).map(value).fold(least, u64::max)
    };
    applied.generation = seen(|headed| headed.generation, generation);
    applied.cursor.ordinal = seen(|headed| headed.used.ordinal, start.ordinal);
    if !was_closed {
        applied.cursor.position = 0;
        applied.publish(pool, applied.cursor.sequence, false)?;
    }
    let recovery = Recovery {
        was_closed,
        records: applied.cursor.sequence - start.sequence,
        pool_bytes: applied.pool_bytes,
        last_sequence: applied.cursor.sequence,
    };
    Ok(Recovered { applied, files, recovery })
}

/// The tail of the log of a pool of which nothing is to be changed, and the newest checkpoint; no tail
/// when the pool holds everything.
///
/// # Errors
/// As [`recover`].
pub(crate) fn find_tail(
    pool: &PoolFile,
    log: Option<&dyn Directory>,
) -> Result<(Checkpoint, Option<Tail>)> {
    let newest = pool.read_checkpoint()?;
    if newest.position.get() == 0 {
        return Ok((newest, None));
    }
    let files = log.map_or(Ok(Vec::new()), log_file::list)?;
    let files = files.into_iter().map(Arc::new).collect::<Vec<_>>();
    let (headed, headless) = headed_files(pool, &files)?;
    judge_generations(pool, &newest, &headed)?;
    Ok((newest, Some(find(pool, &newest, &headed, &headless)?)))
}

/// The records that follow a checkpoint that is not the last one of a log.
fn find(
    pool: &PoolFile,
    newest: &Checkpoint,
    headed: &[Headed],
    headless: &[Arc<LogFile>],
) -> Result<Tail> {
    let (generation, start) = (newest.generation.get(), start_of(newest));
    let of_this = headed.iter().filter(|headed| headed.generation == generation);
    let mut files = of_this.map(|headed| headed.used.clone()).collect::<Vec<_>>();
    files.sort_by_key(|used| used.ordinal);
    judge_first_file(pool, &files, newest)?;
    let seed = log_seed(pool.uuid(), generation);
    let scan = Scan { files: &files, seed, durable: newest.durable.get(), last: start };
    let end = scan.find_end(headless)?;
    Ok(Tail { files, seed, start, end })
}

/// Makes the records that are to be replayed durable (R1, R4): they may be in the page cache alone,
/// because the process died before it synced them. And after a sync that failed the cache looks
/// clean, so they are written again. Else a power cut within the replay would leave pages with
/// changes of records that no longer exist.
fn make_durable(files: &[Used], start: &Cursor, end: &Cursor) -> Result<()> {
    if start.sequence == end.sequence {
        return Ok(());
    }
    let mut buffer = Vec::new();
    let tail = |used: &&Used| (start.ordinal..=end.ordinal).contains(&used.ordinal);
    for used in files.iter().filter(tail) {
        let from = if used.ordinal == start.ordinal { start.position } else { LOG_HEAD_BYTES };
        let to = if used.ordinal == end.ordinal { end.position } else { used.file.bytes };
        if !is_planted("R4.trusts-the-page-cache") {
            rewrite(used, 0..LOG_HEAD_BYTES, &mut buffer)?;
            rewrite(used, from..to, &mut buffer)?;
        }
        used.file.file.sync()?;
    }
    Ok(())
}

/// Writes bytes of a log file again, as they are.
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

/// A log file with a header of this pool.
pub(super) struct Headed {
    pub(super) generation: u64,
    pub(super) used: Used,
}

/// The files that have a header of this pool, and those that have none.
fn headed_files(
    pool: &PoolFile,
    files: &[Arc<LogFile>],
) -> Result<(Vec<Headed>, Vec<Arc<LogFile>>)> {
    let (mut headed, mut headless) = (Vec::new(), Vec::new());
    for file in files {
        let file = Arc::clone(file);
        if let Some(header) = file.read_header(pool.uuid())? {
            let (ordinal, previous) = (header.ordinal.get(), header.previous.get());
            let used = Used { ordinal, previous, file };
            headed.push(Headed { generation: header.generation.get(), used });
        } else {
            headless.push(file);
        }
    }
    Ok((headed, headless))
}

/// Records of a generation are written only after a checkpoint that names it is durable. So a
/// record of a later one than the newest checkpoint's says that a checkpoint was lost.
fn judge_generations(pool: &PoolFile, newest: &Checkpoint, headed: &[Headed]) -> Result<()> {
    let generation = newest.generation.get();
    for headed in headed.iter().filter(|headed| headed.generation > generation) {
        let seed = log_seed(pool.uuid(), headed.generation);
        if log_file_begins_with_record(&headed.used, seed)?
            && !is_planted("R4.later-generations-are-forgotten")
        {
            return Err(Error::Damaged {
                file: pool.file().path().into(),
                offset: CHECKPOINT_OFFSETS[0],
                what: format!(
                    "expected a checkpoint of generation {}, which {} has records of, found one of \
                     generation {generation} at most; restore a backup",
                    headed.generation,
                    headed.used.file.file.path().display()
                ),
            });
        }
    }
    Ok(())
}

/// Whether the first frame of a file is a valid one, of whatever record.
fn log_file_begins_with_record(used: &Used, seed: u32) -> Result<bool> {
    let mut head = [0; FRAME_HEADER_BYTES];
    used.file.file.read_at(&mut head, LOG_HEAD_BYTES)?;
    // The reader wants to know the sequence number beforehand; whatever is there will do.
    let sequence = le::u64_at(&head, FRAME_HEADER_BYTES - 8).unwrap_or(0);
    let previous = used.previous;
    let start = Cursor { ordinal: used.ordinal, position: LOG_HEAD_BYTES, previous, sequence };
    let files = [used.clone()];
    let mut reader = ChainReader::new(&files, seed, &start);
    Ok(matches!(reader.next(sequence)?, Step::Frame(..)))
}

/// The file that the newest checkpoint names was durable before the checkpoint was.
fn judge_first_file(pool: &PoolFile, files: &[Used], newest: &Checkpoint) -> Result<()> {
    let is_there = files.iter().any(|used| used.ordinal == newest.ordinal.get());
    if is_there || is_planted("R3.a-log-may-be-missing") {
        return Ok(());
    }
    Err(Error::Damaged {
        file: pool.file().path().into(),
        offset: CHECKPOINT_OFFSETS[0],
        what: format!(
            "expected log file number {} of generation {}, which the newest checkpoint names, \
             found none; put the log back that belongs to this pool, or restore a backup",
            newest.ordinal, newest.generation
        ),
    })
}

/// The first pass.
pub(super) struct Scan<'f> {
    pub(super) files: &'f [Used],
    pub(super) seed: u32,
    /// Highest sequence number known to have been durable.
    pub(super) durable: u64,
    /// After the last whole record.
    pub(super) last: Cursor,
}

impl Scan<'_> {
    /// Finds the last whole record, and judges why no other follows it (R3). Files in `headless`
    /// may belong to the log, with a header that is gone.
    fn find_end(self, headless: &[Arc<LogFile>]) -> Result<Cursor> {
        match self.judge_end(headless)? {
            (last, None) => Ok(last),
            (_, Some(damage)) => Err(damage),
        }
    }

    /// The end of the last whole record, and the damage that ends the log there, if it is damage.
    pub(super) fn judge_end(
        mut self,
        headless: &[Arc<LogFile>],
    ) -> Result<(Cursor, Option<Error>)> {
        let end = match self.run() {
            Ok(end) => end,
            Err(damage @ Error::Damaged { .. }) => return Ok((self.last, Some(damage))),
            Err(error) => return Err(error),
        };
        let expected = self.last.sequence + 1;
        if expected <= self.durable && !is_planted("R3.forgets-what-the-checkpoint-knew") {
            return Ok((self.last, Some(end.damaged())));
        }
        if is_planted("R3.ends-without-looking-on") {
            return Ok((self.last, None));
        }
        let why = match search(self.files, headless, self.seed, &end, expected)? {
            Beyond::Nothing => return Ok((self.last, None)),
            Beyond::LaterRecord(later) => format!("record {later} proves that it was there"),
        };
        let what = format!("{}; {why}", end.what);
        Ok((self.last, Some(End { what, ..end }.damaged())))
    }

    /// Reads records until none follows.
    fn run(&mut self) -> Result<End> {
        let mut reader = ChainReader::new(self.files, self.seed, &self.last);
        let (mut parts, mut parts_crc) = (0, 0);
        loop {
            let sequence = self.last.sequence + 1;
            let (header, range) = match reader.next(sequence)? {
                Step::Frame(header, range) => (header, range),
                Step::End(end) => return Ok(end),
            };
            if header.kind == Kind::Part {
                if is_planted("R2.counts-before-its-commit-frame") {
                    self.last = reader.cursor(sequence);
                }
                parts += 1;
                parts_crc = crc32c(parts_crc, &header.crc.to_le_bytes());
                continue;
            }
            let found = CommitHead::take(&mut reader.bytes(range));
            let lag = found.map_or(0, |head| head.lag);
            let expected = CommitHead { lag, parts, parts_crc };
            if found != Some(expected) && !is_planted("R2.commit-covers-no-parts") {
                let what = "the commit frame does not fit the parts before it";
                return Err(damaged_record(self.files, &reader.cursor(sequence), sequence, what));
            }
            self.durable = self.durable.max(sequence.saturating_sub(lag));
            self.last = reader.cursor(sequence);
            (parts, parts_crc) = (0, 0);
        }
    }
}
