//! The private image of the pool: the memory that a heap lives in.
//!
//! Purpose: turn heap offsets into bytes. Everything above works with offsets, so this file and
//! `pages.rs` hold all the address arithmetic of the heap.
//! Invariants: data pages `0..pages` and their descriptors are readable and writable memory; a
//! pool file's bytes are under the pages that existed at open, anonymous memory under the rest.
//! Thread safety: shared access reads, exclusive access (`&mut self`) writes (S1). The image is
//! kept in a lock by `heap.rs`; nothing here synchronises.

use std::sync::Arc;

use adamant_medium::region::Region;
use adamant_medium::storage::File;
use adamant_wire::le::u64_at;
use zerocopy::FromBytes;

use crate::class::{Class, ClassTable};
use crate::error::{Error, Result};
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, FIRST_PAGE, HEAP_BYTES_MAX, HeapRoot, KIND_EXTENT, KIND_RUN,
    KIND_RUN_CONTINUED, PAGE_BYTES, ROOT_OFFSET, TABLE_BASE, ZONE_BYTES, ZONE_PAGES, file_offset,
};

/// Memory is made usable in steps of a huge page, so that a first touch can fill a whole one:
/// 2 MiB in one fault instead of 512 (2-4 us each).
const STEP_BYTES: u64 = 2 << 20;

/// The memory of a heap.
#[derive(Debug)]
pub(crate) struct Image {
    data: Region,
    tables: Region,
    pages: u64,
}

impl Image {
    /// Reserves address space for a heap of up to `bytes_max` bytes, or as much as is granted,
    /// and at least `pages` pages; then maps the first `pages` pages of the pool file.
    pub(crate) fn map(pool: &Arc<dyn File>, pages: u64, bytes_max: u64) -> Result<Self> {
        let bytes_min = (pages * PAGE_BYTES).max(ZONE_BYTES);
        let bytes_max = bytes_max.min(HEAP_BYTES_MAX).max(bytes_min);
        let data = Region::reserve(bytes_max, bytes_min)?;
        let table_bytes = data.bytes() / PAGE_BYTES * DESCRIPTOR_BYTES;
        let tables = Region::reserve(table_bytes, table_bytes)?;
        let image = Self { data, tables, pages };
        let mut first = 0;
        while first < pages {
            let count = (pages - first).min(ZONE_PAGES);
            let table = TABLE_BASE + first * DESCRIPTOR_BYTES;
            let table_len = (count * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
            // SAFETY: the regions were reserved above, no reference into them exists yet.
            unsafe {
                pool.map_private(&image.tables, table - TABLE_BASE, file_offset(table), table_len)?;
            }
            let data = first * PAGE_BYTES;
            // SAFETY: as above.
            unsafe { pool.map_private(&image.data, data, file_offset(data), count * PAGE_BYTES)? };
            first += count;
        }
        Ok(image)
    }

    /// Data pages that exist.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Data pages that the reserved address range can hold.
    pub(crate) fn pages_max(&self) -> u64 {
        self.data.bytes() / PAGE_BYTES
    }

    /// Makes data pages up to `pages` exist, zeroed. The file must already back them.
    pub(crate) fn grow(&mut self, pages: u64) -> Result<()> {
        if pages > self.pages_max() {
            return Err(Error::TooLarge {
                bytes: pages * PAGE_BYTES,
                bytes_max: self.pages_max() * PAGE_BYTES,
            });
        }
        Self::commit(&self.data, self.pages * PAGE_BYTES, pages * PAGE_BYTES)?;
        let table = |pages: u64| (pages * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
        Self::commit(&self.tables, table(self.pages), table(pages))?;
        self.pages = pages;
        Ok(())
    }

    fn commit(region: &Region, start: u64, end: u64) -> Result<()> {
        let end = end.next_multiple_of(STEP_BYTES).min(region.bytes());
        if start < end {
            region.commit(start, end - start)?;
        }
        Ok(())
    }

    /// The region and the offset in it of `len` bytes at a heap offset, if they exist.
    #[inline]
    fn resolve(&self, offset: u64, len: u64) -> Option<(&Region, usize)> {
        let (region, start, end) = if offset < TABLE_BASE {
            (&self.data, offset, self.pages * PAGE_BYTES)
        } else {
            // Whole pages, as they are verified; descriptors of pages beyond the heap are zero.
            let end = (self.pages * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
            (&self.tables, offset - TABLE_BASE, end)
        };
        let exists = start.checked_add(len).is_some_and(|stop| stop <= end);
        exists.then_some((region, start as usize))
    }

    /// `len` bytes at a heap offset.
    #[inline]
    pub(crate) fn bytes(&self, offset: u64, len: u64) -> Result<&[u8]> {
        let Some((region, start)) = self.resolve(offset, len) else {
            return Err(Error::InvalidPointer { offset, what: "lies beyond the heap" });
        };
        // SAFETY: `resolve` found the range below `pages`, so it lies within the reservation.
        let pointer = unsafe { region.base().as_ptr().add(start) };
        // SAFETY: the range is committed memory, initialised (file bytes or zero); it is written
        // only through `&mut self`, which the returned shared borrow of `self` excludes.
        Ok(unsafe { std::slice::from_raw_parts(pointer, len as usize) })
    }

    /// `len` bytes at a heap offset, for writing.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, offset: u64, len: u64) -> Result<&mut [u8]> {
        let Some((region, start)) = self.resolve(offset, len) else {
            return Err(Error::InvalidPointer { offset, what: "lies beyond the heap" });
        };
        // SAFETY: `resolve` found the range below `pages`, so it lies within the reservation.
        let pointer = unsafe { region.base().as_ptr().add(start) };
        // SAFETY: the range is committed, initialised memory, and the returned borrow of `self`
        // is exclusive: nobody else reads or writes the image while it lives.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len as usize) })
    }

    /// Asks the processor to load the cache line at a heap offset.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        if offset < self.pages * PAGE_BYTES {
            self.data.prefetch(offset);
        }
    }

    /// The descriptor of a data page.
    #[inline]
    pub(crate) fn descriptor(&self, page: u64) -> Result<Descriptor> {
        let bytes = self.bytes(TABLE_BASE + page * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES)?;
        Descriptor::read_from_bytes(bytes).map_err(|_| Error::InvalidPointer {
            offset: page * PAGE_BYTES,
            what: "has no descriptor",
        })
    }

    /// All bytes of the block of a run that starts at `offset`: what [`Image::locate`] would find,
    /// for the blocks that nearly all dereferences go to. `None` says nothing but "ask `locate`".
    #[inline]
    pub(crate) fn run_block(&self, classes: &ClassTable, offset: u64) -> Option<&[u8]> {
        let page = offset / PAGE_BYTES;
        if page >= self.pages {
            return None;
        }
        // SAFETY: the tables hold 8 bytes for each of `pages` pages, and `page` is one of them.
        let word = unsafe { self.tables.base().cast::<[u8; 8]>().add(page as usize) };
        // SAFETY: committed, initialised memory of alignment 1, written only through `&mut self`.
        let word = u64::from_le_bytes(unsafe { word.read() });
        let back = match word as u8 {
            KIND_RUN => 0,
            KIND_RUN_CONTINUED => word >> 32,
            _ => return None,
        };
        let shape = classes.get((word >> 16) as u16)?;
        // A distance beyond the start wraps around, and then lies beyond the end.
        let run = page.wrapping_sub(back);
        if run >= self.pages || run < FIRST_PAGE || run + shape.run_pages > self.pages {
            return None;
        }
        shape.index_at(offset - run * PAGE_BYTES)?;
        // SAFETY: a block that `index_at` knows lies within its run (`ClassTable::load` checked
        // that for the class), and the run lies below `pages`.
        let pointer = unsafe { self.data.base().as_ptr().add(offset as usize) };
        // SAFETY: committed, initialised memory, written only through `&mut self`, which the
        // returned shared borrow of `self` excludes.
        Some(unsafe { std::slice::from_raw_parts(pointer, shape.block_bytes as usize) })
    }

    /// Where the block that starts at `offset` lies: its capacity in bytes and its place.
    /// O(1): one load from the descriptor table, no division.
    pub(crate) fn locate(&self, classes: &ClassTable, offset: u64) -> Result<Place> {
        let invalid = |what| Error::InvalidPointer { offset, what };
        let page = offset / PAGE_BYTES;
        if page >= self.pages {
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
                    .filter(|run| *run >= FIRST_PAGE && run + shape.run_pages <= self.pages);
                let Some(run) = run else {
                    return Err(invalid("is in a run that is cut off"));
                };
                let Some(index) = shape.index_at(offset - run * PAGE_BYTES) else {
                    return Err(invalid("is not the start of a block"));
                };
                Ok(Place::Run { run, class: class as u8, index, bytes: shape.block_bytes })
            }
            KIND_EXTENT if argument == 0 || page + argument > self.pages => {
                Err(invalid("is in an extent that is cut off"))
            }
            KIND_EXTENT if offset.is_multiple_of(PAGE_BYTES) => {
                Ok(Place::Extent { page, pages: argument })
            }
            KIND_EXTENT => Err(invalid("is not the start of an extent")),
            _ => Err(invalid("is not in use")),
        }
    }

    /// The bitmap of the run at a page: one set bit for every allocated block.
    pub(crate) fn bitmap(&self, run: u64, shape: &Class) -> Result<Vec<u64>> {
        if shape.bitmap_in_descriptor {
            return Ok(vec![u64::from(self.descriptor(run)?.argument.get())]);
        }
        let bytes = self.bytes(run * PAGE_BYTES, shape.bitmap_words() as u64 * 8)?;
        Ok((0..shape.bitmap_words()).filter_map(|i| u64_at(bytes, i * 8)).collect())
    }

    /// The root page.
    pub(crate) fn root(&self) -> Result<&HeapRoot> {
        let bytes = self.bytes(ROOT_OFFSET, size_of::<HeapRoot>() as u64)?;
        HeapRoot::ref_from_bytes(bytes).map_err(|_| Error::InvalidPointer {
            offset: ROOT_OFFSET,
            what: "is not the root page",
        })
    }

    /// Changes bits of the word at a heap offset.
    pub(crate) fn change_bits(&mut self, word: u64, set: u64, clear: u64) -> Result<()> {
        let bytes = self.bytes_mut(word, 8)?;
        let word = zerocopy::little_endian::U64::mut_from_bytes(bytes)
            .map_err(|_| Error::InvalidPointer { offset: word, what: "is not a word" })?;
        word.set((word.get() | set) & !clear);
        Ok(())
    }
}

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Block `index` of the run that starts at page `run`.
    Run {
        /// First page of the run.
        run: u64,
        /// Its class.
        class: u8,
        /// Which block.
        index: u64,
        /// Bytes of a block.
        bytes: u64,
    },
    /// An extent.
    Extent {
        /// Its first page.
        page: u64,
        /// Its pages.
        pages: u64,
    },
}

impl Place {
    /// Bytes that the block can hold.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Run { bytes, .. } => *bytes,
            Self::Extent { pages, .. } => pages * PAGE_BYTES,
        }
    }
}
