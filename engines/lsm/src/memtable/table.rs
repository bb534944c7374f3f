//! The memtable: a buffer on the heap and the ordered index of its entries.
//!
//! Purpose: the newest entries of a tree, from the commit that wrote them to the table that holds
//! them.
//! Invariants: a transaction's writes are in the index at once, under a number that no reader sees.
//! They become visible with the commit, or are removed when the transaction is undone.
//! Thread safety: written by the holder of the write permit; read by any thread that holds the
//! heap's lock, shared or not, because values are read from the heap.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::Salvage;
use adamant_heap::access::{Read, Write};
use adamant_slice::Slice;
use adamant_wire::key::{is_above, is_below};

use super::buffer::{self, Appender, flush_bytes};
use super::copied_entries::{CopiedEntries, CopyLimits};
use super::emptied::Emptied;
use super::gather::Gathered;
use super::index_entry::{Place, SearchKey};
use super::key_walk::KeyWalk;
use super::ordered_index::{OrderedIndex, Position, WayBack};
use super::record::{Record, Said, ValuePlace};
use super::rows::Row;
use super::salvage::{LostRecords, salvage};
use crate::error::{Error, Result};
use crate::key::{Entry, EntryKind, Lookup, RangeTombstone, Version};
use crate::layout::BUFFER_CHUNKS;
use crate::merge_operator::{
    Chain, NOT_OPERAND, NamedOperator, OPERAND_FOLDED_BYTES_MAX, decode, encode,
};
use crate::sequence::{Keeper, Sequences};
use crate::tombstones::fragments::Fragments;
use crate::tombstones::range_tombstones::RangeTombstones;

/// Inline elements for chunk offsets: enough for some KiB.
const CHUNKS_NEAR: usize = 6;
/// Approximate maximum bytes that an entry takes in a table beside its key and its value.
const ENTRY_BYTES: u64 = 32;
/// Versions of a range that an estimate counts one by one.
const COUNTED_MAX: usize = 256;
/// Entries that are copied beyond the expected number.
const COPIED_MORE: usize = 4;
/// Maximum number of invisible entries that are copied beside the others: about 100 us.
const REMOVED_MAX: usize = 2048;

/// What is shorter than this many bytes is merged with any operand.
const ABSORBED_BYTES_MIN: usize = 32;

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
        let ValuePlace { chunk, at, len } = record.value;
        match record.said {
            Said::Entry(kind) => {
                let place = Place { sequence: record.sequence, kind, chunk, at, len };
                gathered.add(record.key, place);
            }
            Said::Range => {
                let end = Slice::new(self.value(heap, &record.value)?);
                let (start, sequence) = (Slice::new(record.key), record.sequence);
                ranges.push(RangeTombstone { start, end, sequence });
            }
        }
        self.count(record.sequence, record.key.len() as u64 + u64::from(len), 1);
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

    fn value_at<'h, R: Read>(&self, heap: &'h R, place: &Place) -> Result<&'h [u8]> {
        let Place { chunk, at, len, .. } = *place;
        self.value(heap, &ValuePlace { chunk, at, len })
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
        let value = Slice::new(self.value_at(heap, place)?);
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

    /// Copies the newest versions up to a sequence number of the keys within bounds, from the low
    /// end up or from the high end down, until about as many visible ones as the limits say are
    /// copied. Skips the gaps of `wanted.gap`. Returns the key where it stopped, which was copied,
    /// if there may be more.
    pub(crate) fn copy_range<R: Read>(
        &self,
        heap: &R,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
        wanted: &Wanted<'_>,
    ) -> Result<(CopiedEntries, Option<Slice>)> {
        let piece = CopiedEntries::default();
        let mut copy = Copy { piece, wanted, forward, seen: 0, last: Vec::new() };
        let (mut key, sequence) = (Vec::new(), wanted.sequence);
        if forward {
            let mut position = self.first_in(lower);
            while let Some(at) = position {
                key.clear();
                at.key_to(&mut key);
                if !is_below(&key, upper) {
                    return Ok((copy.piece, None));
                }
                let (seen, next) = self.seen_from(at, &SearchKey::new(&key), sequence);
                position = match copy.add(self, heap, &key, seen)? {
                    Copying::Goes => next,
                    Copying::Passes(gap) => self.index.seek(&SearchKey::new(&gap.end), u64::MAX),
                    Copying::IsFull => return Ok((copy.piece, Some(Slice::new(&copy.last)))),
                };
            }
            return Ok((copy.piece, None));
        }
        let (mut way, mut seen) = (self.back_in(upper), None);
        while way.next(sequence, &mut key, &mut seen) && is_above(&key, lower) {
            match copy.add(self, heap, &key, seen)? {
                Copying::Goes => {}
                Copying::Passes(gap) => {
                    way = self.index.back_from(Some((&SearchKey::new(&gap.start), u64::MAX)));
                }
                Copying::IsFull => return Ok((copy.piece, Some(Slice::new(&copy.last)))),
            }
        }
        Ok((copy.piece, None))
    }

    /// Of the versions of a key, of which the newest is given, the first one that is old enough,
    /// and the first position after all of them.
    fn seen_from<'l>(
        &'l self,
        newest: Position<'l>,
        key: &SearchKey<'_>,
        sequence: u64,
    ) -> (Option<Position<'l>>, Option<Position<'l>>) {
        let (mut seen, mut position) = (None, Some(newest));
        while let Some(at) = position {
            if !at.is(&newest) && at.compare(key).is_ne() {
                break;
            }
            if seen.is_none() && at.sequence() <= sequence {
                seen = Some(at);
            }
            position = self.index.after(&at);
        }
        (seen, position)
    }

    /// The expected number of `entries_max` adjacent entries that lie in this memtable, if its keys
    /// are spread evenly among those of `others`, and some more, so that a scan need not come back.
    pub(crate) fn share_of(&self, entries_max: usize, others: u64) -> usize {
        let entries = self.entries();
        let share = entries_max as f64 * entries as f64 / (entries + others).max(1) as f64;
        (share as usize + share as usize / 2 + COPIED_MORE).min(entries_max)
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
            bytes += (key.len() + place.len as usize) as f64;
            position = self.index.after(&at);
        }
        let [low, high] = [
            match lower {
                Bound::Unbounded => 0.0,
                Bound::Included(key) => self.index.share_before(&SearchKey::new(key), u64::MAX),
                Bound::Excluded(key) => self.index.share_before(&SearchKey::new(key), 0),
            },
            match upper {
                Bound::Unbounded => 1.0,
                Bound::Included(key) => self.index.share_before(&SearchKey::new(key), 0),
                Bound::Excluded(key) => self.index.share_before(&SearchKey::new(key), u64::MAX),
            },
        ];
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
        match lower {
            Bound::Unbounded => self.index.first(),
            Bound::Included(key) => self.index.seek(&SearchKey::new(key), u64::MAX),
            // Numbers begin at 1: after all versions.
            Bound::Excluded(key) => self.index.seek(&SearchKey::new(key), 0),
        }
    }

    fn back_in(&self, upper: Bound<&[u8]>) -> WayBack<'_> {
        match upper {
            Bound::Unbounded => self.index.back_from(None),
            Bound::Included(key) => self.index.back_from(Some((&SearchKey::new(key), 0))),
            Bound::Excluded(key) => self.index.back_from(Some((&SearchKey::new(key), u64::MAX))),
        }
    }

    /// Copies all versions after an entry, in order, until they have `bytes_max` bytes. The result
    /// is empty after the last one. Unlike other reads it verifies each: a table adds a checksum to
    /// what is copied there, which must not legitimise damage.
    pub(crate) fn copy_behind<R: Read>(
        &self,
        heap: &R,
        entry: Option<&Entry>,
        bytes_max: usize,
    ) -> Result<CopiedEntries> {
        let mut position = match entry {
            None => self.index.first(),
            Some(Entry { key, version }) => {
                self.index.seek(&SearchKey::new(key), version.sequence.saturating_sub(1))
            }
        };
        let (mut piece, mut key) = (CopiedEntries::default(), Vec::new());
        while let Some(at) = position.filter(|_| piece.bytes() < bytes_max) {
            let Place { sequence, kind, chunk, at: value_at, len } = at.place();
            key.clear();
            at.key_to(&mut key);
            let value = ValuePlace { chunk, at: value_at, len };
            let said = (Said::Entry(kind), sequence, &key[..]);
            let value = buffer::prove(heap, (self.buffer, self.chunk(chunk)), said, &value)?;
            piece.add(|bytes| bytes.extend_from_slice(&key), (sequence, kind), value);
            position = self.index.after(&at);
        }
        Ok(piece)
    }
}

/// The request of a scan to memtables.
pub(crate) struct Wanted<'w> {
    pub(crate) limits: CopyLimits,
    /// The sequence number that it reads at.
    pub(crate) sequence: u64,
    /// Range tombstones of this memtable and newer ones.
    pub(crate) covers: &'w [Fragments],
    /// Finds the gap that a key lies in: a range without visible entries.
    pub(crate) gap: &'w dyn Fn(&[u8]) -> Option<RangeTombstone>,
}

/// The state of a copy.
struct Copy<'w> {
    piece: CopiedEntries,
    wanted: &'w Wanted<'w>,
    forward: bool,
    /// Copied entries that are visible, unless another layer hides them.
    seen: usize,
    /// The last key that was copied.
    last: Vec<u8>,
}

/// How the copy continues.
enum Copying {
    Goes,
    /// Nothing in this range is visible.
    Passes(RangeTombstone),
    IsFull,
}

impl Copy<'_> {
    /// Copies the visible version of a key, if there is one.
    fn add<R: Read>(
        &mut self,
        memtable: &Memtable,
        heap: &R,
        key: &[u8],
        seen: Option<Position<'_>>,
    ) -> Result<Copying> {
        let Some(place) = seen.map(|seen| seen.place()) else { return Ok(Copying::Goes) };
        let covers = &mut self.wanted.covers.iter();
        let is_removed = place.kind == EntryKind::Tombstone
            || covers.any(|cover| cover.over(key).is_some_and(|o| o.sequence >= place.sequence));
        let limits = &self.wanted.limits;
        let is_full = self.seen >= limits.entries_max
            || self.piece.len() >= limits.entries_max.saturating_add(REMOVED_MAX)
            || self.piece.bytes() >= limits.bytes_max;
        // At least one, or a caller that asks for the rest would loop for ever.
        if is_full && self.piece.len() > 0 {
            return Ok(Copying::IsFull);
        }
        let with_value = limits.with_values && !is_removed;
        let value = if with_value { memtable.value_at(heap, &place)? } else { &[] };
        match place.kind {
            EntryKind::Merge if with_value => self.add_chain(memtable, heap, key, place)?,
            kind => {
                let of = (place.sequence, kind);
                self.piece.add(|bytes| bytes.extend_from_slice(key), of, value);
            }
        }
        self.seen += usize::from(!is_removed);
        self.last.clear();
        self.last.extend_from_slice(key);
        // The scan learns of the gap by one of its keys, so that many adjacent gaps become one.
        let gap = if is_removed { (self.wanted.gap)(key) } else { None };
        Ok(gap.map_or(Copying::Goes, Copying::Passes))
    }
}

impl Copy<'_> {
    /// Copies the operand of a key and what is below it in this memtable, in the order of the scan.
    #[cold]
    fn add_chain<R: Read>(
        &mut self,
        memtable: &Memtable,
        heap: &R,
        key: &[u8],
        newest: Place,
    ) -> Result<()> {
        let (search, mut chain) = (SearchKey::new(key), Chain::default());
        let mut versions = Vec::new();
        let mut next = Some(newest);
        while let Some(place) = next.take() {
            let version = memtable.version_at(heap, &place)?;
            if version.kind == EntryKind::Merge {
                let below = memtable.index.seek(&search, chain.push(&version)?);
                next = below.filter(|at| at.compare(&search).is_eq()).map(|at| at.place());
            }
            versions.push(version);
        }
        if !self.forward {
            versions.reverse();
        }
        for Version { sequence, kind, value } in versions {
            self.piece.add(|bytes| bytes.extend_from_slice(key), (sequence, kind), &value);
        }
        Ok(())
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

/// A change of a memtable, by a transaction, under a number of its own.
#[derive(Debug)]
pub(crate) struct Change {
    appender: Appender,
    undo: Undo,
}

impl Change {
    pub(crate) fn begin<R: Read>(
        heap: &R,
        memtable: &Arc<Memtable>,
        sequences: &Arc<Sequences>,
    ) -> Result<Self> {
        let undo = Undo {
            memtable: Arc::clone(memtable),
            sequences: Arc::clone(sequences),
            sequence: sequences.assign(),
            indexed: Vec::new(),
            has_ranges: false,
            bytes: 0,
            entries: 0,
        };
        Ok(Self { appender: Appender::open(heap, memtable.buffer)?, undo })
    }

    /// The sequence number of the writes.
    pub(crate) fn sequence(&self) -> u64 {
        self.undo.sequence
    }

    /// The memtable.
    pub(crate) fn memtable(&self) -> &Memtable {
        &self.undo.memtable
    }

    /// Merges an operand with what its key has in this memtable, as long as that is at most twice
    /// as long: so the lengths of what is left at least double, and what is copied is, for all
    /// operands together, O(log n) times as long as they are. Returns what is to be written.
    pub(crate) fn absorb<R: Read>(
        &self,
        heap: &R,
        operator: &NamedOperator,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(EntryKind, Vec<u8>)> {
        let Undo { memtable, sequence, .. } = &self.undo;
        let covered = memtable.emptied().over(key, u64::MAX);
        let (mut operand, mut first) = (Slice::new(operand), *sequence);
        let mut lookup = Lookup::new(key, first - 1);
        while let Some(version) = memtable.find(heap, &lookup)? {
            if version.sequence < covered || version.kind == EntryKind::Tombstone {
                return Ok((EntryKind::Value, operand.to_vec()));
            }
            let is_operand = version.kind == EntryKind::Merge;
            let (from, at) = match is_operand {
                true => decode(version.sequence, &version.value)
                    .ok_or(Error::NotOperand { what: NOT_OPERAND })?,
                false => (0, 0),
            };
            let older = &version.value[at..];
            if older.len() > 2 * operand.len().max(ABSORBED_BYTES_MIN) {
                break;
            }
            // What the operator refuses stays as it is, for the read to tell.
            let Ok(merged) = operator.merge(key, older, &operand) else { break };
            if !is_operand {
                return Ok((EntryKind::Value, merged));
            }
            if merged.len() > OPERAND_FOLDED_BYTES_MAX {
                break;
            }
            (operand, first) = (merged.into(), from);
            lookup.sequence_max = first - 1;
        }
        let is_empty = covered > 0 && first > covered && {
            let below = memtable.find(heap, &lookup)?;
            below.is_none_or(|below| below.sequence < covered)
        };
        match is_empty {
            true => Ok((EntryKind::Value, operand.to_vec())),
            false => Ok((EntryKind::Merge, encode(*sequence, first, &operand))),
        }
    }

    /// Writes an entry or a range tombstone.
    pub(crate) fn write<W: Write>(
        &mut self,
        heap: &mut W,
        said: Said,
        (key, value): (&[u8], &[u8]),
    ) -> Result<()> {
        let Self { appender, undo } = self;
        let sequence = undo.sequence;
        let (place, added) = appender.append(heap, said, sequence, (key, value))?;
        if let Some(chunk) = added {
            undo.memtable.note_chunk(place.chunk as usize, chunk);
        }
        match said {
            Said::Entry(kind) => {
                let ValuePlace { chunk, at, len } = place;
                let place = Place { sequence, kind, chunk, at, len };
                let indexed = undo.memtable.index.insert(key, place);
                undo.indexed.push(indexed.ok_or(Error::TransactionTooLarge)?);
            }
            Said::Range => {
                let (start, end) = (Slice::new(key), Slice::new(value));
                let range = RangeTombstone { start, end, sequence };
                undo.memtable.emptied.add(range, &undo.sequences);
                undo.has_ranges = true;
            }
        }
        undo.bytes += (key.len() + value.len()) as u64;
        undo.entries += 1;
        Ok(())
    }

    /// Ends the change: what is left is to commit it, or to take it back. If this fails, or is not
    /// called, the transaction, or the savepoint, must be undone.
    pub(crate) fn finish<W: Write>(self, heap: &mut W) -> Result<Undo> {
        self.appender.finish(heap)?;
        Ok(self.undo)
    }
}

/// The writes of a transaction under one number: they become visible with its commit, or are taken
/// back when this is dropped before.
#[derive(Debug)]
pub(crate) struct Undo {
    memtable: Arc<Memtable>,
    sequences: Arc<Sequences>,
    sequence: u64,
    indexed: Vec<u32>,
    has_ranges: bool,
    bytes: u64,
    entries: u64,
}

impl Undo {
    /// The transaction has committed: readers see the change from now on.
    pub(crate) fn commit(mut self) {
        self.indexed.clear();
        self.memtable.count(self.sequence, self.bytes, self.entries);
        self.sequences.show(self.sequence);
        if std::mem::take(&mut self.has_ranges) {
            self.memtable.emptied.let_go(&self.sequences);
            if self.memtable.emptied.kept_bytes() > 0 {
                self.sequences.keep(&self.memtable);
            }
        }
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for entry in self.indexed.drain(..) {
            self.memtable.index.remove(entry);
        }
        if self.has_ranges {
            self.memtable.emptied.take_back(self.sequence, &self.sequences);
        }
    }
}
