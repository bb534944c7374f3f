//! Insertion and removal of one pair.
//!
//! Invariants: one 8-byte store publishes everything that an insert or remove prepares.

use adamant_heap::access::{Read, Write};
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U64};

use super::find::{Descent, Difference, Position, difference};
use super::layout::{NODE_BYTES, Node, Word, place};
use crate::error::Result;
use crate::kind::damaged;
use crate::slot::{Entry, KeyHash, Slot};
use crate::words::{Form, Item, New, Old};

/// Number of path nodes that are kept: more than lie above any of a million random keys.
const STEPS_KEPT: usize = 48;

/// A node of a path.
#[derive(Clone, Copy, Default)]
struct Step {
    block: u64,
    place: u32,
    /// Which child was taken.
    side: bool,
}

/// The path of a key down to the pair that is most similar to it.
struct Way {
    root: Position,
    steps: [Step; STEPS_KEPT],
    /// Number of nodes above the pair, including those that are not kept.
    len: usize,
    leaf: Slot,
}

impl Way {
    /// The path of a key; `None` in an empty tree. O(log n).
    #[inline]
    fn of<R: Read>(read: &R, tree: u64, key: &[u8]) -> Result<Option<Self>> {
        let root = Position::root(read, tree)?;
        if root.word == Word::NONE {
            return Ok(None);
        }
        let (mut steps, mut len) = ([Step::default(); STEPS_KEPT], 0);
        let (mut word, mut descent) = (root.word, Descent::default());
        loop {
            if let Some(leaf) = word.slot() {
                return Ok(Some(Self { root, steps, len, leaf }));
            }
            let node = descent.enter(read, word.0)?;
            let side = node.side(key);
            if let Some(step) = steps.get_mut(len) {
                *step = Step { block: word.0, place: node.place(), side };
            }
            len += 1;
            word = node.child(side);
        }
    }

    /// The position after `steps` steps.
    fn after<R: Read>(&self, read: &R, steps: usize) -> Result<Position> {
        match steps.checked_sub(1) {
            None => Ok(self.root),
            Some(last) => {
                let Step { block, side, .. } = self.steps[last];
                Ok(Position::child(block, Node::at(read, block)?, side))
            }
        }
    }

    /// The position of the pair, if all of the path is kept.
    fn end<R: Read>(&self, read: &R) -> Result<Option<Position>> {
        if self.len > STEPS_KEPT { Ok(None) } else { self.after(read, self.len).map(Some) }
    }

    /// The position below which a new node is inserted: the first on the path whose keys all share
    /// what is before the difference. `None` if it may lie beyond what is kept.
    fn place<R: Read>(&self, read: &R, difference: Difference) -> Result<Option<Position>> {
        let limit = place(difference.byte, difference.mask);
        let kept = &self.steps[..self.len.min(STEPS_KEPT)];
        let Some(depth) = kept.iter().position(|step| step.place >= limit) else {
            return self.end(read);
        };
        if kept[depth].place == limit {
            return damaged(kept[depth].block, "tells keys apart that are the same there");
        }
        self.after(read, depth).map(Some)
    }
}

/// Puts the new value of a key into the tree; returns what it replaced.
pub(super) fn insert_entry<W: Write>(
    tx: &mut W,
    tree: u64,
    key: &[u8],
    new: New<'_>,
) -> Result<Old> {
    let Some(way) = Way::of(tx, tree, key)? else {
        let leaf = leaf(tx, key, new)?;
        let position = Position::root(tx, tree)?;
        tx.update_u64(position.at.0, position.at.1, leaf.0)?;
        return Ok(Old::None);
    };
    let old = way.leaf.entry();
    match difference(key, Entry::read(tx, old)?.key) {
        None => {
            if new.overwrites(tx, Item::Entry(old))? {
                return Ok(Old::Overwritten);
            }
            let leaf = leaf(tx, key, new)?;
            let position = match way.end(tx)? {
                Some(position) => position,
                None => of_key(tx, tree, key)?.0,
            };
            tx.update_u64(position.at.0, position.at.1, leaf.0)?;
            Ok(Old::Replaced(Item::Entry(old)))
        }
        Some(difference) => {
            let leaf = leaf(tx, key, new)?;
            let position = match way.place(tx, difference)? {
                Some(position) => position,
                None => of_place(tx, tree, key, difference)?,
            };
            let node = new_node(tx, difference, position.word, leaf)?;
            tx.update_u64(position.at.0, position.at.1, node)?;
            Ok(Old::None)
        }
    }
}

/// The word of a key's new value.
fn leaf<W: Write>(tx: &mut W, key: &[u8], new: New<'_>) -> Result<Word> {
    let (_, slot) = Form::words(key, new.item(tx, key)?);
    Ok(Word::leaf(Slot(slot.get())))
}

/// Takes the entry of a key out of the tree.
pub(super) fn take<W: Write>(tx: &mut W, tree: u64, key: &[u8]) -> Result<Option<u64>> {
    if Position::root(tx, tree)?.word == Word::NONE {
        return Ok(None);
    }
    let (position, above) = of_key(tx, tree, key)?;
    let Some(slot) = position.word.slot() else { return Ok(None) };
    if !slot.admits(KeyHash::of(key)) || Entry::read(tx, slot.entry())?.key != key {
        return Ok(None);
    }
    match above {
        None => tx.update_u64(position.at.0, position.at.1, Word::NONE.0)?,
        Some((above, sibling)) => {
            tx.update_u64(above.at.0, above.at.1, sibling.0)?;
            tx.free(position.at.0)?;
        }
    }
    Ok(Some(slot.entry()))
}

/// Position of the leaf to which a key leads, with that of its parent node and its sibling.
#[inline]
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

/// As [`Way::place`], for a path that is longer than what is kept.
#[cold]
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

/// Writes a node over the existing word and a new leaf.
fn new_node<W: Write>(tx: &mut W, difference: Difference, there: Word, leaf: Word) -> Result<u64> {
    let mut children = [U64::new(there.0); 2];
    children[usize::from(difference.side)] = U64::new(leaf.0);
    let (byte, mask) = (U16::new(difference.byte), U16::new(difference.mask));
    let node = Node { children, byte, mask, spare: [0; 4] };
    let block = tx.reserve(NODE_BYTES as u64)?;
    tx.write(block, 0, NODE_BYTES)?.copy_from_slice(node.as_bytes());
    Ok(block)
}
