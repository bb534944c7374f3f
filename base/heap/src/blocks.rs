//! Following a heap offset: to a block, to its bytes, to an object.
//!
//! Purpose: S3, the same for views and transactions. Every dereference checks that a block starts
//! at the offset, and by option that its pages are what was written (R7).

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::class::ClassTable;
use crate::error::{Error, Result};
use crate::image::{Image, Place};
use crate::settled::FirstTouch;

/// How blocks of a heap are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'h> {
    pub(crate) classes: &'h ClassTable,
    pub(crate) first_touch: Option<FirstTouch<'h>>,
}

impl Blocks<'_> {
    /// Where the block at `offset` lies. O(1).
    pub(crate) fn locate(&self, image: &Image, offset: u64) -> Result<Place> {
        if let Some(first_touch) = self.first_touch {
            first_touch.descriptor(image, offset)?;
        }
        let place = image.locate(self.classes, offset)?;
        if let Some(first_touch) = self.first_touch {
            first_touch.block(image, offset, place.bytes())?;
        }
        Ok(place)
    }

    /// All bytes of the block at `offset`.
    #[inline]
    pub(crate) fn block<'i>(&self, image: &'i Image, offset: u64) -> Result<&'i [u8]> {
        if self.first_touch.is_none()
            && let Some(bytes) = image.run_block(self.classes, offset)
        {
            return Ok(bytes);
        }
        self.block_anywhere(image, offset)
    }

    fn block_anywhere<'i>(&self, image: &'i Image, offset: u64) -> Result<&'i [u8]> {
        let place = self.locate(image, offset)?;
        image.bytes(offset, place.bytes())
    }

    /// The object in the block at `offset`.
    #[inline]
    pub(crate) fn object<'i, T: FromBytes + Immutable + KnownLayout>(
        &self,
        image: &'i Image,
        offset: u64,
    ) -> Result<&'i T> {
        let block = self.block(image, offset)?;
        match T::ref_from_prefix(block) {
            Ok((object, _)) => Ok(object),
            Err(_) => Err(Error::InvalidPointer {
                offset,
                what: "is too small or misaligned for its type",
            }),
        }
    }
}
