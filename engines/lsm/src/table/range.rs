//! Table range cursors: entries between two bounds, from both ends.
//!
//! Purpose: all versions of all keys between two bounds, a block at a time. Long ranges are read
//! ahead, and their blocks share the memory of one read.
//! Invariants: each bound is searched once, in the block that it falls into; within other blocks no
//! key is compared. The two ends know their positions by the offsets of block and entry, so they
//! never hand out an entry twice. Blocks that an index names out of order are an error, so every
//! walk ends. After an error, or where the ends met, nothing more comes.
//! Thread safety: one thread at a time.

use std::ops::Bound;
use std::sync::Arc;

use adamant_wire::key::NEXT;

use super::in_row::InRow;
use super::index;
use super::reader::Table;
use crate::block::{Backward, BlockHandle, BlockKind, EntryBlock, Forward, Malformed, Read};
use crate::error::Result;
use crate::key::Entry;

/// A sequence number above all versions.
const NEWEST: u64 = u64::MAX;

/// Offsets of the block of an entry in the file, and of the entry in the block's payload.
type Place = (u64, usize);

/// Entries of a table between two bounds, in order: all versions, the newest of a key first.
#[derive(Debug)]
pub struct TableRange {
    table: Arc<Table>,
    /// The first key of the range, if it has one.
    lower: Option<Vec<u8>>,
    /// The first key after the range, if there is one.
    upper: Option<Vec<u8>>,
    is_keys_only: bool,
    front: Option<Ascent>,
    back: Option<Descent>,
    /// The entries that the ends handed out last.
    front_at: Option<Place>,
    back_at: Option<Place>,
    is_over: bool,
}

impl Table {
    /// The entries with keys between the bounds, all versions of them. Reads nothing yet.
    pub fn range(self: &Arc<Self>, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> TableRange {
        let above = |key: &[u8]| [key, NEXT].concat();
        let lower = match lower {
            Bound::Included(key) => Some(key.to_vec()),
            Bound::Excluded(key) => Some(above(key)),
            Bound::Unbounded => None,
        };
        let upper = match upper {
            Bound::Included(key) => Some(above(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
            Bound::Unbounded => None,
        };
        let is_empty = matches!((&lower, &upper), (Some(lower), Some(upper)) if lower >= upper);
        TableRange {
            table: Arc::clone(self),
            lower,
            upper,
            is_keys_only: false,
            front: None,
            back: None,
            front_at: None,
            back_at: None,
            is_over: is_empty || self.top().is_none(),
        }
    }
}

impl TableRange {
    /// Leaves values empty.
    pub fn keys_only(mut self) -> Self {
        self.is_keys_only = true;
        self
    }

    /// Goes to the next entry from the front; false if there is none, then or after an error.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let gone = if self.is_over { Ok(false) } else { self.step() };
        if !matches!(gone, Ok(true)) {
            self.end();
        }
        gone
    }

    /// Goes to the next entry from the back; false if there is none, then or after an error.
    #[inline]
    pub(crate) fn advance_back(&mut self) -> Result<bool> {
        let gone = if self.is_over { Ok(false) } else { self.step_back() };
        if !matches!(gone, Ok(true)) {
            self.end();
        }
        gone
    }

    /// The current entry of the front.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Forward> {
        Some(&self.front.as_ref()?.data.as_ref()?.cursor)
    }

    /// The current entry of the back.
    #[inline]
    pub(crate) fn back(&self) -> Option<&Backward> {
        Some(&self.back.as_ref()?.data.as_ref()?.cursor)
    }

    fn step(&mut self) -> Result<bool> {
        let Self { table, front, back_at, front_at, .. } = self;
        let (lower, upper) = (self.lower.as_deref(), self.upper.as_deref());
        let front = match front {
            Some(front) => front,
            None => front.insert(Ascent::new(table, lower)?),
        };
        match front.advance(table, lower, upper)? {
            Some(place) if back_at.is_none_or(|back| place < back) => {
                *front_at = Some(place);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn step_back(&mut self) -> Result<bool> {
        let Self { table, back, back_at, front_at, .. } = self;
        let (lower, upper) = (self.lower.as_deref(), self.upper.as_deref());
        let back = match back {
            Some(back) => back,
            None => back.insert(Descent::new(table, upper)?),
        };
        match back.advance(table, lower, upper)? {
            Some(place) if front_at.is_none_or(|front| place > front) => {
                *back_at = Some(place);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Drops the blocks as soon as they are not needed.
    fn end(&mut self) {
        self.is_over = true;
        (self.front, self.back) = (None, None);
    }
}

impl Iterator for TableRange {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(_) => self.front().and_then(|at| at.entry(!self.is_keys_only)).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for TableRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.advance_back() {
            Ok(_) => self.back().and_then(|at| at.entry(!self.is_keys_only)).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// A cursor in the block at that offset of the file.
#[derive(Debug)]
struct Level<Cursor> {
    cursor: Cursor,
    offset: u64,
}

/// The ascending cursor of a range.
#[derive(Debug)]
struct Ascent {
    top: Level<Forward>,
    index: Option<Level<Forward>>,
    data: Option<Level<Forward>>,
    blocks: InRow,
    /// Offsets of the last data block and the last index block that were open.
    data_offset: u64,
    index_offset: u64,
    /// Whether the lower bound must be searched for in the next block.
    is_seeking: bool,
    /// Whether the range ends in the block that is open.
    is_last: bool,
}

/// A fault of the index that no writer produces.
const OUT_OF_ORDER: Malformed = Malformed("expected blocks that the index names in their order");

/// The offset of the first entry that is not below the bound; the end of the entries if all are.
fn seek_start(block: &EntryBlock, bound: Option<&[u8]>) -> Read<usize> {
    let Some(bound) = bound else { return Ok(0) };
    let found = block.seek(bound, NEWEST)?;
    Ok(found.map_or(block.entries_bytes(), |found| found.entry.offset))
}

impl Ascent {
    fn new(table: &Table, lower: Option<&[u8]>) -> Result<Self> {
        let (block, offset) = table.top().expect("a range of a table without entries is over");
        let cursor = seek_start(block, lower)
            .and_then(|start| Forward::new(block.clone(), start, usize::MAX))
            .map_err(table.damaged(*offset))?;
        Ok(Self {
            top: Level { cursor, offset: *offset },
            index: None,
            data: None,
            blocks: InRow::new(true),
            data_offset: 0,
            index_offset: 0,
            is_seeking: true,
            is_last: false,
        })
    }

    /// Goes to the next entry; `None` if there is none below `upper`.
    fn advance(
        &mut self,
        table: &Table,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<Option<Place>> {
        loop {
            if let Some(data) = &mut self.data {
                if data.cursor.advance().map_err(table.damaged(data.offset))? {
                    let entry = data.cursor.current().map(|entry| (data.offset, entry.offset));
                    return Ok(entry);
                }
                self.data = None;
            }
            if self.is_last {
                return Ok(None);
            }
            if let Some(index) = &mut self.index {
                let damaged = table.damaged(index.offset);
                if index.cursor.advance().map_err(&damaged)? {
                    let handle = index.cursor.read_value(index::handle_at).map_err(&damaged)?;
                    if handle.offset <= self.data_offset {
                        return Err(damaged(OUT_OF_ORDER));
                    }
                    self.data_offset = handle.offset;
                    self.is_last = upper.is_some_and(|upper| index.cursor.key() >= upper);
                    self.open_data(table, handle, lower, upper)?;
                    continue;
                }
                self.index = None;
            }
            let damaged = table.damaged(self.top.offset);
            if !self.top.cursor.advance().map_err(&damaged)? {
                return Ok(None);
            }
            let partition = self.top.cursor.read_value(index::partition_at).map_err(&damaged)?;
            let offset = partition.index.offset;
            if offset <= self.index_offset {
                return Err(damaged(OUT_OF_ORDER));
            }
            self.index_offset = offset;
            let block = table.entries(partition.index, BlockKind::Index)?;
            let cursor = seek_start(&block, lower.filter(|_| self.is_seeking))
                .and_then(|start| Forward::new(block, start, usize::MAX))
                .map_err(table.damaged(offset))?;
            self.index = Some(Level { cursor, offset });
        }
    }

    fn open_data(
        &mut self,
        table: &Table,
        handle: BlockHandle,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<()> {
        let block = self.blocks.entries(table, handle)?;
        let open = |block: EntryBlock| {
            let start = seek_start(&block, lower.filter(|_| self.is_seeking))?;
            let end = match upper.filter(|_| self.is_last) {
                Some(upper) => seek_start(&block, Some(upper))?,
                None => usize::MAX,
            };
            Forward::new(block, start, end)
        };
        let cursor = open(block).map_err(table.damaged(handle.offset))?;
        self.data = Some(Level { cursor, offset: handle.offset });
        self.is_seeking = false;
        Ok(())
    }
}

/// The descending cursor of a range.
#[derive(Debug)]
struct Descent {
    top: Level<Backward>,
    index: Option<Level<Backward>>,
    data: Option<Level<Backward>>,
    blocks: InRow,
    /// Offsets of the last data block and the last index block that were open.
    data_offset: u64,
    index_offset: u64,
    /// Whether the upper bound must be searched for in the next block.
    is_seeking: bool,
    /// Whether the range begins in the block that is open.
    is_last: bool,
}

/// The end of the index entry whose block the bound falls into.
fn seek_end(block: &EntryBlock, bound: Option<&[u8]>) -> Read<usize> {
    let Some(bound) = bound else { return Ok(usize::MAX) };
    Ok(block.seek(bound, NEWEST)?.map_or(usize::MAX, |found| found.entry.end))
}

impl Descent {
    fn new(table: &Table, upper: Option<&[u8]>) -> Result<Self> {
        let (block, offset) = table.top().expect("a range of a table without entries is over");
        let end = seek_end(block, upper).map_err(table.damaged(*offset))?;
        Ok(Self {
            top: Level { cursor: Backward::new(block.clone(), 0, end), offset: *offset },
            index: None,
            data: None,
            blocks: InRow::new(false),
            data_offset: u64::MAX,
            index_offset: u64::MAX,
            is_seeking: true,
            is_last: false,
        })
    }

    /// Goes to the previous entry; `None` if there is none from `lower` on.
    fn advance(
        &mut self,
        table: &Table,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<Option<Place>> {
        loop {
            if let Some(data) = &mut self.data {
                if data.cursor.advance().map_err(table.damaged(data.offset))? {
                    let entry = data.cursor.current().map(|entry| (data.offset, entry.offset));
                    return Ok(entry);
                }
                self.data = None;
            }
            if self.is_last {
                return Ok(None);
            }
            if let Some(index) = &mut self.index {
                let damaged = table.damaged(index.offset);
                if index.cursor.advance().map_err(&damaged)? {
                    let handle = index.cursor.read_value(index::handle_at).map_err(&damaged)?;
                    if handle.offset >= self.data_offset {
                        return Err(damaged(OUT_OF_ORDER));
                    }
                    self.data_offset = handle.offset;
                    if is_below(index.cursor.key(), lower) {
                        return Ok(None);
                    }
                    self.open_data(table, handle, lower, upper)?;
                    continue;
                }
                self.index = None;
            }
            let damaged = table.damaged(self.top.offset);
            if !self.top.cursor.advance().map_err(&damaged)?
                || is_below(self.top.cursor.key(), lower)
            {
                return Ok(None);
            }
            let partition = self.top.cursor.read_value(index::partition_at).map_err(&damaged)?;
            let offset = partition.index.offset;
            if offset >= self.index_offset {
                return Err(damaged(OUT_OF_ORDER));
            }
            self.index_offset = offset;
            let block = table.entries(partition.index, BlockKind::Index)?;
            let end = seek_end(&block, upper.filter(|_| self.is_seeking))
                .map_err(table.damaged(offset))?;
            self.index = Some(Level { cursor: Backward::new(block, 0, end), offset });
        }
    }

    fn open_data(
        &mut self,
        table: &Table,
        handle: BlockHandle,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Result<()> {
        let block = self.blocks.entries(table, handle)?;
        let damaged = table.damaged(handle.offset);
        let end = match upper.filter(|_| self.is_seeking) {
            Some(upper) => seek_start(&block, Some(upper)).map_err(&damaged)?,
            None => usize::MAX,
        };
        let start = match lower {
            Some(lower) => seek_start(&block, Some(lower)).map_err(&damaged)?,
            None => 0,
        };
        // Some entry of the block is below the bound, so all blocks before it are.
        self.is_last = start > 0;
        let cursor = Backward::new(block, start, end);
        self.data = Some(Level { cursor, offset: handle.offset });
        self.is_seeking = false;
        Ok(())
    }
}

/// Whether a separator, and so all of its block, is below the range.
fn is_below(separator: &[u8], lower: Option<&[u8]>) -> bool {
    lower.is_some_and(|lower| separator < lower)
}
