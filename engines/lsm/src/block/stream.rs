//! The block stream: the blocks of a file from front to back.
//!
//! Purpose: serves compactions and checks.
//! Invariants: every block is verified, whatever its kind.
//! Thread safety: one thread at a time.

use adamant_slice::Slice;

use super::frame::{BlockHandle, open_any, peek};
use super::layout::{BLOCK_HEADER_BYTES, BlockKind};
use crate::error::{Error, Result};
use crate::file::ReadAhead;

/// Reads the blocks one after the other.
#[derive(Debug)]
pub(crate) struct BlockStream {
    bytes: ReadAhead,
    seed: u32,
}

impl BlockStream {
    /// The blocks in `bytes`, in the file with that seed.
    pub(crate) fn new(bytes: ReadAhead, seed: u32) -> Self {
        Self { bytes, seed }
    }

    /// The payload of the next block, its kind and its location; `None` at the end.
    ///
    /// # Errors
    /// `Damaged`; those of the storage backend.
    pub(crate) fn next(&mut self) -> Result<Option<(Slice, BlockKind, BlockHandle)>> {
        if self.bytes.left() == 0 {
            return Ok(None);
        }
        let offset = self.bytes.offset();
        let peeked = peek(self.bytes.peek(BLOCK_HEADER_BYTES)?);
        let bytes = match peeked {
            Ok(peeked) => peeked.map_or(BLOCK_HEADER_BYTES, |(_, bytes)| bytes),
            Err(fault) => return Err(self.damaged(offset, &fault)),
        };
        let frame = self.bytes.take(bytes)?;
        let (payload, kind) = open_any(&frame, self.seed, offset)
            .map_err(|fault| fault.at(self.bytes.file().path(), offset))?;
        Ok(Some((payload, kind, BlockHandle { offset, bytes: bytes as u32 })))
    }

    /// The error for a fault in the block at that offset.
    pub(crate) fn damaged(&self, offset: u64, what: &dyn ToString) -> Error {
        Error::damaged(self.bytes.file().path(), offset, what.to_string())
    }
}
