//! Copies of blocks that a transaction changes, where memory is the medium.
//!
//! Purpose: planned writes. Memory must not change before the commit is durable, so a transaction
//! writes into a copy of the block and reads it there; the bytes written go into the record, and
//! to memory after its fence. An abort forgets the copies: no undo entry, no fence.
//! Invariants: a copy lies in its lines as the block does in memory's, so that one bit for each
//! byte of a line says what was written, and typed data keeps its alignment. Copies of an inner
//! level lie behind those of the levels around it.
//! Thread safety: belongs to the writer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::keyed::{Indexed, Keyed};
use crate::ranges::{Spans, lines_of};

/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// Bytes of copies that a transaction may have; what it changes beyond is changed in place.
const COPIES_BYTES_MAX: usize = 64 << 20;
/// Memory beyond that is given back when a transaction ends.
const COPIES_KEEP_BYTES_MAX: usize = 4 << 20;

/// A line of a copy.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// Where a copy lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow {
    /// Its first line.
    first: u32,
    /// Where in that line it begins.
    start: u32,
    bytes: u32,
}

impl Shadow {
    /// Whether a range of it may end there.
    #[inline]
    pub(crate) fn has(self, end: u64) -> bool {
        end <= u64::from(self.bytes)
    }

    fn lines(self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + (self.start as usize + self.bytes as usize).div_ceil(LINE_BYTES)
    }
}

impl Indexed<Self> for Shadow {
    fn of(_place: u32, value: &Self) -> Self {
        *value
    }
}

/// The copies of a level, by block.
pub(crate) type Shadows = Keyed<Shadow, Shadow>;

/// The memory of all copies of a transaction; reused, so that it is not allocated again.
#[derive(Debug, Default)]
pub(crate) struct ShadowMemory {
    lines: Vec<Line>,
    /// For each line: one bit for every byte that goes into the record.
    written: Vec<u64>,
}

impl ShadowMemory {
    /// How much is in use: to be handed to `truncate`.
    pub(crate) fn mark(&self) -> usize {
        self.lines.len()
    }

    /// Gives up all copies made since `mark`.
    pub(crate) fn truncate(&mut self, mark: usize) {
        self.lines.truncate(mark);
        self.written.truncate(mark);
        if mark == 0 && self.lines.capacity() > COPIES_KEEP_BYTES_MAX / LINE_BYTES {
            (self.lines, self.written) = (Vec::new(), Vec::new());
        }
    }

    /// Whether anything was written to a copy.
    #[inline]
    pub(crate) fn is_written(&self, shadow: Shadow) -> bool {
        self.written[shadow.lines()].iter().any(|written| *written != 0)
    }

    /// Forgets what was written to a copy: its block is freed by the same commit.
    pub(crate) fn leave_out(&mut self, shadow: Shadow) {
        self.written[shadow.lines()].fill(0);
    }

    /// Whether there is room for a copy of so many bytes.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.lines.len() * LINE_BYTES + bytes as usize <= COPIES_BYTES_MAX
    }

    /// Copies a block at a heap offset, but for the range `skipped` of it.
    pub(crate) fn add(
        &mut self,
        offset: u64,
        block: &[u8],
        skipped: std::ops::Range<usize>,
    ) -> Shadow {
        let start = offset as usize % LINE_BYTES;
        let first = self.lines.len() as u32;
        let shadow = Shadow { first, start: start as u32, bytes: block.len() as u32 };
        self.lines.resize(shadow.lines().end, Line([0; LINE_BYTES]));
        self.written.resize(shadow.lines().end, 0);
        let target = self.bytes_mut(shadow);
        target[..skipped.start].copy_from_slice(&block[..skipped.start]);
        target[skipped.end..].copy_from_slice(&block[skipped.end..]);
        shadow
    }

    /// Copies a copy, for a level within its own.
    pub(crate) fn add_copy(&mut self, outer: Shadow) -> Shadow {
        let shadow = Shadow { first: self.lines.len() as u32, ..outer };
        self.lines.extend_from_within(outer.lines());
        self.written.extend_from_within(outer.lines());
        shadow
    }

    /// Makes a copy what another one of the same block is.
    fn replace(&mut self, target: Shadow, source: Shadow) {
        self.lines.copy_within(source.lines(), target.first as usize);
        self.written.copy_within(source.lines(), target.first as usize);
    }

    /// All bytes of a copy.
    #[inline]
    pub(crate) fn bytes(&self, shadow: Shadow) -> &[u8] {
        let lines = self.lines[shadow.lines()].as_bytes();
        &lines[shadow.start as usize..][..shadow.bytes as usize]
    }

    #[inline]
    fn bytes_mut(&mut self, shadow: Shadow) -> &mut [u8] {
        let lines = self.lines[shadow.lines()].as_mut_bytes();
        &mut lines[shadow.start as usize..][..shadow.bytes as usize]
    }

    /// A range of a copy, which lies in it and is not empty, to be written.
    #[inline]
    pub(crate) fn write(&mut self, shadow: Shadow, at: usize, len: usize) -> &mut [u8] {
        let from = shadow.start as usize + at;
        for (start, mask) in lines_of(from as u64, len as u64) {
            self.written[shadow.first as usize + start as usize / LINE_BYTES] |= mask;
        }
        &mut self.bytes_mut(shadow)[at..at + len]
    }

    /// Tells of what was written to the copy of the block at a heap offset: heap offset and bytes of
    /// each range, in order. Ranges are joined over lines.
    pub(crate) fn spans(&self, offset: u64, shadow: Shadow, mut span: impl FnMut(u64, &[u8])) {
        let lines = shadow.lines();
        let bytes = self.lines[lines.clone()].as_bytes();
        let line_offset = offset - u64::from(shadow.start);
        let (mut start, mut end) = (0, 0);
        let mut give = |start: usize, end: usize| {
            if start < end {
                span(line_offset + start as u64, &bytes[start..end]);
            }
        };
        for (line, &written) in self.written[lines].iter().enumerate() {
            for (at, len) in Spans::new((line * LINE_BYTES) as u64, written) {
                if at as usize != end {
                    give(start, end);
                    start = at as usize;
                }
                end = (at + len) as usize;
            }
        }
        give(start, end);
    }

    /// Hands the copies of a level, made since `mark`, to the level around it.
    pub(crate) fn merge(&mut self, inner: &mut Shadows, outer: &mut Shadows, mark: usize) {
        let mut is_spare = true;
        for (block, shadow) in inner.drain() {
            match outer.value(block).copied() {
                Some(target) => self.replace(target, shadow),
                None => {
                    outer.insert(block, shadow);
                    is_spare = false;
                }
            }
        }
        // A loop of savepoints that write the same blocks needs no more memory than one of them.
        if is_spare {
            self.truncate(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_a_block_with_a_memory_of_what_was_written() {
        let mut random = fastrand::Rng::with_seed(21);
        let mut memory = ShadowMemory::default();
        for _ in 0..300 {
            let offset = random.u64(..1000) * 8;
            let block: Vec<u8> = (0..random.usize(8..600)).map(|_| random.u8(..)).collect();
            let shadow = memory.add(offset, &block, 0..0);
            assert_eq!(memory.bytes(shadow), block);
            let (mut model, mut written) = (block.clone(), vec![false; block.len()]);
            for _ in 0..random.usize(..10) {
                let at = random.usize(..block.len());
                let len = random.usize(1..=block.len() - at);
                let byte = random.u8(..);
                memory.write(shadow, at, len).fill(byte);
                model[at..at + len].fill(byte);
                written[at..at + len].fill(true);
            }
            let copy = memory.add_copy(shadow);
            for shadow in [shadow, copy] {
                assert_eq!(memory.bytes(shadow), model);
                let mut found = vec![false; block.len()];
                let mut last = None;
                memory.spans(offset, shadow, |at, bytes| {
                    assert!(last.is_none_or(|last| last < at), "in order, and joined");
                    last = Some(at + bytes.len() as u64);
                    let at = (at - offset) as usize;
                    assert_eq!(bytes, &model[at..at + bytes.len()]);
                    found[at..at + bytes.len()].fill(true);
                });
                assert_eq!(found, written);
            }
        }
    }

    #[test]
    fn a_level_that_ends_hands_over_or_gives_up() {
        let mut memory = ShadowMemory::default();
        let (mut outer, mut inner) = (Shadows::default(), Shadows::default());
        let first = memory.add(64, &[1; 32], 0..0);
        outer.insert(64, first);
        for round in 0..1000 {
            let mark = memory.mark();
            let copy = memory.add_copy(first);
            memory.write(copy, 0, 4).fill(round as u8);
            inner.insert(64, copy);
            memory.merge(&mut inner, &mut outer, mark);
            assert_eq!(memory.mark(), mark, "nothing is kept");
            assert_eq!(
                memory.bytes(first)[..5],
                [round as u8, round as u8, round as u8, round as u8, 1]
            );
        }
        let mark = memory.mark();
        inner.insert(128, memory.add(128, &[2; 8], 0..0));
        memory.merge(&mut inner, &mut outer, mark);
        assert_eq!(outer.value(128).map(|shadow| memory.bytes(*shadow)), Some(&[2; 8][..]));
    }
}
