//! Insertion of one pair, and splits of full nodes.

use adamant_heap::access::Write;
use zerocopy::little_endian::U64;

use super::find::{Path, Top, path_to};
use super::layout::{HEIGHT_MAX, Node, PAIR_BYTES, PAIRS_AT, Pair, SLOT_AT};
use super::shift::make_room;
use super::write::{Content, insert_pair, new_node, set_children, set_count, set_pairs};
use crate::error::{Error, Result};
use crate::layout::{HEAD_HEIGHT_AT, HEAD_ROOT_AT};
use crate::words::{Form, New, Old};

/// Puts the new value of a key into the tree; returns what it replaced.
pub(super) fn insert_entry<W: Write>(
    tx: &mut W,
    tree: u64,
    key: &[u8],
    new: New<'_>,
) -> Result<Old> {
    let top = Top::of(tx, tree)?;
    let mut path = Path::EMPTY;
    let found = path_to(tx, top, key, &mut path)?.copied();
    if let Some(old) = found
        && new.overwrites(tx, top.form.item(old.slot))?
    {
        return Ok(Old::Overwritten);
    }
    let (head, slot) = Form::words(key, new.item(tx, key)?);
    if let (Some(old), Some(step)) = (found, path.steps().last()) {
        let at = PAIRS_AT + PAIR_BYTES * step.position + SLOT_AT;
        tx.update_u64(step.node, at, slot.get())?;
        return Ok(Old::Replaced(top.form.item(old.slot)));
    }
    add(tx, tree, top, &path, Pair { head, slot })?;
    Ok(Old::None)
}

/// Adds a pair to the leaf at the end of a path, splitting full nodes on the way up.
fn add<W: Write>(tx: &mut W, tree: u64, top: Top, path: &Path, mut pair: Pair) -> Result<()> {
    let order = top.order;
    let mut right = 0;
    for (level, step) in path.steps().iter().rev().enumerate() {
        let block = (step.node, level);
        if Node::at(tx, step.node, level, order)?.pairs.len() + 1 < order {
            return insert_pair(tx, block, order, step.position, (pair, right));
        }
        let shifted = make_room(tx, top, &path.steps()[..path.len - level])?;
        if shifted > 0 {
            let position = step.position - shifted;
            return insert_pair(tx, block, order, position, (pair, right));
        }
        (pair, right) = split(tx, block, order, step.position, (pair, right))?;
    }
    let root = if top.root == 0 {
        new_node(tx, order, 0, &[pair], &[])?
    } else {
        let height = top.height + 1;
        if height > HEIGHT_MAX {
            return Err(Error::TooHigh { height_max: HEIGHT_MAX });
        }
        tx.update_u64(tree, HEAD_HEIGHT_AT, height as u64)?;
        new_node(tx, order, height, &[pair], &[U64::new(top.root), U64::new(right)])?
    };
    Ok(tx.update_u64(tree, HEAD_ROOT_AT, root)?)
}

/// Splits a full node while adding a pair and the child after it. Returns the pair in the middle,
/// to be added one level higher, and the new node after it.
fn split<W: Write>(
    tx: &mut W,
    (block, level): (u64, usize),
    order: usize,
    position: usize,
    (pair, child): (Pair, u64),
) -> Result<(Pair, u64)> {
    let mut content = Content::of(&Node::at(tx, block, level, order)?);
    content.insert(position, pair, child);
    let (pairs, children) = (content.pairs(), content.children());
    let middle = order / 2;
    let moved = if level > 0 { &children[middle + 1..] } else { &[] };
    let right = new_node(tx, order, level, &pairs[middle + 1..], moved)?;
    if position < middle {
        set_pairs(tx, block, position, &pairs[position..middle])?;
        if level > 0 {
            set_children(tx, block, order, position + 1, &children[position + 1..=middle])?;
        }
    }
    set_count(tx, block, middle)?;
    Ok((pairs[middle], right))
}
