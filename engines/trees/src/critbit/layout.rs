//! On-heap layout of a crit-bit tree's nodes.
//!
//! Purpose: see `docs/format/critbit.md`. All such trees share the layout of the head.
//! Invariants: all integers are little-endian, so that any bytes are a valid node (S3).

use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::kind::Label;
use crate::slot::Slot;

/// The label of the kind.
pub(super) const LABEL: Label = Label { magic: *b"AdamCri\x01", name: "critbit", has_words: false };

/// A node: the first bit in which the keys below it differ, and the children for 0 and 1.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Node {
    /// Words that refer to the keys whose critical bit is 0, and to those where it is 1.
    pub(super) children: [U64; 2],
    /// Index of the byte that has the bit.
    pub(super) byte: U16,
    /// The single bit: of the byte, or 0x100, which is set where a key has such a byte at all.
    pub(super) mask: U16,
    /// Zero.
    pub(super) spare: [u8; 4],
}

pub(super) const NODE_BYTES: usize = size_of::<Node>();
/// The bit that is set if a key has the byte.
pub(super) const PRESENT: u16 = 0x100;

const _: () = assert!(NODE_BYTES == 24);
const _: () = assert!(std::mem::offset_of!(Node, children) == 0);

/// A word that refers to a node, an entry, or nothing. Blocks lie at multiples of 8, so the lowest
/// bit distinguishes a slot from a node's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    /// Nothing: an empty tree.
    pub(super) const NONE: Self = Self(0);

    /// A word for an entry.
    pub(super) fn leaf(slot: Slot) -> Self {
        Self(slot.0 | 1)
    }

    /// The slot, if it refers to an entry.
    #[inline]
    pub(super) fn slot(self) -> Option<Slot> {
        (self.0 & 1 == 1).then_some(Slot(self.0 & !1))
    }
}

impl Node {
    /// The node at a heap offset.
    #[inline]
    pub(super) fn at<R: Read>(read: &R, node: u64) -> Result<&Self> {
        Ok(read.read(Ptr::new(node))?)
    }

    /// The child on a side.
    #[inline]
    pub(super) fn child(&self, side: bool) -> Word {
        Word(self.children[usize::from(side)].get())
    }

    /// The side that a key belongs to.
    #[inline]
    pub(super) fn side(&self, key: &[u8]) -> bool {
        symbol(key, usize::from(self.byte.get())) & self.mask.get() != 0
    }

    /// The place of its critical bit.
    #[inline]
    pub(super) fn place(&self) -> u32 {
        place(self.byte.get(), self.mask.get())
    }
}

/// A number that rises from bit to bit of a key, the first byte's presence first. Byte indices of a
/// key have 16 bits.
#[inline]
pub(super) fn place(byte: u16, mask: u16) -> u32 {
    u32::from(byte) << 16 | u32::from(!mask)
}

/// A byte of a key with its presence bit.
#[inline]
pub(super) fn symbol(key: &[u8], byte: usize) -> u16 {
    key.get(byte).map_or(0, |byte| PRESENT | u16::from(*byte))
}
