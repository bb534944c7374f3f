//! A reader's view of the heap.

use parking_lot::RwLockReadGuard;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::access::Read;
use crate::blocks::Blocks;
use crate::error::Result;
use crate::image::Image;
use crate::ptr::Ptr;

/// The heap as the last commit left it. Holds the shared lock: no commit becomes visible while it
/// lives, so it should not live long. The thread that has it must neither begin a transaction nor
/// ask the heap for a second view, a pin, figures or a check: where a commit already waits for this
/// view, they wait behind that commit for ever.
#[derive(Debug)]
pub struct View<'h> {
    blocks: Blocks<'h>,
    image: RwLockReadGuard<'h, Image>,
}

impl<'h> View<'h> {
    pub(crate) fn new(blocks: Blocks<'h>, image: RwLockReadGuard<'h, Image>) -> Self {
        Self { blocks, image }
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        self.image.root().ok().and_then(|root| root.roots.get(index)).map_or(0, |word| word.get())
    }
}

impl Read for View<'_> {
    #[inline]
    fn block(&self, block: u64) -> Result<&[u8]> {
        self.blocks.block(&self.image, block)
    }

    #[inline]
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        self.blocks.object(&self.image, ptr.offset())
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}
