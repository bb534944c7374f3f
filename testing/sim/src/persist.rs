//! Flushes and fences of a simulated disk.
//!
//! Purpose: they go into the history, each with the thread that made it: a fence completes the
//! flushes of its own thread only.
//! Thread safety: the disk's lock, held for the time of one call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use adamant_medium::address::persist::{Persist, PersistCounts, Site as Place};
use adamant_medium::address::region::Region;

use crate::disk::SimDisk;
use crate::site::{Kind, Site};
use crate::state::Operation;

/// The persistence of a program on a simulated disk.
#[derive(Debug)]
pub(crate) struct SimPersist {
    disk: SimDisk,
    lines: AtomicU64,
    fences: AtomicU64,
}

impl SimPersist {
    pub(crate) fn new(disk: &SimDisk) -> SimPersist {
        SimPersist { disk: disk.clone(), lines: AtomicU64::new(0), fences: AtomicU64::new(0) }
    }

    fn write_back(&self, site: Site, region: &Region, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let mut inner = self.disk.inner();
        let is_done = inner.sites.meet(site);
        for (file, lines) in inner.mapped.lines(region, offset, len) {
            self.lines.fetch_add(lines.end - lines.start, Ordering::Relaxed);
            // A copy that is left out reports nothing, but its bytes are there all the same.
            inner.mapped.note_copied(file, is_done && site.kind == Kind::Copy);
            if is_done {
                inner.flush(file, lines, thread::current().id());
            }
        }
    }
}

impl Persist for SimPersist {
    fn flush_at(&self, site: Place, region: &Region, offset: u64, len: u64) {
        self.write_back(Site::new(Kind::Flush, site), region, offset, len);
    }

    fn fence_at(&self, site: Place) {
        let site = Site::new(Kind::Fence, site);
        self.fences.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.disk.inner();
        if inner.sites.meet(site) {
            inner.settle();
            inner.record(Operation::Fence { thread: thread::current().id(), site });
        }
    }

    unsafe fn copy_at(&self, site: Place, region: &Region, offset: u64, bytes: &[u8]) {
        // SAFETY: our caller promises that the range is mapped, so it lies in the region.
        let target = unsafe { region.base().add(offset as usize) };
        let source = bytes.as_ptr();
        // SAFETY: our caller promises that the range is mapped and that no other code uses it.
        unsafe { target.as_ptr().copy_from_nonoverlapping(source, bytes.len()) };
        self.write_back(Site::new(Kind::Copy, site), region, offset, bytes.len() as u64);
    }

    fn instruction(&self) -> &'static str {
        "simulated"
    }

    fn counts(&self) -> PersistCounts {
        let lines = self.lines.load(Ordering::Relaxed);
        PersistCounts { lines, fences: self.fences.load(Ordering::Relaxed) }
    }
}
