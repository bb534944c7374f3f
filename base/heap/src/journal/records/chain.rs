//! The chain reader: reads the chain of frames over log files.
//!
//! Purpose: one frame after the other, each proved to follow the one before it, until the first
//! bytes that do not. What that end means (torn tail or damage, R3) is decided elsewhere.
//! Invariants: memory is bounded by the largest frame. Thread safety: a reader has one owner; it
//! reads what is written already, so no writer needs to stop.

use std::ops::Range;
use std::path::PathBuf;

use adamant_medium::error::Result as MediumResult;
use adamant_wire::frame::{self, FRAME_HEADER_BYTES, FrameError, Header, Kind};

use crate::error::{Error, Result};
use crate::journal::records::files::Used;
use crate::journal::records::layout::LOG_HEAD_BYTES;

/// Bytes read from a log file at once.
const READ_BYTES: usize = 256 << 10;

/// A position in the log: after a whole record, or before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) struct Cursor {
    /// Log file.
    pub(in crate::journal) ordinal: u64,
    /// Byte offset in it.
    pub(in crate::journal) position: u64,
    /// CRC of the frame before.
    pub(in crate::journal) previous: u32,
    /// Sequence number of the record before.
    pub(in crate::journal) sequence: u64,
}

/// Where the chain ends, and why.
#[derive(Debug)]
pub(in crate::journal) struct End {
    pub(in crate::journal) file: PathBuf,
    pub(in crate::journal) ordinal: u64,
    pub(in crate::journal) offset: u64,
    pub(in crate::journal) what: String,
}

impl End {
    /// This end as damage.
    pub(in crate::journal) fn damaged(self) -> Error {
        Error::Damaged { file: self.file, offset: self.offset, what: self.what }
    }
}

/// The next step in the chain.
#[derive(Debug)]
pub(in crate::journal) enum Step {
    /// A frame of a record; its payload is at that range of `ChainReader::bytes`.
    Frame(Header, Range<usize>),
    /// No valid frame.
    End(End),
}

/// Reads frames from a position in the log on.
#[derive(Debug)]
pub(in crate::journal) struct ChainReader<'f> {
    files: &'f [Used],
    seed: u32,
    ordinal: u64,
    position: u64,
    previous: u32,
    buffer: Vec<u8>,
    /// Where in the file the buffer starts; all of it is of the current file.
    buffer_position: u64,
}

impl<'f> ChainReader<'f> {
    /// A reader of these files, sorted by ordinal, from `start` on.
    pub(in crate::journal) fn new(files: &'f [Used], seed: u32, start: &Cursor) -> Self {
        let Cursor { ordinal, position, previous, .. } = *start;
        let (buffer, buffer_position) = (Vec::new(), position);
        Self { files, seed, ordinal, position, previous, buffer, buffer_position }
    }

    /// Where the next frame begins, given the sequence number of the last whole record.
    pub(in crate::journal) fn cursor(&self, sequence: u64) -> Cursor {
        let Self { ordinal, position, previous, .. } = *self;
        Cursor { ordinal, position, previous, sequence }
    }

    /// Bytes of the frame read last.
    pub(in crate::journal) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The next frame, which belongs to record `sequence`.
    ///
    /// # Errors
    /// Those of the medium; invalid bytes are no error but an end.
    pub(in crate::journal) fn next(&mut self, sequence: u64) -> Result<Step> {
        loop {
            let Some(used) = self.current() else {
                return Ok(Step::End(self.missing_file()));
            };
            if used.file.bytes - self.position < FRAME_HEADER_BYTES as u64 {
                self.next_file();
                continue;
            }
            let (header, payload_bytes, taken) = match self.frame(used)? {
                Ok(frame) => frame,
                Err(error) => return Ok(Step::End(self.end(used, error.to_string()))),
            };
            let follows = header.previous == self.previous;
            if !(follows && header.sequence == sequence) {
                let what = format!(
                    "expected a frame of record {sequence} after the frame with checksum {:#010x}, \
                     found one of record {} after {:#010x}",
                    self.previous, header.sequence, header.previous
                );
                return Ok(Step::End(self.end(used, what)));
            }
            let start = (self.position - self.buffer_position) as usize + FRAME_HEADER_BYTES;
            self.position += taken as u64;
            self.previous = header.crc;
            if header.kind == Kind::Switch {
                self.next_file();
                continue;
            }
            return Ok(Step::Frame(header, start..start + payload_bytes));
        }
    }

    /// The file that is being read, if it is there and follows the one before it.
    fn current(&self) -> Option<&'f Used> {
        let index = self.files.binary_search_by_key(&self.ordinal, |used| used.ordinal).ok()?;
        let used = &self.files[index];
        let follows = self.position > LOG_HEAD_BYTES || used.previous == self.previous;
        (follows && self.position <= used.file.bytes).then_some(used)
    }

    fn next_file(&mut self) {
        self.ordinal += 1;
        self.position = LOG_HEAD_BYTES;
        self.buffer.clear();
        self.buffer_position = LOG_HEAD_BYTES;
    }

    fn frame(
        &mut self,
        used: &Used,
    ) -> MediumResult<std::result::Result<(Header, usize, usize), FrameError>> {
        let mut needed = FRAME_HEADER_BYTES;
        let (seed, left) = (self.seed, used.file.bytes - self.position);
        loop {
            match frame::parse(seed, self.fill(used, needed)?) {
                Ok((header, payload, taken)) => return Ok(Ok((header, payload.len(), taken))),
                Err(FrameError::Short { needed: more }) if more > needed && more as u64 <= left => {
                    needed = more;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// The bytes from the position on: at least `needed`, which the file holds.
    fn fill(&mut self, used: &Used, needed: usize) -> MediumResult<&[u8]> {
        let skip = (self.position - self.buffer_position) as usize;
        if self.buffer.len() < skip + needed {
            let left = (used.file.bytes - self.position) as usize;
            self.buffer_position = self.position;
            self.buffer.resize(needed.max(READ_BYTES).min(left), 0);
            used.file.file.read_with_lost_at(&mut self.buffer, self.position)?;
            return Ok(&self.buffer);
        }
        Ok(&self.buffer[skip..])
    }

    fn end(&self, used: &Used, what: String) -> End {
        let file = used.file.file.path().into();
        End { file, ordinal: self.ordinal, offset: self.position, what }
    }

    fn missing_file(&self) -> End {
        let log = self.files.first().and_then(|used| used.file.file.path().parent());
        let file = log.map_or_else(|| PathBuf::from("log"), Into::into);
        let what = format!(
            "expected log file number {} of the chain, found none that follows {:#010x}",
            self.ordinal, self.previous
        );
        End { file, ordinal: self.ordinal, offset: 0, what }
    }
}
