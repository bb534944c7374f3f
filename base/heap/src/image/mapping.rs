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

use std::cell::UnsafeCell;
use std::ops::{Range, RangeInclusive};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::address::region::Region;
use adamant_medium::fork::ForkGuard;
use adamant_medium::storage::File;
use adamant_medium::system::memory_limit::process_memory_bytes;
use zerocopy::FromBytes;

use crate::error::{Error, Result};
use crate::image::before_images::BeforeImages;
use crate::image::block_location::{BlockLocation, InRun};
use crate::image::class::{Class, ClassTable};
use crate::image::kind::ImageKind;
use crate::image::memory_bounds::Bounds;
use crate::image::page_state::{Memory, Pages};
use crate::image::pool_file::page_checksums::verify_pages;
use crate::latch::image_latch::ImageLatch;
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, FIRST_PAGE, FLAG_OPEN, HEAP_BYTES_MAX, KIND_EXTENT, KIND_RUN,
    KIND_RUN_CONTINUED, PAGE_BYTES, ROOT_COUNT, ROOT_OFFSET, ROOT_PAGES_END, ROOT_WORDS,
    TABLE_BASE, ZONE_BYTES, ZONE_PAGES, descriptor_offset, file_offset,
};

/// Memory is made usable in steps of a huge page, so that a first touch can fill a whole one:
/// 2 MiB in one fault instead of 512 (2-4 us each).
const STEP_BYTES: u64 = 2 << 20;
/// Addresses that a heap reserves by default: this many, or `ADDRESS_FACTOR` times what it has. A
/// process has 128 TiB, and may have a thousand stores.
const ADDRESS_BYTES: u64 = if cfg!(test) { ZONE_BYTES } else { 64 << 30 };
const ADDRESS_FACTOR: u64 = if cfg!(test) { 1 } else { 16 };
/// Kind and flags of the first page of a run that is not open, as they lie in its descriptor.
const RUN: u16 = KIND_RUN as u16;
/// The same of its later pages.
const RUN_CONTINUED: u16 = KIND_RUN_CONTINUED as u16;

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

    /// The word at a heap offset, a multiple of 8: for words of the allocator.
    #[inline]
    fn word(&self, offset: u64) -> Result<&AtomicU64> {
        debug_assert!(offset.is_multiple_of(8), "words are aligned");
        let pointer = self.pointer(offset, 8)?;
        // SAFETY: committed memory, aligned since regions are and the offset is, which lives as
        // long as `self`. While words belong to the allocator they are accessed only here; before
        // that, as part of free pages, they are not accessed at all.
        Ok(unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) })
    }

    /// The word of the allocator at a heap offset.
    #[inline]
    pub(crate) fn load_word(&self, offset: u64) -> Result<u64> {
        Ok(u64::from_le(self.word(offset)?.load(Ordering::Acquire)))
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

    /// Sets the word of the allocator at a heap offset.
    pub(crate) fn store_word(&self, offset: u64, value: u64) -> Result<()> {
        self.touch(offset, 8)?;
        self.word(offset)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    /// Copies the page at a heap offset out, whatever is on it, including words of the allocator.
    /// No block of the page may be written meanwhile.
    pub(crate) fn copy_page(&self, offset: u64) -> Result<[u8; PAGE_BYTES as usize]> {
        let mut copy = [0; PAGE_BYTES as usize];
        for (at, bytes) in (offset..).step_by(8).zip(copy.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&self.load_word(at)?.to_le_bytes());
        }
        Ok(copy)
    }

    /// Asks the processor to load the cache line at a heap offset, wherever that is: a lookup in a
    /// tree asks for some 25 lines, and only a damaged pointer leads out of the heap.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64) {
        self.data.prefetch(offset);
    }

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

    /// The word of root `index`; 0 when there is no such root.
    pub(crate) fn root(&self, index: usize) -> u64 {
        let Ok(offset) = root_offset(index) else { return 0 };
        let bytes = self.bytes(offset, 8).ok().and_then(|bytes| bytes.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// One past the last data page that was ever allocated.
    pub(crate) fn pages_end(&self) -> Result<u64> {
        self.load_word(ROOT_PAGES_END)
    }

    /// Changes bits of the word of the allocator at a heap offset.
    pub(crate) fn change_bits(&self, offset: u64, set: u64, clear: u64) -> Result<()> {
        self.touch(offset, 8)?;
        let word = self.word(offset)?;
        if set != 0 {
            word.fetch_or(set.to_le(), Ordering::Release);
        }
        if clear != 0 {
            word.fetch_and(!clear.to_le(), Ordering::Release);
        }
        Ok(())
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

/// Heap offset of the word of root `index`.
///
/// # Errors
/// `Error::Misuse` when there is no such root.
pub(crate) fn root_offset(index: usize) -> Result<u64> {
    if index >= ROOT_COUNT {
        return Err(Error::Misuse { what: "a heap has 16 roots, numbered from 0" });
    }
    Ok(ROOT_OFFSET + ROOT_WORDS + 8 * index as u64)
}
