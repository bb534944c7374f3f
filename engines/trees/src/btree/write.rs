//! Minimal stores into nodes, since every changed byte is logged.
//!
//! Invariants: bytes beyond a node's count are undefined.

use adamant_heap::access::Write;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

use super::layout::{
    CHILD_BYTES, COUNT_AT, Node, ORDER_MAX, PAIR_BYTES, PAIRS_AT, Pair, children_at, node_bytes,
};
use crate::error::Result;

/// A node's pairs and children, with room for one more.
pub(super) struct Content {
    pairs: [Pair; ORDER_MAX],
    children: [U64; ORDER_MAX + 1],
    len: usize,
}

impl Content {
    /// The content of a node.
    pub(super) fn of(node: &Node<'_>) -> Self {
        let mut content = Self {
            pairs: [Pair::NONE; ORDER_MAX],
            children: [U64::ZERO; ORDER_MAX + 1],
            len: node.pairs.len(),
        };
        content.pairs[..content.len].copy_from_slice(node.pairs);
        content.children[..node.children.len()].copy_from_slice(node.children);
        content
    }

    /// Adds a pair at a position, and the child after it.
    pub(super) fn insert(&mut self, position: usize, pair: Pair, child: u64) {
        self.pairs.copy_within(position..self.len, position + 1);
        self.pairs[position] = pair;
        self.children.copy_within(position + 1..=self.len, position + 2);
        self.children[position + 1] = U64::new(child);
        self.len += 1;
    }

    /// The pairs.
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs[..self.len]
    }

    /// The children: one more than pairs.
    pub(super) fn children(&self) -> &[U64] {
        &self.children[..=self.len]
    }
}

/// Writes a new node; returns its offset. `children` is empty for a leaf.
pub(super) fn new_node<W: Write>(
    tx: &mut W,
    order: usize,
    level: usize,
    pairs: &[Pair],
    children: &[U64],
) -> Result<u64> {
    let block = tx.reserve(node_bytes(order, level) as u64)?;
    let header = tx.write(block, 0, PAIRS_AT)?;
    header.fill(0);
    header[0] = pairs.len() as u8;
    header[1] = level as u8;
    set_pairs(tx, block, 0, pairs)?;
    set_children(tx, block, order, 0, children)?;
    Ok(block)
}

/// Stores pairs from a position on.
pub(super) fn set_pairs<W: Write>(
    tx: &mut W,
    block: u64,
    position: usize,
    pairs: &[Pair],
) -> Result<()> {
    if !pairs.is_empty() {
        let at = PAIRS_AT + PAIR_BYTES * position;
        tx.write(block, at, PAIR_BYTES * pairs.len())?.copy_from_slice(pairs.as_bytes());
    }
    Ok(())
}

/// Stores children from a position on.
pub(super) fn set_children<W: Write>(
    tx: &mut W,
    block: u64,
    order: usize,
    position: usize,
    children: &[U64],
) -> Result<()> {
    if !children.is_empty() {
        let at = children_at(order) + CHILD_BYTES * position;
        tx.write(block, at, CHILD_BYTES * children.len())?.copy_from_slice(children.as_bytes());
    }
    Ok(())
}

/// Sets the number of pairs.
pub(super) fn set_count<W: Write>(tx: &mut W, block: u64, count: usize) -> Result<()> {
    tx.write(block, COUNT_AT, 1)?[0] = count as u8;
    Ok(())
}

/// Adds a pair to a node that has room, and the child after it: 17 bytes, 16 for each later pair,
/// and 8 for each child.
pub(super) fn insert_pair<W: Write>(
    tx: &mut W,
    (block, level): (u64, usize),
    order: usize,
    position: usize,
    (pair, child): (Pair, u64),
) -> Result<()> {
    let mut content = Content::of(&Node::at(tx, block, level, order)?);
    content.insert(position, pair, child);
    set_pairs(tx, block, position, &content.pairs()[position..])?;
    if level > 0 {
        set_children(tx, block, order, position + 1, &content.children()[position + 1..])?;
    }
    set_count(tx, block, content.len)
}

/// Removes the pair at a position from a node, and the child at `position` or the next.
pub(super) fn remove_pair<W: Write>(
    tx: &mut W,
    (block, level): (u64, usize),
    order: usize,
    position: usize,
    child: usize,
) -> Result<()> {
    let content = Content::of(&Node::at(tx, block, level, order)?);
    set_pairs(tx, block, position, &content.pairs()[position + 1..])?;
    if level > 0 {
        set_children(tx, block, order, child, &content.children()[child + 1..])?;
    }
    set_count(tx, block, content.len - 1)
}
