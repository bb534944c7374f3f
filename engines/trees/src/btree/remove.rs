//! Removal of one pair, and refilling of sparse nodes.

use adamant_heap::access::Write;

use super::find::{Path, Step, Top, path_to};
use super::layout::Node;
use super::shift::{Neighbours, between, shift_left};
use super::write::{Content, remove_pair, set_children, set_count, set_pairs};
use crate::error::Result;
use crate::kind::damaged;
use crate::layout::{HEAD_HEIGHT_AT, HEAD_ROOT_AT};
use crate::words::Item;

/// Takes the item of a key out of the tree.
pub(super) fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<Item>> {
    let top = Top::of(tx, tree)?;
    let mut path = Path::EMPTY;
    let Some(&pair) = path_to(tx, top, key, &mut path)? else { return Ok(None) };
    take_at(tx, tree, top, &mut path)?;
    Ok(Some(top.form.item(pair.slot)))
}

/// Takes the pair at the end of a path out of the tree.
fn take_at<W: Write>(tx: &mut W, tree: u64, top: Top, path: &mut Path) -> Result<()> {
    let order = top.order;
    let place = path.steps()[path.len - 1];
    let level = top.level(path.len - 1);
    if level > 0 {
        // The previous pair, the last one of a leaf, takes its place.
        let child = Node::at(tx, place.node, level, order)?.child(place.position);
        let before = *path.descend(tx, (child, level - 1), order, true)?;
        set_pairs(tx, place.node, place.position, &[before])?;
    }
    let leaf = path.steps()[path.len - 1];
    if path.len == 1 && Node::at(tx, leaf.node, 0, order)?.pairs.len() == 1 {
        tx.update_u64(tree, HEAD_ROOT_AT, 0)?;
        return Ok(tx.free(leaf.node)?);
    }
    remove_pair(tx, (leaf.node, 0), order, leaf.position, 0)?;
    for depth in (1..path.len).rev() {
        let level = path.len - 1 - depth;
        let node = path.steps()[depth].node;
        if Node::at(tx, node, level, order)?.pairs.len() >= top.pairs_min() {
            return Ok(());
        }
        let parent = path.steps()[depth - 1];
        match fill(tx, top, parent, (node, level))? {
            Filled::Borrowed => return Ok(()),
            Filled::Merged => {}
            Filled::MergedLast(_) if depth > 1 => {
                return damaged(parent.node, "has fewer pairs than a node must have");
            }
            Filled::MergedLast(child) => {
                // The root's last pair went down: its one child becomes the root.
                tx.update_u64(tree, HEAD_ROOT_AT, child)?;
                tx.update_u64(tree, HEAD_HEIGHT_AT, top.height as u64 - 1)?;
                tx.free(parent.node)?;
            }
        }
    }
    Ok(())
}

/// How a node got enough pairs.
enum Filled {
    /// It got one of a neighbour's.
    Borrowed,
    /// It merged with a neighbour, which took a pair from their parent.
    Merged,
    /// The same, and it was the parent's last pair: everything below the parent is in this node.
    MergedLast(u64),
}

/// Gives the child at a step of its parent a neighbour's pair, or merges it with a neighbour.
fn fill<W: Write>(
    tx: &mut W,
    top: Top,
    parent: Step,
    (node, level): (u64, usize),
) -> Result<Filled> {
    let order = top.order;
    let above = Node::at(tx, parent.node, level + 1, order)?;
    let (left, right) = match parent.position.checked_sub(1) {
        Some(before) => (above.child(before), above.child(parent.position + 1)),
        None => (0, above.child(parent.position + 1)),
    };
    if left == node || right == node || left == parent.node || right == parent.node {
        return damaged(parent.node, "has one child twice");
    }
    let len = |tx: &W, block: u64| match block {
        0 => Ok(0),
        _ => Ok::<_, crate::error::Error>(Node::at(tx, block, level, order)?.pairs.len()),
    };
    let (left_len, right_len) = (len(tx, left)?, len(tx, right)?);
    let before = Neighbours { left, right: node, between: parent.position.saturating_sub(1) };
    let behind = Neighbours { left: node, right, between: parent.position };
    if left_len > top.pairs_min() {
        from_left(tx, order, level, parent.node, &before)?;
    } else if right_len > top.pairs_min() {
        shift_left(tx, order, level, parent.node, &behind, 1)?;
    } else if left_len > 0 {
        return merge(tx, order, level, parent.node, &before);
    } else if right_len > 0 {
        return merge(tx, order, level, parent.node, &behind);
    } else {
        return damaged(parent.node, "has a single child");
    }
    Ok(Filled::Borrowed)
}

/// Moves the last pair of the left node up, and the one between down to the right node.
fn from_left<W: Write>(
    tx: &mut W,
    order: usize,
    level: usize,
    parent: u64,
    pair: &Neighbours,
) -> Result<()> {
    let down = between(tx, order, level, parent, pair)?;
    let left = Content::of(&Node::at(tx, pair.left, level, order)?);
    let mut right = Content::of(&Node::at(tx, pair.right, level, order)?);
    let last = left.pairs().len() - 1;
    right.insert(0, down, 0);
    set_pairs(tx, pair.right, 0, right.pairs())?;
    if level > 0 {
        // `Content` puts a child after a pair; this one comes before all.
        let first = right.children()[0];
        set_children(tx, pair.right, order, 0, &[left.children()[last + 1], first])?;
        set_children(tx, pair.right, order, 2, &right.children()[2..])?;
    }
    set_count(tx, pair.right, right.pairs().len())?;
    set_pairs(tx, parent, pair.between, &[left.pairs()[last]])?;
    set_count(tx, pair.left, last)
}

/// Moves the pair between and all of the right node into the left one.
fn merge<W: Write>(
    tx: &mut W,
    order: usize,
    level: usize,
    parent: u64,
    pair: &Neighbours,
) -> Result<Filled> {
    let down = between(tx, order, level, parent, pair)?;
    let left_len = Node::at(tx, pair.left, level, order)?.pairs.len();
    let right = Content::of(&Node::at(tx, pair.right, level, order)?);
    let len = left_len + 1 + right.pairs().len();
    set_pairs(tx, pair.left, left_len, &[down])?;
    set_pairs(tx, pair.left, left_len + 1, right.pairs())?;
    if level > 0 {
        set_children(tx, pair.left, order, left_len + 1, right.children())?;
    }
    set_count(tx, pair.left, len)?;
    tx.free(pair.right)?;
    if Node::at(tx, parent, level + 1, order)?.pairs.len() == 1 {
        return Ok(Filled::MergedLast(pair.left));
    }
    remove_pair(tx, (parent, level + 1), order, pair.between, pair.between + 1)?;
    Ok(Filled::Merged)
}
