//! An encrypted file: plain bytes in units, each authenticated for its place.
//!
//! Purpose: random reads and writes of plain bytes. A unit is read, opened, sealed and written as a
//! whole. Units that are overwritten are sectors, which a power cut leaves old or new; so what a
//! crash can do to the plain bytes is what it can do to those of any file.
//! Invariants: no byte is returned that was not sealed for its place in this file, unless the
//! caller asked for what is lost as well. A unit that was never written, or became a hole, is
//! zeros. Only the last unit of a file may be filled in part.
//! Thread safety: any thread. Writes to a file wait for each other, reads wait for none, unless a
//! unit looks changed: it may be that a write was under way.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use super::cipher::{Cipher, FileHead};
use super::layout::{Geometry, HEAD_BELL, UNIT_PAYLOAD};
use crate::address::bell::Bell;
use crate::error::{Error, Result};
use crate::storage::{File, StartedSync, end_of_range};

/// Plain bytes that are read by one call: as many units as hold 64 KiB.
const CALL_BYTES_MAX: usize = 64 << 10;
/// Bytes of units that are written by one call: as many, in units of a sector.
const CALL_FILE_BYTES_MAX: usize = CALL_BYTES_MAX / 8 * 9;
/// Bytes of a page of the file system: only whole ones become holes.
const PAGE_BYTES: u64 = 4096;
/// Zeros, written around a hole.
const ZEROS: [u8; PAGE_BYTES as usize] = [0; PAGE_BYTES as usize];
/// Readings of a unit until it counts as changed, while someone may be writing it.
const READINGS_MAX: u32 = 20;
/// The time between them. One write takes some microseconds, but its thread may have to wait.
const BETWEEN_READINGS: Duration = Duration::from_micros(500);
/// Changed units one after the other from which on the next are damage at once.
const CHANGED_MAX: u32 = 8;

/// What the files of a directory share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cipher: Cipher,
    /// Whether another process may write the files.
    pub(super) is_beside: bool,
    /// Units that were found changed since one was read at the second attempt.
    pub(super) changed: AtomicU32,
}

/// What the handles of a file share.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The lock of those that write.
    writing: Mutex<Writing>,
}

#[derive(Debug, Default)]
struct Writing {
    /// The file has at least so many plain bytes.
    end: u64,
    /// The unit that the last write ended in, so that the next one behind it need not read it.
    last: Option<Unit>,
}

/// A unit, opened.
struct Unit {
    number: u64,
    /// Bytes of the payload that count.
    length: usize,
    payload: Box<[u8]>,
}

impl Unit {
    fn zeros(number: u64, length: usize, capacity: usize) -> Self {
        Self { number, length, payload: vec![0; capacity].into() }
    }
}

/// Says nothing of what it holds.
impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unit").field("number", &self.number).finish_non_exhaustive()
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct EncryptedFile {
    inner: Arc<dyn File>,
    shared: Arc<Shared>,
    state: Arc<State>,
    head: FileHead,
}

impl EncryptedFile {
    pub(super) fn new(
        inner: Arc<dyn File>,
        shared: Arc<Shared>,
        state: Arc<State>,
        head: FileHead,
    ) -> Self {
        Self { inner, shared, state, head }
    }

    fn geometry(&self) -> Geometry {
        self.head.geometry
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        // After a panic within a write, what it knew is looked up again.
        self.state.writing.lock().unwrap_or_else(|poisoned| {
            let mut writing = poisoned.into_inner();
            *writing = Writing::default();
            writing
        })
    }

    fn changed(&self, unit: u64) -> Error {
        Error::NotAuthentic {
            path: self.inner.path().into(),
            offset: self.geometry().file_start(unit),
        }
    }

    /// Units that the file has.
    fn units(&self) -> Result<u64> {
        Ok(self.geometry().units_in(self.inner.len()?))
    }

    /// Opens a unit; if it is not what was sealed for its place, reads it again first. A caller
    /// that holds the lock of those that write is alone.
    fn open(&self, number: u64, unit: &mut [u8], is_alone: bool) -> Result<usize> {
        match self.shared.cipher.open_unit(&self.head, number, unit) {
            Some(length) => Ok(length),
            None => self.open_again(number, unit, is_alone),
        }
    }

    /// Reads a unit until it is what was sealed for its place: a write may have been under way, of
    /// this process until its lock is free, or of another one.
    #[cold]
    fn open_again(&self, number: u64, unit: &mut [u8], is_alone: bool) -> Result<usize> {
        let Shared { cipher, is_beside, changed } = &*self.shared;
        let has_patience = *is_beside && changed.load(Ordering::Relaxed) < CHANGED_MAX;
        for _ in 0..READINGS_MAX {
            let lock = (!is_alone).then(|| self.state.writing.try_lock());
            let is_written = matches!(lock, Some(Err(TryLockError::WouldBlock)));
            let may_change = has_patience || is_written;
            self.inner.read_at(unit, self.geometry().file_start(number))?;
            if let Some(length) = cipher.open_unit(&self.head, number, unit) {
                changed.store(0, Ordering::Relaxed);
                return Ok(length);
            }
            drop(lock);
            if !may_change {
                break;
            }
            sleep(BETWEEN_READINGS);
        }
        changed.fetch_add(1, Ordering::Relaxed);
        Err(self.changed(number))
    }

    /// Reads plain bytes; calls `lost` with each range of the buffer that is not what was written.
    fn read(
        &self,
        buffer: &mut [u8],
        offset: u64,
        lost: &mut dyn FnMut(&mut [u8], Error) -> Result<()>,
    ) -> Result<()> {
        let (geometry, asked) = (self.geometry(), buffer.len());
        let end = end_of_range("read", self.path(), offset, asked as u64)?;
        let mut raw = Vec::new();
        let mut at = offset;
        while at < end {
            let first = geometry.unit_at(at);
            let stop = geometry.unit_at(end.min(at + CALL_BYTES_MAX as u64) - 1) + 1;
            let unit_bytes = geometry.unit_bytes();
            raw.resize((stop - first) as usize * unit_bytes, 0);
            match self.inner.read_at(&mut raw, geometry.file_start(first)) {
                Err(Error::Truncated { .. }) => return Err(self.truncated(offset, asked as u64)?),
                read => read?,
            }
            for (number, unit) in (first..stop).zip(raw.chunks_mut(unit_bytes)) {
                let start = geometry.plain_start(number);
                let unit_end = start + geometry.capacity(number) as u64;
                let (from, to) = (at.max(start), end.min(unit_end));
                let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
                match self.open(number, unit, false) {
                    Ok(length) if start + (length as u64) < to && number + 1 == self.units()? => {
                        return Err(self.truncated(offset, asked as u64)?);
                    }
                    Ok(_) => {
                        let within = UNIT_PAYLOAD + (from - start) as usize;
                        part.copy_from_slice(&unit[within..within + part.len()]);
                    }
                    Err(error @ Error::NotAuthentic { .. }) => lost(part, error)?,
                    Err(error) => return Err(error),
                }
                at = to;
            }
        }
        Ok(())
    }

    /// Plain bytes of the file.
    fn plain_len(&self, is_alone: bool) -> Result<u64> {
        let mut unit = vec![0; self.geometry().unit_bytes()];
        let last = loop {
            let Some(last) = self.units()?.checked_sub(1) else { return Ok(0) };
            match self.inner.read_at(&mut unit, self.geometry().file_start(last)) {
                // It was cut meanwhile.
                Err(Error::Truncated { .. }) => {}
                read => break read.map(|()| last)?,
            }
        };
        let length = match self.open(last, &mut unit, is_alone) {
            // Its bytes are an error when they are read, which is not how long the file is.
            Err(Error::NotAuthentic { .. }) => self.geometry().capacity(last),
            opened => opened?,
        };
        Ok(self.geometry().plain_start(last) + length as u64)
    }

    fn truncated(&self, offset: u64, expected_bytes: u64) -> Result<Error> {
        let found_bytes = self.len()?.saturating_sub(offset).min(expected_bytes);
        Ok(Error::Truncated { path: self.path().into(), offset, expected_bytes, found_bytes })
    }

    /// A unit to overwrite a part of, as it is; `lost` is what it holds if it is not what was
    /// written, which is an error otherwise.
    fn unit(&self, writing: &mut Writing, number: u64, lost: Option<u8>) -> Result<Unit> {
        if let Some(last) = writing.last.take_if(|last| last.number == number) {
            return Ok(last);
        }
        let (geometry, capacity) = (self.geometry(), self.geometry().capacity(number));
        let mut bytes = vec![0; geometry.unit_bytes()];
        let length = match self.inner.read_at(&mut bytes, geometry.file_start(number)) {
            // The file ends before it.
            Err(Error::Truncated { .. }) => {
                bytes.fill(0);
                0
            }
            read => match (read.and_then(|()| self.open(number, &mut bytes, true)), lost) {
                (Err(Error::NotAuthentic { .. }), Some(lost)) => {
                    bytes.fill(lost);
                    capacity
                }
                (opened, _) => opened?,
            },
        };
        let payload = bytes[UNIT_PAYLOAD..][..capacity].into();
        Ok(Unit { number, length, payload })
    }

    /// Writes a unit.
    fn put(&self, writing: &mut Writing, unit: Unit) -> Result<()> {
        let geometry = self.geometry();
        let mut bytes = vec![0; geometry.unit_bytes()];
        bytes[UNIT_PAYLOAD..][..unit.payload.len()].copy_from_slice(&unit.payload);
        self.shared.cipher.seal_unit(&self.head, unit.number, unit.length, &mut bytes);
        self.inner.write_at(&bytes, geometry.file_start(unit.number))?;
        writing.last = Some(unit);
        Ok(())
    }

    /// Writes plain bytes of at most so many units as one call takes.
    fn write_piece(
        &self,
        writing: &mut Writing,
        (bytes, offset): (&[u8], u64),
        lost: Option<u8>,
    ) -> Result<()> {
        let geometry = self.geometry();
        let end = offset + bytes.len() as u64;
        let (first, stop) = (geometry.unit_at(offset), geometry.unit_at(end - 1) + 1);
        let mut raw = vec![0; (stop - first) as usize * geometry.unit_bytes()];
        let mut last = None;
        for (number, unit) in (first..stop).zip(raw.chunks_mut(geometry.unit_bytes())) {
            let (start, capacity) = (geometry.plain_start(number), geometry.capacity(number));
            let (from, to) = (offset.max(start), end.min(start + capacity as u64));
            let within = (from - start) as usize..(to - start) as usize;
            let part = &bytes[(from - offset) as usize..(to - offset) as usize];
            let mut length = capacity;
            if part.len() == capacity {
                unit[UNIT_PAYLOAD..][..capacity].copy_from_slice(part);
            } else {
                // An append that begins here: what is behind means nothing, and need not be read.
                let is_new = lost.is_some() && start == from;
                let mut old = match is_new && start + capacity as u64 <= writing.end {
                    true => Unit::zeros(number, capacity, capacity),
                    false => self.unit(writing, number, lost)?,
                };
                old.length = old.length.max(within.end);
                old.payload[within].copy_from_slice(part);
                unit[UNIT_PAYLOAD..][..capacity].copy_from_slice(&old.payload);
                length = old.length;
                last = Some(old);
            }
            self.shared.cipher.seal_unit(&self.head, number, length, unit);
        }
        writing.last = None;
        self.inner.write_at(&raw, geometry.file_start(first))?;
        // What comes next mostly goes on where this ended.
        writing.last = last.filter(|unit| unit.number + 1 == stop);
        writing.end = writing.end.max(end);
        Ok(())
    }

    /// Writes plain bytes; `lost` is as of [`EncryptedFile::unit`].
    fn write(&self, bytes: &[u8], offset: u64, lost: Option<u8>) -> Result<()> {
        end_of_range("write", self.path(), offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut writing = self.writing();
        let writing = &mut *writing;
        if offset > writing.end {
            writing.end = self.plain_len(true)?;
            if offset > writing.end {
                self.lengthen(writing, writing.end, offset)?;
            }
        }
        let mut at = 0;
        while at < bytes.len() {
            // To where a unit ends: none is written twice.
            let (geometry, start) = (self.geometry(), offset + at as u64);
            let units = (CALL_FILE_BYTES_MAX / geometry.unit_bytes()) as u64;
            let room = geometry.plain_start(geometry.unit_at(start) + units) - start;
            let count = (bytes.len() - at).min(room as usize);
            self.write_piece(writing, (&bytes[at..at + count], start), lost)?;
            at += count;
        }
        Ok(())
    }

    /// Makes the file longer: what is between is zeros.
    fn lengthen(&self, writing: &mut Writing, old: u64, new: u64) -> Result<()> {
        let geometry = self.geometry();
        let (last, stop) = (geometry.unit_at(old), geometry.unit_at(new));
        let length_in = |number: u64| {
            let bytes = new - geometry.plain_start(number);
            bytes.min(geometry.capacity(number) as u64) as usize
        };
        if old > geometry.plain_start(last) {
            let mut unit = self.unit(writing, last, None)?;
            unit.length = length_in(last);
            self.put(writing, unit)?;
        }
        let is_begun = old > geometry.plain_start(stop);
        if new > geometry.plain_start(stop) && !is_begun {
            self.put(writing, Unit::zeros(stop, length_in(stop), geometry.capacity(stop)))?;
        } else if !is_begun && self.units()? < stop {
            self.inner.set_len(geometry.file_start(stop))?;
        }
        writing.end = writing.end.max(new);
        Ok(())
    }

    /// The bytes of the file's units from and to plain offsets, which are where units begin.
    fn file_range(&self, offset: u64, end: u64) -> Result<(u64, u64)> {
        let geometry = self.geometry();
        let end = geometry.file_start(geometry.unit_at(end)).min(self.inner.len()?);
        Ok((geometry.file_start(geometry.unit_at(offset)), end))
    }

    fn write_zeros(&self, mut start: u64, end: u64) -> Result<()> {
        while start < end {
            let count = (end - start).min(PAGE_BYTES);
            self.inner.write_at(&ZEROS[..count as usize], start)?;
            start += count;
        }
        Ok(())
    }
}

impl File for EncryptedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn len(&self) -> Result<u64> {
        self.plain_len(false)
    }

    fn expect_random(&self) {
        self.inner.expect_random();
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.read(buffer, offset, &mut |_, error| Err(error))
    }

    fn read_with_lost_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.read(buffer, offset, &mut |part, _| {
            part.fill(LOST);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write(bytes, offset, None)
    }

    fn append_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write(bytes, offset, Some(LOST))
    }

    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let end = end_of_range("allocate", self.path(), offset, len)?;
        let mut writing = self.writing();
        let (geometry, old) = (self.geometry(), self.plain_len(true)?);
        if len > 0 {
            let start = geometry.file_start(geometry.unit_at(offset));
            let stop = geometry.file_start(geometry.unit_at(end - 1) + 1);
            self.inner.allocate(start, stop - start)?;
            if end > old {
                self.lengthen(&mut writing, old, end)?;
            }
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let end = end_of_range("punch", self.path(), offset, len)?;
        if self.geometry() == Geometry::Pages {
            // Its units do not end where pages do. Files that are written once get no holes.
            let source = std::io::ErrorKind::Unsupported.into();
            return Err(Error::io("punch", self.path(), Some(offset), len, source));
        }
        let mut writing = self.writing();
        writing.last = None;
        let (start, end) = self.file_range(offset, end)?;
        let (first, stop) = (start.next_multiple_of(PAGE_BYTES), end / PAGE_BYTES * PAGE_BYTES);
        if first >= stop {
            return self.write_zeros(start, end);
        }
        self.inner.punch(first, stop - first)?;
        self.write_zeros(start, first)?;
        self.write_zeros(stop, end)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        end_of_range("set the length of", self.path(), 0, len)?;
        let mut writing = self.writing();
        let (geometry, old) = (self.geometry(), self.plain_len(true)?);
        if len >= old {
            return if len > old { self.lengthen(&mut writing, old, len) } else { Ok(()) };
        }
        // One that is whole becomes the last, too; a power cut may have left it shorter than it is.
        let last = geometry.unit_at(len.saturating_sub(1));
        let within = (len - geometry.plain_start(last)) as usize;
        let mut stop = last;
        if within > 0 {
            // What is lost of a whole one is an error when it is read.
            let lost = Some(LOST).filter(|_| within == geometry.capacity(last));
            let mut unit = self.unit(&mut writing, last, lost)?;
            if unit.length != within {
                unit.payload[within..].fill(0);
                unit.length = within;
                self.put(&mut writing, unit)?;
            }
            stop += 1;
        }
        *writing = Writing::default();
        self.inner.set_len(geometry.file_start(stop))
    }

    #[track_caller]
    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    #[track_caller]
    fn start_sync(self: Arc<Self>) -> StartedSync {
        Arc::clone(&self.inner).start_sync()
    }

    fn bell(&self, _: u64, rings: bool) -> Option<Arc<dyn Bell>> {
        self.inner.bell(HEAD_BELL, rings)
    }
}

/// What stands for a byte that is lost. Not zero, which is what was never written.
const LOST: u8 = 0xFF;
