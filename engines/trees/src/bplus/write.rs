//! Minimal stores into nodes, since every changed byte is logged.
//!
//! Invariants: bytes of a block that may be old are requested only where they change; a leaf's
//! bitmap is stored last.

use adamant_heap::access::Write;
use adamant_wire::key::head_of;
use adamant_wire::varint;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U64};

use super::find::{head, prefix_len_with, separator};
use super::layout::{
    BRANCH_BYTES, BRANCH_CHILD_AT, Branch, CHILDREN_MAX, INNER_BRANCHES_AT, INNER_BYTES,
    INNER_COUNT_AT, INNER_HEADS_AT, INNER_ORDER_AT, Inner, LEAF_BITMAP_AT, LEAF_BYTES,
    LEAF_FINGERPRINTS_AT, LEAF_FULL, LEAF_SLOTS, LEAF_SLOTS_AT, LEAF_TAGGING_AT, Leaf, branch,
};
use super::tagging::Tagging;
use crate::error::{Error, Result};
use crate::slot::{Slot, put_varint};

/// Changes one of the head's counters.
pub(super) fn add<W: Write>(tx: &mut W, tree: u64, at: usize, change: i64) -> Result<()> {
    let word = head(tx, tree)?.as_bytes()[at..].first_chunk::<8>().copied().unwrap_or_default();
    // A damaged counter may wrap: it is then as wrong as before.
    Ok(tx.update_u64(tree, at, u64::from_le_bytes(word).wrapping_add_signed(change))?)
}

/// Writes a new leaf with these fingerprints and slots, at most 48, which are tagged so; returns
/// its offset.
pub(super) fn new_leaf<W: Write>(
    tx: &mut W,
    tagging: Tagging,
    slots: &[(u8, Slot)],
) -> Result<u64> {
    assert!(slots.len() <= LEAF_SLOTS, "a leaf has {LEAF_SLOTS} slots");
    let block = tx.reserve(LEAF_BYTES as u64)?;
    let bytes = tx.write(block, 0, LEAF_SLOTS_AT + 8 * slots.len())?;
    bytes.fill(0);
    bytes[..8].copy_from_slice(&((1u64 << slots.len()) - 1).to_le_bytes());
    bytes[LEAF_TAGGING_AT..LEAF_SLOTS_AT].copy_from_slice(&tagging.stored().to_le_bytes());
    for (index, (fingerprint, slot)) in slots.iter().enumerate() {
        bytes[LEAF_FINGERPRINTS_AT + index] = *fingerprint;
        let at = LEAF_SLOTS_AT + 8 * index;
        bytes[at..at + 8].copy_from_slice(&slot.0.to_le_bytes());
    }
    Ok(block)
}

/// Stores slots into free places of a leaf whose bitmap is `used`; returns the new bitmap. The
/// caller guarantees that there is room.
pub(super) fn fill_leaf<W: Write>(
    tx: &mut W,
    leaf: u64,
    mut used: u64,
    slots: &[(u8, Slot)],
) -> Result<u64> {
    for (fingerprint, slot) in slots {
        let index = (!used).trailing_zeros() as usize;
        assert!(index < LEAF_SLOTS, "the leaf has room");
        tx.write(leaf, LEAF_FINGERPRINTS_AT + index, 1)?[0] = *fingerprint;
        tx.write(leaf, LEAF_SLOTS_AT + 8 * index, 8)?.copy_from_slice(&slot.0.to_le_bytes());
        used |= 1 << index;
    }
    tx.update_u64(leaf, LEAF_BITMAP_AT, used)?;
    Ok(used)
}

/// Writes the tags of a leaf's used slots anew: 2 bytes of each, or all slots at once, which takes
/// less time, if all are used. Its keys begin at `lower`. O(k).
pub(super) fn retag_leaf<W: Write>(
    tx: &mut W,
    leaf: u64,
    tagging: Tagging,
    lower: &[u8],
) -> Result<()> {
    let old = Leaf::at(tx, leaf)?;
    let (used, source, mut slots) = (old.used(), old.tagging(), old.slots);
    let indices = old.indices();
    tagging.prefetch(tx, indices.clone().map(|index| old.slot(index)), source);
    for index in indices.clone() {
        let slot = tagging.retag(tx, Slot(slots[index].get()), (source, lower))?;
        slots[index] = U64::new(slot.0);
    }
    if used == LEAF_FULL {
        tx.write(leaf, LEAF_SLOTS_AT, 8 * LEAF_SLOTS)?.copy_from_slice(slots.as_bytes());
    } else {
        for index in indices {
            let tag = Slot(slots[index].get()).tag();
            tx.write(leaf, LEAF_SLOTS_AT + 8 * index + 6, 2)?.copy_from_slice(&tag.to_le_bytes());
        }
    }
    Ok(tx.update_u64(leaf, LEAF_TAGGING_AT, tagging.stored())?)
}

/// Writes a separator block; returns its offset.
pub(super) fn new_separator<W: Write>(tx: &mut W, bytes: &[u8]) -> Result<u64> {
    let len = bytes.len() as u64;
    let block_bytes = varint::len(len) + bytes.len();
    let block = tx.reserve(block_bytes as u64)?;
    put_varint(tx.write(block, 0, block_bytes)?, len).copy_from_slice(bytes);
    Ok(block)
}

/// An inner node's branches in key order.
pub(super) struct Branches {
    list: [Branch; CHILDREN_MAX + 1],
    len: usize,
}

impl Branches {
    /// The branches of a node.
    pub(super) fn of(inner: &Inner) -> Self {
        let mut branches = Self { list: [branch(0, 0); CHILDREN_MAX + 1], len: inner.len() };
        for (position, branch) in branches.list[..branches.len].iter_mut().enumerate() {
            *branch = inner.branch(position);
        }
        branches
    }

    /// Adds a branch at a position.
    pub(super) fn insert(&mut self, position: usize, branch: Branch) {
        assert!(position <= self.len && self.len < self.list.len(), "one more than a node holds");
        self.list.copy_within(position..self.len, position + 1);
        self.list[position] = branch;
        self.len += 1;
    }

    /// Adds those of the next node to the right; `separator` lies between the two.
    pub(super) fn append(&mut self, right: &Inner, separator: u64) {
        assert!(self.len + right.len() <= CHILDREN_MAX, "both fit in a node");
        for position in 0..right.len() {
            self.list[self.len] = right.branch(position);
            if position == 0 {
                self.list[self.len].separator = U64::new(separator);
            }
            self.len += 1;
        }
    }

    /// The branches in key order.
    pub(super) fn list(&self) -> &[Branch] {
        &self.list[..self.len]
    }
}

/// Writes a new inner node; returns its offset. Its first separator is replaced by none.
pub(super) fn new_inner<W: Write>(
    tx: &mut W,
    level: usize,
    prefix_len: usize,
    branches: &[Branch],
) -> Result<u64> {
    let block = tx.reserve(INNER_BYTES as u64)?;
    rewrite_inner(tx, block, level, prefix_len, branches)?;
    Ok(block)
}

/// Writes the used part of an inner node: 4 + 25 bytes per child.
pub(super) fn rewrite_inner<W: Write>(
    tx: &mut W,
    block: u64,
    level: usize,
    prefix_len: usize,
    branches: &[Branch],
) -> Result<()> {
    let len = branches.len();
    assert!((1..=CHILDREN_MAX).contains(&len), "an inner node has 1 to {CHILDREN_MAX} children");
    let mut heads = [U64::ZERO; CHILDREN_MAX];
    let mut stored = [branch(0, 0); CHILDREN_MAX];
    stored[..len].copy_from_slice(branches);
    stored[0].separator = U64::ZERO;
    for (head, branch) in heads[1..len].iter_mut().zip(&branches[1..]) {
        *head = U64::new(head_of(separator(tx, branch.separator.get())?, prefix_len));
    }
    let line = tx.write(block, 0, INNER_ORDER_AT + len)?;
    line[0] = len as u8;
    line[1] = level as u8;
    line[2..4].copy_from_slice(U16::new(prefix_len as u16).as_bytes());
    for (index, order) in line[INNER_ORDER_AT..].iter_mut().enumerate() {
        *order = index as u8;
    }
    tx.write(block, INNER_HEADS_AT, 8 * len)?.copy_from_slice(heads[..len].as_bytes());
    let bytes = tx.write(block, INNER_BRANCHES_AT, BRANCH_BYTES * len)?;
    bytes.copy_from_slice(stored[..len].as_bytes());
    Ok(())
}

/// Adds a branch to an inner node that has room: 26 bytes, and 1 for each one after it; all of the
/// node if its prefix length changes. `is_edge`: the node lacks a bound.
pub(super) fn insert_branch<W: Write>(
    tx: &mut W,
    tree: u64,
    (block, level): (u64, usize),
    position: usize,
    added: Branch,
    is_edge: bool,
) -> Result<()> {
    let inner = *Inner::at(tx, block, level)?;
    let len = inner.len();
    assert!(position > 0 && position <= len && len < CHILDREN_MAX, "the node has room");
    let mut prefix_len = inner.prefix_bytes();
    if is_edge {
        prefix_len = prefix_len_with(tx, tree, &inner, added.separator.get())?;
    }
    if prefix_len != inner.prefix_bytes() {
        let mut branches = Branches::of(&inner);
        branches.insert(position, added);
        return rewrite_inner(tx, block, level, prefix_len, branches.list());
    }
    let taken = inner.order[..len].iter().fold(0u64, |taken, index| taken | 1 << (index & 63));
    let index = (!taken).trailing_zeros() as usize;
    if index >= CHILDREN_MAX {
        return Err(Error::Damaged { block, what: "has an order that is no permutation" });
    }
    let added_head = head_of(separator(tx, added.separator.get())?, inner.prefix_bytes());
    let at = INNER_BRANCHES_AT + BRANCH_BYTES * index;
    tx.write(block, at, BRANCH_BYTES)?.copy_from_slice(added.as_bytes());
    let head = tx.write(block, INNER_HEADS_AT + 8 * index, 8)?;
    head.copy_from_slice(&added_head.to_le_bytes());
    let order = tx.write(block, INNER_ORDER_AT + position, len + 1 - position)?;
    order[0] = index as u8;
    order[1..].copy_from_slice(&inner.order[position..len]);
    set_count(tx, block, len + 1)
}

/// Removes the branch at a position, not the first, from an inner node: 1 byte, and 1 for each one
/// after it. The caller frees its separator block.
pub(super) fn remove_branch<W: Write>(
    tx: &mut W,
    block: u64,
    level: usize,
    position: usize,
) -> Result<()> {
    let inner = *Inner::at(tx, block, level)?;
    let len = inner.len();
    assert!(position > 0 && position < len, "the branch is there and not the first");
    let after = len - position - 1;
    if after > 0 {
        let order = tx.write(block, INNER_ORDER_AT + position, after)?;
        order.copy_from_slice(&inner.order[position + 1..len]);
    }
    set_count(tx, block, len - 1)
}

/// Sets the number of children: a smaller one drops those at the end.
pub(super) fn set_count<W: Write>(tx: &mut W, block: u64, len: usize) -> Result<()> {
    assert!((1..=CHILDREN_MAX).contains(&len), "an inner node has 1 to {CHILDREN_MAX} children");
    tx.write(block, INNER_COUNT_AT, 1)?[0] = len as u8;
    Ok(())
}

/// Replaces the child at a position.
pub(super) fn set_child<W: Write>(
    tx: &mut W,
    block: u64,
    level: usize,
    position: usize,
    child: u64,
) -> Result<()> {
    let index = usize::from(Inner::at(tx, block, level)?.order[position]);
    if index >= CHILDREN_MAX {
        return Err(Error::Damaged { block, what: "has an order that is no permutation" });
    }
    let at = INNER_BRANCHES_AT + BRANCH_BYTES * index + BRANCH_CHILD_AT;
    Ok(tx.update_u64(block, at, child)?)
}
