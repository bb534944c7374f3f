//! Inspection of a heap: its check, the use of its pages, its figures.
//!
//! Invariants: nothing is changed.
//! Thread safety: any thread; other threads go on meanwhile.

use std::path::PathBuf;
use std::sync::Arc;

use super::Heap;
use crate::error::{Error, Result};
use crate::inspect::check::{CheckReport, Checker, Reached};
use crate::inspect::occupancy::{Occupancy, occupancy};
use crate::journal::{JournalStats, Registry};
use crate::layout::PAGE_BYTES;
use crate::memory::evictor::MemoryStats;

/// Figures of a heap.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of data pages that the pool file backs.
    pub pool_bytes: u64,
    /// Bytes up to the last page ever allocated; 0 once the heap is closed.
    pub used_bytes: u64,
    /// Bytes of address space reserved; if the heap needs more while it is open, see
    /// [`Options::address_bytes_max`](crate::Options::address_bytes_max).
    pub address_bytes: u64,
    /// Freed blocks and extents that are not reusable yet because of pins.
    pub quarantined: u64,
    /// Pins.
    pub pins: u64,
    /// The memory that the heap takes.
    pub memory: MemoryStats,
    /// The journal: log, pool file and checkpoints.
    pub journal: JournalStats,
}

impl Heap {
    /// The savepoints.
    ///
    /// # Errors
    /// `Error::Misuse` beside a writer; those of the medium.
    pub(crate) fn registry(&self) -> Result<&Arc<Registry>> {
        if let Some(registry) = self.savepoints.get() {
            return Ok(registry);
        }
        if self.journal.is_beside_writer() {
            return Err(Error::Misuse {
                what: "savepoints are read by the process that writes, or while none does; not \
                       beside a writer",
            });
        }
        let opened = Arc::new(Registry::open(&self.directory, self.journal.pool(), false)?);
        Ok(self.savepoints.get_or_init(|| opened))
    }

    /// Verifies every page of the pool file and every rule of the allocator, and names the
    /// savepoints, and the files of pages for them, that cannot be read. Commits go on
    /// meanwhile: each waits for some 100 us of it, and for a millisecond at an extent of a GiB.
    /// Pages and blocks are counted as of one moment only if nothing was committed between the call
    /// and its end. O(pool).
    ///
    /// # Errors
    /// When the medium fails; damage is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.refuse_within()?;
        self.checkpoint()?;
        let file: PathBuf = self.journal.pool().file().path().into();
        let mut report = CheckReport::default();
        report.pages_verified = self.journal.verify(&mut |error| report.note(error, &file))?;
        if !self.journal.is_beside_writer() {
            self.registry()?.faults(&mut |error| report.note(error, &file));
        }
        let mut reached = Reached::default();
        loop {
            // No other thread is within a commit, and no run is made.
            let _permit = self.writer_queue.wait();
            let image = self.read_image_long()?;
            let _arena = self.space.arena();
            let classes = &self.space.classes;
            let mut checker = Checker { image: &image, classes, file: &file, report: &mut report };
            if checker.part(&mut reached, self.last_commit())? {
                checker.named_roots()?;
                return Ok(report);
            }
        }
    }

    /// The use of each page. O(pages): reads every descriptor and every bitmap.
    ///
    /// # Errors
    /// As [`Heap::view`].
    pub fn occupancy(&self) -> Result<Occupancy> {
        self.refuse_child()?;
        occupancy(&*self.read_image_long()?, &self.space.classes)
    }

    /// Whether the data take more than half of the memory that the process may have: then pages are
    /// read one by one, and a page is often read from the device when it is touched. O(1).
    #[inline]
    pub fn is_larger_than_memory(&self) -> bool {
        self.space.image.is_larger_than_memory()
    }

    /// The heap's figures; all 0 in the child of a fork.
    pub fn stats(&self) -> Stats {
        if self.is_child() {
            return Stats::default();
        }
        let journal = self.journal.stats();
        let quarantined = self.space.arena().retired();
        let image = self.space.image.read();
        let used_pages = self.refuse_closed().and_then(|()| image.pages_end()).unwrap_or(0);
        Stats {
            pool_bytes: image.pages() * PAGE_BYTES,
            used_bytes: used_pages * PAGE_BYTES,
            address_bytes: image.pages_max() * PAGE_BYTES,
            quarantined,
            pins: self.pins.count(),
            memory: self.evictor.stats(),
            journal,
        }
    }
}
