//! The head of a tree: its root object on the heap.
//!
//! Purpose: names the newest buffer and the manifest.
//! Invariants: its checksum is verified whenever the head is read, also before a change.
//! Thread safety: as of the heap: a view reads, a transaction writes.

use adamant_heap::access::{Read, Write};
use adamant_heap::ptr::Ptr;
use zerocopy::IntoBytes;

use crate::error::Result;
use crate::layout::{HEAD_MAGIC, HEAD_SUM_AT, Head};
use crate::sum::{damaged, sum_of, update_summed};

/// Creates the head of a tree without files. Returns its heap offset.
pub(crate) fn create<W: Write>(heap: &mut W, identity: [u8; 16], buffer: u64) -> Result<u64> {
    let block = heap.reserve(size_of::<Head>() as u64)?;
    let (manifest, sum) = (0.into(), 0.into());
    let mut head = Head { magic: HEAD_MAGIC, identity, buffer: buffer.into(), manifest, sum };
    head.sum = sum_of(block, head.as_bytes(), HEAD_SUM_AT).into();
    *heap.write_as(Ptr::new(block))? = head;
    Ok(block)
}

/// The head at a heap offset.
pub(crate) fn read<R: Read>(heap: &R, block: u64) -> Result<&Head> {
    let head = heap.read(Ptr::<Head>::new(block))?;
    if head.magic != HEAD_MAGIC {
        return Err(damaged(block, "is no head of a log-structured merge tree"));
    }
    let is_sound = head.sum.get() == sum_of(block, head.as_bytes(), HEAD_SUM_AT);
    if !is_sound {
        return Err(damaged(
            block,
            "is the head of a log-structured merge tree and has been changed",
        ));
    }
    Ok(head)
}

/// Changes one of its words.
pub(crate) fn set<W: Write>(heap: &mut W, block: u64, at: usize, word: u64) -> Result<()> {
    read(heap, block)?;
    update_summed(heap, block, (size_of::<Head>(), HEAD_SUM_AT), &[(at, word)])
}
