//! The table check: reads and verifies all of a table.
//!
//! Purpose: finds what a search would miss: not only changed bytes, but also an index, a filter or
//! counts that do not fit the entries.
//! Invariants: the file is read once, from front to back. Memory is bounded by a partition, the top
//! of the index and the range tombstones.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_slice::Slice;

use super::index::{self, Partition};
use super::layout::TABLE;
use super::meta::{Places, References, TableMeta};
use super::ranges;
use super::reader::{Ending, read_ending};
use crate::block::{
    BlockHandle, BlockKind, BlockStream, Cursor, EntryBlock, Forward, Malformed, Read,
};
use crate::error::Result;
use crate::file::{FILE_HEADER_BYTES, Identity, ReadAhead};
use crate::filter::Filter;
use crate::key::{BlobPointer, EntryKind, RangeTombstone, key_hash};
use crate::merge_operator::{NOT_OPERAND, decode};

/// Checks all of the table with that identity in the directory of tables: checksums, order, that
/// the index leads to every entry, that filters pass every key, and counts.
///
/// # Errors
/// `Missing`, `Unsupported`, `Damaged` for the first fault; those of the storage backend.
pub fn check_table(directory: &Arc<dyn Directory>, identity: Identity) -> Result<TableMeta> {
    let file = identity.open(&**directory, TABLE)?;
    let Ending { meta, places, meta_offset } = read_ending(&*file, &identity)?;
    let bytes = ReadAhead::new(file, FILE_HEADER_BYTES as u64, meta_offset);
    let mut blocks = BlockStream::new(bytes, identity.seed());
    let (number, file_bytes) = (meta.number, meta.file_bytes);
    let mut seen =
        Seen { meta: TableMeta { number, file_bytes, ..TableMeta::default() }, ..Seen::default() };
    while let Some((payload, kind, handle)) = blocks.next()? {
        seen.add(payload, kind, handle)
            .map_err(|malformed| blocks.damaged(handle.offset, &malformed))?;
    }
    seen.finish(&meta, &places).map_err(|malformed| blocks.damaged(meta_offset, &malformed))?;
    Ok(meta)
}

/// A key and a sequence number, of an entry or a separator.
#[derive(Clone, Debug, Default)]
struct Mark {
    key: Vec<u8>,
    sequence: u64,
}

impl Mark {
    fn of(cursor: &Forward) -> Self {
        let sequence = cursor.current().map_or(0, |entry| entry.sequence);
        Self { key: cursor.key().to_vec(), sequence }
    }

    /// Whether it is before another, by key and then the newer one first.
    fn is_before(&self, other: &Self) -> bool {
        self.key.cmp(&other.key).then(other.sequence.cmp(&self.sequence)).is_lt()
    }
}

/// A data block that no index block has named yet.
#[derive(Debug)]
struct Unnamed {
    handle: BlockHandle,
    first: Mark,
    last: Mark,
}

/// The state of the check.
#[derive(Debug, Default)]
struct Seen {
    /// Counted again.
    meta: TableMeta,
    references: References,
    places: Places,
    data: Option<Forward>,
    unnamed: Vec<Unnamed>,
    /// Of the keys in the blocks that are not named yet.
    hashes: Vec<u64>,
    filter: Option<BlockHandle>,
    /// The separators of partitions, and the locations of these.
    partitions: Vec<(Mark, Partition)>,
    /// The last separator of a data block.
    separator: Option<Mark>,
    last_range: Option<RangeTombstone>,
}

impl Seen {
    fn add(&mut self, payload: Slice, kind: BlockKind, handle: BlockHandle) -> Read<()> {
        let is_early = self.places == Places::default();
        match kind {
            BlockKind::Data if is_early && self.filter.is_none() => self.add_data(payload, handle),
            BlockKind::Filter if self.filter.is_none() && !self.unnamed.is_empty() => {
                self.filter = Some(handle);
                let filter = Filter::new(&payload)?;
                if self.hashes.iter().any(|&hash| !filter.may_contain(hash)) {
                    return Err(Malformed("expected a filter that passes all keys before it"));
                }
                Ok(())
            }
            BlockKind::Index if !self.unnamed.is_empty() => self.add_index(payload, handle),
            BlockKind::Ranges if self.places.top.is_none() => self.add_ranges(payload, handle),
            BlockKind::Top if self.places.top.is_none() => {
                self.places.top = Some(handle);
                self.verify_top(payload)
            }
            _ => Err(Malformed("expected a block of another kind here")),
        }
    }

    fn add_data(&mut self, payload: Slice, handle: BlockHandle) -> Read<()> {
        self.meta.data_bytes_plain += payload.len() as u64;
        self.meta.data_bytes_stored += u64::from(handle.bytes);
        let block = EntryBlock::new(payload)?;
        let mut data = match self.data.take() {
            Some(before) => before.followed_by(block),
            None => Forward::all(block),
        };
        let mut first = None;
        while data.advance_in_order()? {
            let Some(&entry) = data.current() else { break };
            first.get_or_insert_with(|| Mark::of(&data));
            if self.meta.entries == 0 {
                self.meta.key_min = Slice::new(data.key());
            }
            self.meta.cover_sequence(entry.sequence);
            self.meta.entries += 1;
            self.meta.tombstones += u64::from(entry.kind == EntryKind::Tombstone);
            if entry.kind == EntryKind::Blob {
                let pointer = BlobPointer::from_bytes(data.value());
                self.references.add(pointer.ok_or(Malformed("expected a blob pointer"))?);
            }
            let is_operand = || decode(entry.sequence, data.value()).is_some();
            if entry.kind == EntryKind::Merge && !is_operand() {
                return Err(Malformed(NOT_OPERAND));
            }
            let hash = key_hash(data.key());
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        let first = first.ok_or(Malformed("expected a block with an entry"))?;
        let last = Mark::of(&data);
        self.unnamed.push(Unnamed { handle, first, last });
        self.data = Some(data);
        Ok(())
    }

    fn add_index(&mut self, payload: Slice, handle: BlockHandle) -> Read<()> {
        const ELSEWHERE: Malformed =
            Malformed("expected an index of all data blocks before it that no other names");
        let mut index = Forward::all(EntryBlock::new(payload)?);
        for unnamed in self.unnamed.drain(..) {
            if !index.advance_in_order()? || index.read_value(index::handle_at)? != unnamed.handle {
                return Err(ELSEWHERE);
            }
            let separator = Mark::of(&index);
            let is_behind = !separator.is_before(&unnamed.last);
            let before = self.separator.as_ref();
            let is_between = before.is_none_or(|before| before.is_before(&unnamed.first));
            if !is_behind || !is_between {
                return Err(Malformed("expected separators that stand between the data blocks"));
            }
            self.separator = Some(separator);
        }
        if index.advance_in_order()? {
            return Err(ELSEWHERE);
        }
        let partition = Partition { index: handle, filter: self.filter.take() };
        let separator = self.separator.clone().ok_or(ELSEWHERE)?;
        self.partitions.push((separator, partition));
        self.hashes.clear();
        Ok(())
    }

    fn add_ranges(&mut self, payload: Slice, handle: BlockHandle) -> Read<()> {
        if self.places.ranges_blocks == 0 {
            self.places.ranges_offset = handle.offset;
        }
        self.places.ranges_blocks += 1;
        if self.meta.range_tombstones == 0 {
            self.cover_last_key();
        }
        let mut cursor = Forward::all(EntryBlock::new(payload)?);
        while cursor.advance_in_order()? {
            let range = ranges::range_at(&cursor)?;
            let is_behind = |last: &RangeTombstone| ranges::order(last, &range).is_lt();
            if !self.last_range.as_ref().is_none_or(is_behind) {
                return Err(Malformed("expected range tombstones that ascend"));
            }
            self.meta.cover_range(&range);
            self.last_range = Some(range);
        }
        Ok(())
    }

    fn verify_top(&mut self, payload: Slice) -> Read<()> {
        const ELSEWHERE: Malformed = Malformed("expected the top of the index before it");
        let mut top = Forward::all(EntryBlock::new(payload)?);
        for (separator, partition) in self.partitions.drain(..) {
            if !top.advance_in_order()?
                || top.read_value(index::partition_at)? != partition
                || top.key() != separator.key
                || top.current().is_none_or(|entry| entry.sequence != separator.sequence)
            {
                return Err(ELSEWHERE);
            }
        }
        if top.advance_in_order()? { Err(ELSEWHERE) } else { Ok(()) }
    }

    /// After the entries: their last key is the largest, unless a range tombstone reaches further.
    fn cover_last_key(&mut self) {
        let last_key = self.data.as_ref().map_or(&[][..], |data| data.key());
        self.meta.key_max = Slice::new(last_key);
    }

    fn finish(mut self, meta: &TableMeta, places: &Places) -> Read<()> {
        if self.meta.range_tombstones == 0 {
            self.cover_last_key();
            // Without range tombstones their offset does not matter.
            self.places.ranges_offset = places.ranges_offset;
        }
        self.meta.blob_references = self.references.list();
        let has_left = !self.unnamed.is_empty() || !self.partitions.is_empty();
        if has_left || self.places != *places {
            return Err(Malformed("expected all parts of the table before here"));
        }
        if self.meta != *meta {
            return Err(Malformed("expected counts, bounds and references of what is before here"));
        }
        Ok(())
    }
}
