//! The space of a heap: its mapped image and its allocator.
//!
//! Purpose: hold together what transactions, views and reservations all need, so that it lives on
//! while one of them does (S5).
//! Thread safety: any thread. Lock order: the image's lock, a shard, the arena, then the locks that
//! the journal takes inside `append`. `Image::try_write` never waits, so it may be called under any
//! of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::image::block_location::BlockLocation;
use crate::image::class::ClassTable;
use crate::image::mapping::Image;
use crate::journal::Holds;
use crate::layout::PAGE_BYTES;
use crate::space::arena::{Arena, Retired};
use crate::space::block_bits::Word;

/// The memory of a heap, and its allocator.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) image: Image,
    pub(crate) classes: ClassTable,
    /// Extents that checkpoints do not write to the file.
    holds: Arc<Holds>,
    arena: Mutex<Arena>,
    /// How much waits in the arena to become reusable. A hint that spares a commit the lock. After
    /// a stale value the next commit does the work.
    waiting: AtomicUsize,
    /// Whether the last growth failed.
    short: AtomicBool,
}

impl Space {
    /// The space of a heap whose allocated pages end at `pages_end`.
    pub(crate) fn new(
        image: Image,
        classes: ClassTable,
        holds: Arc<Holds>,
        pages_end: u64,
    ) -> Self {
        let arena = Mutex::new(Arena::new(&classes, pages_end, &image));
        Self {
            image,
            classes,
            holds,
            arena,
            waiting: AtomicUsize::new(0),
            short: AtomicBool::new(false),
        }
    }

    /// The shared part of the allocator, locked.
    #[inline]
    pub(crate) fn arena(&self) -> MutexGuard<'_, Arena> {
        self.arena.lock()
    }

    /// Takes reserved blocks back that were not published.
    pub(crate) fn take_back(&self, word: Word) {
        match word.place {
            BlockLocation::Run { run, index, .. } => {
                self.arena().give_back(run, index / 64, word.mask)
            }
            BlockLocation::Extent { page, pages } => {
                self.holds.cancel(page);
                self.arena().give_pages(page, pages);
            }
        }
    }

    /// Makes checkpoints hold back an extent that a transaction has just reserved.
    pub(crate) fn hold(&self, page: u64, pages: u64) {
        self.holds.add(page, pages);
    }

    /// Notes what the record with this sequence number freed.
    #[inline]
    pub(crate) fn note_freed(&self, sequence: u64, freed: Retired) {
        if let Retired::Pages { start, .. } = freed {
            self.holds.free(start, sequence);
        }
    }

    /// Forgets held-back extents whose pages are free now.
    pub(crate) fn forget_held(&self, arena: &Arena) {
        self.holds.forget(|page, pages| arena.has_free(page, pages));
    }

    /// Bytes of memory that checkpoints hold back.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.holds.pages() * PAGE_BYTES
    }

    /// Whether something may wait to become reusable.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting() > 0
    }

    /// How much may wait to become reusable: words of bitmaps, extents and empty runs.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the last growth failed: then blocks that could be reused must not keep waiting.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Notes whether the heap could grow.
    pub(crate) fn note_growth(&self, has_grown: bool) {
        self.short.store(!has_grown, Ordering::Relaxed);
    }

    /// Updates the hint. Call it with the arena's lock held whenever what waits may have changed.
    #[inline]
    pub(crate) fn note_waiting(&self, arena: &Arena) {
        self.waiting.store(arena.waiting(), Ordering::Relaxed);
    }
}
