//! Ranges that commits made empty, cut so that finding those over a key is one search.
//!
//! Purpose: whether an entry lies under a range tombstone.
//! Invariants: pieces are disjoint and ascend; in each the sequence numbers descend.
//! Thread safety: plain data.

use std::collections::BTreeSet;

use adamant_slice::Slice;

use crate::key::RangeTombstone;

/// Range tombstones, cut where any of them begins or ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cover {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    start: Slice,
    end: Slice,
    /// Of the tombstones over it, the newest first.
    sequences: Vec<u64>,
}

impl Cover {
    /// Of these tombstones. O(n^2) where all overlap.
    pub(crate) fn new<'t>(tombstones: impl IntoIterator<Item = &'t RangeTombstone>) -> Self {
        let mut tombstones: Vec<_> = tombstones.into_iter().collect();
        tombstones.sort_by(|one, other| one.start.cmp(&other.start));
        let edges: BTreeSet<&Slice> =
            tombstones.iter().flat_map(|tombstone| [&tombstone.start, &tombstone.end]).collect();
        let edges: Vec<&Slice> = edges.into_iter().collect();
        let mut pieces = Vec::new();
        // Those that began and did not end yet.
        let mut open: Vec<&RangeTombstone> = Vec::new();
        let mut next = tombstones.into_iter().peekable();
        for edge in edges.windows(2) {
            let &[start, end] = edge else { break };
            open.retain(|tombstone| tombstone.end > *start);
            while let Some(begins) = next.next_if(|tombstone| tombstone.start <= *start) {
                if begins.end > *start {
                    open.push(begins);
                }
            }
            if open.is_empty() {
                continue;
            }
            let mut sequences: Vec<u64> = open.iter().map(|tombstone| tombstone.sequence).collect();
            sequences.sort_unstable_by_key(|sequence| std::cmp::Reverse(*sequence));
            sequences.dedup();
            pieces.push(Piece { start: start.clone(), end: end.clone(), sequences });
        }
        Self { pieces }
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The newest commit up to a sequence number that made a range with this key in it empty; 0 if none
    /// did. O(log n).
    #[inline]
    pub(crate) fn over(&self, key: &[u8], sequence: u64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let at = self.pieces.partition_point(|piece| piece.end[..] <= *key);
        match self.pieces.get(at) {
            Some(piece) if piece.start[..] <= *key => {
                let older = piece.sequences.partition_point(|newer| *newer > sequence);
                piece.sequences.get(older).copied().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// What lies from one key on and below another, as tombstones that are disjoint for each sequence
    /// number; `None` for no bound. Where several lie over one another, only what somebody sees who looks
    /// at `oldest_seen` or later: so as long as nobody looks back, there are no more than edges.
    pub(crate) fn between(
        &self,
        start: Option<&Slice>,
        end: Option<&Slice>,
        oldest_seen: u64,
    ) -> Vec<RangeTombstone> {
        let mut found: Vec<RangeTombstone> = Vec::new();
        for piece in &self.pieces {
            let from = start.map_or(&piece.start, |start| start.max(&piece.start));
            let to = end.map_or(&piece.end, |end| end.min(&piece.end));
            if from >= to {
                continue;
            }
            let newer = piece.sequences.partition_point(|sequence| *sequence > oldest_seen);
            for &sequence in piece.sequences.iter().take(newer + 1) {
                let longer = found.iter_mut().rev().find(|one| one.sequence == sequence);
                match longer.filter(|one| one.end == *from) {
                    Some(one) => one.end = to.clone(),
                    None => found.push(RangeTombstone {
                        start: from.clone(),
                        end: to.clone(),
                        sequence,
                    }),
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_tombstones(random: &mut fastrand::Rng) -> Vec<RangeTombstone> {
        let mut tombstones = Vec::new();
        for _ in 0..random.usize(0..12) {
            let (one, other) = (random.u8(b'a'..=b'p'), random.u8(b'a'..=b'p'));
            let key = |byte: u8| Slice::new(&[byte]);
            let (start, end) = (key(one.min(other)), key(one.max(other)));
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
            let cover = Cover::new(&tombstones);
            let cut = (Slice::new(b"d"), Slice::new(b"j"));
            let between = cover.between(Some(&cut.0), Some(&cut.1), 0);
            let all = cover.between(None, None, 0);
            let seen = cover.between(None, None, 17);
            for byte in b'a'..=b'q' {
                for sequence in [0, 5, 17, 40] {
                    let key = [byte];
                    let expected = newest(&tombstones, &key, sequence);
                    let of = format!("seed {seed}, round {round}, {byte}, {sequence}");
                    assert_eq!(cover.over(&key, sequence), expected, "{of}");
                    assert_eq!(newest(&all, &key, sequence), expected, "{of}");
                    if sequence >= 17 {
                        assert_eq!(newest(&seen, &key, sequence), expected, "{of}");
                    }
                    let is_cut = (b'd'..b'j').contains(&byte);
                    let expected = if is_cut { expected } else { 0 };
                    assert_eq!(newest(&between, &key, sequence), expected, "{of}");
                }
            }
        }
    }

    #[test]
    fn ranges_over_one_another_are_as_many_as_their_edges() {
        let mut random = fastrand::Rng::with_seed(6);
        let tombstones: Vec<_> = (1..=400)
            .map(|sequence| {
                let (one, other) = (random.u16(..), random.u16(..));
                let key = |number: u16| Slice::new(&number.to_le_bytes());
                let (one, other) = (key(one), key(other));
                let (start, end) = (one.clone().min(other.clone()), one.max(other));
                RangeTombstone { start, end, sequence }
            })
            .collect();
        let cover = Cover::new(&tombstones);
        assert!(cover.between(None, None, 400).len() <= 2 * 400);
        assert!(cover.between(None, None, 0).len() >= 400, "all are seen by who looks back");
    }
}
