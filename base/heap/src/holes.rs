//! Pages that the file may have no space for.
//!
//! Purpose: R5. A free page may be a hole of the file: because `shrink` gave its space back, or
//! because a crash took back what was allocated last. It is backed again before it is handed out.
//! Invariants: ranges are disjoint and never adjacent. Holes are whole chunks, or go on to the end
//! of the file.
//! Thread safety: none of its own; it lives in the arena.

use std::collections::BTreeMap;

/// A set of pages, as ranges: start to end.
#[derive(Debug, Default)]
pub(crate) struct Holes(BTreeMap<u64, u64>);

impl Holes {
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

    /// The first range of the set that has a page of `start..end`, in whole: start and end. O(log n).
    pub(crate) fn first_in(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        if start >= end {
            return None;
        }
        let before = self.0.range(..start).next_back().filter(|(_, hole_end)| **hole_end > start);
        let first = before.or_else(|| self.0.range(start..end).next());
        first.map(|(&start, &end)| (start, end))
    }

    /// The parts of a range that are not in the set: start and end of each. O(parts).
    pub(crate) fn gaps(&self, start: u64, end: u64, gaps: &mut Vec<(u64, u64)>) {
        let mut at = start;
        while at < end {
            let (hole, hole_end) = self.first_in(at, end).unwrap_or((end, end));
            if hole > at {
                gaps.push((at, hole));
            }
            at = hole_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_a_set_of_pages() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut holes = Holes::default();
            let mut model = [false; 64];
            for _ in 0..60 {
                let start = random.usize(..64);
                let end = random.usize(start..=64);
                let is_hole = random.bool();
                if is_hole {
                    holes.add(start as u64, end as u64);
                } else {
                    holes.remove(start as u64, end as u64);
                }
                model[start..end].fill(is_hole);
                let start = random.usize(..64);
                let end = random.usize(start..=64);
                let found = holes.first_in(start as u64, end as u64);
                let expected = (start..end).find(|page| model[*page]).map(|page| {
                    let before = (0..=page).rev().take_while(|page| model[*page]).last();
                    let after = (page..64).take_while(|page| model[*page]).last();
                    (before.unwrap() as u64, after.unwrap() as u64 + 1)
                });
                assert_eq!(found, expected, "seed {seed}");
                let mut gaps = Vec::new();
                holes.gaps(start as u64, end as u64, &mut gaps);
                let pages = gaps.iter().flat_map(|&(start, end)| start..end).collect::<Vec<_>>();
                let free = (start..end).filter(|page| !model[*page]).map(|page| page as u64);
                assert_eq!(pages, free.collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
