//! Reuse of freed blocks, once no pin can see them.
//!
//! Thread safety: the thread that has the image exclusively; large frees are left to the reclaim
//! threads, if there are any.

use super::Heap;
use crate::image::mapping::guards::Exclusive;
use crate::space::allocator::BlockAllocator;

/// Words of bitmaps and extents that are made reusable in one hold of the image: some 100 us.
const RECYCLED_PART: usize = 64;

impl Heap {
    #[inline]
    pub(crate) fn allocator(&self) -> BlockAllocator<'_> {
        BlockAllocator { space: &self.space, journal: &self.journal, borrowed: &self.borrowed }
    }

    /// Makes freed blocks reusable that no pin can see any more. Pins may have gone since the last
    /// commit, and a pin made after this needs none of the blocks.
    #[inline]
    pub(crate) fn recycle(&self, image: &Exclusive<'_>) {
        if self.borrowed.has_any() {
            self.borrowed.settle();
        }
        if self.space.has_waiting() {
            self.recycle_waiting(image);
        }
    }

    /// Large frees are for the reclaim threads, if there are any.
    fn recycle_waiting(&self, image: &Exclusive<'_>) {
        if self.space.is_short() || !self.recyclers.take(self.space.waiting()) {
            self.allocator().recycle(image, self.pins.released());
        }
    }

    /// Makes reusable what a transaction freed. A chunked one may have freed much: other threads
    /// get the image in between.
    pub(crate) fn recycle_after(&self, image: &mut Exclusive<'_>, chunked: bool) {
        if !chunked {
            return self.recycle_waiting(image);
        }
        if self.recyclers.take(self.space.waiting()) {
            return;
        }
        image.drain_readers();
        while self.recycle_part(image) {
            image.pause();
        }
    }

    /// Makes a part of what waits reusable, for which a thread may hold the image. Returns whether
    /// there may be more.
    pub(crate) fn recycle_part(&self, image: &Exclusive<'_>) -> bool {
        self.allocator().recycle_part(image, self.pins.released(), RECYCLED_PART)
    }
}
