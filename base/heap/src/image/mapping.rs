//! The image of the pool: the memory that a heap lives in.
//!
//! Purpose: turn heap offsets into bytes. Everything above works with offsets, so this file holds
//! the address arithmetic of the heap.
//! Invariants: data pages `0..pages` and their descriptors are readable and writable memory. A
//! private mapping of the file is under the pages that existed at open, anonymous memory under the
//! rest until it is dropped (`evictor.rs`): stores never reach the file. A page is touched
//! (`page_state.rs`) before each store to it. Of a filled image all memory is anonymous, and a page
//! is verified (`page_state.rs`), which reads it, before each access to it (`filled.rs`).
//! Thread safety: bytes of blocks and of the roots are read under the image latch and written under
//! its exclusive guard (S1), `guards.rs`. Exceptions are blocks of an open run and free
//! pages, which belong to the thread that reserved them until they are published. Words of the
//! allocator (descriptors, bitmaps, the end of the pages) are atomics everywhere, and no reference
//! is ever made over them: threads change them under the shared latch and without any.

pub(crate) mod guards;
mod locate;
pub(crate) mod words;

use std::cell::UnsafeCell;
use std::ops::{Range, RangeInclusive};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::address::region::Region;
use adamant_medium::fork::ForkGuard;
use adamant_medium::storage::File;
use adamant_medium::system::memory_limit::process_memory_bytes;

use crate::error::{Error, Result};
use crate::image::before_images::BeforeImages;
use crate::image::kind::ImageKind;
use crate::image::memory_bounds::Bounds;
use crate::image::page_state::{Memory, Pages};
use crate::image::pool_file::page_checksums::verify_pages;
use crate::latch::image_latch::ImageLatch;
use crate::layout::{
    DESCRIPTOR_BYTES, HEAP_BYTES_MAX, PAGE_BYTES, TABLE_BASE, ZONE_BYTES, ZONE_PAGES,
    descriptor_offset, file_offset,
};

/// Memory is made usable in steps of a huge page, so that a first touch can fill a whole one:
/// 2 MiB in one fault instead of 512 (2-4 us each).
const STEP_BYTES: u64 = 2 << 20;
/// Addresses that a heap reserves by default: this many, or `ADDRESS_FACTOR` times what it has. A
/// process has 128 TiB, and may have a thousand stores.
const ADDRESS_BYTES: u64 = if cfg!(test) { ZONE_BYTES } else { 64 << 30 };
const ADDRESS_FACTOR: u64 = if cfg!(test) { 1 } else { 16 };
/// The memory of a heap.
#[derive(Debug)]
pub(crate) struct Image {
    data: Region,
    tables: Region,
    /// Whether more addresses are taken when these are used up.
    is_extended: bool,
    pages: AtomicU64,
    latch: ImageLatch,
    before: Guarded,
    states: Arc<Pages>,
    /// Whether memory that was stored to is given back.
    is_bounded: bool,
    /// Whether pages are worth touching ahead of use.
    can_touch: bool,
    is_filled: bool,
    /// Bytes above which the data may not stay in memory, so that pages are read one by one.
    random_bytes_min: u64,
    /// The file that the image was mapped from.
    file: Arc<dyn File>,
}

/// The before-images of the running transaction, behind the latch.
#[derive(Debug, Default)]
struct Guarded(UnsafeCell<BeforeImages>);

// SAFETY: the cell is reached through `Shared` and `Exclusive` alone: changed by the thread that
// has the image exclusively and has admitted no reader, read by that thread and by admitted
// readers.
unsafe impl Sync for Guarded {}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<BeforeImages>();
};

impl Image {
    /// Reserves address space for a heap of up to `bytes_max` bytes (`u64::MAX`: in proportion to
    /// what there is), or as much as is granted, and at least `pages` pages; then maps the first
    /// `pages` pages of the pool file, or has memory for them. Within bounds memory is given back,
    /// if the medium can.
    pub(crate) fn map(
        pool: &Arc<dyn File>,
        pages: u64,
        bytes_max: u64,
        bounds: Bounds,
        kind: ImageKind,
    ) -> Result<Self> {
        let bytes_min = (pages * PAGE_BYTES).max(ZONE_BYTES);
        let is_extended = bytes_max == u64::MAX;
        let bytes_max = match bytes_max {
            u64::MAX => bytes_min.saturating_mul(ADDRESS_FACTOR).max(ADDRESS_BYTES),
            bytes_max => bytes_max,
        };
        let bytes_max = bytes_max.min(HEAP_BYTES_MAX).max(bytes_min);
        let reserve = if is_extended { Region::reserve_growing } else { Region::reserve };
        let data = reserve(bytes_max, bytes_min)?;
        let table_bytes = data.bytes() / PAGE_BYTES * DESCRIPTOR_BYTES;
        let tables = reserve(table_bytes, table_bytes)?;
        let is_filled = kind.is_filled();
        let is_bounded = bounds.are_any() && (is_filled || pool.drops_private());
        let can_touch = !(is_bounded && bounds.are_tight());
        let copied = if can_touch { pages } else { 0 };
        let pages_max = data.bytes() / PAGE_BYTES;
        let states = match is_filled {
            true => Pages::filled(pages_max),
            false => Pages::new(pages_max, copied),
        };
        // Half of it may be private memory; of a filled image, all of it is.
        let memory_bytes = process_memory_bytes().map_or(u64::MAX, |bytes| bytes / 2);
        let bound_bytes = if is_filled { bounds.memory_bytes_max } else { u64::MAX };
        let (pages, latch, before) =
            (AtomicU64::new(pages), ImageLatch::default(), Guarded::default());
        let file = Arc::clone(pool);
        let image = Self {
            data,
            tables,
            is_extended,
            pages,
            latch,
            before,
            states: Arc::new(states),
            is_bounded,
            can_touch,
            is_filled,
            random_bytes_min: memory_bytes.min(bound_bytes),
            file,
        };
        if is_filled {
            image.commit_pages(0, image.pages())?;
        } else {
            // SAFETY: the regions were reserved above, no reference into them exists yet.
            unsafe { image.map_pages(pool, image.pages())? };
        }
        image.expect_random_if_large();
        Ok(image)
    }

    /// Maps the first pages of the pool file and their descriptors, zone by zone.
    ///
    /// # Safety
    /// No reference into these pages or their descriptors exists.
    unsafe fn map_pages(&self, pool: &Arc<dyn File>, pages: u64) -> Result<()> {
        for first in (0..pages).step_by(ZONE_PAGES as usize) {
            let count = ZONE_PAGES.min(pages - first);
            let table = first * DESCRIPTOR_BYTES;
            let table_bytes = (count * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
            let parts = [
                (&self.tables, table, table_bytes, TABLE_BASE + table),
                (&self.data, first * PAGE_BYTES, count * PAGE_BYTES, first * PAGE_BYTES),
            ];
            for (region, at, len, offset) in parts {
                // SAFETY: our caller promises it.
                unsafe { pool.map_private(region, at, file_offset(offset), len)? };
            }
        }
        Ok(())
    }

    /// Tells whether this process is a fork's child of the one that has the image.
    #[inline]
    pub(crate) fn fork(&self) -> ForkGuard {
        self.data.fork()
    }

    /// Whether it was [given up](Exclusive::give_up). The caller holds the latch.
    pub(crate) fn is_given_up(&self) -> bool {
        self.pages() == 0
    }

    /// Data pages that exist; none once it was given up.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Acquire)
    }

    /// Data pages that the reserved address range can hold by now.
    pub(crate) fn pages_max(&self) -> u64 {
        (self.data.bytes() / PAGE_BYTES).min(self.tables.bytes() / DESCRIPTOR_BYTES)
    }

    /// Makes sure that there are addresses for `pages` data pages: doubles them, unless they are
    /// bounded, or other mappings occupy the addresses behind. Nothing moves.
    ///
    /// # Errors
    /// `Error::AddressesExhausted`.
    pub(crate) fn need_addresses(&self, pages: u64) -> Result<()> {
        if pages <= self.pages_max() {
            return Ok(());
        }
        if self.is_extended && pages <= HEAP_BYTES_MAX / PAGE_BYTES {
            let twice = (2 * self.pages_max()).min(HEAP_BYTES_MAX / PAGE_BYTES).max(pages);
            let extend = |pages: u64| {
                self.data.extend(pages * PAGE_BYTES)?;
                self.tables.extend(pages * DESCRIPTOR_BYTES)
            };
            // A shorter extension can use what a failed longer one left.
            let is_longer = extend(twice).is_ok() || extend(pages).is_ok();
            if is_longer && pages <= self.pages_max() {
                return Ok(());
            }
        }
        let (bytes, bytes_max) = (pages * PAGE_BYTES, self.pages_max() * PAGE_BYTES);
        Err(Error::AddressesExhausted { bytes, bytes_max })
    }

    /// Makes data pages up to `pages` exist, zeroed. The file must already back them. One thread at
    /// a time may call this.
    pub(crate) fn grow(&self, pages: u64) -> Result<()> {
        self.need_addresses(pages)?;
        let before = self.pages();
        if !self.is_filled {
            self.states.note_anonymous(before, pages);
        }
        self.commit_pages(before, pages)?;
        self.pages.store(pages, Ordering::Release);
        self.expect_random_if_large();
        Ok(())
    }

    /// Makes memory for some pages, and for their descriptors, usable.
    fn commit_pages(&self, before: u64, pages: u64) -> Result<()> {
        if !self.takes_memory_late() {
            Self::commit(&self.data, before * PAGE_BYTES, pages * PAGE_BYTES)?;
        }
        let table = |pages: u64| (pages * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
        Self::commit(&self.tables, table(before), table(pages))
    }

    fn expect_random_if_large(&self) {
        if self.is_larger_than_memory() {
            self.data.expect_random();
        }
    }

    /// Whether the data take more than half of the memory that the process may have.
    #[inline]
    pub(crate) fn is_larger_than_memory(&self) -> bool {
        self.pages() * PAGE_BYTES > self.random_bytes_min
    }

    /// The address of a page that exists, whether or not it is there.
    pub(super) fn page_address(&self, page: u64) -> Option<*mut u8> {
        let (region, start) = self.resolve(page * PAGE_BYTES, PAGE_BYTES)?;
        Some(region.base().as_ptr().wrapping_add(start))
    }

    /// The pool file.
    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Whether its pages are read by calls.
    #[inline]
    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled
    }

    /// Has a page count as verified, with what the file has of it, whatever its checksum says.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn accept(&self, page: u64) -> Result<()> {
        self.states.accept(page, self)
    }

    /// Whether pages are worth touching ahead of use: not within a tight bound, where they count.
    pub(crate) fn can_touch(&self) -> bool {
        self.can_touch
    }

    /// Has the system put memory behind some pages now rather than at the first store. No byte
    /// changes.
    pub(crate) fn populate(&self, offset: u64, len: u64) {
        if let Some((region, start)) = self.resolve(offset, len) {
            region.populate(start as u64, len);
        }
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
    pub(super) fn resolve(&self, offset: u64, len: u64) -> Option<(&Region, usize)> {
        let (region, start, end) = if offset < TABLE_BASE {
            (&self.data, offset, self.pages() * PAGE_BYTES)
        } else {
            // Whole pages, as they are verified; descriptors of pages beyond the heap are zero.
            let end = (self.pages() * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
            (&self.tables, offset - TABLE_BASE, end)
        };
        let exists = start.checked_add(len).is_some_and(|stop| stop <= end);
        exists.then_some((region, start as usize))
    }

    /// The address of `len` bytes at a heap offset, all of them in committed memory.
    #[inline]
    pub(crate) fn pointer(&self, offset: u64, len: u64) -> Result<NonNull<u8>> {
        let Some((region, start)) = self.resolve(offset, len) else {
            return Err(Error::InvalidPointer { offset, what: "lies beyond the heap" });
        };
        if self.is_filled {
            self.verify(offset, len)?;
        }
        // SAFETY: `resolve` found the range below `pages`, so it lies within the reservation.
        Ok(unsafe { region.base().add(start) })
    }

    /// `len` bytes at a heap offset: of the roots, or of a block.
    #[inline]
    pub(crate) fn bytes(&self, offset: u64, len: u64) -> Result<&[u8]> {
        let pointer = self.pointer(offset, len)?;
        // SAFETY: the range is committed memory, initialised (file bytes or zero). Only the thread
        // that has the image exclusively writes blocks and roots; a caller that holds the latch
        // shared excludes it, or the caller is that thread. Readers are refused blocks that others
        // have reserved (`Blocks::locate`), and words of the allocator are not asked for.
        Ok(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), len as usize) })
    }

    /// How many of some data pages this process has touched.
    pub(crate) fn touched_pages(&self, start: u64, pages: u64) -> u64 {
        self.data.touched_pages(start * PAGE_BYTES, pages * PAGE_BYTES)
    }

    /// The states of its pages.
    #[inline]
    pub(crate) fn states(&self) -> &Arc<Pages> {
        &self.states
    }

    /// The same, where memory is bounded.
    #[inline]
    pub(crate) fn bounded(&self) -> Option<&Pages> {
        self.is_bounded.then_some(&*self.states)
    }

    /// Touches the pages of `len` bytes at a heap offset that are about to be stored to, or to get
    /// a record: afterwards neither can fail.
    ///
    /// # Errors
    /// `Error::Damaged` naming a damaged page; those of the medium.
    #[inline]
    pub(crate) fn touch(&self, offset: u64, len: u64) -> Result<()> {
        self.states.touch(offset, len, self)
    }

    /// Verifies those pages of `len` bytes at a heap offset that are not verified yet. No block of
    /// these may be written meanwhile; blocks of verified pages may.
    ///
    /// # Errors
    /// `Error::Damaged` naming the page; those of the medium.
    #[inline]
    pub(crate) fn verify(&self, offset: u64, len: u64) -> Result<()> {
        self.states.verify(offset, len, self)
    }

    /// Verifies the descriptor of the block at `offset`, before it is trusted.
    #[inline]
    pub(crate) fn verify_descriptor(&self, offset: u64) -> Result<()> {
        let page = offset / PAGE_BYTES;
        if page >= self.pages() {
            return Ok(());
        }
        self.verify(descriptor_offset(page), 1)
    }

    /// Asks the processor to load the cache line at a heap offset, wherever that is: a lookup in a
    /// tree asks for some 25 lines, and only a damaged pointer leads out of the heap.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        self.data.prefetch(offset);
    }
}

impl Memory for Image {
    /// From the file: reading pages in memory would map them, and a store to a mapped page costs an
    /// interrupt to each processor that runs a thread of this process (25 us on a virtual machine),
    /// where two calls cost 1 us, and 6 us for 16 pages.
    fn verify(&self, pages: Range<u64>, whole: &mut dyn FnMut(u64)) -> Result<()> {
        self.need_memory(pages.start * PAGE_BYTES, (pages.end - pages.start) * PAGE_BYTES)?;
        verify_pages(&*self.file, pages, &mut |page, bytes| {
            if self.is_filled {
                self.put_page(page, bytes);
            }
            whole(page);
        })
    }

    fn around(&self, pages: &RangeInclusive<u64>) -> Option<RangeInclusive<u64>> {
        self.is_filled.then(|| self.group_around(pages))
    }

    fn fill(&self, page: u64) -> Result<()> {
        if self.is_filled { self.fill_page(page) } else { Ok(()) }
    }

    fn copy(&self, offset: u64, len: u64) {
        // SAFETY: pages that were mapped when the image was made and that no thread has stored to,
        // nor does before this is done: `Pages` guarantees it.
        unsafe { self.file.copy_private(&self.data, offset, len) };
    }
}
