//! The persistence trait: makes stores to directly accessed memory durable, by cache-line flushes
//! and fences.
//!
//! Purpose: direct files (`direct.rs`) are written through it; the processor (`lines`) implements
//! it, and so does the simulator of `testing/sim`.
//! Invariants: a byte is durable once a flush of its line, begun after the byte was stored, was
//! followed by a fence of the same thread. Before that the line may reach the medium at any time,
//! or never; each aligned 8 bytes of it reach the medium whole or not at all.
//! Thread safety: any thread; a fence waits for the flushes of its own thread only.
//!
//! Every call carries its call site, so that a test can leave one of them out and see whether any
//! check fails. A call through a trait object loses `#[track_caller]`: hence the inherent methods
//! of `dyn Persist`, which heaps call, beside those ending in `_at`, which media implement.

use std::fmt::Debug;
use std::panic::Location;

use crate::address::region::Region;

/// The media accepted for direct access, and the flush that makes stores durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flushing {
    /// Persistent memory only (a file system with DAX); the best flush that the processor has.
    #[default]
    Auto,
    /// As `Auto`, but tmpfs is accepted too: its files survive the process, not the power.
    Volatile,
    /// No flush at all, on persistent memory or tmpfs: for machines whose caches survive a loss of
    /// power (eADR), and for tests. Fences remain.
    None,
}

/// The call site of a flush or fence.
pub type Site = &'static Location<'static>;

/// Counts of a [`Persist`]'s work so far: exact for one thread, nearly so for many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PersistCounts {
    /// Cache lines flushed, or streamed past the caches.
    pub lines: u64,
    /// Fences.
    pub fences: u64,
}

/// Makes stores to a shared mapping durable.
pub trait Persist: Send + Sync + Debug {
    /// Begins to flush the cache lines of a range to the medium. The range was mapped shared.
    ///
    /// # Panics
    /// When the range does not lie in the region.
    fn flush_at(&self, site: Site, region: &Region, offset: u64, len: u64);

    /// Waits for everything that this thread flushed or copied before.
    fn fence_at(&self, site: Site);

    /// Stores bytes and begins to flush them to the medium; large ones go past the caches.
    ///
    /// # Panics
    /// When the range does not lie in the region.
    ///
    /// # Safety
    /// The range is mapped shared, and no other code reads it or has a reference into it.
    unsafe fn copy_at(&self, site: Site, region: &Region, offset: u64, bytes: &[u8]);

    /// Name of the instruction that flushes a line; "none" when none does.
    fn instruction(&self) -> &'static str;

    /// Counts so far.
    fn counts(&self) -> PersistCounts;
}

impl dyn Persist + '_ {
    /// [`Persist::flush_at`], for the caller's call site.
    ///
    /// # Panics
    /// When the range does not lie in the region.
    #[inline]
    #[track_caller]
    pub fn flush(&self, region: &Region, offset: u64, len: u64) {
        self.flush_at(Location::caller(), region, offset, len);
    }

    /// [`Persist::fence_at`], for the caller's call site.
    #[inline]
    #[track_caller]
    pub fn fence(&self) {
        self.fence_at(Location::caller());
    }

    /// [`Persist::copy_at`], for the caller's call site.
    ///
    /// # Panics
    /// When the range does not lie in the region.
    ///
    /// # Safety
    /// As [`Persist::copy_at`].
    #[inline]
    #[track_caller]
    pub unsafe fn copy(&self, region: &Region, offset: u64, bytes: &[u8]) {
        // SAFETY: our caller promises the same.
        unsafe { self.copy_at(Location::caller(), region, offset, bytes) };
    }
}
