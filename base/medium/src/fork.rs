//! Whether this process is a fork's child of the one that opened something.
//!
//! Purpose: regions are not inherited by a fork (R6), so a handle used in the child must be
//! refused before it touches one. Asking the system for the process number would cost a system
//! call for every read; a page that the kernel wipes in the child costs one load.
//! Thread safety: the page is written once, before it is shared.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;
use crate::region::Region;

/// What the page holds in the process that made it; a wiped page holds 0.
const OURS: u32 = 0x4D41_4441;

/// Made at open, asked at every use.
#[derive(Debug)]
pub struct ForkGuard {
    page: Region,
}

impl ForkGuard {
    /// A guard of this process.
    ///
    /// # Errors
    /// `Error::AddressSpace` when the system has no page for it.
    pub fn new() -> Result<Self> {
        let page = Region::reserve_wiped_on_fork()?;
        let guard = Self { page };
        guard.word().store(OURS, Ordering::Release);
        Ok(guard)
    }

    /// Whether this is a child that a fork made after the guard. One load.
    #[inline]
    pub fn is_child(&self) -> bool {
        self.word().load(Ordering::Relaxed) != OURS
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        let word = self.page.base().cast::<AtomicU32>();
        // SAFETY: the region's first page is committed, zeroed memory aligned to 2 MiB, which
        // lives as long as `self` and is only ever used as this atomic word.
        unsafe { word.as_ref() }
    }
}
