//! On-heap layout of a B+ tree.
//!
//! Purpose: the nodes of the tree as the heap holds them; see `docs/format/bplus.md`.
//! Invariants: all integers are little-endian, so that any bytes are a valid node (S3); their
//! values are checked where they are used.

use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::tagging::Tagging;
use crate::error::{Error, Result};
use crate::slot::Slot;

/// Slots of a leaf: with their fingerprints and the bitmap 7 cache lines.
pub(super) const LEAF_SLOTS: usize = 48;
/// Children of an inner node: with them it fills 24 cache lines.
pub(super) const CHILDREN_MAX: usize = 60;
/// Maximum levels above the leaves. A node splits only when it is full, and then leaves at least 30
/// children on a side that can fill again: level 13 needs some 30^12 inserts.
pub(super) const HEIGHT_MAX: usize = 12;
/// First bytes of the head of every B+ tree.
pub(super) const HEAD_MAGIC: [u8; 8] = *b"AdamBpl\x02";
/// The same in format 1, whose leaves are tagged by hashes.
pub(super) const HEAD_MAGIC_HASHED: [u8; 8] = *b"AdamBpl\x01";
/// The used-bitmap of a full leaf.
pub(super) const LEAF_FULL: u64 = (1 << LEAF_SLOTS) - 1;

/// The head: its offset names the tree.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    /// `HEAD_MAGIC` or `HEAD_MAGIC_HASHED`.
    pub(super) magic: [u8; 8],
    /// The root node.
    pub(super) root: U64,
    /// Levels above the leaves: 0 when the root is a leaf.
    pub(super) height: U64,
    /// Pairs.
    pub(super) pairs: U64,
    /// Leaves.
    pub(super) leaves: U64,
    /// Inner nodes.
    pub(super) inner_nodes: U64,
}

/// A leaf: up to 48 unordered slots.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Leaf {
    /// Bit i: slot i and fingerprint i are in use. The last store of every change.
    pub(super) bitmap: U64,
    /// One byte of the hash of each slot's key.
    pub(super) fingerprints: [u8; LEAF_SLOTS],
    /// How the slots are tagged, see [`Tagging`].
    pub(super) tagging: U64,
    /// The slots.
    pub(super) slots: [U64; LEAF_SLOTS],
}

/// A child of an inner node, with the lowest key that may be routed to it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Branch {
    /// Separator block; 0 for the first child in order, whose lower bound is the node's.
    pub(super) separator: U64,
    /// The child.
    pub(super) child: U64,
}

/// An inner node: up to 60 unordered branches, with an order beside them.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Inner {
    /// Branches in use, 1 to 60.
    pub(super) count: u8,
    /// Levels above the leaves, 1 for a parent of leaves.
    pub(super) level: u8,
    /// Length of the common prefix of all keys routed here, or at an edge of the tree of all
    /// separators.
    pub(super) prefix_len: U16,
    /// `order[i]` is the index of the i-th branch in key order.
    pub(super) order: [u8; CHILDREN_MAX],
    /// `heads[i]` is `head_of` of the separator of branch i. Heads and branches stay in place when
    /// others are added, so that little is logged.
    pub(super) heads: [U64; CHILDREN_MAX],
    /// The branches.
    pub(super) branches: [Branch; CHILDREN_MAX],
    /// Unused, never written.
    pub(super) spare: [u8; 32],
}

pub(super) const HEAD_BYTES: usize = size_of::<Head>();
pub(super) const HEAD_ROOT_AT: usize = 8;
pub(super) const HEAD_HEIGHT_AT: usize = 16;
pub(super) const HEAD_PAIRS_AT: usize = 24;
pub(super) const HEAD_LEAVES_AT: usize = 32;
pub(super) const HEAD_INNER_NODES_AT: usize = 40;
pub(super) const LEAF_BYTES: usize = size_of::<Leaf>();
pub(super) const LEAF_BITMAP_AT: usize = 0;
pub(super) const LEAF_FINGERPRINTS_AT: usize = 8;
pub(super) const LEAF_TAGGING_AT: usize = 56;
pub(super) const LEAF_SLOTS_AT: usize = 64;
pub(super) const INNER_BYTES: usize = size_of::<Inner>();
pub(super) const INNER_COUNT_AT: usize = 0;
pub(super) const INNER_ORDER_AT: usize = 4;
pub(super) const INNER_HEADS_AT: usize = 64;
pub(super) const INNER_BRANCHES_AT: usize = INNER_HEADS_AT + 8 * CHILDREN_MAX;
pub(super) const BRANCH_BYTES: usize = size_of::<Branch>();
pub(super) const BRANCH_CHILD_AT: usize = 8;

const _: () = assert!(HEAD_BYTES == 48);
const _: () = assert!(LEAF_BYTES == 7 * 64);
const _: () = assert!(INNER_BYTES == 24 * 64);
const _: () = assert!(core::mem::offset_of!(Head, root) == HEAD_ROOT_AT);
const _: () = assert!(core::mem::offset_of!(Head, height) == HEAD_HEIGHT_AT);
const _: () = assert!(core::mem::offset_of!(Head, pairs) == HEAD_PAIRS_AT);
const _: () = assert!(core::mem::offset_of!(Head, leaves) == HEAD_LEAVES_AT);
const _: () = assert!(core::mem::offset_of!(Head, inner_nodes) == HEAD_INNER_NODES_AT);
const _: () = assert!(core::mem::offset_of!(Leaf, bitmap) == LEAF_BITMAP_AT);
const _: () = assert!(core::mem::offset_of!(Leaf, fingerprints) == LEAF_FINGERPRINTS_AT);
const _: () = assert!(core::mem::offset_of!(Leaf, tagging) == LEAF_TAGGING_AT);
const _: () = assert!(core::mem::offset_of!(Leaf, slots) == LEAF_SLOTS_AT);
const _: () = assert!(core::mem::offset_of!(Inner, count) == INNER_COUNT_AT);
const _: () = assert!(core::mem::offset_of!(Inner, order) == INNER_ORDER_AT);
const _: () = assert!(core::mem::offset_of!(Inner, heads) == INNER_HEADS_AT);
const _: () = assert!(core::mem::offset_of!(Inner, branches) == INNER_BRANCHES_AT);
const _: () = assert!(core::mem::offset_of!(Branch, child) == BRANCH_CHILD_AT);

/// The branch of a separator block and a child.
pub(super) fn branch(separator: u64, child: u64) -> Branch {
    Branch { separator: U64::new(separator), child: U64::new(child) }
}

impl Head {
    /// How a leaf of this tree is tagged that has no bounds.
    pub(super) fn tagging(&self) -> Tagging {
        if self.magic == HEAD_MAGIC_HASHED { Tagging::HASHED } else { Tagging::WHOLE }
    }
}

impl Leaf {
    /// The leaf at a heap offset.
    pub(super) fn at<R: Read>(read: &R, leaf: u64) -> Result<&Self> {
        Ok(read.read(Ptr::new(leaf))?)
    }

    /// The bitmap of the slots in use.
    #[inline]
    pub(super) fn used(&self) -> u64 {
        self.bitmap.get() & LEAF_FULL
    }

    /// Bits of the used slots with this fingerprint, computed 8 bytes at a time: a byte of
    /// `difference` is zero exactly where `zeros` gets its top bit, and a multiplication gathers
    /// those bits.
    #[inline]
    pub(super) fn matches(&self, fingerprint: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        const GATHER: u64 = 0x0102_0408_1020_4080;
        let wanted = u64::from(fingerprint) * 0x0101_0101_0101_0101;
        let mut found = 0;
        for (index, piece) in self.fingerprints.as_chunks::<8>().0.iter().enumerate() {
            let difference = u64::from_le_bytes(*piece) ^ wanted;
            let zeros = !(((difference & LOW) + LOW) | difference | LOW);
            found |= ((zeros >> 7).wrapping_mul(GATHER) >> 56) << (8 * index);
        }
        found & self.used()
    }

    /// Indices of the slots in use.
    #[inline]
    pub(super) fn indices(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let used = self.used();
        (0..LEAF_SLOTS).filter(move |index| used >> index & 1 == 1)
    }

    /// How the slots are tagged.
    #[inline]
    pub(super) fn tagging(&self) -> Tagging {
        Tagging::of(self.tagging)
    }

    /// One slot.
    #[inline]
    pub(super) fn slot(&self, index: usize) -> Slot {
        Slot(self.slots[index].get())
    }
}

impl Inner {
    /// The inner node at a heap offset, which must be of this level.
    #[inline]
    pub(super) fn at<R: Read>(read: &R, node: u64, level: usize) -> Result<&Self> {
        let inner: &Self = read.read(Ptr::new(node))?;
        let damaged = |what| Err(Error::Damaged { block: node, what });
        if usize::from(inner.level) != level {
            return damaged("is no inner node of its level");
        }
        if inner.count == 0 || usize::from(inner.count) > CHILDREN_MAX {
            return damaged("has an impossible number of children");
        }
        Ok(inner)
    }

    /// Number of children.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Index of the branch at a position of the key order. Only damage causes positions and indices
    /// out of range; they give some branch, which is then no child of this level or key.
    #[inline]
    fn index(&self, position: usize) -> usize {
        usize::from(self.order[position.min(CHILDREN_MAX - 1)]).min(CHILDREN_MAX - 1)
    }

    /// The branch at a position of the key order.
    #[inline]
    pub(super) fn branch(&self, position: usize) -> Branch {
        self.branches[self.index(position)]
    }

    /// The head of the separator at a position of the key order, not the first.
    #[inline]
    pub(super) fn head(&self, position: usize) -> u64 {
        self.heads[self.index(position)].get()
    }

    /// The child at a position of the key order.
    #[inline]
    pub(super) fn child(&self, position: usize) -> u64 {
        self.branch(position).child.get()
    }

    /// The separator block at a position of the key order.
    #[inline]
    pub(super) fn separator(&self, position: usize) -> u64 {
        self.branch(position).separator.get()
    }

    /// Length of the common prefix of all keys here, or at an edge of the tree of all separators.
    #[inline]
    pub(super) fn prefix_bytes(&self) -> usize {
        usize::from(self.prefix_len.get())
    }
}
