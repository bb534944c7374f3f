//! On-heap layout of a B-tree's nodes.
//!
//! Purpose: see `docs/format/btree.md`. All such trees share the layout of the head.
//! Invariants: all integers are little-endian, so that any bytes are a valid node (S3).

use adamant_heap::access::Read;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::kind::{Label, damaged};

/// The label of the kind.
pub(super) const LABEL: Label = Label { magic: *b"AdamBtr\x01", name: "btree", has_words: true };

/// A pair in a node.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Pair {
    /// The first 8 bytes of the key, as a big-endian number; zeros beyond its end. Of words: the
    /// key.
    pub(super) head: U64,
    /// Slot of the pair. Of words: the value.
    pub(super) slot: U64,
}

/// Minimum and maximum children of a full node.
pub(super) const ORDER_MIN: usize = 8;
pub(super) const ORDER_MAX: usize = 64;
/// Levels above the leaves: nodes have at least 4 children, so that level 24 needs 4^24 pairs.
pub(super) const HEIGHT_MAX: usize = 24;

/// Offsets of a word key and a word value in a pair.
pub(super) const HEAD_AT: usize = 0;
pub(super) const SLOT_AT: usize = 8;

/// Byte 0 of a node is the number of its pairs, byte 1 its level above the leaves.
pub(super) const COUNT_AT: usize = 0;
pub(super) const PAIRS_AT: usize = 8;
pub(super) const PAIR_BYTES: usize = size_of::<Pair>();
pub(super) const CHILD_BYTES: usize = 8;

const _: () = assert!(PAIR_BYTES == 16);
const _: () = assert!(std::mem::offset_of!(Pair, head) == HEAD_AT);
const _: () = assert!(std::mem::offset_of!(Pair, slot) == SLOT_AT);

/// Offset of the children in an inner node.
pub(super) const fn children_at(order: usize) -> usize {
    PAIRS_AT + PAIR_BYTES * (order - 1)
}

/// Bytes of a node: whole cache lines.
pub(super) const fn node_bytes(order: usize, level: usize) -> usize {
    let children = if level > 0 { CHILD_BYTES * order } else { 0 };
    (children_at(order) + children).next_multiple_of(64)
}

impl Pair {
    /// An empty pair, the initial content of arrays.
    pub(super) const NONE: Self = Self { head: U64::ZERO, slot: U64::ZERO };
}

/// A decoded node.
#[derive(Clone, Copy)]
pub(super) struct Node<'r> {
    /// In the order of their keys.
    pub(super) pairs: &'r [Pair],
    /// One more than pairs; none in a leaf.
    pub(super) children: &'r [U64],
}

impl<'r> Node<'r> {
    /// The node at a heap offset, which must be of this level.
    #[inline]
    pub(super) fn at<R: Read>(read: &'r R, block: u64, level: usize, order: usize) -> Result<Self> {
        let bytes = read.block(block)?;
        let [count, found, ..] = *bytes else { return damaged(block, "is too small for a node") };
        let count = usize::from(count);
        if usize::from(found) != level {
            return damaged(block, "is no node of its level");
        }
        if count == 0 || count >= order {
            return damaged(block, "has an impossible number of pairs");
        }
        let pairs = bytes.get(PAIRS_AT..PAIRS_AT + PAIR_BYTES * count);
        let child_count = if level > 0 { count + 1 } else { 0 };
        let at = children_at(order);
        let children = match child_count {
            0 => Some(&[][..]),
            _ => bytes.get(at..at + CHILD_BYTES * child_count),
        };
        let pairs = pairs.and_then(|bytes| <[Pair]>::ref_from_bytes(bytes).ok());
        let children = children.and_then(|bytes| <[U64]>::ref_from_bytes(bytes).ok());
        match (pairs, children) {
            (Some(pairs), Some(children)) => Ok(Self { pairs, children }),
            _ => damaged(block, "is too small for a node"),
        }
    }

    /// The child at a position; 0 in a leaf or if the position is out of range.
    #[inline]
    pub(super) fn child(&self, position: usize) -> u64 {
        self.children.get(position).map_or(0, |child| child.get())
    }
}
