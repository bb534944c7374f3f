//! From heap offsets to blocks: which run or extent an offset is the start of a block in (S3).
//!
//! Purpose: every dereference of an offset ends here. One load from the descriptor table, no
//! division.
//! Invariants: a damaged descriptor gives an error or another block of the heap, never an address
//! outside of it.
//! Thread safety: descriptors and bitmaps are atomics; bytes of blocks as in `mapping.rs`.

use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromBytes;

use super::Image;
use crate::error::{Error, Result};
use crate::image::block_location::{BlockLocation, InRun};
use crate::image::class::{Class, ClassTable};
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, FIRST_PAGE, FLAG_OPEN, KIND_EXTENT, KIND_RUN, KIND_RUN_CONTINUED,
    PAGE_BYTES, descriptor_offset,
};

/// Kind and flags of the first page of a run that is not open, as they lie in its descriptor.
const RUN: u16 = KIND_RUN as u16;
/// The same of its later pages.
const RUN_CONTINUED: u16 = KIND_RUN_CONTINUED as u16;

impl Image {
    /// The descriptor of a data page.
    #[inline]
    pub(crate) fn descriptor(&self, page: u64) -> Result<Descriptor> {
        let word = self.load_word(descriptor_offset(page))?;
        Descriptor::read_from_bytes(&word.to_le_bytes()).map_err(|_| Error::InvalidPointer {
            offset: page * PAGE_BYTES,
            what: "has no descriptor",
        })
    }

    /// All bytes of the block of a run that starts at `offset`: what [`Image::locate`] would find,
    /// for the blocks that nearly all dereferences go to. `None` only means: ask `locate`.
    #[inline]
    pub(crate) fn run_block(&self, classes: &ClassTable, offset: u64) -> Option<&[u8]> {
        let (_, _, shape) = self.run_of(classes, offset)?;
        if !self.is_there(offset, shape.block_bytes) {
            return None;
        }
        // SAFETY: a block that `run_of` knows lies within its run (`ClassTable::load` checked that
        // for the class), and the run lies below `pages`.
        let pointer = unsafe { self.data.base().as_ptr().add(offset as usize) };
        // SAFETY: committed, initialised memory. Only the thread that has the image exclusively
        // writes blocks of runs that are not open; callers exclude that thread, or are it.
        Some(unsafe { std::slice::from_raw_parts(pointer, shape.block_bytes as usize) })
    }

    /// The location of such a block.
    #[inline]
    pub(crate) fn in_run(&self, classes: &ClassTable, offset: u64) -> Option<InRun> {
        let (run, class, shape) = self.run_of(classes, offset)?;
        let index = shape.index_at(offset - run * PAGE_BYTES)?;
        Some(InRun { run, class: class as u8, index, bytes: shape.block_bytes })
    }

    /// The run in which a block starts at `offset`, unless it is an open one: its first page and
    /// its class.
    #[inline]
    fn run_of<'c>(&self, classes: &'c ClassTable, offset: u64) -> Option<(u64, u16, &'c Class)> {
        let page = offset / PAGE_BYTES;
        let pages = self.pages();
        if page >= pages || !self.is_there(descriptor_offset(page), DESCRIPTOR_BYTES) {
            return None;
        }
        // SAFETY: the tables hold 8 bytes for each of `pages` pages, and `page` is one of them.
        let word = unsafe { self.tables.base().cast::<AtomicU64>().add(page as usize) };
        // SAFETY: committed, initialised, aligned memory, which others access by atomics only.
        let word = u64::from_le(unsafe { word.as_ref() }.load(Ordering::Acquire));
        // Kind and flags at once: blocks of open runs are for `locate`.
        let back = match word as u16 {
            RUN => 0,
            RUN_CONTINUED => word >> 32,
            _ => return None,
        };
        let class = (word >> 16) as u16;
        let shape = classes.get(class)?;
        // A distance beyond the start wraps around, and then lies beyond the end.
        let run = page.wrapping_sub(back);
        if run >= pages || run < FIRST_PAGE || run + shape.run_pages > pages {
            return None;
        }
        shape.index_at(offset - run * PAGE_BYTES)?;
        Some((run, class, shape))
    }

    /// The location of the block that starts at `offset`, with its capacity in bytes. O(1): one
    /// load from the descriptor table, no division.
    pub(crate) fn locate(&self, classes: &ClassTable, offset: u64) -> Result<BlockLocation> {
        let invalid = |what| Error::InvalidPointer { offset, what };
        let page = offset / PAGE_BYTES;
        let pages = self.pages();
        if page >= pages {
            return Err(invalid("lies beyond the heap"));
        }
        if page < FIRST_PAGE {
            return Err(invalid("is on a page of the system"));
        }
        let descriptor = self.descriptor(page)?;
        let argument = u64::from(descriptor.argument.get());
        match descriptor.kind {
            KIND_RUN | KIND_RUN_CONTINUED => {
                let back = if descriptor.kind == KIND_RUN { 0 } else { argument };
                let class = descriptor.class.get();
                let Some(shape) = classes.get(class) else {
                    return Err(invalid("is in a run of an unknown class"));
                };
                let run = page
                    .checked_sub(back)
                    .filter(|run| *run >= FIRST_PAGE && run + shape.run_pages <= pages);
                let Some(run) = run else {
                    return Err(invalid("is in a run that is cut off"));
                };
                let Some(index) = shape.index_at(offset - run * PAGE_BYTES) else {
                    return Err(invalid("is not the start of a block"));
                };
                let is_open = descriptor.flags & FLAG_OPEN != 0;
                let bytes = shape.block_bytes;
                Ok(BlockLocation::Run { run, class: class as u8, index, bytes, is_open })
            }
            KIND_EXTENT if argument == 0 || page + argument > pages => {
                Err(invalid("is in an extent that is cut off"))
            }
            KIND_EXTENT if offset.is_multiple_of(PAGE_BYTES) => {
                Ok(BlockLocation::Extent { page, pages: argument })
            }
            KIND_EXTENT => Err(invalid("is not the start of an extent")),
            _ => Err(invalid("is not in use")),
        }
    }

    /// A word of the bitmap of the run at a page: one set bit for every allocated block.
    #[inline]
    pub(crate) fn bitmap_word(&self, run: u64, shape: &Class, index: usize) -> Result<u64> {
        let (word, shift) = shape.bitmap_word(run, index);
        Ok(self.load_word(word)? >> shift)
    }

    /// Whether the bitmap says that a block is allocated.
    pub(crate) fn is_allocated(&self, classes: &ClassTable, place: BlockLocation) -> Result<bool> {
        match place {
            BlockLocation::Extent { .. } => Ok(true),
            BlockLocation::Run { run, class, index, bytes, .. } => {
                self.is_allocated_in(classes, InRun { run, class, index, bytes })
            }
        }
    }

    /// The same for a block of a run.
    #[inline]
    pub(crate) fn is_allocated_in(&self, classes: &ClassTable, block: InRun) -> Result<bool> {
        let InRun { run, class, index, .. } = block;
        // A damaged descriptor may call a page a later page of a run when it follows none: its
        // bitmap would be bytes of another block.
        let first = self.descriptor(run)?;
        let class = u16::from(class);
        let Some(shape) = classes.get(class).filter(|_| first.is_run_of(class)) else {
            return Ok(false);
        };
        Ok(self.bitmap_word(run, shape, (index / 64) as usize)? >> (index % 64) & 1 != 0)
    }
}
