//! Splits: a full leaf or inner node makes room.
//!
//! Purpose: no entry is copied; a leaf's upper half moves as 8-byte slots. A load in ascending or
//! descending order leaves full nodes behind.
//! Invariants: a separator is above all keys to its left and at or below all to its right.

use adamant_heap::access::{Read, Write};
use adamant_wire::key::common_len;

use super::find::{Path, lower_bound, prefix_len, upper_bound};
use super::layout::{
    Branch, CHILDREN_MAX, HEAD_HEIGHT_AT, HEAD_INNER_NODES_AT, HEAD_LEAVES_AT, HEAD_ROOT_AT,
    HEIGHT_MAX, Inner, LEAF_BITMAP_AT, LEAF_FULL, LEAF_SLOTS, Leaf, branch,
};
use super::sort::Sorted;
use super::write::{
    Branches, add, insert_branch, new_inner, new_leaf, new_separator, retag_leaf, rewrite_inner,
    set_child, set_count,
};
use crate::error::{Error, Result};
use crate::slot::Slot;

/// How a full leaf is divided.
struct Plan {
    /// Slots, in key order, that go to the new leaf; `moved` of them.
    slots: [(u8, Slot); LEAF_SLOTS],
    moved: usize,
    /// Bits of these slots.
    moved_bits: u64,
    /// Whether the new leaf is the left one; it then gets no slot.
    new_is_left: bool,
    /// Whether the key that needs room goes to the new leaf.
    key_to_new: bool,
    separator: Vec<u8>,
}

/// Splits the full leaf of a path to make room for a key. Returns the leaf that the key belongs to
/// and its bitmap. The path is invalid afterwards. O(k log k) and no copies of entries.
pub(super) fn split_leaf<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    key: &[u8],
) -> Result<(u64, u64)> {
    check_height(tx, path)?;
    let old = path.leaf;
    let mut plan = plan(tx, path, key)?;
    let source = Leaf::at(tx, old)?.tagging();
    let lower = lower_bound(tx, path)?.to_vec();
    // Both are tagged as the old one was, unless their closer bounds are worth reading the keys.
    let left = source.gained(source.narrowed(&lower, Some(&plan.separator)));
    let right = source.gained(source.narrowed(&plan.separator, upper_bound(tx, path)?));
    let (of_new, of_old) = if plan.new_is_left { (left, right) } else { (right, left) };
    of_new.prefetch(tx, plan.slots[..plan.moved].iter().map(|(_, slot)| *slot), source);
    for (_, slot) in &mut plan.slots[..plan.moved] {
        *slot = of_new.retag(tx, *slot, (source, &lower))?;
    }
    let new = new_leaf(tx, of_new, &plan.slots[..plan.moved])?;
    let kept = LEAF_FULL & !plan.moved_bits;
    if plan.moved > 0 {
        tx.update_u64(old, LEAF_BITMAP_AT, kept)?;
    }
    if of_old != source {
        retag_leaf(tx, old, of_old, &lower)?;
    }
    add(tx, tree, HEAD_LEAVES_AT, 1)?;
    let separator = new_separator(tx, &plan.separator)?;
    let (left, right) = if plan.new_is_left { (new, old) } else { (old, new) };
    add_child(tx, tree, path, left, branch(separator, right))?;
    let moved_used = (1 << plan.moved) - 1;
    Ok(if plan.key_to_new { (new, moved_used) } else { (old, kept) })
}

/// Refuses a tree whose root may have to split, but cannot.
pub(super) fn check_height<R: Read>(read: &R, path: &Path) -> Result<()> {
    if path.height == HEIGHT_MAX {
        let root = Inner::at(read, path.steps[0].node, path.height)?;
        if root.len() == CHILDREN_MAX {
            return Err(Error::TooHigh { height_max: HEIGHT_MAX });
        }
    }
    Ok(())
}

/// Decides how to split. A key beyond all of the leaf's goes to a leaf of its own when more such
/// keys are likely: at that end of the tree, or when the leaf was filled in that order.
fn plan<W: Write>(tx: &W, path: &Path, key: &[u8]) -> Result<Plan> {
    let mut sorted = Sorted::new();
    sorted.load(tx, path.leaf)?;
    if sorted.len() != LEAF_SLOTS {
        return Err(Error::Damaged { block: path.leaf, what: "is split but not full" });
    }
    let leaf = Leaf::at(tx, path.leaf)?;
    let mut plan = Plan {
        slots: [(0, Slot(0)); LEAF_SLOTS],
        moved: 0,
        moved_bits: 0,
        new_is_left: false,
        key_to_new: true,
        separator: Vec::new(),
    };
    let lowest = sorted.entry(tx, 0)?.key;
    let highest = sorted.entry(tx, LEAF_SLOTS - 1)?.key;
    let ascending = || (0..LEAF_SLOTS).all(|position| sorted.slot(position) == position);
    let descending =
        || (0..LEAF_SLOTS).all(|position| sorted.slot(position) == LEAF_SLOTS - 1 - position);
    if key > highest && (path.is_last(path.height) || ascending()) {
        plan.separator = shortest_between(path.leaf, highest, key)?;
    } else if key < lowest && (path.is_first(path.height) || descending()) {
        plan.new_is_left = true;
        plan.separator = shortest_between(path.leaf, key, lowest)?;
    } else {
        for position in LEAF_SLOTS / 2..LEAF_SLOTS {
            let slot = sorted.slot(position);
            plan.slots[plan.moved] = (leaf.fingerprints[slot], leaf.slot(slot));
            plan.moved += 1;
            plan.moved_bits |= 1 << slot;
        }
        let left = sorted.entry(tx, LEAF_SLOTS / 2 - 1)?.key;
        let right = sorted.entry(tx, LEAF_SLOTS / 2)?.key;
        plan.separator = shortest_between(path.leaf, left, right)?;
        plan.key_to_new = key >= plan.separator.as_slice();
    }
    Ok(plan)
}

/// The shortest prefix of `right` that is above `left`, which is below `right` unless the tags of
/// `leaf` are not those of its keys.
pub(super) fn shortest_between(leaf: u64, left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
    if left >= right {
        return Err(Error::Damaged { block: leaf, what: "has tags out of the order of its keys" });
    }
    Ok(right[..right.len().min(common_len(left, right) + 1)].to_vec())
}

/// Replaces a path's leaf by `left` and adds `right` after it; splits full inner nodes on the way
/// up.
pub(super) fn add_child<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    mut left: u64,
    mut right: Branch,
) -> Result<()> {
    for depth in (0..path.height).rev() {
        let step = path.steps[depth];
        let position = usize::from(step.position);
        let level = path.level(depth);
        let inner = Inner::at(tx, step.node, level)?;
        let full = inner.len() == CHILDREN_MAX;
        if inner.child(position) != left {
            set_child(tx, step.node, level, position, left)?;
        }
        if !full {
            let is_edge = path.is_edge(depth);
            return insert_branch(tx, tree, (step.node, level), position + 1, right, is_edge);
        }
        right = split_inner(tx, tree, path, depth, right)?;
        left = step.node;
    }
    let branches = [branch(0, left), right];
    let prefix_len = prefix_len(tx, tree, (0, 0), &branches)?;
    let root = new_inner(tx, path.height + 1, prefix_len, &branches)?;
    add(tx, tree, HEAD_INNER_NODES_AT, 1)?;
    tx.update_u64(tree, HEAD_ROOT_AT, root)?;
    tx.update_u64(tree, HEAD_HEIGHT_AT, path.height as u64 + 1)?;
    Ok(())
}

/// Splits the full inner node at a depth of a path while adding a branch after the path's child.
/// Returns the branch of the new node, to be added one level higher.
fn split_inner<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    depth: usize,
    added: Branch,
) -> Result<Branch> {
    let step = path.steps[depth];
    let level = path.level(depth);
    let inner = *Inner::at(tx, step.node, level)?;
    let position = usize::from(step.position) + 1;
    let mut branches = Branches::of(&inner);
    branches.insert(position, added);
    let list = branches.list();
    let cut = if position == CHILDREN_MAX && path.is_last(depth) {
        CHILDREN_MAX
    } else if position == 1 && path.is_first(depth) {
        1
    } else {
        list.len() / 2
    };
    let middle = list[cut].separator.get();
    let lower = path.lower_fence(tx, depth)?;
    let upper = path.upper_fence(tx, depth)?;
    let right_prefix_len = prefix_len(tx, tree, (middle, upper), &list[cut..])?;
    let right = new_inner(tx, level, right_prefix_len, &list[cut..])?;
    add(tx, tree, HEAD_INNER_NODES_AT, 1)?;
    let left_prefix_len = prefix_len(tx, tree, (lower, middle), &list[..cut])?;
    if position >= cut && left_prefix_len == inner.prefix_bytes() {
        set_count(tx, step.node, cut)?;
    } else {
        rewrite_inner(tx, step.node, level, left_prefix_len, &list[..cut])?;
    }
    Ok(branch(middle, right))
}
