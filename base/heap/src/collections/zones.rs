//! Per-zone values of a heap, which may grow beyond the addresses that it was opened with.
//!
//! Purpose: nearly each store looks a zone's value up. So one list holds the values of the zones
//! that had addresses at first, and one more list serves each doubling of these.
//! Invariants: a value never moves.
//! Thread safety: any thread; a missing value is made once.

use std::sync::OnceLock;

/// Lists beyond the first: each has as many zones as all before it.
const DOUBLINGS: usize = 24;

type List<T> = Box<[OnceLock<T>]>;

/// The values of zones.
#[derive(Debug)]
pub(crate) struct Zones<T> {
    first: List<T>,
    later: [OnceLock<List<T>>; DOUBLINGS],
}

fn list<T>(zones: usize) -> List<T> {
    (0..zones).map(|_| OnceLock::new()).collect()
}

impl<T> Zones<T> {
    /// No values yet, for `zones` zones and those that come later.
    pub(crate) fn new(zones: u64) -> Self {
        Self { first: list(zones.max(1) as usize), later: [const { OnceLock::new() }; DOUBLINGS] }
    }

    /// The value of a zone.
    #[inline]
    pub(crate) fn get(&self, zone: usize) -> Option<&T> {
        match self.first.get(zone) {
            Some(known) => known.get(),
            None => {
                let (list, index) = self.later(zone);
                self.later.get(list)?.get()?.get(index)?.get()
            }
        }
    }

    /// The same, made if there is none yet. `None` beyond all zones that a heap can have.
    #[inline]
    pub(crate) fn get_or_make(&self, zone: usize, make: impl FnOnce() -> T) -> Option<&T> {
        match self.first.get(zone) {
            Some(known) => Some(known.get_or_init(make)),
            None => self.make_later(zone, make),
        }
    }

    #[cold]
    fn make_later(&self, zone: usize, make: impl FnOnce() -> T) -> Option<&T> {
        let (index, within) = self.later(zone);
        let later = self.later.get(index)?.get_or_init(|| list(self.first.len() << index));
        Some(later.get(within)?.get_or_init(make))
    }

    /// Zones that may have a value.
    pub(crate) fn count(&self) -> u64 {
        let lists =
            self.later.iter().rposition(|list| list.get().is_some()).map_or(0, |last| last + 1);
        (self.first.len() << lists) as u64
    }

    /// The list, and the index in it, of a zone beyond the first list.
    fn later(&self, zone: usize) -> (usize, usize) {
        let first = self.first.len();
        let index = (zone / first).ilog2() as usize;
        (index, zone - (first << index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_zone_has_a_place_of_its_own() {
        for first in [1, 3, 256] {
            let zones = Zones::new(first);
            for zone in (0..5_000).rev() {
                assert_eq!(zones.get(zone), None);
                assert_eq!(zones.get_or_make(zone, || zone), Some(&zone));
            }
            for zone in 0..5_000 {
                assert_eq!(zones.get_or_make(zone, || 0), Some(&zone));
                assert_eq!(zones.get(zone), Some(&zone));
            }
            assert_eq!(zones.get(usize::MAX), None);
            assert_eq!(zones.get_or_make(usize::MAX, || 0), None);
        }
    }
}
