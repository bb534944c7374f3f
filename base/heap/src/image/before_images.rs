//! Before-images: the blocks that a running transaction has changed, as they were before.
//!
//! Purpose: a large transaction works for a while, and changes blocks in place. Before it admits
//! readers it copies the blocks that it has changed, as they were. A reader uses the copy where
//! there is one, else the block itself. So it sees the heap as the last commit left it, whole,
//! whatever data structures are in it.
//! Invariants: while readers are admitted, each block that the transaction has changed has a copy
//! here, with the bytes before. Blocks that it reserved need none: no earlier pointer leads to
//! them. A copy lies in its lines as the block does in memory's, so that typed data keeps its
//! alignment. Copies take a limited number of bytes; beyond that they are not whole, and no reader
//! is admitted any more.
//! Thread safety: guarded by the image latch: changed under the exclusive guard, read by admitted
//! readers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::collections::offset_map::OffsetMap;
use crate::layout::ROOT_COUNT;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// A line of a copy.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES as usize]);

/// A block as it was.
#[derive(Debug)]
struct Copied {
    lines: Box<[Line]>,
    /// Where in the first line the block begins.
    start: usize,
    bytes: usize,
}

impl Copied {
    fn bytes(&self) -> &[u8] {
        self.lines.as_bytes().get(self.start..self.start + self.bytes).unwrap_or_default()
    }
}

/// The before-images of a transaction.
#[derive(Debug, Default)]
pub(crate) struct BeforeImages {
    blocks: OffsetMap<Copied>,
    /// The words of the roots.
    roots: Option<[u64; ROOT_COUNT]>,
    /// Sequence number of the last commit that readers see; set once the transaction's record has
    /// been appended or is about to be.
    ceiling: Option<u64>,
    /// Bytes of the copies, and how many there may be.
    bytes: u64,
    bytes_max: u64,
    /// Whether readers may be admitted.
    is_whole: bool,
}

impl BeforeImages {
    /// Starts a transaction: no copies yet; readers may be admitted.
    pub(crate) fn begin(&mut self, bytes_max: u64) {
        debug_assert!(self.blocks.is_empty() && !self.is_whole, "one transaction at a time");
        (self.bytes_max, self.is_whole) = (bytes_max, true);
    }

    /// Whether readers may be admitted.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// A change without a copy follows: readers are not admitted any more.
    pub(crate) fn give_up(&mut self) {
        self.is_whole = false;
    }

    /// Copies a block, if there is room and no copy of it. Returns whether it did.
    pub(crate) fn keep(&mut self, offset: u64, block: &[u8]) -> bool {
        if !self.is_whole || self.blocks.contains_key(&offset) {
            return false;
        }
        self.bytes += block.len() as u64;
        if self.bytes > self.bytes_max {
            self.give_up();
            return false;
        }
        let start = (offset % LINE_BYTES) as usize;
        let count = (start + block.len()).div_ceil(LINE_BYTES as usize);
        let mut lines = vec![Line([0; LINE_BYTES as usize]); count].into_boxed_slice();
        if let Some(target) = lines.as_mut_bytes().get_mut(start..start + block.len()) {
            target.copy_from_slice(block);
        }
        self.blocks.insert(offset, Copied { lines, start, bytes: block.len() });
        true
    }

    /// Restores bytes of a copy to `old`, if they belong to that block.
    pub(crate) fn patch(&mut self, offset: u64, at: u64, old: &[u8]) {
        let Some(copy) = self.blocks.get_mut(&offset) else { return };
        let (at, end) = (at as usize, at as usize + old.len());
        if end <= copy.bytes
            && let Some(target) =
                copy.lines.as_mut_bytes().get_mut(copy.start + at..copy.start + end)
        {
            target.copy_from_slice(old);
        }
    }

    /// Copies the words of the roots, before one of them changes.
    pub(crate) fn keep_roots(&mut self, roots: [u64; ROOT_COUNT]) {
        self.roots.get_or_insert(roots);
    }

    /// The block at an offset as it was, if it was changed.
    #[inline]
    pub(crate) fn block(&self, offset: u64) -> Option<&[u8]> {
        self.blocks.get(&offset).map(Copied::bytes)
    }

    /// The word of root `index`, if one was changed.
    pub(crate) fn root(&self, index: usize) -> Option<u64> {
        self.roots?.get(index).copied()
    }

    /// The transaction's record is about to be appended, after record `sequence`.
    pub(crate) fn set_ceiling(&mut self, sequence: u64) {
        self.ceiling = Some(sequence);
    }

    /// Sequence number of the last commit that readers see, if it is not the last one of all.
    pub(crate) fn ceiling(&self) -> Option<u64> {
        self.ceiling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_copy_of_a_block_stays_and_lies_as_the_block_does() {
        let mut before = BeforeImages::default();
        before.begin(1 << 20);
        for offset in [4096_u64, 4096 + 72, 8192 + 8] {
            let old: Vec<u8> = (0..200).map(|at| (offset + at) as u8).collect();
            assert!(before.keep(offset, &old));
            assert!(!before.keep(offset, &[0; 200]));
            let found = before.block(offset).expect("a copy");
            assert_eq!(found, old);
            assert_eq!(found.as_ptr().addr() as u64 % 64, offset % 64);
        }
        assert!(before.block(0).is_none() && before.is_whole());
    }

    #[test]
    fn beyond_its_bytes_nobody_is_let_in() {
        let mut before = BeforeImages::default();
        before.begin(300);
        before.keep(8, &[1; 200]);
        assert!(before.is_whole());
        before.keep(512, &[1; 200]);
        assert!(!before.is_whole());
        before.keep(1024, &[1; 8]);
        assert!(before.block(1024).is_none());
    }
}
