//! What was there before a transaction that lets readers in.
//!
//! Purpose: a large transaction works for a while, and changes blocks in place. Before it lets readers in
//! it copies what it has changed, as it was. A reader finds the copy where there is one, else the block
//! itself: so it sees the heap as the last commit left it, whole, whatever data structures are in it.
//! Invariants: while readers are in, each block that the transaction has changed has a copy here, with
//! the bytes before. Blocks that it reserved need none: nothing that was there before leads to them. A copy lies in its lines as the block does in memory's, so that typed data keeps its
//! alignment. Copies take a limited number of bytes; beyond that they are not whole, and no reader is
//! let in any more.
//! Thread safety: guarded by the gate of the image: changed by who has it alone, read by readers that
//! were let in.

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
    /// Where in the first line it begins.
    start: usize,
    bytes: usize,
}

impl Copied {
    fn bytes(&self) -> &[u8] {
        self.lines.as_bytes().get(self.start..self.start + self.bytes).unwrap_or_default()
    }
}

/// What was there before.
#[derive(Debug, Default)]
pub(crate) struct BeforeImages {
    blocks: OffsetMap<Copied>,
    /// The words of the roots.
    roots: Option<[u64; ROOT_COUNT]>,
    /// Sequence number of the last commit that readers see, once that of the transaction has been
    /// appended or is about to be.
    ceiling: Option<u64>,
    /// Bytes of the copies, and how many there may be.
    bytes: u64,
    bytes_max: u64,
    /// Whether readers may be let in.
    is_whole: bool,
}

impl BeforeImages {
    /// Nothing is copied yet; readers may be let in.
    pub(crate) fn begin(&mut self, bytes_max: u64) {
        debug_assert!(self.blocks.is_empty() && !self.is_whole, "one transaction at a time");
        (self.bytes_max, self.is_whole) = (bytes_max, true);
    }

    /// Whether readers may be let in.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Something changes of which there is no copy: readers are not let in any more.
    pub(crate) fn give_up(&mut self) {
        self.is_whole = false;
    }

    /// Copies a block, if there is room and no copy of it; whether it did.
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

    /// Makes bytes of a copy what they were, if they are of that block.
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

    /// The record is about to be appended, after that one.
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
