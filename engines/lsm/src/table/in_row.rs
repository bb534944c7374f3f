//! Blocks of a table that are read one behind the other.
//!
//! Purpose: what a scan reads. From the second block on it reads ahead, twice as far each time, for a call
//! costs what copying 8 KiB does; and a long scan keeps its blocks out of the cache, where nobody would
//! look for them again.
//! Invariants: each block is verified as one that is read by itself. Where reading ahead fails, as behind
//! the end of a file that was cut, the block is read by itself, and fails or not.
//! Thread safety: one thread at a time.

use adamant_slice::{Builder, Slice};

use super::reader::Table;
use crate::block::{BLOCK_HEADER_BYTES, BlockHandle, BlockKind, EntryBlock};
use crate::error::Result;
use crate::file::FILE_HEADER_BYTES;

/// Blocks of a scan that are kept in the cache: what short ones read.
const CACHED_BLOCKS_MAX: usize = 8;
/// Bytes that are read at once, first and at most.
const AHEAD_BYTES_MIN: usize = 16 << 10;
const AHEAD_BYTES_MAX: usize = 128 << 10;

/// Reads data blocks in order, or in the opposite one.
#[derive(Debug)]
pub(super) struct InRow {
    forward: bool,
    /// Blocks that were asked for.
    count: usize,
    /// What was read, and where it lies in the file.
    chunk: Slice,
    chunk_offset: u64,
    /// Bytes that were read at once the last time.
    ahead_bytes: usize,
}

impl InRow {
    pub(super) fn new(forward: bool) -> Self {
        Self { forward, count: 0, chunk: Slice::EMPTY, chunk_offset: 0, ahead_bytes: 0 }
    }

    /// The next block.
    ///
    /// # Errors
    /// `Damaged`; those of the medium.
    pub(super) fn entries(&mut self, table: &Table, handle: BlockHandle) -> Result<EntryBlock> {
        self.count += 1;
        if self.count == 1 {
            return table.entries(handle, BlockKind::Data);
        }
        if self.count <= CACHED_BLOCKS_MAX {
            return table.entries_by(handle, || self.read(table, handle, true));
        }
        match table.known_entries(handle)? {
            Some(block) => Ok(block),
            None => {
                let payload = self.read(table, handle, false)?;
                EntryBlock::new(payload).map_err(table.damaged(handle.offset))
            }
        }
    }

    /// The payload of a block. One that is kept has memory of its own.
    fn read(&mut self, table: &Table, handle: BlockHandle, is_kept: bool) -> Result<Slice> {
        let Some(frame) = self.frame(handle).or_else(|| {
            self.read_ahead(table, handle);
            self.frame(handle)
        }) else {
            return table.read(handle, BlockKind::Data);
        };
        let payload = table.opened(&frame, handle, BlockKind::Data)?;
        let is_part = payload.len() + BLOCK_HEADER_BYTES == frame.len();
        Ok(if is_kept && is_part { Slice::new(&payload) } else { payload })
    }

    /// The block, if all of it was read.
    fn frame(&self, handle: BlockHandle) -> Option<Slice> {
        let start = usize::try_from(handle.offset.checked_sub(self.chunk_offset)?).ok()?;
        self.chunk.try_slice(start..start.checked_add(handle.bytes as usize)?)
    }

    /// Reads a block and some that follow, if the table's file has them.
    fn read_ahead(&mut self, table: &Table, handle: BlockHandle) {
        let file_bytes = table.meta().file_bytes;
        let block_bytes = handle.bytes as usize;
        if block_bytes > AHEAD_BYTES_MAX || handle.end() > file_bytes {
            return;
        }
        self.ahead_bytes = (2 * self.ahead_bytes).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES_MAX);
        let wanted = self.ahead_bytes.max(block_bytes) as u64;
        let (start, end) = if self.forward {
            (handle.offset, (handle.offset + wanted).min(file_bytes))
        } else {
            (handle.end().saturating_sub(wanted).max(FILE_HEADER_BYTES as u64), handle.end())
        };
        let bytes = end.saturating_sub(start) as usize;
        // Memory that nobody shares any more is used again.
        let builder = match std::mem::take(&mut self.chunk).into_builder() {
            Ok(builder) if builder.len() == bytes => Ok(builder),
            _ => Builder::zeroed(bytes),
        };
        let Ok(mut builder) = builder else { return };
        if table.read_into(start, &mut builder).is_ok() {
            (self.chunk, self.chunk_offset) = (builder.freeze(), start);
        }
    }
}
