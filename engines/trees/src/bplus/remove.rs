//! Removal of one pair, and merges of nearly empty nodes.
//!
//! Invariants: an inner node always has a child; a leaf is empty only when it is its parent's only
//! child. A merge happens when a node is a quarter full, and only up to three quarters, so that
//! alternating puts and removes of a key do not cause alternating splits and merges.

use adamant_heap::access::{Read, Write};

use super::find::{Path, lower_bound, lower_of, prefix_len, slot_of, upper_bound, upper_of};
use super::layout::{
    CHILDREN_MAX, HEAD_HEIGHT_AT, HEAD_INNER_NODES_AT, HEAD_LEAVES_AT, HEAD_ROOT_AT, Inner,
    LEAF_BITMAP_AT, LEAF_SLOTS, Leaf,
};
use super::tagging::Tagging;
use super::write::{Branches, add, fill_leaf, remove_branch, retag_leaf, rewrite_inner, set_child};
use crate::error::{Error, Result};
use crate::slot::{KeyHash, Slot};

/// A leaf with this many entries or fewer looks for a neighbour to merge with.
const LEAF_SPARSE: u32 = LEAF_SLOTS as u32 / 4;
/// Maximum entries of a merged leaf.
const LEAF_MERGED_MAX: u32 = LEAF_SLOTS as u32 / 4 * 3;
/// An inner node with this many children or fewer looks for a neighbour to merge with.
const INNER_SPARSE: usize = CHILDREN_MAX / 4;
/// Maximum children of a merged inner node.
const INNER_MERGED_MAX: usize = CHILDREN_MAX / 4 * 3;

/// Takes the entries of some keys out of the leaf of their path, with one change of its bitmap;
/// returns whether it merged. Puts them into `olds`, `None` for a key that is not there. The caller
/// updates the count of pairs.
pub(super) fn take<'k, W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    keys: impl Iterator<Item = (KeyHash, &'k [u8])>,
    olds: &mut [Option<u64>],
) -> Result<bool> {
    let leaf = Leaf::at(tx, path.leaf)?;
    let (mut used, before) = (leaf.used(), leaf.used());
    for (old, (hash, key)) in olds.iter_mut().zip(keys) {
        // A key that comes twice is gone the second time.
        let index = slot_of(tx, leaf, hash, key)?.filter(|index| used >> index & 1 == 1);
        *old = index.map(|index| leaf.slot(index).entry());
        used &= !index.map_or(0, |index| 1 << index);
    }
    if used == before {
        return Ok(false);
    }
    tx.update_u64(path.leaf, LEAF_BITMAP_AT, used)?;
    let sparse = used.count_ones() <= LEAF_SPARSE;
    Ok(sparse && path.height > 0 && merge_leaf(tx, tree, path)?)
}

/// The positions of the left one of each pair of neighbours that includes `position`, among `len`.
fn neighbours(position: usize, len: usize) -> impl Iterator<Item = usize> {
    let before = position.checked_sub(1);
    let behind = (position + 1 < len).then_some(position);
    before.into_iter().chain(behind)
}

/// Merges the leaf of a path with a neighbour, if one has room. The leaf with more entries stays,
/// so at most 18 slots are written.
fn merge_leaf<W: Write>(tx: &mut W, tree: u64, path: &Path) -> Result<bool> {
    let depth = path.height - 1;
    let step = path.steps[depth];
    let parent = Inner::at(tx, step.node, 1)?;
    for position in neighbours(usize::from(step.position), parent.len()) {
        let (left, right) = (parent.child(position), parent.child(position + 1));
        if left == right {
            return Err(Error::Damaged { block: step.node, what: "has one child twice" });
        }
        let left_len = Leaf::at(tx, left)?.used().count_ones();
        let right_len = Leaf::at(tx, right)?.used().count_ones();
        if left_len.min(right_len) > 0 && left_len + right_len > LEAF_MERGED_MAX {
            continue;
        }
        let (kept, dropped) = if left_len >= right_len { (left, right) } else { (right, left) };
        let (left_lower, right_lower, tagging) = merged_tagging(tx, path, position)?;
        let (of_kept, of_dropped) =
            if kept == left { (left_lower, right_lower) } else { (right_lower, left_lower) };
        widen_leaf(tx, kept, tagging, &of_kept)?;
        move_slots(tx, dropped, &of_dropped, kept)?;
        tx.free(dropped)?;
        add(tx, tree, HEAD_LEAVES_AT, -1)?;
        drop_branch(tx, step.node, 1, position, kept)?;
        merge_upwards(tx, tree, path, depth)?;
        return Ok(true);
    }
    Ok(false)
}

/// The lower bounds of the leaves at `position` and the next one below the last inner node of a
/// path, and how the one that they become is tagged.
fn merged_tagging<R: Read>(
    read: &R,
    path: &Path,
    position: usize,
) -> Result<(Vec<u8>, Vec<u8>, Tagging)> {
    let (mut left, mut right) = (*path, *path);
    left.steps[path.height - 1].position = position as u16;
    right.steps[path.height - 1].position = position as u16 + 1;
    let tagging = Leaf::at(read, path.leaf)?.tagging();
    let (left_lower, right_lower) = (lower_bound(read, &left)?, lower_bound(read, &right)?);
    let tagging = tagging.narrowed(left_lower, upper_bound(read, &right)?);
    Ok((left_lower.to_vec(), right_lower.to_vec(), tagging))
}

/// Copies all slots of one leaf to another, which has room.
fn move_slots<W: Write>(tx: &mut W, source: u64, lower: &[u8], target: u64) -> Result<()> {
    let tagging = Leaf::at(tx, target)?.tagging();
    let leaf = Leaf::at(tx, source)?;
    let mut slots = [(0, Slot(0)); LEAF_SLOTS];
    let mut len = 0;
    for index in leaf.indices() {
        slots[len] = (
            leaf.fingerprints[index],
            tagging.retag(tx, leaf.slot(index), (leaf.tagging(), lower))?,
        );
        len += 1;
    }
    if len > 0 {
        let used = Leaf::at(tx, target)?.used();
        fill_leaf(tx, target, used, &slots[..len])?;
    }
    Ok(())
}

/// Replaces the children at `position` and the next by the single child `kept`, and frees the
/// separator between them.
fn drop_branch<W: Write>(
    tx: &mut W,
    node: u64,
    level: usize,
    position: usize,
    kept: u64,
) -> Result<()> {
    let parent = Inner::at(tx, node, level)?;
    let separator = parent.separator(position + 1);
    if parent.child(position) != kept {
        set_child(tx, node, level, position, kept)?;
    }
    remove_branch(tx, node, level, position + 1)?;
    Ok(tx.free(separator)?)
}

/// Merges inner nodes upwards from `steps[depth]`, which has lost a child, as far as needed.
pub(super) fn merge_upwards<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    depth: usize,
) -> Result<()> {
    for depth in (1..=depth).rev() {
        let inner = Inner::at(tx, path.steps[depth].node, path.level(depth))?;
        if inner.len() > INNER_SPARSE || !merge_inner(tx, tree, path, depth)? {
            return Ok(());
        }
    }
    shrink_root(tx, tree, path)
}

/// Merges the inner node at a depth of a path with a neighbour that has room.
fn merge_inner<W: Write>(tx: &mut W, tree: u64, path: &Path, depth: usize) -> Result<bool> {
    let step = path.steps[depth - 1];
    let level = path.level(depth);
    let parent = *Inner::at(tx, step.node, level + 1)?;
    for position in neighbours(usize::from(step.position), parent.len()) {
        let (left, right) = (parent.child(position), parent.child(position + 1));
        if left == right {
            return Err(Error::Damaged { block: step.node, what: "has one child twice" });
        }
        let left_inner = Inner::at(tx, left, level)?;
        let right_inner = Inner::at(tx, right, level)?;
        let len = left_inner.len() + right_inner.len();
        let lonely = left_inner.len().min(right_inner.len()) == 1;
        if len > if lonely { CHILDREN_MAX } else { INNER_MERGED_MAX } {
            continue;
        }
        let separator = parent.separator(position + 1);
        // The fences of both nodes together, from paths that go through each of them.
        let mut aside = *path;
        aside.steps[depth - 1].position = position as u16;
        let lower = aside.lower_fence(tx, depth)?;
        aside.steps[depth - 1].position = position as u16 + 1;
        let upper = aside.upper_fence(tx, depth)?;
        let mut branches = Branches::of(left_inner);
        let mut empty = None;
        if let Some(leaf) = only_empty_leaf(tx, right_inner)? {
            // It would get neighbours. The leaf before it takes its keys over.
            let last = left_inner.branch(left_inner.len() - 1);
            let lower = if left_inner.len() > 1 { last.separator.get() } else { lower };
            widen_to(tx, last.child.get(), lower, (lower, upper))?;
            empty = Some(leaf);
        } else if let Some(leaf) = only_empty_leaf(tx, left_inner)? {
            branches = Branches::of(right_inner);
            let end = if right_inner.len() > 1 { right_inner.separator(1) } else { upper };
            widen_to(tx, right_inner.child(0), separator, (lower, end))?;
            empty = Some(leaf);
        } else {
            branches.append(right_inner, separator);
        }
        let prefix_len = prefix_len(tx, tree, (lower, upper), branches.list())?;
        rewrite_inner(tx, left, level, prefix_len, branches.list())?;
        tx.free(right)?;
        add(tx, tree, HEAD_INNER_NODES_AT, -1)?;
        // The separator between them stays within the merged node, if both have branches there.
        remove_branch(tx, step.node, level + 1, position + 1)?;
        if let Some(leaf) = empty {
            tx.free(leaf)?;
            add(tx, tree, HEAD_LEAVES_AT, -1)?;
            tx.free(separator)?;
        }
        return Ok(true);
    }
    Ok(false)
}

/// The only leaf below an inner node, if it is empty.
fn only_empty_leaf<R: Read>(read: &R, inner: &Inner) -> Result<Option<u64>> {
    if inner.level > 1 || inner.len() > 1 {
        return Ok(None);
    }
    let leaf = inner.child(0);
    Ok((Leaf::at(read, leaf)?.used() == 0).then_some(leaf))
}

/// Tags a leaf, whose keys begin at `old_lower`, for wider bounds (separator blocks, 0 for none).
fn widen_to<W: Write>(
    tx: &mut W,
    leaf: u64,
    old_lower: u64,
    (lower, upper): (u64, u64),
) -> Result<()> {
    let old_lower = lower_of(tx, old_lower)?.to_vec();
    let tagging = Leaf::at(tx, leaf)?.tagging();
    let widened = tagging.narrowed(lower_of(tx, lower)?, upper_of(tx, upper)?);
    widen_leaf(tx, leaf, widened, &old_lower)
}

/// Tags a leaf, whose keys begin at `old_lower`, as its wider bounds need.
fn widen_leaf<W: Write>(tx: &mut W, leaf: u64, widened: Tagging, old_lower: &[u8]) -> Result<()> {
    if !Leaf::at(tx, leaf)?.tagging().admits(widened) {
        retag_leaf(tx, leaf, widened.for_merges(), old_lower)?;
    }
    Ok(())
}

/// Removes roots with a single child.
fn shrink_root<W: Write>(tx: &mut W, tree: u64, path: &Path) -> Result<()> {
    let mut root = path.steps[0].node;
    for level in (1..=path.height).rev() {
        let inner = Inner::at(tx, root, level)?;
        if inner.len() > 1 {
            break;
        }
        let child = inner.child(0);
        tx.free(root)?;
        add(tx, tree, HEAD_INNER_NODES_AT, -1)?;
        tx.update_u64(tree, HEAD_ROOT_AT, child)?;
        tx.update_u64(tree, HEAD_HEIGHT_AT, level as u64 - 1)?;
        root = child;
    }
    Ok(())
}
