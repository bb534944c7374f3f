//! Salvage of a damaged B+ tree.
//!
//! Purpose: recovers every pair that can still be reached and verified, and reports what cannot.
//! Where `check` stops at the first fault, this continues with the next child, slot or block.
//! Invariants: each block is visited once, so that the walk of a damaged tree ends. A pair is
//! handed out only if its key has the hash that its slot and fingerprint hold (24 bits beside any
//! checksums that the heap verifies), and only from leaves some of whose keys lie between the
//! separators around them: without checksums a flipped bit may lead to a leaf of another tree.

use std::collections::HashSet;

use adamant_heap::access::Read;

use super::find::{head, separator};
use super::layout::{CHILDREN_MAX, Inner, LEAF_BYTES, LEAF_FULL, Leaf};
use crate::error::{Error, Result};
use crate::slot::{Entry, KeyHash, Slot};
use crate::tree::Pair;

/// A finding of a salvage.
#[derive(Debug)]
#[non_exhaustive]
pub enum Salvaged<'r> {
    /// An intact pair.
    Pair(Pair<'r>),
    /// A key whose value cannot be read.
    LostValue {
        /// The key.
        key: &'r [u8],
        /// The fault.
        why: Error,
    },
    /// A slot whose entry cannot be read, within these bounds.
    LostEntry {
        /// The lowest key that it may have had.
        lower: Option<&'r [u8]>,
        /// The upper bound of its key, excluded.
        upper: Option<&'r [u8]>,
        /// The fault.
        why: Error,
    },
    /// A node that cannot be read, with everything below it.
    LostNode {
        /// The lowest key that it may have held.
        lower: Option<&'r [u8]>,
        /// The upper bound of its keys, excluded.
        upper: Option<&'r [u8]>,
        /// The fault.
        why: Error,
    },
}

/// A node still to be read.
struct Waiting<'r> {
    block: u64,
    level: usize,
    lower: Option<&'r [u8]>,
    upper: Option<&'r [u8]>,
}

impl Waiting<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        self.lower.is_none_or(|lower| lower <= key) && self.upper.is_none_or(|upper| key < upper)
    }
}

/// Hands out what can be read of the tree with this head, in no order. `leaves` grows by the leaves
/// that were read. O(n); 8 bytes and bookkeeping per node.
pub(super) fn salvage<'r, R: Read>(
    read: &'r R,
    tree: u64,
    leaves: &mut HashSet<u64>,
    each: &mut dyn FnMut(Salvaged<'r>),
) {
    let head = match head(read, tree) {
        Ok(head) => head,
        Err(why) => return each(Salvaged::LostNode { lower: None, upper: None, why }),
    };
    let level = head.height.get() as usize;
    let mut seen = HashSet::new();
    let mut waiting = vec![Waiting { block: head.root.get(), level, lower: None, upper: None }];
    while let Some(node) = waiting.pop() {
        let Waiting { block, level, lower, upper } = node;
        let result = if !seen.insert(block) {
            Err(Error::Damaged { block, what: "is referred to twice by the tree" })
        } else if level > 0 {
            children(read, &node, &mut waiting)
        } else {
            leaf(read, &node, each).map(|()| {
                leaves.insert(block);
            })
        };
        if let Err(why) = result {
            each(Salvaged::LostNode { lower, upper, why });
        }
    }
}

/// Adds the children of an inner node. A separator that cannot be read bounds nothing, which widens
/// the ranges of its neighbours.
fn children<'r, R: Read>(
    read: &'r R,
    node: &Waiting<'r>,
    waiting: &mut Vec<Waiting<'r>>,
) -> Result<()> {
    let inner = Inner::at(read, node.block, node.level)?;
    let order = &inner.order[..inner.len()];
    if order.iter().any(|index| usize::from(*index) >= CHILDREN_MAX) {
        return Err(Error::Damaged { block: node.block, what: "has an impossible order" });
    }
    let bound = |position: usize| match position {
        0 => node.lower,
        _ => separator(read, inner.separator(position)).ok().or(node.lower),
    };
    for position in 0..inner.len() {
        let upper = match position + 1 {
            next if next == inner.len() => node.upper,
            next => separator(read, inner.separator(next)).ok().or(node.upper),
        };
        let block = inner.child(position);
        waiting.push(Waiting { block, level: node.level - 1, lower: bound(position), upper });
    }
    Ok(())
}

fn leaf<'r, R: Read>(
    read: &'r R,
    node: &Waiting<'r>,
    each: &mut dyn FnMut(Salvaged<'r>),
) -> Result<()> {
    let leaf = Leaf::at(read, node.block)?;
    let mut readable = leaf.indices().filter_map(|index| entry(read, leaf, index).ok());
    if let Some(first) = readable.next()
        && !node.holds(first.key)
        && !readable.any(|entry| node.holds(entry.key))
    {
        let what = "has only keys that belong to other leaves";
        return Err(Error::Damaged { block: node.block, what });
    }
    for index in leaf.indices() {
        match entry(read, leaf, index) {
            Ok(entry) => match entry.value(read) {
                Ok(value) => each(Salvaged::Pair((entry.key, value))),
                Err(why) => each(Salvaged::LostValue { key: entry.key, why }),
            },
            Err(why) => {
                each(Salvaged::LostEntry { lower: node.lower, upper: node.upper, why });
            }
        }
    }
    Ok(())
}

/// The entry of a slot, verified by the hash of its key.
fn entry<'r, R: Read>(read: &'r R, leaf: &Leaf, index: usize) -> Result<Entry<'r>> {
    let slot: Slot = leaf.slot(index);
    let entry = Entry::read(read, slot.entry())?;
    let hash = KeyHash::of(entry.key);
    if leaf.fingerprints[index] != hash.fingerprint()
        || slot.tag() != leaf.tagging().tag(hash, entry.key)
    {
        let what = "has a fingerprint or slot that is not its key's";
        return Err(Error::Damaged { block: slot.entry(), what });
    }
    Ok(entry)
}

/// Bytes of the blocks to which [`orphan_keys`] applies.
pub(super) const ORPHAN_BYTES: u64 = LEAF_BYTES as u64;

/// If an allocated block is a leaf, of any tree: its lowest and its highest key. A leaf is
/// recognised by its entries: all that can be read have the hashes that the leaf holds of them, and
/// at least one can. O(1).
pub(super) fn orphan_keys<R: Read>(read: &R, block: u64) -> Option<(&[u8], &[u8])> {
    let leaf = Leaf::at(read, block).ok()?;
    if leaf.bitmap.get() & !LEAF_FULL != 0 {
        return None;
    }
    let mut keys = None;
    for index in leaf.indices() {
        let found = match entry(read, leaf, index) {
            Ok(entry) => entry.key,
            // Its own page may be lost; any other error means that this is no leaf.
            Err(Error::Heap(_)) => continue,
            Err(_) => return None,
        };
        let (low, high) = keys.unwrap_or((found, found));
        keys = Some((low.min(found), high.max(found)));
    }
    // Its tags skip no more than what its keys have in common.
    let tagging = leaf.tagging();
    keys.filter(|(low, high)| tagging.admits(tagging.narrowed(low, Some(high))))
}

/// Hands out what can be read of a leaf that no tree refers to any more.
pub(super) fn salvage_orphan<'r, R: Read>(
    read: &'r R,
    block: u64,
    each: &mut dyn FnMut(Salvaged<'r>),
) -> Result<()> {
    leaf(read, &Waiting { block, level: 0, lower: None, upper: None }, each)
}
