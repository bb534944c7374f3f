//! Free extents, in memory.
//!
//! Purpose: find room for runs and extents, and join neighbours when pages come back.
//! Invariants: ranges are disjoint and never adjacent; both maps hold the same ranges.

use std::collections::{BTreeMap, BTreeSet};

/// Free page ranges.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    by_start: BTreeMap<u64, u64>,
    by_pages: BTreeSet<(u64, u64)>,
}

impl Extents {
    /// Takes `pages` contiguous pages out of the smallest range that has them (best fit; the
    /// lowest address among equals). O(log n).
    pub(crate) fn take(&mut self, pages: u64) -> Option<u64> {
        let (found, start) = self.by_pages.range((pages, 0)..).next().copied()?;
        self.remove(start, found);
        if found > pages {
            self.add(start + pages, found - pages);
        }
        Some(start)
    }

    /// Takes `pages` pages that begin at a multiple of that number, out of one of the smallest
    /// ranges that have them. O(log n), and a look at each range of less than twice as many.
    pub(crate) fn take_aligned(&mut self, pages: u64) -> Option<u64> {
        let mut candidates = self.by_pages.range((pages, 0)..).copied();
        // A range of nearly twice as many has them wherever it begins.
        let aligned = |(found, start): (u64, u64)| {
            let first = start.next_multiple_of(pages);
            (first + pages <= start + found).then_some((found, start, first))
        };
        let (found, start, first) = candidates.find_map(aligned)?;
        self.remove(start, found);
        for (start, end) in [(start, first), (first + pages, start + found)] {
            if start < end {
                self.add(start, end - start);
            }
        }
        Some(first)
    }

    /// Adds a range, joining it with its neighbours. O(log n).
    pub(crate) fn give(&mut self, start: u64, pages: u64) {
        let (mut start, mut pages) = (start, pages);
        if let Some((&before, &count)) = self.by_start.range(..start).next_back() {
            debug_assert!(before + count <= start, "a page is freed once");
            if before + count == start {
                self.remove(before, count);
                start = before;
                pages += count;
            }
        }
        if let Some(&count) = self.by_start.get(&(start + pages)) {
            self.remove(start + pages, count);
            pages += count;
        }
        self.add(start, pages);
    }

    /// Whether any page of a range is free. O(log n).
    pub(crate) fn overlaps(&self, start: u64, pages: u64) -> bool {
        // Ranges are disjoint: of those that begin before the end, the last one ends last.
        let last = self.by_start.range(..start + pages).next_back();
        last.is_some_and(|(&found, &count)| found + count > start)
    }

    /// All ranges, in order: start and pages.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(&start, &pages)| (start, pages))
    }

    /// Takes all free pages from `from` on, which must be contiguous up to the last free page.
    /// O(log n).
    pub(crate) fn cut(&mut self, from: u64) {
        let last = self.by_start.range(..).next_back().map(|(&start, &pages)| (start, pages));
        if let Some((start, pages)) = last.filter(|(start, pages)| start + pages > from) {
            debug_assert!(start <= from, "one range ends it");
            self.remove(start, pages);
            if start < from {
                self.add(start, from - start);
            }
        }
    }

    /// Free pages in all.
    #[cfg(test)]
    fn pages(&self) -> u64 {
        self.by_start.values().sum()
    }

    fn add(&mut self, start: u64, pages: u64) {
        self.by_start.insert(start, pages);
        self.by_pages.insert((pages, start));
    }

    fn remove(&mut self, start: u64, pages: u64) {
        self.by_start.remove(&start);
        self.by_pages.remove(&(pages, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_and_gives_like_a_set_of_pages() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut extents = Extents::default();
        extents.give(0, 1000);
        let mut held: Vec<(u64, u64)> = Vec::new();
        for _ in 0..5000 {
            if random.bool() || held.is_empty() {
                let pages = random.u64(1..40);
                let is_aligned = random.bool();
                let taken =
                    if is_aligned { extents.take_aligned(pages) } else { extents.take(pages) };
                if let Some(start) = taken {
                    assert!(!is_aligned || start.is_multiple_of(pages));
                    assert!(held.iter().all(|(s, p)| start + pages <= *s || s + p <= start));
                    held.push((start, pages));
                }
            } else {
                let (start, pages) = held.swap_remove(random.usize(..held.len()));
                extents.give(start, pages);
            }
            assert_eq!(extents.pages() + held.iter().map(|(_, p)| p).sum::<u64>(), 1000);
        }
        for (start, pages) in held {
            extents.give(start, pages);
        }
        assert_eq!(extents.take(1000), Some(0), "all pages joined again");
    }
}
