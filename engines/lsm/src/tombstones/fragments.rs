//! A persistent balanced tree of disjoint key ranges, each with a sequence number.
//!
//! Purpose: finds the range tombstone over a key, and the next ones. A change creates a new tree,
//! which shares all but a path with the old one. So a reader keeps the tree that it began with, and
//! a snapshot the tree of its sequence number, at the cost of the difference.
//! Invariants: fragments ascend and are disjoint. Neither side of a node weighs more than three
//! times the other: the depth is a small multiple of the logarithm of the size. (Adams, "Efficient
//! sets: a balancing act", 1993, with the parameters that Hirai and Yamamoto proved, 2011.)
//! Thread safety: immutable, shared freely.

use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;
use adamant_wire::key::is_below;

use crate::key::RangeTombstone;

/// Maximum weight ratio of the sides of a node.
const WEIGHT_RATIO: usize = 3;
/// Minimum weight ratio of the inner part to the outer one for a double rotation.
const ROTATION_RATIO: usize = 2;

/// The tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fragments(Option<Arc<Node>>);

#[derive(Debug)]
struct Node {
    left: Fragments,
    right: Fragments,
    fragment: RangeTombstone,
    /// Of the whole subtree, including this node.
    len: usize,
    bytes: usize,
    sequence_max: u64,
}

impl Fragments {
    /// Number of fragments.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.len)
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of memory, if nothing is shared.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.bytes)
    }

    /// The fragment over a key. O(log n).
    pub(crate) fn over(&self, key: &[u8]) -> Option<&RangeTombstone> {
        let mut tree = self;
        while let Some(node) = &tree.0 {
            if *key < node.fragment.start[..] {
                tree = &node.left;
            } else if *key >= node.fragment.end[..] {
                tree = &node.right;
            } else {
                return Some(&node.fragment);
            }
        }
        None
    }

    /// Puts a fragment over those that are there. O(log n); drops what it covers.
    pub(crate) fn put(&mut self, fragment: RangeTombstone) {
        let (below, rest) = self.split(&fragment.start);
        let (_, above) = rest.split(&fragment.end);
        *self = link(below, fragment, above);
    }

    /// Cuts out what lies from the key `start` on and below `end`. O(log n).
    pub(crate) fn cut(&mut self, start: &[u8], end: &[u8]) {
        let (below, rest) = self.split(start);
        let (_, above) = rest.split(end);
        *self = concat(below, &above);
    }

    /// Splits into what lies below a key, and what from it on.
    fn split(&self, key: &[u8]) -> (Self, Self) {
        let Some(node) = &self.0 else { return Default::default() };
        let Node { left, right, fragment, .. } = &**node;
        if *key <= fragment.start[..] {
            let (below, above) = left.split(key);
            return (below, link(above, fragment.clone(), right.clone()));
        }
        if *key >= fragment.end[..] {
            let (below, above) = right.split(key);
            return (link(left.clone(), fragment.clone(), below), above);
        }
        let (mut lower, mut upper) = (fragment.clone(), fragment.clone());
        lower.end = Slice::new(key);
        upper.start = lower.end.clone();
        let none = Self::default;
        (link(left.clone(), lower, none()), link(none(), upper, right.clone()))
    }

    /// Hands on the fragments that have keys between bounds, in order.
    pub(crate) fn each_within<'f>(
        &'f self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        each: &mut impl FnMut(&'f RangeTombstone),
    ) {
        let Some(node) = &self.0 else { return };
        let (begins, ends) =
            (begins_below(&node.fragment, bounds.1), ends_above(&node.fragment, bounds.0));
        if ends {
            node.left.each_within(bounds, each);
        }
        if begins && ends {
            each(&node.fragment);
        }
        if begins {
            node.right.each_within(bounds, each);
        }
    }

    /// Whether a fragment newer than a sequence number has keys between bounds. O(log n).
    pub(crate) fn has_newer(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), sequence: u64) -> bool {
        let Some(node) = self.0.as_ref().filter(|node| node.sequence_max > sequence) else {
            return false;
        };
        let (begins, ends) =
            (begins_below(&node.fragment, bounds.1), ends_above(&node.fragment, bounds.0));
        begins && ends && node.fragment.sequence > sequence
            || ends && node.left.has_newer(bounds, sequence)
            || begins && node.right.has_newer(bounds, sequence)
    }
}

/// Whether a fragment begins below an upper bound.
pub(crate) fn begins_below(fragment: &RangeTombstone, upper: Bound<&[u8]>) -> bool {
    is_below(&fragment.start, upper)
}

/// Whether a fragment reaches above a lower bound.
pub(crate) fn ends_above(fragment: &RangeTombstone, lower: Bound<&[u8]>) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(key) | Bound::Excluded(key) => fragment.end[..] > *key,
    }
}

fn node(left: Fragments, fragment: RangeTombstone, right: Fragments) -> Fragments {
    let keys = fragment.start.len() + fragment.end.len();
    let own = size_of::<Node>() + 2 * size_of::<usize>() + keys;
    let newest = |side: &Fragments| side.0.as_ref().map_or(0, |node| node.sequence_max);
    let sequence_max = fragment.sequence.max(newest(&left)).max(newest(&right));
    let (len, bytes) = (1 + left.len() + right.len(), own + left.bytes() + right.bytes());
    Fragments(Some(Arc::new(Node { left, right, fragment, len, bytes, sequence_max })))
}

fn is_heavier(one: &Fragments, other: &Fragments) -> bool {
    one.len() + 1 > WEIGHT_RATIO * (other.len() + 1)
}

fn rotates_twice(inner: &Fragments, outer: &Fragments) -> bool {
    inner.len() + 1 >= ROTATION_RATIO * (outer.len() + 1)
}

/// A node of two sides, one of which may be too heavy after a single change.
fn balance(left: Fragments, fragment: RangeTombstone, right: Fragments) -> Fragments {
    if is_heavier(&right, &left)
        && let Some(at) = &right.0
    {
        if let Some(inner) = at.left.0.as_ref().filter(|_| rotates_twice(&at.left, &at.right)) {
            let lower = node(left, fragment, inner.left.clone());
            let upper = node(inner.right.clone(), at.fragment.clone(), at.right.clone());
            return node(lower, inner.fragment.clone(), upper);
        }
        let lower = node(left, fragment, at.left.clone());
        return node(lower, at.fragment.clone(), at.right.clone());
    }
    if is_heavier(&left, &right)
        && let Some(at) = &left.0
    {
        if let Some(inner) = at.right.0.as_ref().filter(|_| rotates_twice(&at.right, &at.left)) {
            let lower = node(at.left.clone(), at.fragment.clone(), inner.left.clone());
            let upper = node(inner.right.clone(), fragment, right);
            return node(lower, inner.fragment.clone(), upper);
        }
        let upper = node(at.right.clone(), fragment, right);
        return node(at.left.clone(), at.fragment.clone(), upper);
    }
    node(left, fragment, right)
}

/// Joins two trees and the fragment between them. O(difference of their heights).
fn link(left: Fragments, fragment: RangeTombstone, right: Fragments) -> Fragments {
    if is_heavier(&right, &left)
        && let Some(at) = &right.0
    {
        let lower = link(left, fragment, at.left.clone());
        return balance(lower, at.fragment.clone(), at.right.clone());
    }
    if is_heavier(&left, &right)
        && let Some(at) = &left.0
    {
        let upper = link(at.right.clone(), fragment, right);
        return balance(at.left.clone(), at.fragment.clone(), upper);
    }
    node(left, fragment, right)
}

/// Joins two adjacent trees.
fn concat(left: Fragments, right: &Fragments) -> Fragments {
    match take_first(right) {
        Some((first, rest)) => link(left, first, rest),
        None => left,
    }
}

fn take_first(tree: &Fragments) -> Option<(RangeTombstone, Fragments)> {
    let at = tree.0.as_ref()?;
    match take_first(&at.left) {
        Some((first, rest)) => Some((first, balance(rest, at.fragment.clone(), at.right.clone()))),
        None => Some((at.fragment.clone(), at.right.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifies the invariants of the tree; returns its depth.
    fn prove(tree: &Fragments) -> usize {
        let Some(node) = &tree.0 else { return 0 };
        let Node { left, right, fragment, .. } = &**node;
        assert!(fragment.start < fragment.end);
        assert!(!is_heavier(left, right) && !is_heavier(right, left));
        assert_eq!(node.len, 1 + left.len() + right.len());
        1 + prove(left).max(prove(right))
    }

    fn key(number: usize) -> Slice {
        Slice::new(&(number as u16).swap_bytes().to_le_bytes())
    }

    #[test]
    fn it_agrees_with_an_array() {
        const KEYS: usize = 600;
        for seed in 0..6 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut tree, mut model) = (Fragments::default(), [0_u64; KEYS]);
            let mut kept = Vec::new();
            for sequence in 1..400 {
                let start = random.usize(0..KEYS - 1);
                let len = if random.u8(0..9) == 0 { KEYS } else { 4 };
                let end = random.usize(start + 1..(start + 1 + len).min(KEYS));
                if random.u8(0..5) == 0 {
                    tree.cut(&key(start), &key(end));
                    model[start..end].fill(0);
                } else {
                    tree.put(RangeTombstone { start: key(start), end: key(end), sequence });
                    model[start..end].fill(sequence);
                }
                if sequence % 50 == 0 {
                    kept.push((tree.clone(), model));
                }
                let deepest = 3 * (tree.len() + 2).ilog2() as usize;
                assert!(prove(&tree) <= deepest, "seed {seed}: {} fragments", tree.len());
            }
            kept.push((tree, model));
            for (tree, model) in kept {
                for (number, expected) in model.iter().enumerate() {
                    let found = tree.over(&key(number)).map_or(0, |over| over.sequence);
                    assert_eq!(found, *expected, "seed {seed}, key {number}");
                }
                let (from, to) = (random.usize(0..KEYS / 2), random.usize(KEYS / 2..KEYS));
                let (lower, upper) = (key(from), key(to));
                let bounds = (Bound::Included(&lower[..]), Bound::Excluded(&upper[..]));
                let newest = model[from..to].iter().max().copied().unwrap_or(0);
                let mut handed = 0;
                tree.each_within(bounds, &mut |range| handed = range.sequence.max(handed));
                assert_eq!(handed, newest, "seed {seed}");
                assert!(!tree.has_newer(bounds, newest));
                let is_newer = newest > 0 && tree.has_newer(bounds, newest - 1);
                assert_eq!(is_newer, newest > 0, "seed {seed}");
            }
        }
    }
}
