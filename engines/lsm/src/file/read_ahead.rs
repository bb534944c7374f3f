//! Sequential reads with read-ahead.
//!
//! Purpose: hands out pieces of any length, cut from large chunks that are read at once.
//! Invariants: a piece shares the memory of its chunk, which is not overwritten while the piece
//! lives. Nothing is allocated for bytes that the file does not have.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::File;
use adamant_slice::{Builder, Slice};

use crate::error::{Error, Result};

/// Bytes of one read. A call costs 1 us and a disk's latency about 100 us; 256 KiB take about as
/// long to come from a fast disk.
const AHEAD_BYTES: usize = 256 << 10;

/// Reads a file from front to back.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    file: Arc<dyn File>,
    /// The last chunk, and how much of it was taken.
    chunk: Slice,
    taken: usize,
    /// Offset of the chunk in the file.
    chunk_offset: u64,
    end: u64,
}

impl ReadAhead {
    /// Reads the bytes from `start` to `end`, which is at most the file's length.
    pub(crate) fn new(file: Arc<dyn File>, start: u64, end: u64) -> Self {
        Self { file, chunk: Slice::EMPTY, taken: 0, chunk_offset: start, end }
    }

    /// The file.
    pub(crate) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Offset of the next byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.chunk_offset + self.taken as u64
    }

    /// Bytes left to read.
    pub(crate) fn left(&self) -> u64 {
        self.end.saturating_sub(self.offset())
    }

    /// The next bytes, at least `bytes` of them, without taking them.
    ///
    /// # Errors
    /// `Damaged` if the file has fewer; those of the storage backend.
    pub(crate) fn peek(&mut self, bytes: usize) -> Result<&[u8]> {
        self.fill(bytes)?;
        Ok(&self.chunk[self.taken..])
    }

    /// Takes the next `bytes` bytes.
    ///
    /// # Errors
    /// As [`ReadAhead::peek`].
    pub(crate) fn take(&mut self, bytes: usize) -> Result<Slice> {
        self.fill(bytes)?;
        let piece = self.chunk.slice(self.taken..self.taken + bytes);
        self.taken += bytes;
        Ok(piece)
    }

    fn fill(&mut self, bytes: usize) -> Result<()> {
        if self.chunk.len() - self.taken >= bytes {
            return Ok(());
        }
        let (offset, left) = (self.offset(), self.left());
        if left < bytes as u64 {
            let what = format!("expected {bytes} bytes more, found {left}");
            return Err(Error::damaged(self.file.path(), offset, what));
        }
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(AHEAD_BYTES).max(bytes);
        let chunk = std::mem::take(&mut self.chunk);
        // Memory that is no longer shared is reused, unless the file ends before it does.
        let mut builder = match chunk.into_builder() {
            Ok(builder) if builder.len() == wanted => builder,
            _ => Builder::zeroed(wanted).map_err(|error| {
                Error::damaged(self.file.path(), offset, format!("too long a piece: {error}"))
            })?,
        };
        (self.chunk_offset, self.taken) = (offset, 0);
        self.file.read_at(&mut builder, offset)?;
        self.chunk = builder.freeze();
        Ok(())
    }
}
