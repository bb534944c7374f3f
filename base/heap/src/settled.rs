//! Which pages need no verification any more.
//!
//! Purpose: R7. A page is verified against its checksum at most once: when the allocator loads it,
//! or, by option, when it is first touched. A page that this process has changed is not what the
//! file holds; the applier verifies the file's before it lays the change over it.
//! Thread safety: bits are only ever set, from any thread. A page is verified by one thread at a
//! time, and before any of its blocks is handed out: so nobody reads a page for its checksum while
//! a block of it is filled.

use std::sync::atomic::{AtomicU64, Ordering};

use adamant_wire::mutants::is_planted;
use parking_lot::Mutex;

use crate::error::Result;
use crate::image::Image;
use crate::layout::{PAGE_BYTES, TABLE_BASE, ZONE_PAGES, ZONE_TABLE_PAGES, descriptor_offset};
use crate::pool_file::PoolFile;
use crate::zones::Zones;

/// Words of the bits of a zone: its data pages, then the pages of its descriptors.
const ZONE_WORDS: usize = ((ZONE_PAGES + ZONE_TABLE_PAGES) / 64) as usize;

/// The bits of a zone: 8 KiB, made when one of them is first set.
type Zone = Box<[AtomicU64; ZONE_WORDS]>;

/// One bit for every page of a heap.
#[derive(Debug)]
pub(crate) struct Settled {
    zones: Zones<Zone>,
    verifying: Mutex<()>,
}

impl Settled {
    /// All pages of a heap with addresses for `pages_max` pages, none settled.
    pub(crate) fn new(pages_max: u64) -> Self {
        let zones = Zones::new(pages_max.div_ceil(ZONE_PAGES));
        Self { zones, verifying: Mutex::new(()) }
    }

    /// Zone, word and bit of the page at a heap offset.
    #[inline]
    fn place(offset: u64) -> (usize, usize, u64) {
        let (zone, index) = match offset.checked_sub(TABLE_BASE) {
            Some(table) => {
                let page = table / PAGE_BYTES;
                (page / ZONE_TABLE_PAGES, ZONE_PAGES + page % ZONE_TABLE_PAGES)
            }
            None => {
                let page = offset / PAGE_BYTES;
                (page / ZONE_PAGES, page % ZONE_PAGES)
            }
        };
        (zone as usize, (index / 64) as usize, 1 << (index % 64))
    }

    /// Whether the page at a heap offset is settled.
    #[inline]
    pub(crate) fn is_settled(&self, offset: u64) -> bool {
        let (zone, word, bit) = Self::place(offset);
        let words = self.zones.get(zone);
        let word = words.and_then(|words| words.get(word));
        word.is_some_and(|word| word.load(Ordering::Acquire) & bit != 0)
    }

    /// Settles the pages of `len` bytes at a heap offset.
    #[inline]
    pub(crate) fn settle(&self, offset: u64, len: u64) {
        let mut page = offset - offset % PAGE_BYTES;
        while page < offset + len {
            let (zone, word, bit) = Self::place(page);
            let none = || Box::new([const { AtomicU64::new(0) }; ZONE_WORDS]);
            if let Some(words) = self.zones.get_or_make(zone, none) {
                // Looked at first: a locked instruction costs more than the rest of this.
                if let Some(word) = words.get(word)
                    && word.load(Ordering::Relaxed) & bit == 0
                {
                    word.fetch_or(bit, Ordering::Release);
                }
            }
            page += PAGE_BYTES;
        }
    }

    /// Verifies those pages of `len` bytes at a heap offset that are not settled, and settles them.
    ///
    /// # Errors
    /// `Error::Damaged` naming the page; those of the medium.
    pub(crate) fn verify(
        &self,
        pool: &PoolFile,
        image: &Image,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        if is_planted("R7.no-page-is-judged-when-first-loaded") {
            return Ok(());
        }
        let mut page = offset - offset % PAGE_BYTES;
        while page < offset + len {
            if !self.is_settled(page) {
                self.verify_one(pool, image, page)?;
            }
            page += PAGE_BYTES;
        }
        Ok(())
    }

    #[cold]
    fn verify_one(&self, pool: &PoolFile, image: &Image, page: u64) -> Result<()> {
        let _verifying = self.verifying.lock();
        if !self.is_settled(page) {
            pool.verify_page(page, &image.copy_page(page)?)?;
            self.settle(page, PAGE_BYTES);
        }
        Ok(())
    }
}

/// Verifies pages when they are first touched: for heaps that are opened with that option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstTouch<'h> {
    settled: &'h Settled,
    pool: &'h PoolFile,
}

impl<'h> FirstTouch<'h> {
    pub(crate) fn new(settled: &'h Settled, pool: &'h PoolFile) -> Self {
        Self { settled, pool }
    }

    /// Verifies the descriptor of the block at `offset`, before it is believed.
    #[inline]
    pub(crate) fn descriptor(&self, image: &Image, offset: u64) -> Result<()> {
        let page = offset / PAGE_BYTES;
        if page >= image.pages() {
            return Ok(());
        }
        self.settled.verify(self.pool, image, descriptor_offset(page), 1)
    }

    /// Verifies a block.
    #[inline]
    pub(crate) fn block(&self, image: &Image, offset: u64, len: u64) -> Result<()> {
        self.settled.verify(self.pool, image, offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_bit_of_its_own() {
        let settled = Settled::new(3 * ZONE_PAGES);
        let offsets = [
            0,
            PAGE_BYTES,
            63 * PAGE_BYTES,
            64 * PAGE_BYTES,
            (ZONE_PAGES - 1) * PAGE_BYTES,
            ZONE_PAGES * PAGE_BYTES,
            2 * ZONE_PAGES * PAGE_BYTES,
            descriptor_offset(0),
            descriptor_offset(512),
            descriptor_offset(ZONE_PAGES - 1),
            descriptor_offset(ZONE_PAGES),
        ];
        for (index, offset) in offsets.iter().enumerate() {
            assert!(!settled.is_settled(*offset), "{offset:#x}");
            settled.settle(*offset, 1);
            for (other, after) in offsets.iter().enumerate() {
                assert_eq!(settled.is_settled(*after), other <= index, "{after:#x}");
            }
        }
        settled.settle(PAGE_BYTES * 10 - 1, 2);
        assert!(settled.is_settled(PAGE_BYTES * 9) && settled.is_settled(PAGE_BYTES * 10));
    }
}
