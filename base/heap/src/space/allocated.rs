//! Iterator over all allocated blocks, in the order of their offsets.
//!
//! Purpose: walk descriptors and bitmaps for the leak scan and for occupancy maps.
//! Invariants: pages that are no run and no extent are skipped, as `check.rs` reports them. The
//! walk ends at the last page, whatever the descriptors say.

use crate::error::Result;
use crate::image::class::ClassTable;
use crate::image::mapping::Image;
use crate::layout::{FIRST_PAGE, KIND_EXTENT, KIND_RUN, PAGE_BYTES};

/// A walk over the allocated blocks of a heap: offset and bytes of each.
#[derive(Debug)]
pub(crate) struct Allocated<'a> {
    image: &'a Image,
    classes: &'a ClassTable,
    page: u64,
    end: u64,
    run: Option<Run>,
}

/// The rest of a run.
#[derive(Debug)]
struct Run {
    words: Vec<u64>,
    word: usize,
    first_block: u64,
    block_bytes: u64,
    block_count: u64,
}

impl Run {
    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let word = self.words.get_mut(self.word)?;
            if *word == 0 {
                self.word += 1;
                continue;
            }
            let index = self.word as u64 * 64 + u64::from(word.trailing_zeros());
            *word &= *word - 1;
            if index < self.block_count {
                return Some((self.first_block + index * self.block_bytes, self.block_bytes));
            }
        }
    }
}

impl<'a> Allocated<'a> {
    /// A walk over all blocks.
    pub(crate) fn blocks(image: &'a Image, classes: &'a ClassTable) -> Result<Self> {
        let end = image.pages_end()?.min(image.pages());
        Ok(Self { image, classes, page: FIRST_PAGE, end, run: None })
    }

    /// Looks at the next page; an extent is one block.
    fn advance(&mut self) -> Result<Option<(u64, u64)>> {
        let page = self.page;
        let descriptor = self.image.descriptor(page)?;
        self.page += 1;
        let left = self.end - page;
        match descriptor.kind {
            KIND_EXTENT => {
                let pages = u64::from(descriptor.argument.get());
                if (1..=left).contains(&pages) {
                    self.page = page + pages;
                    return Ok(Some((page * PAGE_BYTES, pages * PAGE_BYTES)));
                }
            }
            KIND_RUN => {
                let shape = self.classes.get(descriptor.class.get());
                if let Some(shape) = shape.filter(|shape| shape.run_pages <= left) {
                    self.page = page + shape.run_pages;
                    let word = |index| self.image.bitmap_word(page, shape, index);
                    self.run = Some(Run {
                        words: (0..shape.bitmap_words()).map(word).collect::<Result<_>>()?,
                        word: 0,
                        first_block: page * PAGE_BYTES + shape.blocks_start,
                        block_bytes: shape.block_bytes,
                        block_count: shape.block_count,
                    });
                }
            }
            _ => {}
        }
        Ok(None)
    }
}

impl Iterator for Allocated<'_> {
    type Item = Result<(u64, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(block) = self.run.as_mut().and_then(Run::next) {
                return Some(Ok(block));
            }
            self.run = None;
            if self.page >= self.end {
                return None;
            }
            if let Some(found) = self.advance().transpose() {
                return Some(found);
            }
        }
    }
}
