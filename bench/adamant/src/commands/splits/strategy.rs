//! Split strategies: how a leaf keeps its pairs, and how one of them moves to another leaf.

use adamant_heap::{Read, Write};

use crate::harness::error::Result;

/// Pairs of a leaf.
pub const LEAF_SLOTS: usize = 48;
/// Offset of a leaf's link to the next one, a word; 0 in the last.
pub const NEXT_AT: usize = 0;
/// Offset of the strategy's data: after the line of that word.
pub const SLOTS_AT: usize = 64;

/// A way of keeping pairs in a leaf. All bytes of a new leaf are zero. A slot whose hash is zero is
/// free, whatever else it holds.
pub trait Strategy {
    /// The name in reports.
    const NAME: &'static str;
    /// Bytes of a leaf.
    const LEAF_BYTES: usize;

    /// The hash of a slot's key; 0 of a free slot.
    fn hash(leaf: &[u8], slot: usize) -> u8;

    /// The key of a used slot.
    ///
    /// # Errors
    /// The heap's, and bytes that no leaf has.
    fn key<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]>;

    /// The value of a used slot.
    ///
    /// # Errors
    /// As [`Strategy::key`].
    fn value<'r, R: Read>(read: &'r R, leaf: &'r [u8], slot: usize) -> Result<&'r [u8]>;

    /// Number of blocks that a slot owns.
    ///
    /// # Errors
    /// As [`Strategy::key`].
    fn blocks(leaf: &[u8], slot: usize) -> Result<u64>;

    /// Puts a pair into a free slot.
    ///
    /// # Errors
    /// The heap's, out of space among them.
    fn fill<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()>;

    /// Puts another value into a used slot.
    ///
    /// # Errors
    /// As [`Strategy::fill`] and [`Strategy::key`].
    fn replace<W: Write>(tx: &mut W, leaf: u64, slot: usize, pair: Pair<'_>) -> Result<()>;

    /// Moves a pair to the same slot of a new leaf, where it is free. `scratch` is memory for
    /// copies. Returns the bytes that it stored.
    ///
    /// # Errors
    /// As [`Strategy::replace`].
    fn relocate<W: Write>(
        tx: &mut W,
        leaves: (u64, u64),
        slot: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<u64>;
}

/// A pair to be put into a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The hash of the key, not 0.
    pub hash: u8,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// `len` bytes of a leaf at `at`.
pub(super) fn bytes_at(leaf: &[u8], at: usize, len: usize) -> Result<&[u8]> {
    let bytes = leaf.get(at..).and_then(|rest| rest.get(..len));
    Ok(bytes.ok_or("a leaf is too short for its slots")?)
}

/// A word of a field.
pub(super) fn word_of(field: &[u8], at: usize) -> u64 {
    field.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// A 32-bit length in a field.
pub(super) fn len_of(field: &[u8], at: usize) -> usize {
    field
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |len| u32::from_le_bytes(*len) as usize)
}

/// Copies bytes into a block of their own.
pub(super) fn new_block<W: Write>(tx: &mut W, parts: &[&[u8]]) -> Result<u64> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    let block = tx.reserve(bytes.max(1) as u64)?;
    let mut rest = tx.write(block, 0, bytes)?;
    for part in parts {
        let (target, after) = rest.split_at_mut(part.len());
        target.copy_from_slice(part);
        rest = after;
    }
    Ok(block)
}

/// The first bytes of a block.
pub(super) fn block_bytes<R: Read>(read: &R, block: u64, len: usize) -> Result<&[u8]> {
    Ok(read.block(block)?.get(..len).ok_or("a block is shorter than the string in it")?)
}
