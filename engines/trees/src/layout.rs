//! On-heap layout of the head that the trees of single pairs share.
//!
//! Purpose: see `docs/format/maps.md`. Each tree has its own nodes.
//! Invariants: all integers are little-endian, so that any bytes are a valid head (S3).

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The head of a `btree`, `critbit` or `redblack`: its offset names the tree.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Head {
    /// The kind of tree; the last byte is the form of its nodes.
    pub magic: [u8; 8],
    /// The reference to the root; 0 in an empty tree.
    pub root: U64,
    /// Number of pairs.
    pub pairs: U64,
    /// `btree`: levels above the leaves. Else zero.
    pub height: U64,
    /// `btree`: children of a full node. Else zero.
    pub order: U64,
    /// Zero.
    pub spare: U64,
}

/// Index of the byte of the magic that holds the form of a tree's nodes: 1 for slots of entries.
pub(crate) const MAGIC_FORM_AT: usize = 7;
/// The form with pairs of words.
pub(crate) const MAGIC_WORDS: u8 = 2;
pub(crate) const HEAD_BYTES: usize = size_of::<Head>();
pub(crate) const HEAD_ROOT_AT: usize = 8;
pub(crate) const HEAD_PAIRS_AT: usize = 16;
pub(crate) const HEAD_HEIGHT_AT: usize = 24;

const _: () = assert!(HEAD_BYTES == 48);
const _: () = assert!(std::mem::offset_of!(Head, root) == HEAD_ROOT_AT);
const _: () = assert!(std::mem::offset_of!(Head, pairs) == HEAD_PAIRS_AT);
const _: () = assert!(std::mem::offset_of!(Head, height) == HEAD_HEIGHT_AT);
