//! On-heap layout of a red-black tree's nodes.
//!
//! Purpose: see `docs/format/redblack.md`. All such trees share the layout of the head.
//! Invariants: all integers are little-endian, so that any bytes are a valid node (S3).

use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::Result;
use crate::kind::Label;
use crate::slot::Entry;
use crate::words::Form;

/// The label of the kind.
pub(super) const LABEL: Label = Label { magic: *b"AdamRed\x01", name: "redblack", has_words: true };

/// A node: a pair and its children.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Node {
    /// Slot of the pair. Of words: the value.
    pub(super) slot: U64,
    /// The first 8 bytes of the key, as a big-endian number; zeros beyond its end. Of words: the
    /// key.
    pub(super) head: U64,
    /// Heap offsets of the children with lower and with higher keys, 0 for none. Bit 0 of the first
    /// is 1 in a red node: blocks lie at multiples of 8.
    pub(super) children: [U64; 2],
}

/// Offsets of the slot and the head.
pub(super) const SLOT_AT: usize = 0;
pub(super) const HEAD_AT: usize = 8;
pub(super) const NODE_BYTES: usize = size_of::<Node>();
/// Maximum nodes of a path: twice the 47 levels that a black tree of 2^47 bytes can have.
pub(super) const HEIGHT_MAX: usize = 94;
pub(super) const RED: u64 = 1;

const _: () = assert!(NODE_BYTES == 32);
const _: () = assert!(std::mem::offset_of!(Node, slot) == SLOT_AT);
const _: () = assert!(std::mem::offset_of!(Node, head) == HEAD_AT);

impl Node {
    /// The node at a heap offset.
    #[inline]
    pub(super) fn at<R: Read>(read: &R, node: u64) -> Result<&Self> {
        Ok(read.read(Ptr::new(node))?)
    }

    /// Heap offset of the child on a side; 0 for none.
    #[inline]
    pub(super) fn child(&self, higher: bool) -> u64 {
        self.children[usize::from(higher)].get() & !RED
    }

    /// Whether it is red.
    #[inline]
    pub(super) fn is_red(&self) -> bool {
        self.children[0].get() & RED != 0
    }

    /// The pair.
    #[inline]
    pub(super) fn entry<'r, R: Read>(&'r self, read: &'r R, form: Form) -> Result<Entry<'r>> {
        form.pair(read, &self.head, &self.slot)
    }

    /// Sets the child on a side.
    pub(super) fn set_child(&mut self, higher: bool, child: u64) {
        let word = &mut self.children[usize::from(higher)];
        let red = if higher { 0 } else { word.get() & RED };
        *word = U64::new(child & !RED | red);
    }

    /// Sets the colour.
    pub(super) fn set_red(&mut self, red: bool) {
        self.children[0] = U64::new(self.child(false) | u64::from(red));
    }
}
