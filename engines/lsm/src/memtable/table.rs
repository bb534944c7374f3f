//! The memtable: a buffer on the heap and the ordered index of its entries.
//!
//! Purpose: the newest entries of a tree, from the commit that wrote them to the table that holds
//! them.
//! Invariants: a transaction's writes are in the index at once, under a number that no reader sees.
//! They become visible with the commit, or are removed when the transaction is undone.
//! Thread safety: written by the holder of the write permit; read by any thread that holds the
//! heap's lock, shared or not, because values are read from the heap.

pub(crate) mod change;
pub(crate) mod copies;

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::Salvage;
use adamant_heap::access::Read;
use adamant_slice::Slice;
use adamant_wire::key::is_below;

use super::buffer::{self, flush_bytes};
use super::emptied::Emptied;
use super::gather::Gathered;
use super::index_entry::{Place, SearchKey, ValuePlace};
use super::key_walk::KeyWalk;
use super::ordered_index::{OrderedIndex, Position, WayBack};
use super::record::{Record, Said};
use super::rows::Row;
use super::salvage::{LostRecords, salvage};
use crate::error::Result;
use crate::key::{EntryKind, Lookup, RangeTombstone, Version};
use crate::layout::BUFFER_CHUNKS;
use crate::sequence::{Keeper, Sequences};
use crate::tombstones::range_tombstones::RangeTombstones;

/// Inline elements for chunk offsets: enough for some KiB.
const CHUNKS_NEAR: usize = 6;
/// Approximate maximum bytes that an entry takes in a table beside its key and its value.
const ENTRY_BYTES: u64 = 32;
/// Versions of a range that an estimate counts one by one.
const COUNTED_MAX: usize = 256;
/// Positions within a key's versions, of which the newest comes first; numbers begin at 1.
const BEFORE_ALL: u64 = u64::MAX;
const BEHIND_ALL: u64 = 0;

/// A memtable.
#[derive(Debug)]
pub(crate) struct Memtable {
    /// Heap offset of the buffer.
    buffer: u64,
    /// Heap offsets of its chunks.
    chunks: Row<AtomicU64, CHUNKS_NEAR>,
    index: OrderedIndex,
    emptied: Emptied,
    /// Counters of commits.
    bytes: AtomicU64,
    entries: AtomicU64,
    sequence_max: AtomicU64,
}

impl Memtable {
    /// Opens the memtable of a buffer. O(n log n) in its content.
    pub(crate) fn open<R: Read>(heap: &R, block: u64, sequences: &Sequences) -> Result<Self> {
        let memtable = Self::with_chunks(heap, block)?;
        let (mut gathered, mut ranges) = (Gathered::default(), Vec::new());
        buffer::read(heap, block, |record| {
            memtable.take_in(heap, &record, sequences, (&mut gathered, &mut ranges))
        })?;
        memtable.fill(gathered, ranges)?;
        Ok(memtable)
    }

    /// As [`Memtable::open`], with what is left of a damaged buffer.
    pub(crate) fn salvage(
        heap: &Salvage,
        block: u64,
        sequences: &Sequences,
        lost: &mut dyn FnMut(LostRecords),
    ) -> Result<Self> {
        let memtable = Self::with_chunks(heap, block)?;
        let (mut gathered, mut ranges) = (Gathered::default(), Vec::new());
        let mut take_in = |record: Record<'_>| {
            memtable.take_in(heap, &record, sequences, (&mut gathered, &mut ranges))
        };
        salvage(heap, block, &mut take_in, lost)?;
        memtable.fill(gathered, ranges)?;
        Ok(memtable)
    }

    /// Sets what was read back. No reader looks at an earlier sequence number.
    fn fill(&self, gathered: Gathered, ranges: Vec<RangeTombstone>) -> Result<()> {
        gathered.fill(&self.index)?;
        self.emptied.fill(RangeTombstones::new(ranges, &[]));
        Ok(())
    }

    fn with_chunks<R: Read>(heap: &R, block: u64) -> Result<Self> {
        let memtable = Self::empty(block);
        for (index, chunk) in buffer::chunks(heap, block)?.into_iter().enumerate() {
            memtable.note_chunk(index, chunk);
        }
        Ok(memtable)
    }

    /// Takes in a record that was read back; its entry, or range, is gathered for sorting.
    fn take_in<R: Read>(
        &self,
        heap: &R,
        record: &Record<'_>,
        sequences: &Sequences,
        (gathered, ranges): (&mut Gathered, &mut Vec<RangeTombstone>),
    ) -> Result<()> {
        match record.said {
            Said::Entry(kind) => {
                let place = Place { sequence: record.sequence, kind, value: record.value };
                gathered.add(record.key, place);
            }
            Said::Range => {
                let end = Slice::new(self.value(heap, &record.value)?);
                let (start, sequence) = (Slice::new(record.key), record.sequence);
                ranges.push(RangeTombstone { start, end, sequence });
            }
        }
        self.count(record.sequence, record.key.len() as u64 + u64::from(record.value.len), 1);
        sequences.note(record.sequence);
        Ok(())
    }

    pub(crate) fn empty(buffer: u64) -> Self {
        Self {
            buffer,
            chunks: Row::new(BUFFER_CHUNKS),
            index: OrderedIndex::new(),
            emptied: Emptied::default(),
            bytes: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            sequence_max: AtomicU64::new(0),
        }
    }

    /// Heap offset of the buffer.
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Bytes of keys and values that commits wrote.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Maximum room that a flush takes; none if it is empty.
    pub(crate) fn bytes_written_at_most(&self) -> u64 {
        let entries = self.entries.load(Ordering::Relaxed);
        if entries == 0 { 0 } else { flush_bytes(self.bytes() + entries * ENTRY_BYTES) }
    }

    /// Bytes of the index.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.index.bytes() + self.emptied.bytes()
    }

    /// Entries that commits wrote, including range tombstones.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// The range tombstones.
    pub(crate) fn emptied(&self) -> &Emptied {
        &self.emptied
    }

    /// The largest sequence number that a commit wrote.
    pub(crate) fn sequence_max(&self) -> u64 {
        self.sequence_max.load(Ordering::Acquire)
    }

    fn count(&self, sequence: u64, bytes: u64, entries: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.sequence_max.fetch_max(sequence, Ordering::AcqRel);
    }

    fn note_chunk(&self, index: usize, chunk: u64) {
        if let Some(noted) = self.chunks.get_or_make(index) {
            noted.store(chunk, Ordering::Release);
        }
    }

    /// Heap offset of a chunk; 0 if there is none.
    fn chunk(&self, index: u32) -> u64 {
        let chunk = self.chunks.get(index as usize);
        chunk.map_or(0, |chunk| chunk.load(Ordering::Acquire))
    }

    fn value<'h, R: Read>(&self, heap: &'h R, place: &ValuePlace) -> Result<&'h [u8]> {
        let (at, len) = (place.at as usize, place.len as usize);
        Ok(heap.part(self.chunk(place.chunk), at, len)?)
    }

    /// The newest version of a key up to a sequence number. O(log n), and nearly O(1) if there is
    /// none.
    pub(crate) fn find<R: Read>(&self, heap: &R, lookup: &Lookup<'_>) -> Result<Option<Version>> {
        if !self.index.may_contain(lookup.hash) {
            return Ok(None);
        }
        let search = SearchKey::new(lookup.key);
        let Some(position) = self.index.seek(&search, lookup.sequence_max) else { return Ok(None) };
        if position.compare(&search).is_ne() {
            return Ok(None);
        }
        self.version_at(heap, &position.place()).map(Some)
    }

    fn version_at<R: Read>(&self, heap: &R, place: &Place) -> Result<Version> {
        let value = Slice::new(self.value(heap, &place.value)?);
        Ok(Version { sequence: place.sequence, kind: place.kind, value })
    }

    /// The newest commit up to a sequence number that gave a key a value, removed it, or removed a
    /// range with it; 0 if there is none, or none that is certain to be visible to every reader of
    /// that number. Nobody sees older versions below it; below operands readers do. Reads nothing
    /// on the heap.
    pub(crate) fn newest(&self, lookup: &Lookup<'_>) -> u64 {
        let over = self.emptied.over(lookup.key, lookup.sequence_max);
        if !self.index.may_contain(lookup.hash) {
            return over;
        }
        let search = SearchKey::new(lookup.key);
        let mut position = self.index.seek(&search, lookup.sequence_max);
        while let Some(at) = position.filter(|at| at.compare(&search).is_eq()) {
            if at.place().kind != EntryKind::Merge {
                return at.sequence().max(over);
            }
            position = self.index.after(&at);
        }
        over
    }

    /// Whether a commit after `since` wrote a key between bounds. O(keys between them).
    pub(crate) fn has_changed_within(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        since: u64,
    ) -> bool {
        let mut key = Vec::new();
        let mut position = self.first_in(lower);
        while let Some(at) = position {
            key.clear();
            at.key_to(&mut key);
            if !is_below(&key, upper) {
                break;
            }
            if at.sequence() > since {
                return true;
            }
            position = self.index.after(&at);
        }
        false
    }

    /// Whether a value newer than `moment`, committed or not, lies from the key `start` on and
    /// below `end`. O(entries between them).
    pub(crate) fn has_value_between(&self, start: &[u8], end: &[u8], moment: u64) -> bool {
        let end = SearchKey::new(end);
        let mut position = self.index.seek(&SearchKey::new(start), u64::MAX);
        while let Some(at) = position.filter(|at| at.compare(&end).is_lt()) {
            let place = at.place();
            if place.sequence > moment && place.kind != EntryKind::Tombstone {
                return true;
            }
            position = self.index.after(&at);
        }
        false
    }

    /// Approximate entries between two bounds, less one for each tombstone, and bytes of their keys
    /// and values: up to [`COUNTED_MAX`] versions are counted, of more their share of the index is
    /// taken. Reads nothing on the heap. O(log n).
    pub(crate) fn estimate(&self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> (f64, f64) {
        let (mut entries, mut bytes) = (0.0, 0.0);
        let mut position = self.first_in(lower);
        let mut key = Vec::new();
        for _ in 0..COUNTED_MAX {
            key.clear();
            position.iter().for_each(|at| at.key_to(&mut key));
            let Some(at) = position.filter(|_| is_below(&key, upper)) else {
                return (entries, bytes);
            };
            let place = at.place();
            entries += if place.kind == EntryKind::Tombstone { -1.0 } else { 1.0 };
            bytes += (key.len() + place.value.len as usize) as f64;
            position = self.index.after(&at);
        }
        let share = |(key, at): (SearchKey<'_>, u64)| self.index.share_before(&key, at);
        let low = search_of(lower, BEFORE_ALL).map_or(0.0, share);
        let high = search_of(upper, BEHIND_ALL).map_or(1.0, share);
        // Of those that were counted, as many are tombstones as of the others.
        let live = entries / COUNTED_MAX as f64;
        let versions = (self.entries() as f64 * (high - low)).max(COUNTED_MAX as f64);
        (versions * live, (self.bytes() as f64 * (high - low)).max(bytes))
    }

    /// All versions in order, without their values: reads nothing on the heap.
    pub(crate) fn keys(&self) -> KeyWalk<'_> {
        KeyWalk::new(&self.index)
    }

    fn first_in(&self, lower: Bound<&[u8]>) -> Option<Position<'_>> {
        match search_of(lower, BEFORE_ALL) {
            None => self.index.first(),
            Some((key, at)) => self.index.seek(&key, at),
        }
    }

    fn back_in(&self, upper: Bound<&[u8]>) -> WayBack<'_> {
        let search = search_of(upper, BEHIND_ALL);
        self.index.back_from(search.as_ref().map(|(key, at)| (key, *at)))
    }
}

/// Where entries within a bound begin, or end: at a key, before or behind all of its versions. For
/// a bound that includes its key that is `included`. `None`: there is no bound.
fn search_of(bound: Bound<&[u8]>, included: u64) -> Option<(SearchKey<'_>, u64)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((SearchKey::new(key), included)),
        Bound::Excluded(key) => Some((SearchKey::new(key), BEFORE_ALL - included)),
    }
}

impl Keeper for Memtable {
    fn let_go(&self, sequences: &Sequences) {
        self.emptied.let_go(sequences);
    }

    fn kept_bytes(&self) -> u64 {
        self.emptied.kept_bytes()
    }
}
