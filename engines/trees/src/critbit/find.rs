//! Search: from a key to the most similar entry.

use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use adamant_wire::key::common_len;

use super::layout::{LABEL, Node, Word, symbol};
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::layout::HEAD_ROOT_AT;
use crate::slot::Slot;

/// Checks on a descent that places rise, so that it ends in a damaged tree, too.
#[derive(Clone, Copy, Default)]
pub(super) struct Descent {
    /// One past the place of the last node.
    floor: u64,
}

impl Descent {
    /// Enters the next node.
    #[inline]
    pub(super) fn enter<'r, R: Read>(&mut self, read: &'r R, block: u64) -> Result<&'r Node> {
        let node: &Node = read.read(Ptr::new(block))?;
        let place = u64::from(node.place());
        if place < self.floor {
            return damaged(block, "has a critical bit before that of the node above");
        }
        self.floor = place + 1;
        Ok(node)
    }
}

/// The location of a word that refers to a node or an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The block, and the offset in it.
    pub(super) at: (u64, usize),
    /// The word.
    pub(super) word: Word,
}

impl Position {
    /// The root's position.
    pub(super) fn root<R: Read>(read: &R, tree: u64) -> Result<Self> {
        let root = head(read, tree, LABEL)?.root.get();
        Ok(Self { at: (tree, HEAD_ROOT_AT), word: Word(root) })
    }

    /// The position of a node's child.
    pub(super) fn child(block: u64, node: &Node, side: bool) -> Self {
        Self { at: (block, 8 * usize::from(side)), word: node.child(side) }
    }
}

/// The slot to which the bits of a key lead; `None` in an empty tree. O(log n).
#[inline]
pub(super) fn most_like<R: Read>(read: &R, tree: u64, key: &[u8]) -> Result<Option<Slot>> {
    let mut word = Position::root(read, tree)?.word;
    let mut descent = Descent::default();
    while word != Word::NONE {
        if let Some(slot) = word.slot() {
            return Ok(Some(slot));
        }
        let node = descent.enter(read, word.0)?;
        word = node.child(node.side(key));
    }
    if descent.floor == 0 { Ok(None) } else { damaged(tree, "has a node that refers to nothing") }
}

/// Where two keys first differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) byte: u16,
    pub(super) mask: u16,
    /// Whether the bit is set in the first of the two, which is then the higher one.
    pub(super) side: bool,
}

/// Where `key` first differs from `other`; `None` if they are the same.
pub(super) fn difference(key: &[u8], other: &[u8]) -> Option<Difference> {
    let byte = common_len(key, other);
    let (symbol, other) = (symbol(key, byte), symbol(other, byte));
    let differing = symbol ^ other;
    let mask = 1 << differing.checked_ilog2()?;
    // Keys that can be stored differ below byte 65,535.
    Some(Difference { byte: u16::try_from(byte).ok()?, mask, side: symbol & mask != 0 })
}
