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
use crate::block::{Backward, BlockHandle, Cursor, EntryBlock, Forward, Malformed, Read};
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
    bounds: Bounds,
    front: Option<Walk<Forward>>,
    back: Option<Walk<Backward>>,
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
            bounds: Bounds { lower, upper },
            front: None,
            back: None,
            front_at: None,
            back_at: None,
            is_over: is_empty || self.top().is_none(),
        }
    }
}

impl TableRange {
    /// Goes to the next entry from the front; false if there is none, then or after an error.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let Self { table, bounds, front, front_at, back_at, is_over, .. } = self;
        let gone =
            if *is_over { Ok(false) } else { step(table, bounds, (front, front_at), back_at) };
        if !matches!(gone, Ok(true)) {
            self.end();
        }
        gone
    }

    /// Goes to the next entry from the back; false if there is none, then or after an error.
    #[inline]
    pub(crate) fn advance_back(&mut self) -> Result<bool> {
        let Self { table, bounds, back, front_at, back_at, is_over, .. } = self;
        let gone =
            if *is_over { Ok(false) } else { step(table, bounds, (back, back_at), front_at) };
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

    /// Drops the blocks as soon as they are not needed.
    fn end(&mut self) {
        self.is_over = true;
        (self.front, self.back) = (None, None);
    }
}

/// Goes a step from one end of a range; false if that meets the other end.
fn step<C: Cursor>(
    table: &Table,
    bounds: &Bounds,
    (walk, at): (&mut Option<Walk<C>>, &mut Option<Place>),
    other_at: &Option<Place>,
) -> Result<bool> {
    let walk = match walk {
        Some(walk) => walk,
        None => walk.insert(Walk::new(table, bounds)?),
    };
    match walk.advance(table, bounds)? {
        Some(place) if other_at.is_none_or(|other| is_before::<C, _>(place, other)) => {
            *at = Some(place);
            Ok(true)
        }
        _ => Ok(false),
    }
}

impl Iterator for TableRange {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(_) => self.front().and_then(Cursor::entry).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

impl DoubleEndedIterator for TableRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self.advance_back() {
            Ok(_) => self.back().and_then(Cursor::entry).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }
}

/// The bounds of a range.
#[derive(Debug)]
struct Bounds {
    /// The first key of the range, if it has one.
    lower: Option<Vec<u8>>,
    /// The first key after the range, if there is one.
    upper: Option<Vec<u8>>,
}

impl Bounds {
    /// The bound where a walk starts.
    fn start<C: Cursor>(&self) -> Option<&[u8]> {
        if C::IS_FORWARD { self.lower.as_deref() } else { self.upper.as_deref() }
    }

    /// Whether a block is below the range, with all before it: its separator is not below any of
    /// its keys.
    fn are_above(&self, separator: &[u8]) -> bool {
        self.lower.as_deref().is_some_and(|lower| separator < lower)
    }
}

/// Whether a walk comes to the one before the other.
#[inline]
fn is_before<C: Cursor, T: Ord>(one: T, other: T) -> bool {
    if C::IS_FORWARD { one < other } else { one > other }
}

/// The offset of the first entry that is not below the bound; the end of the entries if all are.
fn seek(block: &EntryBlock, bound: &[u8]) -> Read<usize> {
    let found = block.seek(bound, NEWEST)?;
    Ok(found.map_or(block.entries_bytes(), |found| found.entry.offset))
}

/// A cursor in the block at that offset of the file.
#[derive(Debug)]
struct Level<C> {
    cursor: C,
    offset: u64,
}

impl<C: Cursor> Level<C> {
    /// Over the entries of an index block, from the one whose block the bound falls into.
    fn of_index(
        table: &Table,
        block: EntryBlock,
        offset: u64,
        bound: Option<&[u8]>,
    ) -> Result<Self> {
        let open = |block: EntryBlock| {
            let (mut start, mut end) = (0, usize::MAX);
            match bound {
                Some(bound) if C::IS_FORWARD => start = seek(&block, bound)?,
                Some(bound) => {
                    end = block.seek(bound, NEWEST)?.map_or(end, |found| found.entry.end);
                }
                None => {}
            }
            C::new(block, start, end)
        };
        Ok(Self { cursor: open(block).map_err(table.damaged(offset))?, offset })
    }
}

/// The walk from one end of a range.
#[derive(Debug)]
struct Walk<C> {
    top: Level<C>,
    index: Option<Level<C>>,
    data: Option<Level<C>>,
    blocks: InRow,
    /// Offsets of the last data block and the last index block that were open.
    data_offset: u64,
    index_offset: u64,
    /// Whether the bound where the walk starts must be searched for in the next block.
    is_seeking: bool,
    /// Whether the walk ends in the block that is open.
    is_last: bool,
}

/// A fault of the index that no writer produces.
const OUT_OF_ORDER: Malformed = Malformed("expected blocks that the index names in their order");

impl<C: Cursor> Walk<C> {
    fn new(table: &Table, bounds: &Bounds) -> Result<Self> {
        let (block, offset) = table.top().expect("a range of a table without entries is over");
        let before_all = if C::IS_FORWARD { 0 } else { u64::MAX };
        Ok(Self {
            top: Level::of_index(table, block.clone(), *offset, bounds.start::<C>())?,
            index: None,
            data: None,
            blocks: InRow::new(C::IS_FORWARD),
            data_offset: before_all,
            index_offset: before_all,
            is_seeking: true,
            is_last: false,
        })
    }

    /// Goes to the next entry; `None` if the bounds have no more.
    #[inline]
    fn advance(&mut self, table: &Table, bounds: &Bounds) -> Result<Option<Place>> {
        loop {
            if let Some(data) = &mut self.data {
                if data.cursor.advance().map_err(table.damaged(data.offset))? {
                    let entry = data.cursor.current().map(|entry| (data.offset, entry.offset));
                    return Ok(entry);
                }
                self.data = None;
            }
            if self.is_last || !self.open_next(table, bounds)? {
                return Ok(None);
            }
        }
    }

    /// Opens the next data block; false if the bounds have no more.
    fn open_next(&mut self, table: &Table, bounds: &Bounds) -> Result<bool> {
        loop {
            if let Some(index) = &mut self.index {
                let damaged = table.damaged(index.offset);
                if index.cursor.advance().map_err(&damaged)? {
                    let handle = index.cursor.read_value(index::handle_at).map_err(&damaged)?;
                    if !is_before::<C, _>(self.data_offset, handle.offset) {
                        return Err(damaged(OUT_OF_ORDER));
                    }
                    self.data_offset = handle.offset;
                    let separator = index.cursor.key();
                    if C::IS_FORWARD {
                        let upper = bounds.upper.as_deref();
                        self.is_last = upper.is_some_and(|upper| separator >= upper);
                    } else if bounds.are_above(separator) {
                        return Ok(false);
                    }
                    self.open_data(table, handle, bounds)?;
                    return Ok(true);
                }
                self.index = None;
            }
            let top = &mut self.top;
            let damaged = table.damaged(top.offset);
            if !top.cursor.advance().map_err(&damaged)?
                || (!C::IS_FORWARD && bounds.are_above(top.cursor.key()))
            {
                return Ok(false);
            }
            let handle = top.cursor.read_value(index::partition_at).map_err(&damaged)?.index;
            if !is_before::<C, _>(self.index_offset, handle.offset) {
                return Err(damaged(OUT_OF_ORDER));
            }
            self.index_offset = handle.offset;
            let block = table.index(handle)?;
            let bound = bounds.start::<C>().filter(|_| self.is_seeking);
            self.index = Some(Level::of_index(table, block, handle.offset, bound)?);
        }
    }

    fn open_data(&mut self, table: &Table, handle: BlockHandle, bounds: &Bounds) -> Result<()> {
        // From the front, the index says which block is the last; from the back, its entries do.
        let (has_lower, has_upper) =
            if C::IS_FORWARD { (self.is_seeking, self.is_last) } else { (true, self.is_seeking) };
        let block = self.blocks.entries(table, handle)?;
        let open = |block: EntryBlock| {
            let lower = bounds.lower.as_deref().filter(|_| has_lower);
            let start = lower.map_or(Ok(0), |lower| seek(&block, lower))?;
            let upper = bounds.upper.as_deref().filter(|_| has_upper);
            let end = upper.map_or(Ok(usize::MAX), |upper| seek(&block, upper))?;
            Ok((C::new(block, start, end)?, start))
        };
        let (cursor, start) = open(block).map_err(table.damaged(handle.offset))?;
        if !C::IS_FORWARD {
            // Some entry of the block is below the bound, so all blocks before it are.
            self.is_last = start > 0;
        }
        self.data = Some(Level { cursor, offset: handle.offset });
        self.is_seeking = false;
        Ok(())
    }
}
