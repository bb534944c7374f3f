//! Sequential block reads with read-ahead.
//!
//! Purpose: serves scans. From the second block on it reads ahead, twice as far each time, because
//! a call costs as much as copying 8 KiB. A long scan keeps its blocks out of the cache, where no
//! later read would use them.
//! Invariants: each block is verified like one that is read alone. If reading ahead fails, as at
//! the end of a truncated file, the block is read alone, and that read succeeds or fails.
//! Thread safety: one thread at a time.

use adamant_slice::{Builder, Slice};

use super::reader::Table;
use crate::block::{BLOCK_HEADER_BYTES, BlockHandle, BlockKind, EntryBlock};
use crate::error::Result;
use crate::file::FILE_HEADER_BYTES;

/// Number of a scan's blocks that are cached: those of short scans.
const CACHED_BLOCKS_MAX: usize = 8;
/// Bytes of one read, at first and at most.
const AHEAD_BYTES_MIN: usize = 16 << 10;
const AHEAD_BYTES_MAX: usize = 128 << 10;

/// Reads data blocks in ascending or descending order.
#[derive(Debug)]
pub(super) struct InRow {
    forward: bool,
    /// Blocks that were asked for.
    count: usize,
    /// The last chunk, and its offset in the file.
    chunk: Slice,
    chunk_offset: u64,
    /// Bytes of the last read.
    ahead_bytes: usize,
}

impl InRow {
    pub(super) fn new(forward: bool) -> Self {
        Self { forward, count: 0, chunk: Slice::EMPTY, chunk_offset: 0, ahead_bytes: 0 }
    }

    /// The next block.
    ///
    /// # Errors
    /// `Damaged`; those of the storage backend.
    pub(super) fn entries(&mut self, table: &Table, handle: BlockHandle) -> Result<EntryBlock> {
        self.count += 1;
        if self.count == 1 {
            return table.entries(handle, BlockKind::Data);
        }
        if self.count <= CACHED_BLOCKS_MAX {
            return table.entries_by(handle, BlockKind::Data, || self.read(table, handle, true));
        }
        match table.known_entries(handle)? {
            Some(block) => Ok(block),
            None => {
                let payload = self.read(table, handle, false)?;
                EntryBlock::new(payload).map_err(table.damaged(handle.offset))
            }
        }
    }

    /// The payload of a block. One that is cached has memory of its own.
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

    /// The block, if the chunk holds all of it.
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
        // Memory that is no longer shared is reused.
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
