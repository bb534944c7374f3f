//! A set of blocks that is asked about at every write.
//!
//! Purpose: whether a block was saved as a whole. A bit stands for each 8 bytes of the heap, where a
//! block may start; the bits of a page are one cache line, so that a question misses the cache once at
//! most, where a table of hashes misses it three times when there are many blocks.
//! Thread safety: belongs to the writer.

use crate::layout::PAGE_BYTES;

/// Words with a bit for each 8 bytes of a page.
const PAGE_WORDS: usize = PAGE_BYTES as usize / 8 / 64;
/// Pages of a chunk: 2 MiB of the heap, 32 KiB of bits.
const CHUNK_PAGES: u64 = 512;
/// Chunks that are kept for the next transaction, or savepoint, which has them emptied.
const CHUNKS_KEEP_MAX: usize = 4;

/// The bits of a page.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Page([u64; PAGE_WORDS]);

const _: () = assert!(size_of::<Page>() == 64);

type Chunk = Box<[Page]>;

/// Blocks, by their heap offsets.
#[derive(Debug, Default)]
pub(crate) struct BlockSet {
    /// By number; those without a block may be missing.
    chunks: Vec<Option<Chunk>>,
    /// Empty ones.
    spare: Vec<Chunk>,
}

/// Number of the chunk, of the page in it, of the word in that, and the bit.
#[inline]
fn place(offset: u64) -> (usize, usize, usize, u64) {
    let (page, at) = (offset / PAGE_BYTES, offset % PAGE_BYTES / 8);
    let (chunk, page) = (page / CHUNK_PAGES, page % CHUNK_PAGES);
    (chunk as usize, page as usize, at as usize / 64, 1 << (at % 64))
}

impl BlockSet {
    /// Whether the block at a heap offset is among them.
    #[inline]
    pub(crate) fn contains(&self, offset: u64) -> bool {
        let (chunk, page, word, bit) = place(offset);
        match self.chunks.get(chunk) {
            Some(Some(pages)) => pages[page].0[word] & bit != 0,
            _ => false,
        }
    }

    /// Adds the block at a heap offset.
    pub(crate) fn insert(&mut self, offset: u64) {
        let (chunk, page, word, bit) = place(offset);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let spare = &mut self.spare;
        let empty = || vec![Page([0; PAGE_WORDS]); CHUNK_PAGES as usize].into_boxed_slice();
        let pages = self.chunks[chunk].get_or_insert_with(|| spare.pop().unwrap_or_else(empty));
        pages[page].0[word] |= bit;
    }

    /// Hands everything to `outer`.
    pub(crate) fn merge_into(&mut self, outer: &mut Self) {
        if outer.chunks.len() < self.chunks.len() {
            outer.chunks.resize_with(self.chunks.len(), || None);
        }
        for (source, target) in self.chunks.iter_mut().zip(&mut outer.chunks) {
            match (source.take(), &mut *target) {
                (Some(source), Some(target)) => {
                    for (target, source) in target.iter_mut().zip(&source) {
                        for (target, source) in target.0.iter_mut().zip(source.0) {
                            *target |= source;
                        }
                    }
                }
                (Some(source), none) => *none = Some(source),
                (None, _) => {}
            }
        }
        self.chunks.clear();
    }

    /// Forgets everything, keeping a little memory.
    pub(crate) fn clear(&mut self) {
        for chunk in self.chunks.drain(..) {
            if let Some(mut pages) = chunk
                && self.spare.len() < CHUNKS_KEEP_MAX
            {
                pages.fill(Page([0; PAGE_WORDS]));
                self.spare.push(pages);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn holds_what_a_set_holds() {
        let mut random = fastrand::Rng::with_seed(71);
        let mut sets = [BlockSet::default(), BlockSet::default()];
        let mut models = [BTreeSet::new(), BTreeSet::new()];
        let offset = |random: &mut fastrand::Rng| {
            random.u64(..6) * (3 << 20) + random.u64(..4) * PAGE_BYTES + random.u64(..512) * 8
        };
        for round in 0..20_000 {
            let which = random.usize(..2);
            let block = offset(&mut random);
            assert_eq!(sets[which].contains(block), models[which].contains(&block));
            sets[which].insert(block);
            models[which].insert(block);
            let [set, outer] = &mut sets;
            let [model, outer_model] = &mut models;
            match random.u16(..1000) {
                0 => {
                    set.merge_into(outer);
                    outer_model.append(model);
                }
                1 => {
                    set.clear();
                    model.clear();
                }
                2..5 if round % 3 == 0 => {
                    outer.clear();
                    outer_model.clear();
                }
                _ => {}
            }
        }
    }
}
