//! The range tombstones of a table, as an augmented interval tree.
//!
//! Purpose: finds the newest one over a key.
//! Invariants: they are kept as they were written, never fragmented: n overlapping ranges take the
//! memory of n, where fragments could be n * n. They are sorted by start. The tree above them is
//! implicit: the middle of each part is its root, and knows how far the ranges of its part reach
//! and how new they are. (An augmented interval tree: Cormen and others, Introduction to
//! Algorithms, 14.3.)
//! Thread safety: immutable.

use std::cmp::Ordering;

use adamant_slice::Slice;

use crate::block::{Cursor, Forward, Malformed, Read};
use crate::key::{EntryKind, RangeTombstone};

/// The summary of the ranges of a part.
#[derive(Clone, Debug)]
struct Reach {
    /// The largest end.
    end_max: Slice,
    sequence_min: u64,
    sequence_max: u64,
}

/// Range tombstones, by start and then the newest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    sorted: Vec<RangeTombstone>,
    /// For each of them as the root of its part.
    reaches: Vec<Reach>,
}

/// The order of two range tombstones: by start, then the newer one first.
pub(crate) fn order(left: &RangeTombstone, right: &RangeTombstone) -> Ordering {
    left.start.cmp(&right.start).then(right.sequence.cmp(&left.sequence))
}

/// The range tombstone at a cursor's position. Its key must be whole, so that all of them take no
/// more memory than the blocks.
///
/// # Errors
/// `Malformed` if it is none.
pub(crate) fn range_at(cursor: &Forward) -> Read<RangeTombstone> {
    let is_whole = cursor.current().is_some_and(|entry| entry.shared == 0);
    match cursor.entry().filter(|_| is_whole) {
        Some(entry)
            if entry.version.kind == EntryKind::Value && entry.key < entry.version.value =>
        {
            let (start, end, sequence) = (entry.key, entry.version.value, entry.version.sequence);
            Ok(RangeTombstone { start, end, sequence })
        }
        _ => Err(Malformed("expected a range tombstone with a whole key below its end")),
    }
}

impl Ranges {
    /// Takes sorted range tombstones. O(n).
    pub(crate) fn new(sorted: Vec<RangeTombstone>) -> Self {
        let reach = |range: &RangeTombstone| Reach {
            end_max: range.end.clone(),
            sequence_min: range.sequence,
            sequence_max: range.sequence,
        };
        let mut reaches: Vec<Reach> = sorted.iter().map(reach).collect();
        widen(&mut reaches);
        Self { sorted, reaches }
    }

    /// All of them, by start and then the newest first.
    pub(crate) fn all(&self) -> &[RangeTombstone] {
        &self.sorted
    }

    /// The newest one over the key, up to `sequence_max`. O(log n) where few ranges overlap, O(n)
    /// at worst.
    pub(crate) fn over(&self, key: &[u8], sequence_max: u64) -> Option<&RangeTombstone> {
        let mut newest = None;
        self.search(0, self.sorted.len(), key, sequence_max, &mut newest);
        newest
    }

    /// The recursion is as deep as the tree is high: 64 at most.
    fn search<'r>(
        &'r self,
        start: usize,
        end: usize,
        key: &[u8],
        sequence_max: u64,
        newest: &mut Option<&'r RangeTombstone>,
    ) {
        if start == end {
            return;
        }
        let middle = start + (end - start) / 2;
        let reach = &self.reaches[middle];
        let is_known = newest.is_some_and(|newest| newest.sequence >= reach.sequence_max);
        if is_known || reach.sequence_min > sequence_max || &*reach.end_max <= key {
            return;
        }
        let range = &self.sorted[middle];
        let is_newer = newest.is_none_or(|newest| newest.sequence < range.sequence);
        if is_newer && range.sequence <= sequence_max && range.contains(key) {
            *newest = Some(range);
        }
        self.search(start, middle, key, sequence_max, newest);
        if &*range.start <= key {
            self.search(middle + 1, end, key, sequence_max, newest);
        }
    }
}

/// Extends the summary of each root from itself to its part.
fn widen(reaches: &mut [Reach]) {
    if reaches.len() < 2 {
        return;
    }
    let middle = reaches.len() / 2;
    let (left, rest) = reaches.split_at_mut(middle);
    let (root, right) = rest.split_at_mut(1);
    for part in [left, right] {
        widen(part);
        if let Some(child) = part.get(part.len() / 2) {
            if child.end_max > root[0].end_max {
                root[0].end_max = child.end_max.clone();
            }
            root[0].sequence_min = root[0].sequence_min.min(child.sequence_min);
            root[0].sequence_max = root[0].sequence_max.max(child.sequence_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_over_a_key_is_found() {
        let mut random = fastrand::Rng::with_seed(11);
        for count in [0, 1, 2, 3, 10, 200] {
            let mut sorted: Vec<RangeTombstone> = (0..count)
                .map(|_| {
                    let start = random.u8(0..250);
                    let end = random.u8(start + 1..=255);
                    let [start, end] = [start, end].map(|byte| Slice::new(&[byte]));
                    RangeTombstone { start, end, sequence: random.u64(0..100) }
                })
                .collect();
            sorted.sort_by(order);
            let ranges = Ranges::new(sorted.clone());
            for _ in 0..2000 {
                let (key, sequence_max) = ([random.u8(..)], random.u64(0..110));
                let over = sorted.iter().filter(|range| range.contains(&key));
                let visible = over.map(|range| range.sequence).filter(|&s| s <= sequence_max);
                let found = ranges.over(&key, sequence_max);
                assert_eq!(found.map(|range| range.sequence), visible.max());
                assert!(found.is_none_or(|range| range.contains(&key)));
            }
        }
    }
}
