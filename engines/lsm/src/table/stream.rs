//! The table stream: all entries in order.
//!
//! Purpose: serves compactions. It has its own descriptor, uses no cache and reads 256 KiB at a
//! time. Values, and keys that are stored whole, share the memory of a read, and keep all of it
//! alive.
//! Invariants: every block of the file is verified, also those that are only skipped; entries
//! ascend, and their number equals the meta block's, or the stream ends with an error.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::Directory;

use super::layout::TABLE;
use super::meta::TableMeta;
use super::reader::{Ending, read_ending};
use crate::block::{BlockKind, BlockStream, Cursor, EntryBlock, Forward};
use crate::error::Result;
use crate::file::{FILE_HEADER_BYTES, Identity, ReadAhead};
use crate::key::Entry;

/// All entries of a table, in order.
#[derive(Debug)]
pub struct TableStream {
    blocks: BlockStream,
    meta: TableMeta,
    data: Option<Forward>,
    /// Offset of the block of `data`.
    offset: u64,
    entry_count: u64,
    is_over: bool,
}

impl TableStream {
    /// Opens the table with that identity in the directory of tables.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn open(directory: &Arc<dyn Directory>, identity: Identity) -> Result<Self> {
        let file = identity.open(&**directory, TABLE)?;
        let Ending { meta, meta_offset, .. } = read_ending(&*file, &identity)?;
        let bytes = ReadAhead::new(file, FILE_HEADER_BYTES as u64, meta_offset);
        let blocks = BlockStream::new(bytes, identity.seed());
        Ok(Self { blocks, meta, data: None, offset: 0, entry_count: 0, is_over: false })
    }

    fn step(&mut self) -> Result<Option<Entry>> {
        loop {
            if let Some(data) = &mut self.data {
                let advanced = data.advance_in_order();
                if advanced.map_err(|malformed| self.blocks.damaged(self.offset, &malformed))? {
                    self.entry_count += 1;
                    return Ok(data.entry());
                }
            }
            let Some((payload, kind, handle)) = self.blocks.next()? else { break };
            if kind == BlockKind::Data {
                let block = EntryBlock::new(payload)
                    .map_err(|malformed| self.blocks.damaged(handle.offset, &malformed))?;
                self.data = Some(match self.data.take() {
                    Some(before) => before.followed_by(block),
                    None => Forward::all(block),
                });
                self.offset = handle.offset;
            }
        }
        if self.entry_count != self.meta.entries {
            let (expected, found) = (self.meta.entries, self.entry_count);
            let what = format!("expected {expected} entries before here, found {found}");
            return Err(self.blocks.damaged(self.meta.file_bytes, &what));
        }
        Ok(None)
    }
}

impl Iterator for TableStream {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let entry = self.step().transpose();
        self.is_over = !matches!(entry, Some(Ok(_)));
        entry
    }
}
