//! Validation of a store's files together: pool, checkpoints, log.
//!
//! Purpose: the one place that decides what a log holds beyond its pool, for every way of opening a
//! store: to write, to read, to check, to copy, to salvage.
//! Invariants: nothing is written. A contradiction is a finding. A caller that needs the newest
//! state stops at the first finding; a caller that salvages notes it and still gets the records
//! that are proved to follow.
//! Thread safety: runs alone, under the store's lock.
//!
//! A header of the log is written only after a durable checkpoint says that the pool holds all that
//! came before (position 0), and a record of it only after a checkpoint names it. So beside a pool
//! whose newest checkpoint has position 0 and generation g there may be one file that begins
//! generation g + 1, without a record: a crash leaves that. Any other header of a later generation
//! says that a checkpoint was lost, or that the pool is of an earlier moment than the log.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_wire::frame::{
    self, FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, frame_bytes, log_seed,
};
use adamant_wire::le;

use crate::error::{Error, Result};
use crate::image::pool_file::PoolFile;
use crate::journal::checkpoints::table;
use crate::journal::records::chain::{ChainReader, Cursor, Step};
use crate::journal::records::files::Used;
use crate::journal::records::layout::{LOG_FORMAT_VERSION, LOG_HEAD_BYTES};
use crate::journal::records::log_file::{self, LogFile};
use crate::journal::recovery::scan::{Scan, missing};
use crate::journal::recovery::tail::{OnFinding, Tail, start_of};
use crate::layout::{CHECKPOINT_OFFSETS, Checkpoint};

/// The result of the validation.
#[derive(Debug)]
pub(crate) struct Validated {
    /// `None` only where that was a finding.
    pub(crate) newest: Option<Checkpoint>,
    /// The log beyond the pool, in order; more than one tail only where a finding was ignored.
    pub(crate) tails: Vec<Tail>,
    /// All log files; that of the newest header first.
    pub(in crate::journal) files: Vec<Arc<LogFile>>,
    /// The highest that any header, or the checkpoint, names.
    pub(in crate::journal) generation: u64,
    pub(in crate::journal) ordinal: u64,
    /// Whether a header of the log has a format without tables of doubt.
    pub(in crate::journal) is_old: bool,
}

/// A log file with a header of this pool.
struct Headed {
    version: u32,
    generation: u64,
    used: Used,
}

/// Validates pool and log.
///
/// # Errors
/// Those of `on_finding`, which gets `Error::Damaged` for damaged durable data, and
/// `Error::Unsupported` for a log of a newer format or of another pool; those of the medium.
pub(crate) fn validate(
    pool: &PoolFile,
    log: Option<&dyn Directory>,
    on_finding: OnFinding<'_>,
) -> Result<Validated> {
    let newest = pool.read_checkpoint(on_finding)?;
    let files = log.map_or(Ok(Vec::new()), log_file::list)?;
    let (headed, headless) = headed_files(pool, files, on_finding)?;
    let checkpoint = newest.as_ref().map_or((0, 0), |n| (n.generation.get(), n.ordinal.get()));
    let ordinals = headed.iter().map(|headed| headed.used.ordinal);
    let mut validated = Validated {
        newest,
        tails: Vec::new(),
        generation: headed.last().map_or(0, |headed| headed.generation).max(checkpoint.0),
        ordinal: ordinals.fold(checkpoint.1, u64::max),
        is_old: headed.iter().any(|headed| headed.version < LOG_FORMAT_VERSION),
        files: headed.iter().rev().map(|headed| Arc::clone(&headed.used.file)).collect(),
    };
    validated.files.extend(headless.iter().cloned());
    let mut known = Known { pool, headless: &headless, sequence: None };
    if let Some(newest) = &validated.newest {
        known.sequence = Some(newest.applied.get());
        if newest.position.get() != 0 {
            let of_this = headed.iter().filter(|headed| headed.generation == checkpoint.0);
            let files = of_this.map(|headed| headed.used.clone()).collect();
            validated.tails.extend(known.named(newest, files, on_finding)?);
        }
    }
    for of_one in headed.chunk_by(|one, other| one.generation == other.generation) {
        let generation = of_one[0].generation;
        let is_later = validated.newest.is_none() || generation > checkpoint.0;
        if !is_later {
            continue;
        }
        let files = of_one.iter().map(|headed| headed.used.clone()).collect();
        let newest = validated.newest.as_ref();
        validated.tails.extend(known.later(newest, generation, files, on_finding)?);
    }
    Ok(validated)
}

/// The records behind a position, in a log that another process may write, as long as `newest` is
/// the newest checkpoint. `None` if none of its files has the record before the position.
///
/// # Errors
/// Those of the medium, and of a log of another pool.
pub(in crate::journal) fn validate_behind(
    pool: &PoolFile,
    log: &dyn Directory,
    newest: &Checkpoint,
    start: Cursor,
) -> Result<Option<Tail>> {
    let generation = newest.generation.get();
    let (headed, _) = headed_files(pool, log_file::list(log)?, &mut Err)?;
    let of_this = headed.into_iter().filter(|headed| headed.generation == generation);
    let files: Vec<Used> = of_this.map(|headed| headed.used).collect();
    let seed = log_seed(pool.uuid(), generation);
    let Some(file) = files.iter().find(|used| used.ordinal == start.ordinal) else {
        return Ok(None);
    };
    // A record that follows proves the one before it.
    let end = Scan { files: &files, seed, durable: 0, last: start }.find_written_end()?;
    if end == start && !leads_to(file, seed, &start)? {
        return Ok(None);
    }
    Ok(Some(Tail { files, seed, start, end, torn: false }))
}

/// Separates the files with a header of this pool, by generation and ordinal, from those without a
/// valid one.
fn headed_files(
    pool: &PoolFile,
    files: Vec<LogFile>,
    on_finding: OnFinding<'_>,
) -> Result<(Vec<Headed>, Vec<Arc<LogFile>>)> {
    let (mut headed, mut headless) = (Vec::new(), Vec::new());
    for file in files {
        let file = Arc::new(file);
        match file.header(pool.uuid()) {
            Ok(Some(header)) => {
                let (ordinal, previous) = (header.ordinal.get(), header.previous.get());
                let used = Used { ordinal, previous, file };
                let (version, generation) = (header.version.get(), header.generation.get());
                headed.push(Headed { version, generation, used });
            }
            Ok(None) => headless.push(file),
            Err(error) => on_finding(error)?,
        }
    }
    headed.sort_by_key(|headed| (headed.generation, headed.used.ordinal));
    Ok((headed, headless))
}

/// How far the pool, and the log behind it, is proved.
struct Known<'f> {
    pool: &'f PoolFile,
    headless: &'f [Arc<LogFile>],
    /// The last record; `None` once something is missing.
    sequence: Option<u64>,
}

impl Known<'_> {
    /// The records from the position of the newest checkpoint. The file that it names was durable
    /// before it was.
    fn named(
        &mut self,
        newest: &Checkpoint,
        files: Vec<Used>,
        on_finding: OnFinding<'_>,
    ) -> Result<Option<Tail>> {
        let seed = log_seed(self.pool.uuid(), newest.generation.get());
        let named = table::durable(self.pool, newest.number.get())?;
        let (start, durable) = (start_of(newest), newest.durable.get().max(named));
        let last = start.sequence;
        let file = files.iter().find(|used| used.ordinal == start.ordinal).cloned();
        let mut known = durable;
        for used in &files {
            known = known.max(first_record(used, seed)?.unwrap_or(0));
        }
        if file.is_none() {
            self.sequence = None;
            on_finding(self.damaged(format!(
                "expected log file number {} of generation {}, which the newest checkpoint names, \
                 found none, and {}; put the log back that belongs to this pool, or restore a \
                 backup",
                newest.ordinal,
                newest.generation,
                missing(last, known)
            )))?;
            return Ok(None);
        }
        let is_torn = newest.applying.get() != 0;
        let tail = (files, seed, is_torn);
        let tail = self.scan(start, durable, tail, on_finding)?;
        // A record that follows proves the ones before it.
        let is_doubtful = tail.records() == 0 && self.sequence.is_some();
        if let Some(file) = file.filter(|_| is_doubtful)
            && !leads_to(&file, seed, &start)?
        {
            self.sequence = None;
            on_finding(self.damaged(format!(
                "expected that record {last}, which the pool holds, ends at byte {} of {}, found \
                 other bytes: the log is of another moment than the pool, and {}; put the log back \
                 that belongs to this pool, or restore a backup",
                start.position,
                file.file.file.path().display(),
                missing(last, durable)
            )))?;
        }
        Ok(Some(tail))
    }

    /// The files of a later generation than the newest checkpoint's, and their records, if the
    /// first of them is the one that comes next.
    fn later(
        &mut self,
        newest: Option<&Checkpoint>,
        generation: u64,
        files: Vec<Used>,
        on_finding: OnFinding<'_>,
    ) -> Result<Option<Tail>> {
        let seed = log_seed(self.pool.uuid(), generation);
        let begins = files[0].previous == seed;
        let mut record = None;
        for used in &files {
            record = record.or(first_record(used, seed)?);
        }
        let is_new = record.is_none() && files.iter().all(|used| used.previous == seed);
        let is_next = newest.is_some_and(|newest| {
            let next = newest.generation.get() + 1;
            newest.position.get() == 0 && generation == next
        });
        if is_new && is_next {
            return Ok(None);
        }
        let path = files[0].file.file.path().display().to_string();
        let last = self.sequence.take();
        let follows = last.filter(|last| begins && record == Some(last + 1));
        let tail = match follows {
            Some(sequence) => {
                let (ordinal, position) = (files[0].ordinal, LOG_HEAD_BYTES);
                let start = Cursor { ordinal, position, previous: seed, sequence };
                Some(self.scan(start, sequence, (files, seed, false), on_finding)?)
            }
            None => None,
        };
        let tail = tail.filter(|tail| tail.records() > 0);
        let what = match (&tail, last, record) {
            (Some(tail), ..) => {
                let (start, end) = (tail.start.sequence + 1, tail.end.sequence);
                format!("its records {start} to {end} follow the pool's")
            }
            (None, Some(last), record) => missing(last, record.unwrap_or(0)),
            (None, None, Some(record)) => format!("its records from {record} on are left out"),
            (None, None, None) => "what came before it is missing".into(),
        };
        let found = newest.map_or(0, |newest| newest.generation.get());
        on_finding(self.damaged(format!(
            "expected a checkpoint of generation {generation} or the one before, after which \
             {path} was begun, found one of generation {found} at most: a checkpoint is lost, or the pool \
             is of an earlier moment than the log; {what}; restore a backup, or let \
             `adamant repair` save what can be read"
        )))?;
        Ok(tail)
    }

    /// The records of one generation from a position on.
    fn scan(
        &mut self,
        start: Cursor,
        durable: u64,
        (files, seed, torn): (Vec<Used>, u32, bool),
        on_finding: OnFinding<'_>,
    ) -> Result<Tail> {
        let scan = Scan { files: &files, seed, durable, last: start };
        let (end, damage) = scan.find_end(self.headless)?;
        self.sequence = Some(end.sequence).filter(|_| damage.is_none());
        damage.map_or(Ok(()), on_finding)?;
        Ok(Tail { files, seed, start, end, torn })
    }

    fn damaged(&self, what: String) -> Error {
        Error::Damaged { file: self.pool.file().path().into(), offset: CHECKPOINT_OFFSETS[0], what }
    }
}

/// Whether the frame before a position is in its file: the last one that the pool holds, which was
/// durable before the checkpoint was. If a record follows, that proves it; a log of an earlier
/// moment ends before.
fn leads_to(used: &Used, seed: u32, place: &Cursor) -> Result<bool> {
    if place.position > used.file.bytes {
        return Ok(false);
    }
    if place.position <= LOG_HEAD_BYTES {
        return Ok(used.previous == place.previous);
    }
    let most = frame_bytes(FRAME_PAYLOAD_BYTES_MAX) as u64;
    let start = place.position.saturating_sub(most).max(LOG_HEAD_BYTES);
    let mut bytes = vec![0; (place.position - start) as usize];
    used.file.file.read_with_lost_at(&mut bytes, start)?;
    let mut starts =
        (0..bytes.len()).rev().filter(|at| (bytes.len() - at).is_multiple_of(FRAME_ALIGN_BYTES));
    Ok(starts.any(|at| {
        le::u32_at(&bytes, at) == Some(place.previous)
            && frame::parse(seed, &bytes[at..]).is_ok_and(|(header, _, taken)| {
                taken == bytes.len() - at && header.sequence == place.sequence
            })
    }))
}

/// The number of the record of the first frame of a file, if that is a valid one.
fn first_record(used: &Used, seed: u32) -> Result<Option<u64>> {
    let mut head = [0; FRAME_HEADER_BYTES];
    if used.file.bytes < LOG_HEAD_BYTES + head.len() as u64 {
        return Ok(None);
    }
    used.file.file.read_with_lost_at(&mut head, LOG_HEAD_BYTES)?;
    // The reader needs the sequence number beforehand; the stored one will do.
    let sequence = le::u64_at(&head, FRAME_HEADER_BYTES - 8).unwrap_or(0);
    let previous = used.previous;
    let start = Cursor { ordinal: used.ordinal, position: LOG_HEAD_BYTES, previous, sequence };
    let files = [used.clone()];
    let mut reader = ChainReader::new(&files, seed, &start);
    Ok(matches!(reader.next(sequence)?, Step::Frame(..)).then_some(sequence))
}

/// Identities that log files name: the candidates for the pool's, if its header is lost.
///
/// # Errors
/// Those of the medium.
pub(crate) fn identities(log: &dyn Directory) -> Result<Vec<[u8; 16]>> {
    let mut found = Vec::new();
    for file in log_file::list(log)? {
        let uuid = file.any_header().map(|header| header.uuid);
        found.extend(uuid.filter(|uuid| !found.contains(uuid)));
    }
    Ok(found)
}
