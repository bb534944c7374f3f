//! Pre-touching of memory for a large transaction.
//!
//! Purpose: the first touch of a page of the image waits for the system to put memory behind it:
//! 100 us for a huge page, or 5 ms on a virtual machine whose host has to find it first. A chunked
//! transaction touches the pages while readers are admitted.
//! Invariants: touching changes no byte, so it does not matter which caller has reserved the pages
//! by then.
//! Thread safety: any thread; the arena's lock is held only while the image grows.

use crate::layout::PAGE_BYTES;
use crate::space::allocator::BlockAllocator;

/// Pages that are touched at once: those of a huge page.
const STEP_PAGES: u64 = 512;
/// Pages that a chunk of a transaction takes at most, about.
const PIECE_PAGES: u64 = 128;

impl BlockAllocator<'_> {
    /// Whether the next chunk may reach never-used pages beyond `touched`.
    pub(crate) fn is_short_of_touched(self, touched: u64) -> bool {
        self.space.image.can_touch() && self.space.arena().tail() + PIECE_PAGES > touched
    }

    /// Touches never-used pages; returns the page up to which it did. Grows the image where needed;
    /// the transaction itself finds out why growth fails.
    pub(crate) fn touch_ahead(self, touched: u64) -> u64 {
        let image = &self.space.image;
        let (start, end) = {
            let arena = self.space.arena();
            let tail = arena.tail();
            let end = (tail + PIECE_PAGES).next_multiple_of(STEP_PAGES);
            if end > image.pages() && self.grow(end).is_err() {
                return u64::MAX;
            }
            (tail.max(touched), end)
        };
        image.populate(start * PAGE_BYTES, end.saturating_sub(start) * PAGE_BYTES);
        end
    }
}
