//! Huge pages that replace other memory.
//!
//! Purpose: a dependent load from a huge page takes about half the time, but private mappings of
//! files never use such pages. Hot pages are copied into one ([`HugePage`]), which is then moved
//! over the image. A value whose page was moved serves for the next: the system leaves an empty
//! mapping behind.
//! Invariants: the page is aligned, and belongs to this value alone until it is moved.
//! Thread safety: none needed; a page has one owner.

use crate::address::region::Region;
use crate::error::Result;

/// Bytes of a huge page on x86-64, and on aarch64 with 4 KiB pages.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// This many faults of small pages mean that there was no huge one: that takes one fault, and a few
/// may have other causes.
#[cfg(target_os = "linux")]
const FAULTS_MAX: u64 = HUGE_PAGE_BYTES / 4096 / 4;

/// Room for a huge page.
#[derive(Debug)]
pub struct HugePage {
    room: Region,
}

impl HugePage {
    /// Room, without a page yet.
    ///
    /// # Errors
    /// `Error::AddressSpace`.
    pub fn new() -> Result<HugePage> {
        let room = Region::reserve(HUGE_PAGE_BYTES, HUGE_PAGE_BYTES)?;
        room.commit(0, HUGE_PAGE_BYTES)?;
        Ok(HugePage { room })
    }

    /// Makes a page of zeros if there is none, and passes it to `fill`; `None` if the system has no
    /// huge page for it now, and small ones took its place, which are of no use.
    ///
    /// # Errors
    /// Those of `fill`.
    #[cfg(target_os = "linux")]
    pub fn fill(&mut self, fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Option<()>> {
        let before = faults();
        let bytes = self.bytes_mut();
        for page in bytes.chunks_mut(4096) {
            page[0] = 0;
        }
        let is_huge = matches!((before, faults()), (Some(before), Some(after))
            if after.saturating_sub(before) <= FAULTS_MAX);
        if !is_huge {
            return Ok(None);
        }
        fill(self.bytes_mut()).map(Some)
    }

    /// Other systems have no huge pages on request.
    #[cfg(not(target_os = "linux"))]
    pub fn fill(&mut self, _fill: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Option<()>> {
        Ok(None)
    }

    /// The bytes of the page.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let base = self.room.base().as_ptr();
        // SAFETY: `new` committed that many bytes, which the region keeps and only this value
        // refers to, exclusively borrowed. After a move an empty mapping is there, zeros.
        unsafe { std::slice::from_raw_parts_mut(base, HUGE_PAGE_BYTES as usize) }
    }

    /// Moves the page over whole 2 MiB of a region, at an offset that is a multiple of that; at
    /// each moment a reader finds one or the other.
    ///
    /// # Errors
    /// `Error::AddressSpace`; then nothing was moved.
    ///
    /// # Safety
    /// No thread stores to that range of the region meanwhile, and bytes to which any reference
    /// exists are the same in the page.
    pub unsafe fn put(&mut self, region: &Region, offset: u64) -> Result<()> {
        // SAFETY: our caller promises it; the page is this value's alone.
        unsafe { region.move_from(offset, &self.room, HUGE_PAGE_BYTES) }
    }
}

/// Minor faults of this thread so far.
#[cfg(target_os = "linux")]
fn faults() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    // The name of the thread, in brackets, may hold blanks; the faults are eight fields behind it.
    text.rsplit_once(')')?.1.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Readers read bytes that never change while pages are swapped under them.
    #[test]
    fn readers_see_the_same_bytes_while_pages_are_put() {
        const PAGES: u64 = 4;
        let region = Region::reserve(PAGES * HUGE_PAGE_BYTES, 0).unwrap();
        let len = (PAGES * HUGE_PAGE_BYTES) as usize;
        let fill = |part: &mut [u8], _| -> Result<()> {
            part.fill(7);
            Ok(())
        };
        // SAFETY: no reference into the region exists yet.
        unsafe { region.fill(0, len as u64, fill) }.unwrap();
        // SAFETY: committed, and from here on its bytes never change.
        let bytes = unsafe { std::slice::from_raw_parts(region.base().as_ptr(), len) };
        let (is_over, mut put) = (AtomicBool::new(false), 0);
        std::thread::scope(|scope| {
            for first in 0..2_usize {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut random = first;
                    while !is_over.load(Ordering::Relaxed) {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        assert_eq!(std::hint::black_box(bytes[random % len]), 7);
                    }
                });
            }
            let mut page = HugePage::new().unwrap();
            for number in 0..300 {
                let filled = page.fill(|bytes| {
                    bytes.fill(7);
                    Ok(())
                });
                if filled.unwrap().is_none() {
                    break;
                }
                // SAFETY: no thread stores to the region, and the bytes are the same.
                unsafe { page.put(&region, number % PAGES * HUGE_PAGE_BYTES) }.unwrap();
                put += 1;
            }
            is_over.store(true, Ordering::Relaxed);
        });
        println!("{put} pages were put");
        assert!(bytes.iter().all(|byte| *byte == 7));
    }
}
