//! The visibility filter: which entries a flush or a compaction keeps.
//!
//! Purpose: drops versions that no reader can see any more, and reports what was dropped, so that
//! bytes of blob files are counted as stale; names those that may be folded to one.
//! Invariants: a reader at `oldest_seen` or later sees the same with and without the dropped
//! entries.
//! Thread safety: one thread at a time.

use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::key::{Entry, EntryKind, Version};
use crate::merge_operator::{NOT_OPERAND, decode};
use crate::tombstones::range_tombstones::RangeTombstones;

/// Filters entries that come in order.
#[derive(Debug)]
pub(crate) struct VisibilityFilter {
    /// The oldest sequence number that a reader looks at, or will look at.
    oldest_seen: u64,
    /// Range tombstones of the inputs.
    cover: RangeTombstones,
    /// Whether no other table than the inputs has an older version of one of the keys.
    is_bottom: bool,
    /// The key of the previous entry, and whether no reader sees its older versions.
    key: Option<Slice>,
    is_shadowed: bool,
    /// The first commit that the last operand of the key stands for, if all readers see operands on
    /// top of what comes next.
    first_merged: Option<u64>,
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A reader may see it.
    Kept,
    /// None does.
    Dropped,
    /// None does, nor anything older of its key, because of a range tombstone: operands above it
    /// lie on nothing.
    DroppedWithOlder,
    /// All readers see this operand together with those before it.
    Operand,
    /// All readers see it below the operands before it.
    Base,
}

impl VisibilityFilter {
    pub(crate) fn new(oldest_seen: u64, cover: RangeTombstones, is_bottom: bool) -> Self {
        Self { oldest_seen, cover, is_bottom, key: None, is_shadowed: false, first_merged: None }
    }

    /// Whether no other table has an older version of one of the keys.
    pub(crate) fn is_bottom(&self) -> bool {
        self.is_bottom
    }

    /// Decides about the next entry.
    ///
    /// # Errors
    /// `NotOperand`.
    pub(crate) fn judge(&mut self, entry: &Entry) -> Result<Fate> {
        if self.key.as_ref() != Some(&entry.key) {
            self.key = Some(entry.key.clone());
            self.is_shadowed = false;
            self.first_merged = None;
        }
        let Version { sequence, kind, ref value } = entry.version;
        if self.is_shadowed || self.first_merged.is_some_and(|first| first <= sequence) {
            return Ok(Fate::Dropped);
        }
        if sequence > self.oldest_seen {
            return Ok(Fate::Kept);
        }
        if self.cover.over(&entry.key, self.oldest_seen) > sequence {
            self.is_shadowed = true;
            return Ok(Fate::DroppedWithOlder);
        }
        if kind == EntryKind::Merge {
            let first = decode(sequence, value).ok_or(Error::NotOperand { what: NOT_OPERAND })?.0;
            self.first_merged = Some(first);
            return Ok(Fate::Operand);
        }
        self.is_shadowed = true;
        if self.first_merged.is_some() {
            return Ok(Fate::Base);
        }
        let goes = self.is_bottom && kind == EntryKind::Tombstone;
        Ok(if goes { Fate::Dropped } else { Fate::Kept })
    }

    /// The range tombstones that are kept, of those from the key `start` on and below `end`.
    pub(crate) fn ranges(
        &self,
        start: Option<&Slice>,
        end: Option<&Slice>,
    ) -> Vec<crate::key::RangeTombstone> {
        let mut ranges = self.cover.between(start, end);
        if self.is_bottom {
            ranges.retain(|range| range.sequence > self.oldest_seen);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::RangeTombstone;
    use crate::read::merge::tests::entry;

    /// The value that a reader sees at a sequence number.
    fn seen(entries: &[Entry], ranges: &[RangeTombstone], key: &[u8], at: u64) -> Option<Slice> {
        let mut versions = entries.iter().filter(|entry| *entry.key == *key);
        let found = versions.find(|entry| entry.version.sequence <= at)?;
        let over = ranges.iter().filter(|range| range.contains(key) && range.sequence <= at);
        let is_empty = over.map(|range| range.sequence).max() > Some(found.version.sequence);
        let is_there = found.version.kind == EntryKind::Value && !is_empty;
        is_there.then(|| found.version.value.clone())
    }

    #[test]
    fn nobody_sees_a_difference() {
        let seed = 9;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut dropped = 0;
        for round in 0..300 {
            let (mut entries, mut ranges) = (Vec::new(), Vec::new());
            for sequence in 1..60 {
                let key = [random.u8(b'a'..b'h')];
                match random.u8(0..10) {
                    0 => {
                        let (start, end) = (Slice::new(&key), Slice::new(&[random.u8(b'i'..b'k')]));
                        ranges.push(RangeTombstone { start, end, sequence });
                    }
                    1..4 => entries.push(entry(&key, sequence, EntryKind::Tombstone, b"")),
                    _ => entries.push(entry(&key, sequence, EntryKind::Value, &[sequence as u8])),
                }
            }
            entries.sort_by(Entry::order);
            let (oldest_seen, is_bottom) = (random.u64(0..70), random.bool());
            let moments: Vec<u64> = (oldest_seen..70).collect();
            let cover = RangeTombstones::new(ranges.clone(), &moments);
            let mut survivors = VisibilityFilter::new(oldest_seen, cover, is_bottom);
            let kept: Vec<Entry> = entries
                .iter()
                .filter(|entry| survivors.judge(entry).unwrap() == Fate::Kept)
                .cloned()
                .collect();
            let kept_ranges = survivors.ranges(None, None);
            for at in oldest_seen..70 {
                for key in b'a'..b'k' {
                    let before = seen(&entries, &ranges, &[key], at);
                    let after = seen(&kept, &kept_ranges, &[key], at);
                    assert_eq!(before, after, "seed {seed}, round {round}, {key} at {at}");
                }
            }
            if is_bottom && oldest_seen >= 60 {
                let is_value = |entry: &Entry| entry.version.kind == EntryKind::Value;
                assert!(kept.iter().all(is_value) && kept_ranges.is_empty(), "all is settled");
            }
            dropped += entries.len() - kept.len();
        }
        assert!(dropped > 1_000);
    }
}
