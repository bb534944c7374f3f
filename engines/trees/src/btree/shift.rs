//! Moves of pairs from a node to the one before it.
//!
//! Purpose: a node with too few pairs borrows one. A full node at the end of the tree first fills
//! up the one before it, and splits only then, so that a load in order leaves full nodes behind,
//! where splits alone leave half of each empty.

use adamant_heap::access::Write;

use super::find::{Step, Top};
use super::layout::{Node, Pair};
use super::write::{Content, set_children, set_count, set_pairs};
use crate::error::Result;
use crate::kind::damaged;

/// Room for fewer pairs is left as it is: a split is then not more expensive.
const SHIFTED_MIN: usize = 3;

/// A node, its right neighbour, and the position of the pair between them in their parent.
pub(super) struct Neighbours {
    pub(super) left: u64,
    pub(super) right: u64,
    pub(super) between: usize,
}

/// The pair between two neighbours.
pub(super) fn between<W: Write>(
    tx: &W,
    order: usize,
    level: usize,
    parent: u64,
    pair: &Neighbours,
) -> Result<Pair> {
    match Node::at(tx, parent, level + 1, order)?.pairs.get(pair.between) {
        Some(pair) => Ok(*pair),
        None => damaged(parent, "has fewer pairs than its children need"),
    }
}

/// Moves the first pairs of the right node to the left one, which has room: all but the last of
/// them go behind the one between, which the last one replaces.
pub(super) fn shift_left<W: Write>(
    tx: &mut W,
    order: usize,
    level: usize,
    parent: u64,
    pair: &Neighbours,
    count: usize,
) -> Result<()> {
    let down = between(tx, order, level, parent, pair)?;
    let right = Content::of(&Node::at(tx, pair.right, level, order)?);
    let left_len = Node::at(tx, pair.left, level, order)?.pairs.len();
    let (moved, kept) = right.pairs().split_at(count);
    set_pairs(tx, pair.left, left_len, &[down])?;
    set_pairs(tx, pair.left, left_len + 1, &moved[..count - 1])?;
    set_pairs(tx, parent, pair.between, &[moved[count - 1]])?;
    set_pairs(tx, pair.right, 0, kept)?;
    if level > 0 {
        let (moved, kept) = right.children().split_at(count);
        set_children(tx, pair.left, order, left_len + 1, moved)?;
        set_children(tx, pair.right, order, 0, kept)?;
    }
    set_count(tx, pair.left, left_len + count)?;
    set_count(tx, pair.right, kept.len())
}

/// Makes room in a full node at the end of a path by filling up the one before it, if the path is
/// the edge of the tree, where more pairs are likely, and there is room. Returns how many pairs
/// were moved.
pub(super) fn make_room<W: Write>(tx: &mut W, top: Top, way: &[Step]) -> Result<usize> {
    let order = top.order;
    for (depth, step) in way.iter().enumerate() {
        if step.position < Node::at(tx, step.node, top.level(depth), order)?.pairs.len() {
            return Ok(0);
        }
    }
    let [.., parent, full] = way else { return Ok(0) };
    let level = top.level(way.len() - 1);
    let above = Node::at(tx, parent.node, level + 1, order)?;
    let Some(between) = parent.position.checked_sub(1) else { return Ok(0) };
    let left = above.child(between);
    if left == full.node {
        return damaged(parent.node, "has one child twice");
    }
    let room = order - 1 - Node::at(tx, left, level, order)?.pairs.len();
    if room < SHIFTED_MIN {
        return Ok(0);
    }
    let pair = Neighbours { left, right: full.node, between };
    shift_left(tx, order, level, parent.node, &pair, room)?;
    Ok(room)
}
