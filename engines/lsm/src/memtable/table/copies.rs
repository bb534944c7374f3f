//! Copies of a memtable's entries: for scans, and for the tables that a flush writes.
//!
//! Invariants: a scan's copy ends with a key of which all visible versions were copied.
//! Thread safety: as [`Memtable`].

use std::ops::Bound;

use adamant_heap::access::Read;
use adamant_slice::Slice;
use adamant_wire::key::{is_above, is_below};

use super::super::buffer;
use super::super::copied_entries::{CopiedEntries, CopyLimits};
use super::super::index_entry::{Place, SearchKey};
use super::super::ordered_index::Position;
use super::super::record::Said;
use super::Memtable;
use crate::error::Result;
use crate::key::{Entry, EntryKind, RangeTombstone, Version};
use crate::merge_operator::Chain;
use crate::tombstones::fragments::Fragments;

/// Entries that are copied beyond the expected number.
const COPIED_MORE: usize = 4;
/// Maximum number of invisible entries that are copied beside the others: about 100 us.
const REMOVED_MAX: usize = 2048;

impl Memtable {
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
            let Place { sequence, kind, value } = at.place();
            key.clear();
            at.key_to(&mut key);
            let said = (Said::Entry(kind), sequence, &key[..]);
            let chunk = (self.buffer, self.chunk(value.chunk));
            let value = buffer::prove(heap, chunk, said, &value)?;
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
        let value = if with_value { memtable.value(heap, &place.value)? } else { &[] };
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
