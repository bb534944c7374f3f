//! Range tombstones, as seen at each sequence number that a reader looks at.
//!
//! Purpose: tells whether an entry lies under a range tombstone. A new one overrides all that it
//! covers, which is dropped, unless a snapshot sees the earlier state: then that state is kept, and
//! shares everything that did not change with later ones.
//! Invariants: the sequence numbers of states ascend. Each state holds the newest tombstone over
//! each key, up to its number. Between two states there is a sequence number that a reader looks
//! at, or looked at when they were added.
//! Thread safety: plain data.

use std::ops::Bound;

use adamant_slice::Slice;

use crate::key::RangeTombstone;
use crate::tombstones::fragments::Fragments;

/// Range tombstones, fragmented into those that are the newest over their keys, for each of some
/// sequence numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeTombstones {
    states: Vec<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// Of its newest tombstone.
    sequence: u64,
    fragments: Fragments,
    /// Approximate number of tree nodes that later states do not share.
    unshared: usize,
}

impl RangeTombstones {
    /// Builds the states of these tombstones for these ascending sequence numbers, and all later
    /// ones. O(n log n).
    pub(crate) fn new(mut tombstones: Vec<RangeTombstone>, moments: &[u64]) -> Self {
        tombstones.sort_by_key(|tombstone| tombstone.sequence);
        let mut cover = Self::default();
        for tombstone in tombstones {
            cover.put(tombstone, moments);
        }
        cover
    }

    /// Adds a tombstone that is at least as new as all others. O(log n), plus O(log n) for each one
    /// that is dropped.
    pub(crate) fn put(&mut self, tombstone: RangeTombstone, moments: &[u64]) {
        let sequence = tombstone.sequence;
        let Some(last) = self.states.last_mut() else {
            let mut fragments = Fragments::default();
            fragments.put(tombstone);
            self.states.push(State { sequence, fragments, unshared: 0 });
            return;
        };
        let is_seen = is_between(moments, last.sequence, sequence);
        let mut fragments = last.fragments.clone();
        let before = fragments.len();
        fragments.put(tombstone);
        // A path to each end, and what was covered.
        let covered = (before + 1).saturating_sub(fragments.len());
        let unshared = covered + 2 * (before + 1).ilog2() as usize;
        if is_seen {
            last.unshared += unshared;
            self.states.push(State { sequence, fragments, unshared: 0 });
        } else {
            (last.sequence, last.fragments) = (sequence, fragments);
            if let [.., older, _] = &mut self.states[..] {
                older.unshared += unshared;
            }
        }
    }

    /// Drops the states, except the last one, that none of these ascending sequence numbers sees.
    pub(crate) fn retain(&mut self, moments: &[u64]) {
        let ends: Vec<u64> = self.states.iter().skip(1).map(|state| state.sequence).collect();
        let mut ends = ends.into_iter();
        self.states.retain(|state| match ends.next() {
            Some(end) => is_between(moments, state.sequence, end),
            None => true,
        });
    }

    /// Takes back the tombstones that are newer than a sequence number, which is seen.
    pub(crate) fn take_back(&mut self, moment: u64) {
        self.states.retain(|state| state.sequence <= moment);
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Fragments of the newest state.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.states.last().map_or(0, |state| state.fragments.len())
    }

    /// Bytes of memory of the newest state.
    pub(crate) fn bytes(&self) -> u64 {
        self.states.last().map_or(0, |state| state.fragments.bytes() as u64)
    }

    /// Approximate bytes of memory that are held for older sequence numbers only.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let (_, older) = self
            .states
            .split_last()
            .unwrap_or((&State { sequence: 0, fragments: Fragments::default(), unshared: 0 }, &[]));
        let bytes = older.iter().map(|state| {
            let len = state.fragments.len().max(1);
            state.fragments.bytes() as u64 * state.unshared.min(len) as u64 / len as u64
        });
        bytes.sum()
    }

    /// The newest tombstone over each key, as seen at a sequence number.
    pub(crate) fn at(&self, moment: u64) -> Fragments {
        self.state(moment).cloned().unwrap_or_default()
    }

    fn state(&self, moment: u64) -> Option<&Fragments> {
        let after = self.states.partition_point(|state| state.sequence <= moment);
        after.checked_sub(1).map(|at| &self.states[at].fragments)
    }

    /// The newest commit up to a sequence number that removed a range with this key; 0 if there is
    /// none. A reader must look at that number. O(log n).
    #[inline]
    pub(crate) fn over(&self, key: &[u8], moment: u64) -> u64 {
        let over = self.state(moment).and_then(|fragments| fragments.over(key));
        over.map_or(0, |fragment| fragment.sequence)
    }

    /// Whether a commit after a sequence number removed a range that has keys between bounds. O(log
    /// n).
    pub(crate) fn has_newer(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), moment: u64) -> bool {
        self.states.last().is_some_and(|state| state.fragments.has_newer(bounds, moment))
    }

    /// The tombstones from the key `start` on and below `end`, disjoint for each sequence number;
    /// `None` for no bound.
    pub(crate) fn between(
        &self,
        start: Option<&Slice>,
        end: Option<&Slice>,
    ) -> Vec<RangeTombstone> {
        let bounds = (
            start.map_or(Bound::Unbounded, |key| Bound::Included(&key[..])),
            end.map_or(Bound::Unbounded, |key| Bound::Excluded(&key[..])),
        );
        let (mut found, mut before) = (Vec::<RangeTombstone>::new(), None);
        for State { sequence, fragments, .. } in &self.states {
            let mut is_first = true;
            fragments.each_within(bounds, &mut |fragment| {
                // A fragment as old as the previous state was in that state, too, and is found
                // already.
                if before.is_some_and(|before| fragment.sequence <= before) {
                    return;
                }
                let from = start.map_or(&fragment.start, |start| start.max(&fragment.start));
                let to = end.map_or(&fragment.end, |end| end.min(&fragment.end));
                let joined = found.last_mut().filter(|last| {
                    !is_first && last.sequence == fragment.sequence && last.end == *from
                });
                is_first = false;
                match joined {
                    Some(last) => last.end = to.clone(),
                    None => found.push(RangeTombstone {
                        start: from.clone(),
                        end: to.clone(),
                        sequence: fragment.sequence,
                    }),
                }
            });
            before = Some(*sequence);
        }
        found
    }
}

/// Whether one of the sequence numbers sees the first of two, and not the second.
fn is_between(moments: &[u64], seen: u64, unseen: u64) -> bool {
    let at = moments.partition_point(|moment| *moment < seen);
    moments.get(at).is_some_and(|moment| *moment < unseen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_tombstones(random: &mut fastrand::Rng) -> Vec<RangeTombstone> {
        let mut tombstones = Vec::new();
        for _ in 0..random.usize(0..12) {
            let (one, other) = (random.u8(b'a'..=b'o'), random.u8(b'a'..=b'o'));
            let key = |byte: u8| Slice::new(&[byte]);
            let (start, end) = (key(one.min(other)), key(one.max(other) + 1));
            tombstones.push(RangeTombstone { start, end, sequence: random.u64(1..30) });
        }
        tombstones
    }

    fn newest(tombstones: &[RangeTombstone], key: &[u8], sequence: u64) -> u64 {
        let over = tombstones.iter().filter(|one| one.contains(key) && one.sequence <= sequence);
        over.map(|one| one.sequence).max().unwrap_or(0)
    }

    #[test]
    fn it_agrees_with_looking_at_each() {
        let seed = 5;
        let mut random = fastrand::Rng::with_seed(seed);
        for round in 0..300 {
            let tombstones = random_tombstones(&mut random);
            let mut moments: Vec<u64> =
                (0..random.usize(0..4)).map(|_| random.u64(0..30)).collect();
            moments.push(40);
            moments.sort_unstable();
            let mut cover = RangeTombstones::new(tombstones.clone(), &moments);
            for _ in 0..2 {
                let cut = (Slice::new(b"d"), Slice::new(b"j"));
                let between = cover.between(Some(&cut.0), Some(&cut.1));
                let all = cover.between(None, None);
                let again = RangeTombstones::new(all.clone(), &moments);
                for byte in b'a'..=b'q' {
                    for sequence in &moments {
                        let (key, sequence) = ([byte], *sequence);
                        let expected = newest(&tombstones, &key, sequence);
                        let of = format!("seed {seed}, round {round}, {byte}, {sequence}");
                        assert_eq!(cover.over(&key, sequence), expected, "{of}");
                        assert_eq!(again.over(&key, sequence), expected, "{of}");
                        assert_eq!(newest(&all, &key, sequence), expected, "{of}");
                        let is_cut = (b'd'..b'j').contains(&byte);
                        let expected = if is_cut { expected } else { 0 };
                        assert_eq!(newest(&between, &key, sequence), expected, "{of}");
                    }
                }
                // Readers no longer look at some of the sequence numbers.
                moments.remove(random.usize(0..moments.len()));
                moments.push(41);
                cover.retain(&moments);
            }
        }
    }

    #[test]
    fn only_what_somebody_tells_apart_is_kept() {
        let range = |end: u32, sequence: u64| RangeTombstone {
            start: Slice::new(b"\0"),
            end: Slice::new(&end.swap_bytes().to_le_bytes()),
            sequence,
        };
        let ranges = |count: u64| (1..=count).map(|number| range((number as u32) << 8, number));
        let cover = RangeTombstones::new(ranges(1_000).collect(), &[]);
        assert_eq!((cover.states.len(), cover.len()), (1, 1));
        let cover = RangeTombstones::new(ranges(1_000).collect(), &[300, 500, 501]);
        assert_eq!((cover.states.len(), cover.len()), (4, 1));
        assert_eq!(cover.between(None, None).len(), 4);

        // Disjoint ones, all of which a snapshot sees, and one over all of them.
        let disjoint = |number: u64| RangeTombstone {
            start: Slice::new(&(number as u32).swap_bytes().to_le_bytes()),
            end: Slice::new(&(number as u32 + 1).swap_bytes().to_le_bytes()),
            sequence: number,
        };
        let mut cover = RangeTombstones::new((0..1_000).map(disjoint).collect(), &[2_000]);
        assert_eq!(cover.kept_bytes(), 0);
        let bytes = cover.bytes();
        (3_000..4_000).for_each(|number| cover.put(range(1_000, number), &[2_000]));
        assert_eq!((cover.states.len(), cover.len()), (2, 1));
        assert_eq!(cover.kept_bytes(), bytes, "all of what the snapshot sees");
        cover.retain(&[4_000]);
        assert_eq!((cover.states.len(), cover.kept_bytes()), (1, 0));
    }
}
