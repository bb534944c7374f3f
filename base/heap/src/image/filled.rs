//! The filled image: pages that are read by a call when they are first asked for.
//!
//! Purpose: an image where the pool file cannot be mapped, or should not be: every read of a page
//! passes its checksum, and fails by an error instead of a signal. `page_state.rs` decides which
//! pages are read, and has each read by one thread.
//! Invariants: bytes of a page are accessed only after its state says that it is verified, which
//! happens behind the copy. A page is gone (`evictor.rs`) only while no reference to it exists, no
//! thread has the image, and no reservation holds it.
//! Thread safety: any thread.

use std::ops::RangeInclusive;
use std::ptr;

use adamant_medium::address::region::IS_CHARGED_AT_COMMIT;
use adamant_medium::error::Error as MediumError;

use crate::error::Result;
use crate::image::mapping::Image;
use crate::image::page_state::GROUP_PAGES;
use crate::layout::{DESCRIPTOR_BYTES, PAGE_BYTES, TABLE_BASE, file_offset};

impl Image {
    /// Whether `len` bytes at a heap offset can be read without a call: always, where the system
    /// reads them.
    #[inline]
    pub(super) fn is_there(&self, offset: u64, len: u64) -> bool {
        !self.is_filled() || self.states().are_verified(offset, len)
    }

    /// The pages to read with some that are asked for: those of their groups, as 64 KiB take a
    /// device, and two calls, hardly longer; unless the pool is larger than the memory for it,
    /// where they would be gone before they are asked for.
    pub(super) fn group_around(&self, pages: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        if self.is_larger_than_memory() {
            return pages.clone();
        }
        let (first, last) = (*pages.start(), *pages.end());
        let end = match first < TABLE_BASE / PAGE_BYTES {
            true => self.pages(),
            false => (TABLE_BASE + self.pages() * DESCRIPTOR_BYTES).div_ceil(PAGE_BYTES),
        };
        let stop = (last - last % GROUP_PAGES + GROUP_PAGES).min(end).max(last + 1);
        first - first % GROUP_PAGES..=stop - 1
    }

    /// Has `len` bytes of pages at a heap offset count as verified, whatever is in memory.
    ///
    /// # Errors
    /// `Error::Medium` when there is no memory for them.
    pub(crate) fn note_verified(&self, offset: u64, len: u64) -> Result<()> {
        self.need_memory(offset, len)?;
        self.states().note_verified(offset, len);
        Ok(())
    }

    /// Takes memory for pages that are about to be there, where they do not have it yet.
    ///
    /// # Errors
    /// `Error::Medium` when there is none.
    pub(super) fn need_memory(&self, offset: u64, len: u64) -> Result<()> {
        if self.takes_memory_late()
            && let Some((region, start)) = self.resolve(offset, len)
        {
            region.commit(start as u64, len)?;
        }
        Ok(())
    }

    /// Whether pages take memory one by one, when they are read or allocated. Elsewhere all have it
    /// from the beginning: that is one call, and costs nothing before they are touched.
    pub(super) fn takes_memory_late(&self) -> bool {
        IS_CHARGED_AT_COMMIT && self.is_filled()
    }

    /// Puts a page where it belongs. Its state says that it is not there yet, and the lock for that
    /// is held.
    pub(super) fn put_page(&self, page: u64, bytes: &[u8]) {
        let Some(target) = self.page_address(page) else { return };
        debug_assert_eq!(bytes.len() as u64, PAGE_BYTES, "a page");
        // SAFETY: the page is committed memory. No thread accesses it before its state says that it
        // is verified, which our caller does behind this.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, PAGE_BYTES as usize) };
    }

    /// The same with what the file has of a page, whatever its checksum says.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn fill_page(&self, page: u64) -> Result<()> {
        let mut bytes = [0; PAGE_BYTES as usize];
        match self.file().read_with_lost_at(&mut bytes, file_offset(page * PAGE_BYTES)) {
            Err(MediumError::Truncated { .. }) => bytes.fill(0),
            read => read?,
        }
        self.need_memory(page * PAGE_BYTES, PAGE_BYTES)?;
        self.put_page(page, &bytes);
        Ok(())
    }
}
