//! Copies of blocks that a transaction changes, where memory is the medium.
//!
//! Purpose: planned writes. Memory must not change before the commit is durable, so a transaction
//! writes into a copy of the block and reads it there; the bytes written go into the record, and
//! to memory after its fence. An abort forgets the copies: no undo entry, no fence.
//! Invariants: a copy lies in its lines as the block does in memory's, so that one bit for each
//! byte of a line says what was written, and typed data keeps its alignment. Copies of an inner
//! level lie behind those of the levels around it. They are found by words of bitmaps, as what was
//! reserved and freed is (`marked.rs`): neighbours by one look, and a block that is freed drops its
//! copy at once.
//! Thread safety: belongs to the writer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::class::ClassTable;
use crate::marked::Marked;
use crate::place::Original;
use crate::ranges::{Spans, lines_of};

/// Bytes of a line.
const LINE_BYTES: usize = 64;
/// Copies are many from this part of all that there may be on: 512 KiB of 64 MiB, with which the others
/// of a processor's second cache are driven out of it.
const MANY: usize = 128;
/// Looks at blocks for each copy from which on they are often: writes of many blocks once have one or
/// two, removals from trees eight to thirty.
const LOOKS_MANY: u64 = 4;
/// Memory beyond that is given back when a transaction ends.
const COPIES_KEEP_BYTES_MAX: usize = 8 << 20;

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

/// A range that was written to a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Heap offset of its first byte.
    pub(crate) offset: u64,
    /// Where in the memory of copies it lies.
    from: usize,
    bytes: usize,
}

/// The copy of something, whose first line is that.
#[inline]
fn copy_of(original: Original, first: u32) -> Shadow {
    let start = (original.offset % LINE_BYTES as u64) as u32;
    Shadow { first, start, bytes: original.bytes as u32 }
}

/// The copies of a level.
#[derive(Debug, Default)]
pub(crate) struct Shadows {
    /// Numbers are first lines of copies, plus one.
    blocks: Marked,
    /// The roots, and their copy.
    roots: Option<(Original, Shadow)>,
}

impl Shadows {
    /// The copy of something.
    #[inline]
    pub(crate) fn get(&self, original: Original) -> Option<Shadow> {
        if original.run == 0 {
            return self.roots.map(|(_, shadow)| shadow);
        }
        let number = self.blocks.number_at(original.run, original.index);
        Some(copy_of(original, number.checked_sub(1)? as u32))
    }

    /// Notes the copy of something that has none.
    pub(crate) fn insert(&mut self, original: Original, shadow: Shadow) {
        if original.run == 0 {
            self.roots = Some((original, shadow));
            return;
        }
        self.blocks.insert(original.place());
        self.blocks.raise(original.place(), u64::from(shadow.first) + 1);
    }

    /// Forgets the copy of a block that is freed, if it has one.
    #[inline]
    pub(crate) fn remove(&mut self, original: Original) {
        if self.blocks.number_at(original.run, original.index) > 0 {
            self.blocks.remove(original.place());
        }
    }

    /// Whether there may be any.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.roots.is_none()
    }

    /// All copies.
    pub(crate) fn all<'a>(
        &'a self,
        classes: &'a ClassTable,
    ) -> impl Iterator<Item = (Original, Shadow)> + 'a {
        let blocks = self.blocks.all_numbers(classes).filter_map(|(block, place, number)| {
            let original = Original::of(block, place)?;
            Some((original, copy_of(original, number as u32 - 1)))
        });
        self.roots.into_iter().chain(blocks)
    }

    /// The roots' copy, and for each word of a bitmap with a copy in it where the first such block
    /// begins and the place of the word for `of_word`.
    pub(crate) fn words<'a>(
        &'a self,
        classes: &'a ClassTable,
    ) -> (Option<(Original, Shadow)>, impl Iterator<Item = (u64, u32)> + 'a) {
        (self.roots, self.blocks.numbered(classes))
    }

    /// The copies of blocks of a word: the heap offset of the block, and its copy.
    pub(crate) fn of_word<'a>(
        &'a self,
        at: u32,
        classes: &'a ClassTable,
    ) -> impl Iterator<Item = (u64, Shadow)> + 'a {
        self.blocks.placed_numbers(at, classes).filter_map(|(block, place, number)| {
            Some((block, copy_of(Original::of(block, place)?, number as u32 - 1)))
        })
    }

    /// Forgets all, keeping memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        self.blocks.clear();
        self.roots = None;
    }
}

/// The memory of all copies of a transaction; reused, so that it is neither allocated nor zeroed
/// again.
#[derive(Debug)]
pub(crate) struct ShadowMemory {
    /// Bytes of copies that a transaction may have.
    bytes_max: usize,
    lines: Vec<Line>,
    /// For each line: one bit for every byte that goes into the record.
    written: Vec<u64>,
    /// Lines in use.
    used: usize,
    /// Copies made of blocks.
    made: u64,
}

impl ShadowMemory {
    /// None yet, and never more than so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, lines: Vec::new(), written: Vec::new(), used: 0, made: 0 }
    }

    /// How much is in use: to be handed to `truncate`.
    pub(crate) fn mark(&self) -> usize {
        self.used
    }

    /// Gives up all copies made since `mark`.
    pub(crate) fn truncate(&mut self, mark: usize) {
        self.used = mark;
        if mark == 0 {
            self.made = 0;
        }
        if mark == 0 && self.lines.capacity() > COPIES_KEEP_BYTES_MAX / LINE_BYTES {
            *self = Self::new(self.bytes_max);
        }
    }

    /// Takes so many lines more into use, which hold anything; returns the first.
    fn take(&mut self, count: usize) -> u32 {
        let (first, end) = (self.used, self.used + count);
        if end > self.lines.len() {
            self.lines.resize(end, Line([0; LINE_BYTES]));
            self.written.resize(end, 0);
        }
        self.used = end;
        first as u32
    }

    /// Forgets what was written to a copy: its block is freed by the same commit.
    pub(crate) fn leave_out(&mut self, shadow: Shadow) {
        self.written[shadow.lines()].fill(0);
    }

    /// Whether one more block of so many bytes is better changed in place: there is no room for its
    /// copy, or there are many copies, and blocks are looked at so often that finding out which of them
    /// have one, and keeping both in the cache, costs more than a fence for each of those to come.
    pub(crate) fn are_enough(&self, bytes: u64, looks: u64) -> bool {
        let used = self.used * LINE_BYTES;
        used + bytes as usize > self.bytes_max
            || used > self.bytes_max / MANY && looks / LOOKS_MANY > self.made
    }

    /// Copies a block, but for the range `skipped` of it.
    pub(crate) fn add(
        &mut self,
        original: Original,
        block: &[u8],
        skipped: std::ops::Range<usize>,
    ) -> Shadow {
        let shadow = copy_of(original, 0);
        let shadow = Shadow { first: self.take(shadow.lines().len()), ..shadow };
        self.made += 1;
        self.written[shadow.lines()].fill(0);
        let target = self.bytes_mut(shadow);
        target[..skipped.start].copy_from_slice(&block[..skipped.start]);
        target[skipped.end..].copy_from_slice(&block[skipped.end..]);
        shadow
    }

    /// Copies a copy, for a level within its own.
    pub(crate) fn add_copy(&mut self, outer: Shadow) -> Shadow {
        let shadow = Shadow { first: self.take(outer.lines().len()), ..outer };
        self.replace(shadow, outer);
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

    /// The bytes of a range that [`ShadowMemory::spans`] told of.
    #[inline]
    pub(crate) fn span(&self, span: Span) -> &[u8] {
        &self.lines.as_bytes()[span.from..][..span.bytes]
    }

    /// Tells of what was written to the copy of the block at a heap offset: each range and its bytes,
    /// in order. Ranges are joined over lines.
    pub(crate) fn spans(&self, offset: u64, shadow: Shadow, mut span: impl FnMut(Span, &[u8])) {
        let lines = shadow.lines();
        let bytes = self.lines[lines.clone()].as_bytes();
        let line_offset = offset - u64::from(shadow.start);
        let first = lines.start * LINE_BYTES;
        let (mut start, mut end) = (0, 0);
        let mut give = |start: usize, end: usize| {
            if start < end {
                let (offset, from) = (line_offset + start as u64, first + start);
                span(Span { offset, from, bytes: end - start }, &bytes[start..end]);
            }
        };
        for (line, &written) in self.written[lines].iter().enumerate() {
            if written == 0 {
                continue;
            }
            if written == u64::MAX && end == line * LINE_BYTES {
                end += LINE_BYTES;
                continue;
            }
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
    pub(crate) fn merge(
        &mut self,
        inner: &mut Shadows,
        outer: &mut Shadows,
        mark: usize,
        classes: &ClassTable,
    ) {
        let mut is_spare = true;
        for (original, shadow) in inner.all(classes) {
            match outer.get(original) {
                Some(target) => self.replace(target, shadow),
                None => {
                    outer.insert(original, shadow);
                    is_spare = false;
                }
            }
        }
        inner.clear();
        // A loop of savepoints that write the same blocks needs no more memory than one of them.
        if is_spare {
            self.truncate(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::initial_table;
    use crate::layout::PAGE_BYTES;

    /// A block of at least so many bytes.
    fn original(classes: &ClassTable, bytes: u64, index: u64) -> Original {
        let class = classes.for_bytes(bytes).expect("a class");
        let shape = classes.get(class.into()).expect("it exists");
        let (run, bytes) = (1000 + 1000 * u64::from(class), shape.block_bytes);
        let index = index % shape.block_count;
        let offset = run * PAGE_BYTES + shape.blocks_start + index * bytes;
        Original { offset, bytes, run, index, class }
    }

    #[test]
    fn a_copy_is_a_block_with_a_memory_of_what_was_written() {
        let classes = initial_table();
        let mut random = fastrand::Rng::with_seed(21);
        let mut memory = ShadowMemory::new(1 << 20);
        for round in 0..300 {
            if round % 50 == 49 {
                memory.truncate(0);
            }
            let original = original(&classes, random.u64(8..600), random.u64(..200));
            let block: Vec<u8> = (0..original.bytes).map(|_| random.u8(..)).collect();
            let shadow = memory.add(original, &block, 0..0);
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
                memory.spans(original.offset, shadow, |span, bytes| {
                    let at = span.offset;
                    assert_eq!(memory.span(span), bytes);
                    assert!(last.is_none_or(|last| last < at), "in order, and joined");
                    last = Some(at + bytes.len() as u64);
                    let at = (at - original.offset) as usize;
                    assert_eq!(bytes, &model[at..at + bytes.len()]);
                    found[at..at + bytes.len()].fill(true);
                });
                assert_eq!(found, written);
            }
        }
    }

    #[test]
    fn copies_are_found_by_what_they_are_of() {
        let classes = initial_table();
        let mut random = fastrand::Rng::with_seed(23);
        let (mut memory, mut shadows) = (ShadowMemory::new(1 << 20), Shadows::default());
        let mut model = std::collections::BTreeMap::new();
        for step in 0..5000 {
            let original = match random.u8(..20) {
                0 => Original::roots(64, 128),
                _ => original(&classes, [8, 64, 4000][random.usize(..3)], random.u64(..150)),
            };
            let known = shadows.get(original).map(|shadow| memory.bytes(shadow)[..8].to_vec());
            assert_eq!(known, model.get(&original.offset).cloned(), "step {step}");
            if known.is_none() {
                let block = vec![step as u8; original.bytes as usize];
                shadows.insert(original, memory.add(original, &block, 0..0));
                model.insert(original.offset, block[..8].to_vec());
            } else if original.run > 0 && random.bool() {
                shadows.remove(original);
                model.remove(&original.offset);
            }
        }
        let mut all: Vec<u64> =
            shadows.all(&classes).map(|(original, _)| original.offset).collect();
        all.sort_unstable();
        assert!(all.iter().eq(model.keys()));
        let (roots, words) = shadows.words(&classes);
        let blocks = words.flat_map(|(_, at)| shadows.of_word(at, &classes).collect::<Vec<_>>());
        let mut words: Vec<u64> = blocks.map(|(block, _)| block).collect();
        words.extend(roots.map(|(original, _)| original.offset));
        words.sort_unstable();
        assert_eq!(words, all);
    }

    #[test]
    fn a_level_that_ends_hands_over_or_gives_up() {
        let classes = initial_table();
        let mut memory = ShadowMemory::new(1 << 20);
        let (mut outer, mut inner) = (Shadows::default(), Shadows::default());
        let (one, two) = (original(&classes, 32, 2), original(&classes, 8, 4));
        let first = memory.add(one, &[1; 32], 0..0);
        outer.insert(one, first);
        for round in 0..1000 {
            let mark = memory.mark();
            let copy = memory.add_copy(first);
            memory.write(copy, 0, 4).fill(round as u8);
            inner.insert(one, copy);
            memory.merge(&mut inner, &mut outer, mark, &classes);
            assert_eq!(memory.mark(), mark, "nothing is kept");
            let byte = round as u8;
            assert_eq!(memory.bytes(first)[..5], [byte, byte, byte, byte, 1]);
        }
        let mark = memory.mark();
        inner.insert(two, memory.add(two, &[2; 8], 0..0));
        memory.merge(&mut inner, &mut outer, mark, &classes);
        assert_eq!(outer.get(two).map(|shadow| memory.bytes(shadow)), Some(&[2; 8][..]));
        assert!(inner.is_empty());
    }
}
