//! Dereference of heap offsets: to a block, to its bytes, to an object.
//!
//! Purpose: S3, the same for views and transactions. Every dereference checks that a block starts
//! at the offset, and by option that its pages are what was written (R7). A block of an open run
//! must be allocated, too: otherwise another thread may be filling it right now (S1).

use crate::error::{Error, Result};
use crate::image::block_location::BlockLocation;
use crate::image::class::ClassTable;
use crate::image::mapping::Image;

/// Finds the blocks of a heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'h> {
    pub(crate) classes: &'h ClassTable,
    /// Whether pages are verified when they are first touched, by option.
    pub(crate) verifies_first_touch: bool,
}

impl Blocks<'_> {
    /// The location of the block at `offset`. O(1).
    pub(crate) fn locate(&self, image: &Image, offset: u64) -> Result<BlockLocation> {
        let place = self.place(image, offset)?;
        self.verify(image, offset, place)?;
        Ok(place)
    }

    /// The location of the block at `offset`, allocated or not: another thread may be filling it
    /// right now.
    #[inline]
    pub(crate) fn place(&self, image: &Image, offset: u64) -> Result<BlockLocation> {
        if self.verifies_first_touch {
            image.verify_descriptor(offset)?;
        } else if let Some(block) = image.in_run(self.classes, offset) {
            return Ok(block.place());
        }
        image.locate(self.classes, offset)
    }

    /// Refuses a block that must not be read.
    #[inline]
    pub(crate) fn verify(&self, image: &Image, offset: u64, place: BlockLocation) -> Result<()> {
        if matches!(place, BlockLocation::Run { is_open: true, .. })
            && !image.is_allocated(self.classes, place)?
        {
            return Err(Error::InvalidPointer { offset, what: "is not allocated" });
        }
        if self.verifies_first_touch {
            image.verify(offset, place.bytes())?;
        }
        Ok(())
    }

    /// All bytes of the block at `offset`.
    #[inline]
    pub(crate) fn block<'i>(&self, image: &'i Image, offset: u64) -> Result<&'i [u8]> {
        match self.run_block(image, offset) {
            Some(bytes) => Ok(bytes),
            None => self.block_anywhere(image, offset),
        }
    }

    /// All bytes of the block at `offset`, on the fast path for nearly all blocks. `None` decides
    /// nothing.
    #[inline]
    pub(crate) fn run_block<'i>(&self, image: &'i Image, offset: u64) -> Option<&'i [u8]> {
        if self.verifies_first_touch {
            return None;
        }
        image.run_block(self.classes, offset)
    }

    fn block_anywhere<'i>(&self, image: &'i Image, offset: u64) -> Result<&'i [u8]> {
        let place = self.locate(image, offset)?;
        image.bytes(offset, place.bytes())
    }
}
