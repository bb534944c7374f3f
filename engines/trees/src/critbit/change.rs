//! Inserting and removing one pair.
//!
//! Invariants: whatever an insert or remove prepares, one 8-byte store makes it part of the tree.

use adamant_heap::access::Write;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U64};

use super::find::{Descent, Difference, Position, difference, most_like};
use super::layout::{NODE_BYTES, Node, Word, place};
use crate::error::Result;
use crate::kind::damaged;
use crate::slot::{Entry, KeyHash, Slot};

/// Puts the entry of a key into the tree; returns the one that it replaced.
pub(super) fn adopt<W: Write>(
    tx: &mut W,
    tree: u64,
    key: &[u8],
    entry: u64,
) -> Result<Option<u64>> {
    let like = most_like(tx, tree, key)?;
    let found = match like {
        Some(slot) => difference(key, Entry::read(tx, slot.entry())?.key),
        None => None,
    };
    let leaf = Word::leaf(Slot::new(KeyHash::of(key), entry));
    match (like, found) {
        (Some(old), None) => {
            let position = of_key(tx, tree, key)?.0;
            tx.update_u64(position.at.0, position.at.1, leaf.0)?;
            Ok(Some(old.entry()))
        }
        (Some(_), Some(difference)) => {
            let position = of_place(tx, tree, key, difference)?;
            let node = new_node(tx, difference, position.word, leaf)?;
            tx.update_u64(position.at.0, position.at.1, node)?;
            Ok(None)
        }
        (None, _) => {
            let position = Position::root(tx, tree)?;
            tx.update_u64(position.at.0, position.at.1, leaf.0)?;
            Ok(None)
        }
    }
}

/// Takes the entry of a key out of the tree.
pub(super) fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<u64>> {
    let Some(slot) = most_like(tx, tree, key)? else { return Ok(None) };
    if !slot.admits(KeyHash::of(key)) || Entry::read(tx, slot.entry())?.key != key {
        return Ok(None);
    }
    let (position, above) = of_key(tx, tree, key)?;
    match above {
        None => tx.update_u64(position.at.0, position.at.1, Word::NONE.0)?,
        Some((above, sibling)) => {
            tx.update_u64(above.at.0, above.at.1, sibling.0)?;
            tx.free(position.at.0)?;
        }
    }
    Ok(Some(slot.entry()))
}

/// Position of the leaf to which a key leads, with that of the node it is in and its sibling.
fn of_key<W: Write>(tx: &W, tree: u64, key: &[u8]) -> Result<(Position, Option<(Position, Word)>)> {
    let mut position = Position::root(tx, tree)?;
    let mut above = None;
    let mut descent = Descent::default();
    while position.word.slot().is_none() {
        let block = position.word.0;
        let node = descent.enter(tx, block)?;
        let side = node.side(key);
        above = Some((position, node.child(!side)));
        position = Position::child(block, node, side);
    }
    Ok((position, above))
}

/// Position of what is to hang below a new node: the first thing on the way of a key whose keys
/// all share what is before the difference.
fn of_place<W: Write>(tx: &W, tree: u64, key: &[u8], difference: Difference) -> Result<Position> {
    let limit = place(difference.byte, difference.mask);
    let mut position = Position::root(tx, tree)?;
    let mut descent = Descent::default();
    while position.word.slot().is_none() {
        let block = position.word.0;
        let node = descent.enter(tx, block)?;
        if node.place() == limit {
            return damaged(block, "tells keys apart that are the same there");
        }
        if node.place() > limit {
            break;
        }
        position = Position::child(block, node, node.side(key));
    }
    Ok(position)
}

/// Writes a node over what was there and a new leaf.
fn new_node<W: Write>(tx: &mut W, difference: Difference, there: Word, leaf: Word) -> Result<u64> {
    let mut children = [U64::new(there.0); 2];
    children[usize::from(difference.side)] = U64::new(leaf.0);
    let (byte, mask) = (U16::new(difference.byte), U16::new(difference.mask));
    let node = Node { children, byte, mask, spare: [0; 4] };
    let block = tx.reserve(NODE_BYTES as u64)?;
    tx.write(block, 0, NODE_BYTES)?.copy_from_slice(node.as_bytes());
    Ok(block)
}
