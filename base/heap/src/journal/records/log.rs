//! The log: appending records, and the group commit.
//!
//! Purpose: a record gets its sequence number and its position under one short lock, and becomes
//! durable by a flush that all waiting commits share. The committing threads do it themselves.
//! Invariants: each appended record is in `pending` or written, in order. `durable <= written <=
//! last`. A log file is written only behind what was written before, and synced oldest first.
//! Thread safety: all methods from any thread. Locks, in this order: `appending` (held by an append
//! or a start for all of it), `writer` (while bytes go to the system), `tail` (short), the state of
//! `files`; `group` is held alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use adamant_medium::address::bell::Bell;
use adamant_wire::checksum::crc32c;
use adamant_wire::frame::{self, FRAME_HEADER_BYTES, Kind};
use parking_lot::{Mutex, MutexGuard};
use tracing::{Level, enabled, trace};

use crate::error::{Error, Result};
use crate::events;
use crate::journal::records::chain::Cursor;
use crate::journal::records::files::{Files, Used};
use crate::journal::records::group::Group;
use crate::journal::records::layout::LOG_HEAD_BYTES;
use crate::journal::records::log_file::LogFile;
use crate::journal::records::pending::{Pending, Segment, Writer};
use crate::journal::records::poison::Poison;
use crate::journal::records::record::{COMMIT_HEAD_BYTES_MAX, CommitHead, RecordBuilder};

/// A record of more frames than this, of a MiB each, is written while it is encoded into frames.
const STREAMED_FRAMES: usize = 4;

/// Buffers of an append; kept for their memory.
#[derive(Debug, Default)]
pub(in crate::journal) struct Appending {
    /// Log files that the record needs beyond the current one, the next one last.
    planned: Vec<Arc<LogFile>>,
    /// Head of the commit frame.
    head: Vec<u8>,
}

/// The log of an open store.
#[derive(Debug)]
pub(in crate::journal) struct Log {
    uuid: [u8; 16],
    /// Whether log files are memory: then a record is durable when it has been appended.
    is_direct: bool,
    pub(in crate::journal) files: Files,
    pub(in crate::journal) poison: Poison,
    closed: AtomicBool,
    appending: Mutex<Appending>,
    writer: Mutex<Writer>,
    tail: Mutex<Tail>,
    /// The last durable record; the memory is for the files of the next sync.
    group: Group<Vec<Arc<LogFile>>>,
    last: AtomicU64,
    written: AtomicU64,
    appended_bytes: AtomicU64,
    pending_bytes: AtomicU64,
    /// Bytes left in the file of the tail.
    tail_bytes: AtomicU64,
    records: AtomicU64,
    syncs: AtomicU64,
    /// Ends the waits of readers in other processes.
    bell: Option<Arc<dyn Bell>>,
}

/// Counters of a log.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct LogStats {
    pub(in crate::journal) last: u64,
    pub(in crate::journal) durable: u64,
    pub(in crate::journal) appended_bytes: u64,
    pub(in crate::journal) records: u64,
    pub(in crate::journal) syncs: u64,
}

/// The end of the log, where the next frame goes.
#[derive(Debug)]
struct Tail {
    seed: u32,
    generation: u64,
    file: Option<Arc<LogFile>>,
    cursor: Cursor,
    pending: Pending,
}

impl Log {
    /// A log that is not started: nothing can be appended. `sequence` was the last record.
    pub(in crate::journal) fn new(
        uuid: [u8; 16],
        files: Files,
        sequence: u64,
        bell: Option<Arc<dyn Bell>>,
    ) -> Self {
        let cursor = Cursor { ordinal: 0, position: 0, previous: 0, sequence };
        let tail = Tail { seed: 0, generation: 0, file: None, cursor, pending: Pending::default() };
        Self {
            uuid,
            is_direct: files.are_direct(),
            files,
            poison: Poison::default(),
            closed: AtomicBool::new(false),
            appending: Mutex::default(),
            writer: Mutex::default(),
            tail: Mutex::new(tail),
            group: Group::new(sequence),
            last: AtomicU64::new(sequence),
            written: AtomicU64::new(sequence),
            appended_bytes: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
            tail_bytes: AtomicU64::new(0),
            records: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            bell,
        }
    }

    /// Everything up to a record is written.
    fn note_written(&self, sequence: u64) {
        self.written.fetch_max(sequence, Ordering::AcqRel);
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Keeps others from appending, starting and closing.
    ///
    /// # Errors
    /// `Error::Misuse` when the log is closed, `Error::Poisoned`.
    pub(in crate::journal) fn hold_appends(&self) -> Result<MutexGuard<'_, Appending>> {
        let appending = self.appending.lock();
        self.poison.check()?;
        if self.is_closed() {
            return Err(Error::Misuse { what: "the heap was closed; open it again to write" });
        }
        Ok(appending)
    }

    /// No record is appended from now on. Returns whether the log was open.
    pub(in crate::journal) fn close(&self) -> bool {
        let _no_append = self.appending.lock();
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Whether the log is closed.
    pub(in crate::journal) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Writes the header of the first file of a generation, durably, and makes it the tail. Records
    /// may be appended once a checkpoint that names this position is durable too.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn start(
        &self,
        file: Arc<LogFile>,
        generation: u64,
        ordinal: u64,
    ) -> Result<Cursor> {
        let seed = frame::log_seed(&self.uuid, generation);
        file.write(&file.head(&self.uuid, generation, ordinal, seed), 0, true)?;
        file.file.sync()?;
        let mut tail = self.tail.lock();
        let sequence = tail.cursor.sequence;
        tail.seed = seed;
        tail.generation = generation;
        tail.cursor = Cursor { ordinal, position: LOG_HEAD_BYTES, previous: seed, sequence };
        tail.file = Some(Arc::clone(&file));
        self.tail_bytes.store(tail.free_bytes(), Ordering::Relaxed);
        self.files.put_to_use(Used { ordinal, previous: seed, file });
        Ok(tail.cursor)
    }

    /// Appends a record; returns its sequence number, and whether it continued in another log file.
    /// If none is free and the limit is reached, it takes one beyond the limit: an appending thread
    /// has locks that a checkpoint needs (C8). `named` is called when the record is there, before
    /// it is visible to any other thread.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, out of space among them. Then nothing was appended.
    pub(in crate::journal) fn append(
        &self,
        record: &RecordBuilder,
        named: &dyn Fn(),
    ) -> Result<(u64, bool)> {
        let mut appending = self.hold_appends()?;
        {
            // Nearly every record is one frame, for which there is room in the file.
            let mut tail = self.tail.lock();
            let bytes = record
                .bytes_if_one_frame()
                .map(|bytes| frame::frame_bytes(COMMIT_HEAD_BYTES_MAX + bytes) as u64);
            if bytes.is_some_and(|bytes| bytes <= tail.free_bytes()) {
                let sequence = self.encode(&mut tail, record, &mut appending, |_| Ok(0))?;
                named();
                self.write_directly(&mut tail);
                return Ok((sequence, false));
            }
        }
        while !self.plan(record, &mut appending.planned) {
            let prepared = self
                .files
                .prepare(false)
                .and_then(|is_more| if is_more { Ok(true) } else { self.files.prepare(true) });
            if let Err(error) = prepared {
                self.files.trim()?;
                return Err(error);
            }
        }
        let switches = !appending.planned.is_empty();
        let sequence = self.encode_any(record, &mut appending, named)?;
        self.files.give_back(&mut appending.planned);
        Ok((sequence, switches))
    }

    /// Encodes a record into frames, which a large record writes as they are made: a second copy of
    /// it would take as much memory again.
    fn encode_any(
        &self,
        record: &RecordBuilder,
        appending: &mut Appending,
        named: &dyn Fn(),
    ) -> Result<u64> {
        if record.frame_count() <= STREAMED_FRAMES {
            let mut tail = self.tail.lock();
            let sequence = self.encode(&mut tail, record, appending, |_| Ok(0))?;
            named();
            self.write_directly(&mut tail);
            return Ok(sequence);
        }
        let mut writer = self.writer.lock();
        let mut tail = self.tail.lock();
        let sequence = self.encode(&mut tail, record, appending, |tail| {
            let bytes = tail.pending.bytes.len();
            std::mem::swap(&mut tail.pending, &mut writer.taken);
            writer.write_taken(false).map_err(|error| self.poison.set(error.into()))?;
            Ok(bytes)
        })?;
        named();
        if self.is_direct {
            for file in writer.unsynced.drain(..) {
                file.file.sync().map_err(|error| self.poison.set(error.into()))?;
            }
        }
        self.write_directly(&mut tail);
        Ok(sequence)
    }

    /// If log files are memory, writes pending records and makes them durable at once: a fence
    /// takes less than handing them to a waiting thread. A failure is reported to the thread that
    /// waits for the record, or appends the next one.
    fn write_directly(&self, tail: &mut Tail) {
        if !self.is_direct || self.poison.check().is_err() {
            return;
        }
        // A store instruction is durable by then; bytes written by a call are, once synced.
        match tail.pending.write(true, |file| file.file.sync()) {
            Ok(()) => {
                self.pending_bytes.store(0, Ordering::Relaxed);
                self.note_written(tail.cursor.sequence);
                self.group.note_durable(tail.cursor.sequence);
            }
            Err(error) => drop(self.poison.set(error.into())),
        }
    }

    /// Finds a place for each frame: takes the spare files that it needs. Returns whether there
    /// were enough.
    fn plan(&self, record: &RecordBuilder, planned: &mut Vec<Arc<LogFile>>) -> bool {
        let mut free = self.tail.lock().free_bytes();
        for (index, entries) in record.frames().enumerate() {
            let is_commit = index + 1 == record.frame_count();
            let head = if is_commit { COMMIT_HEAD_BYTES_MAX } else { 0 };
            let bytes = frame::frame_bytes(head + entries.len()) as u64;
            if bytes > free {
                let Some(file) = self.files.take_spare() else {
                    self.files.give_back(planned);
                    return false;
                };
                free = file.bytes - LOG_HEAD_BYTES;
                planned.push(file);
            }
            free -= bytes;
        }
        // The next one to use comes first out.
        planned.reverse();
        true
    }

    /// Encodes the record into frames. All space was found before, so it fails only where `flush`
    /// does, which is called after each frame but the last, and returns how many pending bytes it
    /// wrote.
    #[inline]
    fn encode(
        &self,
        tail: &mut Tail,
        record: &RecordBuilder,
        appending: &mut Appending,
        mut flush: impl FnMut(&mut Tail) -> Result<usize>,
    ) -> Result<u64> {
        let Appending { planned, head: head_bytes } = appending;
        let sequence = tail.cursor.sequence + 1;
        let mut head = CommitHead { lag: sequence - self.group.durable(), parts: 0, parts_crc: 0 };
        let before = tail.pending.bytes.len();
        let mut flushed = 0;
        for (index, entries) in record.frames().enumerate() {
            let is_commit = index + 1 == record.frame_count();
            head_bytes.clear();
            if is_commit {
                head.put(head_bytes);
            }
            let bytes = frame::frame_bytes(head_bytes.len() + entries.len()) as u64;
            if bytes > tail.free_bytes() {
                let file = planned.pop();
                debug_assert!(file.is_some(), "the plan found a place for each frame");
                if let Some(file) = file {
                    self.switch(tail, file, sequence);
                }
            }
            let kind = if is_commit { Kind::Commit } else { Kind::Part };
            let crc = tail.append(kind, sequence, [&head_bytes[..], entries]);
            if !is_commit {
                head.parts += 1;
                head.parts_crc = crc32c(head.parts_crc, &crc.to_le_bytes());
                flushed += flush(tail)?;
            }
        }
        planned.reverse();
        tail.cursor.sequence = sequence;
        let bytes = (tail.pending.bytes.len() + flushed - before) as u64;
        self.pending_bytes.store(tail.pending.bytes.len() as u64, Ordering::Relaxed);
        self.tail_bytes.store(tail.free_bytes(), Ordering::Relaxed);
        // Written only here, under the tail's lock, and so without a locked instruction.
        let appended = self.appended_bytes.load(Ordering::Relaxed) + bytes;
        self.appended_bytes.store(appended, Ordering::Relaxed);
        self.records.store(self.records.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.last.store(sequence, Ordering::Release);
        Ok(sequence)
    }

    /// Continues the chain in another file.
    fn switch(&self, tail: &mut Tail, file: Arc<LogFile>, sequence: u64) {
        if tail.free_bytes() >= FRAME_HEADER_BYTES as u64 {
            tail.append(Kind::Switch, sequence, [&[], &[]]);
        }
        let Tail { cursor, pending, .. } = tail;
        cursor.ordinal += 1;
        cursor.position = LOG_HEAD_BYTES;
        let head = file.head(&self.uuid, tail.generation, cursor.ordinal, cursor.previous);
        pending.segments.push(Segment {
            file: Arc::clone(&file),
            offset: 0,
            start: pending.bytes.len(),
        });
        pending.bytes.extend_from_slice(&head);
        tail.file = Some(Arc::clone(&file));
        self.files.put_to_use(Used { ordinal: cursor.ordinal, previous: cursor.previous, file });
    }

    /// The current end of the log: after the last record appended.
    pub(in crate::journal) fn end(&self) -> Cursor {
        self.tail.lock().cursor
    }

    /// Whether `bytes` bytes can be appended without preparing another log file, give or take what
    /// is being appended now. Takes a lock only when the file is nearly full.
    pub(in crate::journal) fn has_free(&self, bytes: u64) -> bool {
        let in_tail = self.tail_bytes.load(Ordering::Relaxed);
        in_tail >= bytes || in_tail + self.files.spare_bytes() >= bytes
    }

    /// Bytes that can be appended within the limit of the log, about.
    pub(in crate::journal) fn room_bytes(&self) -> u64 {
        self.tail_bytes.load(Ordering::Relaxed).saturating_add(self.files.room_bytes())
    }

    /// Bytes appended but not written.
    pub(in crate::journal) fn pending_bytes(&self) -> u64 {
        self.pending_bytes.load(Ordering::Relaxed)
    }

    /// Bytes appended in all.
    pub(in crate::journal) fn appended_bytes(&self) -> u64 {
        self.appended_bytes.load(Ordering::Relaxed)
    }

    /// Counters.
    pub(in crate::journal) fn stats(&self) -> LogStats {
        LogStats {
            durable: self.group.durable(),
            last: self.last.load(Ordering::Acquire),
            appended_bytes: self.appended_bytes(),
            records: self.records.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }

    /// Hands all records up to `sequence` to the operating system.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    pub(in crate::journal) fn write(&self, sequence: u64) -> Result<()> {
        if self.written.load(Ordering::Acquire) >= sequence {
            return self.poison.check();
        }
        let mut writer = self.writer.lock();
        if self.written.load(Ordering::Acquire) >= sequence {
            return self.poison.check();
        }
        self.write_pending(&mut writer, false).map(|_| ())
    }

    /// Makes all records up to `sequence` durable. One waiting thread does it for all that was
    /// appended by then.
    ///
    /// # Errors
    /// `Error::Poisoned`; those of the medium, which poison.
    pub(in crate::journal) fn sync(&self, sequence: u64) -> Result<()> {
        let check = || self.poison.check();
        self.group.reach(sequence, check, |syncing| {
            let synced = self.sync_pending(syncing);
            syncing.clear();
            synced
        })
    }

    /// Writes pending records and syncs the files that need it; returns the last durable record.
    fn sync_pending(&self, syncing: &mut Vec<Arc<LogFile>>) -> Result<u64> {
        let written = {
            let mut writer = self.writer.lock();
            let written = self.write_pending(&mut writer, true)?;
            std::mem::swap(&mut writer.unsynced, syncing);
            written
        };
        let start = enabled!(target: events::LOG, Level::TRACE).then(Instant::now);
        for file in syncing.iter() {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            file.file.sync().map_err(|error| self.poison.set(error.into()))?;
        }
        if let Some(start) = start {
            let (files, micros) = (syncing.len(), events::micros(start));
            trace!(target: events::LOG, sequence = written, files, micros, "log synced");
        }
        Ok(written)
    }

    /// Writes pending records; returns the last sequence number written.
    fn write_pending(&self, writer: &mut Writer, synced_next: bool) -> Result<u64> {
        self.poison.check()?;
        let sequence = {
            let mut tail = self.tail.lock();
            std::mem::swap(&mut tail.pending, &mut writer.taken);
            self.pending_bytes.store(0, Ordering::Relaxed);
            tail.cursor.sequence
        };
        writer.write_taken(synced_next).map_err(|error| self.poison.set(error.into()))?;
        self.note_written(sequence);
        Ok(sequence)
    }
}

impl Tail {
    fn free_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.bytes - self.cursor.position)
    }

    /// Appends a frame, for which there is room.
    fn append(&mut self, kind: Kind, sequence: u64, payload: [&[u8]; 2]) -> u32 {
        let Some(file) = &self.file else { return 0 };
        let start = self.pending.bytes.len();
        if self.pending.segments.is_empty() {
            let file = self.pending.file_for(file);
            let offset = self.cursor.position;
            self.pending.segments.push(Segment { file, offset, start });
        }
        let crc = frame::append(
            &mut self.pending.bytes,
            self.seed,
            self.cursor.previous,
            kind,
            sequence,
            &payload,
        );
        self.cursor.position += (self.pending.bytes.len() - start) as u64;
        self.cursor.previous = crc;
        crc
    }
}
