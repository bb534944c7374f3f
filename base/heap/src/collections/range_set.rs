//! A set of numbers stored as ranges: pages, or bytes.
//!
//! Purpose: the arena notes in one which pages may be holes of the file; a read-only open, which
//! pages the log names.
//! Invariants: ranges are disjoint and never adjacent.
//! Thread safety: none of its own; it belongs to its owner.

use std::collections::BTreeMap;

/// A set of ranges: start to end.
#[derive(Debug, Default)]
pub(crate) struct RangeSet(BTreeMap<u64, u64>);

impl RangeSet {
    /// Adds a range, parts of which may be in the set. O(log n), amortised.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        while let Some((&other, &other_end)) = self.0.range(..=end).next_back()
            && other_end >= start
        {
            self.0.remove(&other);
            start = start.min(other);
            end = end.max(other_end);
        }
        self.0.insert(start, end);
    }

    /// Takes a range out. O(log n), amortised.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        while let Some((other, other_end)) = self.first_in(start, end) {
            self.0.remove(&other);
            if other < start {
                self.0.insert(other, start);
            }
            if end < other_end {
                self.0.insert(end, other_end);
            }
        }
    }

    /// The first range of the set that shares a part with `start..end`, in whole: start and end.
    /// O(log n).
    pub(crate) fn first_in(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if start >= end {
            return None;
        }
        let before = self.0.range(..start).next_back().filter(|(_, other_end)| **other_end > start);
        let first = before.or_else(|| self.0.range(start..end).next());
        first.map(|(&start, &end)| (start, end))
    }

    /// The parts of a range that are not in the set: start and end of each, in order. O(log n) for
    /// each.
    pub(crate) fn gaps(&self, start: u64, end: u64, mut gap: impl FnMut(u64, u64)) {
        let mut at = start;
        while at < end {
            let (other, other_end) = self.first_in(at, end).unwrap_or((end, end));
            if other > at {
                gap(at, other);
            }
            at = other_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_a_set_of_numbers() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut ranges = RangeSet::default();
            let mut model = [false; 64];
            for _ in 0..60 {
                let start = random.usize(..64);
                let end = random.usize(start..=64);
                let is_added = random.bool();
                if is_added {
                    ranges.add(start as u64, end as u64);
                } else {
                    ranges.remove(start as u64, end as u64);
                }
                model[start..end].fill(is_added);
                let start = random.usize(..64);
                let end = random.usize(start..=64);
                let found = ranges.first_in(start as u64, end as u64);
                let expected = (start..end).find(|at| model[*at]).map(|at| {
                    let before = (0..=at).rev().take_while(|at| model[*at]).last();
                    let after = (at..64).take_while(|at| model[*at]).last();
                    (before.unwrap() as u64, after.unwrap() as u64 + 1)
                });
                assert_eq!(found, expected, "seed {seed}");
                let mut gaps = Vec::new();
                ranges.gaps(start as u64, end as u64, |start, end| gaps.extend(start..end));
                let expected = (start..end).filter(|at| !model[*at]).map(|at| at as u64);
                assert_eq!(gaps, expected.collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
