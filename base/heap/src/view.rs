//! A reader's view of the heap.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::access::Read;
use crate::blocks::{Blocks, object};
use crate::error::Result;
use crate::image::Shared;
use crate::ptr::Ptr;

/// The heap as the last commit left it. Holds the shared lock: no commit becomes visible while it
/// lives, so it should not live long. The thread that has it must neither begin a transaction nor
/// ask the heap for a second view, a pin, figures or a check: where a commit already waits for this
/// view, they wait behind that commit for ever.
#[derive(Debug)]
pub struct View<'h> {
    blocks: Blocks<'h>,
    image: Shared<'h>,
}

impl<'h> View<'h> {
    pub(crate) fn new(blocks: Blocks<'h>, image: Shared<'h>) -> Self {
        Self { blocks, image }
    }

    /// The word of root `index`; 0 when it was never set.
    pub fn root(&self, index: usize) -> u64 {
        self.image.root(index)
    }
}

impl Read for View<'_> {
    #[inline]
    fn block(&self, block: u64) -> Result<&[u8]> {
        self.blocks.block(&self.image, block)
    }

    #[inline]
    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> Result<&T> {
        object(self.block(ptr.offset())?, ptr.offset())
    }

    #[inline]
    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}
