//! Checksums of a tree's heap objects.
//!
//! Purpose: they verify that what is read is what was written, also on pages that were not
//! verified.
//! Invariants: a checksum covers the location of its object, so no other object passes for it.
//! Thread safety: pure functions.

use adamant_heap::access::Write;
use adamant_wire::checksum::crc32c;

use crate::error::{Error, Result};

/// The checksum of an object in a block, over all but the word that holds it.
pub(crate) fn sum_of(block: u64, bytes: &[u8], sum_at: usize) -> u64 {
    let (before, behind) = bytes.split_at(sum_at.min(bytes.len()));
    let sum = crc32c(crc32c(0, &block.to_le_bytes()), before);
    u64::from(crc32c(sum, behind.get(size_of::<u64>()..).unwrap_or_default()))
}

/// The error of an object whose checksum is wrong, or that is no such object.
pub(crate) fn damaged(offset: u64, what: &'static str) -> Error {
    Error::Heap(adamant_heap::Error::InvalidPointer { offset, what })
}

/// Changes words of an object that was verified before, and its checksum with them. `len` is its
/// length.
pub(crate) fn update_summed<W: Write>(
    heap: &mut W,
    block: u64,
    (len, sum_at): (usize, usize),
    words: &[(usize, u64)],
) -> Result<()> {
    for &(at, word) in words {
        heap.update_u64(block, at, word)?;
    }
    let bytes = heap.block(block)?;
    let sum = sum_of(block, bytes.get(..len).unwrap_or(bytes), sum_at);
    Ok(heap.update_u64(block, sum_at, sum)?)
}
