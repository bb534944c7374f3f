//! Guards of the image: held shared, or exclusively.
//!
//! Purpose: what a thread may do with the image while it has the latch in either way.
//! Invariants: blocks and roots are changed through [`Exclusive`] alone, and only while no reader
//! is inside the latch.
//! Thread safety: a guard belongs to one thread.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant_medium::address::huge::HugePage;
use adamant_medium::storage::File;

use super::{Image, STEP_BYTES};
use crate::error::Result;
use crate::image::before_images::BeforeImages;
use crate::latch::image_latch::ExclusiveLatch;
use crate::latch::reader_slots::ReaderGuard;
use crate::latch::thread::thread_number;
use crate::layout::{PAGE_BYTES, ZONE_PAGES, ZONE_TABLE_PAGES, file_offset};

impl Image {
    /// Waits until no thread has the image exclusively; for a brief reader.
    #[inline]
    pub(crate) fn read(&self) -> Shared<'_> {
        Shared { image: self, latch: self.latch.read(thread_number()) }
    }

    /// The same, for as long as the caller wants: see [`ImageLatch::read_long`].
    #[inline]
    pub(crate) fn read_long(&self) -> Shared<'_> {
        Shared { image: self, latch: self.latch.read_long(thread_number()) }
    }

    /// Waits until no other thread has the image.
    #[inline]
    pub(crate) fn write(&self) -> Exclusive<'_> {
        Exclusive { image: self, latch: self.latch.write() }
    }

    /// The image exclusively, if no other thread has it. Never waits.
    pub(crate) fn try_write(&self) -> Option<Exclusive<'_>> {
        Some(Exclusive { image: self, latch: self.latch.try_write()? })
    }
}

/// The image, held shared: no thread has it exclusively, or the one that has it admits readers.
#[derive(Debug)]
pub(crate) struct Shared<'h> {
    image: &'h Image,
    latch: ReaderGuard<'h>,
}

impl Shared<'_> {
    /// The before-images, if a transaction is changing the image now.
    #[inline]
    pub(crate) fn before(&self) -> Option<&BeforeImages> {
        if !self.latch.is_early() {
            return None;
        }
        // SAFETY: the thread that has the image exclusively admitted readers, and changes no
        // before-image until this reader has left the latch, which it does after the borrow has
        // ended.
        let before = unsafe { &*self.image.before.0.get() };
        // Otherwise the writer has finished changing what readers see.
        before.is_whole().then_some(before)
    }

    /// Whether a writer waits for this reader to leave, as far as is known by now.
    #[inline]
    pub(crate) fn is_waited_for(&self) -> bool {
        self.latch.is_waited_for()
    }
}

impl Deref for Shared<'_> {
    type Target = Image;

    #[inline]
    fn deref(&self) -> &Image {
        self.image
    }
}

/// The image, held exclusively: no other thread has it, not even to read.
#[derive(Debug)]
pub(crate) struct Exclusive<'h> {
    image: &'h Image,
    latch: ExclusiveLatch<'h>,
}

impl Deref for Exclusive<'_> {
    type Target = Image;

    #[inline]
    fn deref(&self) -> &Image {
        self.image
    }
}

impl Exclusive<'_> {
    /// Whether readers wait.
    #[inline]
    pub(crate) fn are_readers_waiting(&self) -> bool {
        self.latch.are_readers_waiting()
    }

    /// Admits readers, until `drain_readers` or the next change. The before-images must be whole.
    pub(crate) fn admit_readers(&mut self) {
        debug_assert!(self.before().is_whole(), "readers see what was there before");
        self.latch.admit_readers();
    }

    /// Admits readers after a commit, until `drain_readers`: they see all changes, and nothing that
    /// they see changes any more.
    pub(crate) fn admit_after_commit(&mut self) {
        debug_assert!(!self.before().is_whole(), "readers see what is there");
        self.latch.admit_readers();
    }

    /// Admits all that wait, and waits until they have left. To be called when no change is half
    /// done.
    pub(crate) fn pause(&mut self) {
        self.latch.pause();
    }

    /// Waits until the admitted readers have left.
    #[inline]
    pub(crate) fn drain_readers(&mut self) {
        self.latch.drain_readers();
    }

    /// The before-images of the running transaction.
    #[inline]
    pub(crate) fn before(&self) -> &BeforeImages {
        // SAFETY: only the owner of `self`, through a unique borrow, changes them.
        unsafe { &*self.image.before.0.get() }
    }

    /// The same, for changing; drains readers first.
    #[inline]
    pub(crate) fn before_mut(&mut self) -> &mut BeforeImages {
        self.latch.drain_readers();
        // SAFETY: no reader is inside the latch, and `self` is borrowed exclusively.
        unsafe { &mut *self.image.before.0.get() }
    }

    /// `len` bytes at a heap offset, for writing: of the roots, or of a block that no other thread
    /// has reserved.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, offset: u64, len: u64) -> Result<&mut [u8]> {
        self.latch.drain_readers();
        let pointer = self.image.pointer(offset, len)?;
        self.image.touch(offset, len)?;
        // SAFETY: the range is committed, initialised memory. No other thread reads or writes a
        // byte of blocks and roots while the latch is held exclusively and readers are drained;
        // both need `self`, which the returned borrow keeps. Reservations of other threads, which
        // the latch does not guard, are other blocks.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), len as usize) })
    }

    /// Copies a block to the before-images, if it has no copy. Returns whether it did.
    pub(crate) fn keep_before(&mut self, block: u64, bytes: u64) -> bool {
        self.latch.drain_readers();
        let found = self.image.bytes(block, bytes);
        // SAFETY: no reader is inside the latch, and `self` is borrowed exclusively.
        let before = unsafe { &mut *self.image.before.0.get() };
        let Ok(bytes) = found else {
            before.give_up();
            return false;
        };
        before.keep(block, bytes)
    }

    /// Gives the memory up, except for some heap ranges, in order. Those become anonymous memory
    /// and stay until the image is dropped. To all other callers the image has no pages any more.
    ///
    /// # Errors
    /// `Error::Medium` when there is no memory for them; then nothing was given up.
    ///
    /// # Safety
    /// No reference to any other part of it exists, and those to these ranges are shared ones.
    pub(crate) unsafe fn give_up(&mut self, kept: &[(u64, u64)]) -> Result<()> {
        self.latch.drain_readers();
        let image = self.image;
        let mut pages: Vec<(u64, u64)> = Vec::with_capacity(kept.len());
        for &(start, end) in kept {
            let start = start - start % PAGE_BYTES;
            let end = end.next_multiple_of(PAGE_BYTES);
            match pages.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => pages.push((start, end)),
            }
        }
        // Of a filled image they are anonymous memory.
        for &(start, end) in pages.iter().filter(|_| !image.is_filled) {
            // SAFETY: the blocks exist; no thread stores to bytes with shared references.
            unsafe { image.data.keep(start, end - start)? };
        }
        // Later callers find that no page lies below the end.
        image.pages.store(0, Ordering::Release);
        // SAFETY: our caller promises it, and no caller that checks the end first gets a reference.
        unsafe { image.data.give_up(&pages) };
        // SAFETY: as above; no reference into the tables exists.
        unsafe { image.tables.give_up(&[]) };
        Ok(())
    }

    /// Has pages of `len` bytes at a heap offset read anew when they are next asked for: the file
    /// has others by now.
    pub(crate) fn forget(&mut self, offset: u64, len: u64) {
        self.latch.drain_readers();
        self.image.states.forget(offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
    }

    /// Removes data pages from `pages` on, whose descriptors are zero. The file may then be cut
    /// below them. Cut earlier, the next touch would raise a signal, also in a private mapping of
    /// the file, written to or not.
    pub(crate) fn cut(&mut self, pages: u64) -> Result<()> {
        self.latch.drain_readers();
        let image = self.image;
        let before = image.pages();
        if pages >= before {
            return Ok(());
        }
        image.states.cut(pages, before);
        image.pages.store(pages, Ordering::Release);
        // The table of the zone that becomes the last one stays: it lies before what is cut off.
        let table = |zones: u64| zones * ZONE_TABLE_PAGES * PAGE_BYTES;
        let tables = table(pages.div_ceil(ZONE_PAGES))..table(before.div_ceil(ZONE_PAGES));
        let data = pages * PAGE_BYTES..before * PAGE_BYTES;
        for (region, range) in [(&image.data, data), (&image.tables, tables)] {
            // Memory is made usable in steps, so more may be usable than is used.
            let end = range.end.next_multiple_of(STEP_BYTES).min(region.bytes());
            // SAFETY: no other thread has the image, and reservations, whose owners do not take the
            // latch, lie below. No caller was given an address beyond the pages there were.
            unsafe { region.release(range.start, end.saturating_sub(range.start))? };
        }
        Ok(())
    }

    /// Maps data pages of one zone from the file again. They lie below the end, and `is_mapped`
    /// says whether the file is behind them, whatever was stored to them since. Of a filled image
    /// they are gone until they are forgotten, and then read again.
    ///
    /// # Safety
    /// No thread stores to them, and no reference to any of their bytes exists.
    pub(crate) unsafe fn drop_pages(
        &mut self,
        pool: &Arc<dyn File>,
        (start, end): (u64, u64),
        is_mapped: bool,
    ) -> Result<()> {
        self.latch.drain_readers();
        debug_assert!(start < end && end <= self.pages(), "they exist");
        debug_assert_eq!(
            start / ZONE_PAGES,
            (end - 1) / ZONE_PAGES,
            "they are one range of the file"
        );
        let (at, len) = (start * PAGE_BYTES, (end - start) * PAGE_BYTES);
        let region = &self.image.data;
        if self.image.is_filled {
            // SAFETY: our caller promises it.
            return Ok(unsafe { region.discard(at, len) }?);
        }
        // SAFETY: our caller promises it.
        unsafe { pool.drop_private(region, at, file_offset(at), len, is_mapped)? };
        Ok(())
    }

    /// Maps a huge page in place of the data pages from a page on.
    ///
    /// # Safety
    /// As [`Exclusive::drop_pages`], with the huge page for the file.
    pub(crate) unsafe fn put_huge(&mut self, huge: &mut HugePage, start: u64) -> Result<()> {
        self.latch.drain_readers();
        // SAFETY: our caller promises it.
        Ok(unsafe { huge.put(&self.image.data, start * PAGE_BYTES) }?)
    }
}
