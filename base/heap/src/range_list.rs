//! Ranges of the heap in a list: what was written to bytes that held nothing.
//!
//! Purpose: such bytes are not saved, so all that is to be remembered is where they lie. Who appends
//! to a buffer adds one range behind the other, and they are kept as one: so a transaction of any size
//! has a few. What it takes is kept for the next transaction.
//! Invariants: after `settle` the ranges are in order, disjoint, and none is next to another.
//! Thread safety: belongs to the writer.

/// Bytes of memory that a list keeps for the next transaction.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A list of ranges: start and end of each.
#[derive(Debug, Default)]
pub(crate) struct RangeList(Vec<(u64, u64)>);

impl RangeList {
    /// Adds a range. O(1), amortised.
    #[inline]
    pub(crate) fn add(&mut self, start: u64, len: u64) {
        let end = start + len;
        match self.0.last_mut() {
            Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
            _ => self.0.push((start, end)),
        }
    }

    /// Hands everything to the list of the level around this one.
    pub(crate) fn merge_into(&mut self, outer: &mut Self) {
        for (start, end) in self.0.drain(..) {
            outer.add(start, end - start);
        }
    }

    /// Puts the ranges in order, joins them, and leaves out what lies in stretches of the heap, which
    /// are in order, too.
    pub(crate) fn settle(&mut self, stretches: &[(u64, u64)]) {
        if !stretches.is_empty() {
            // Ranges that were joined may lie in two blocks, one of which is freed.
            for (start, end) in std::mem::take(&mut self.0) {
                let next = stretches.partition_point(|(_, end)| *end <= start);
                let mut at = start;
                for &(from, to) in stretches[next..].iter().take_while(|(from, _)| *from < end) {
                    if at < from {
                        self.0.push((at, from));
                    }
                    at = to;
                }
                if at < end {
                    self.0.push((at, end));
                }
            }
        }
        self.0.sort_unstable();
        self.0.dedup_by(|next, kept| {
            let is_joined = next.0 <= kept.1;
            if is_joined {
                kept.1 = kept.1.max(next.1);
            }
            is_joined
        });
    }

    /// All ranges: start and end of each.
    #[inline]
    pub(crate) fn all(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets everything, keeping memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Gives memory back that many ranges took.
    #[inline]
    pub(crate) fn trim(&mut self) {
        trim(&mut self.0);
    }
}

/// Empties what takes more than a MiB, and gives its memory back: a transaction that is done needs none
/// of it.
#[inline]
pub(crate) fn trim<T>(list: &mut Vec<T>) {
    if list.capacity() > KEPT_BYTES_MAX / size_of::<T>().max(1) {
        *list = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_are_a_set_of_bytes() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut inner, mut outer) = (RangeList::default(), RangeList::default());
            let mut model = [false; 160];
            for _ in 0..random.usize(..30) {
                let at = random.usize(..160);
                let len = random.usize(1..=(160 - at).min(16));
                let list = if random.bool() { &mut inner } else { &mut outer };
                list.add(at as u64, len as u64);
                model[at..at + len].fill(true);
            }
            inner.merge_into(&mut outer);
            assert!(inner.is_empty());
            let mut bounds: Vec<u64> =
                (0..2 * random.usize(..4)).map(|_| random.u64(..=160)).collect();
            bounds.sort_unstable();
            let stretches: Vec<(u64, u64)> = bounds.chunks(2).map(|two| (two[0], two[1])).collect();
            for &(start, end) in &stretches {
                model[start as usize..end as usize].fill(false);
            }
            outer.settle(&stretches);
            let found = outer.all().iter().flat_map(|(start, end)| *start..*end);
            let expected = (0..160).filter(|at| model[*at as usize]);
            assert!(found.eq(expected), "seed {seed}");
            assert!(outer.all().windows(2).all(|pair| pair[0].1 < pair[1].0), "seed {seed}");
        }
    }

    #[test]
    fn appends_are_one_range() {
        let mut list = RangeList::default();
        for at in 0..1000 {
            list.add(4096 + 10 * at, 10);
        }
        list.add(5000, 3);
        assert_eq!(list.all(), [(4096, 14_096)]);
    }
}
