//! Writes to unused bytes: how a transaction appends to a buffer.
//!
//! Purpose: bytes that no reader needs are not saved, so a transaction writes them in place: no old
//! bytes in memory, no copy for admitted readers.

use crate::error::Result;
use crate::image::block_location::BlockLocation;
use crate::objects::access::Write;
use crate::transaction::tx::{Transaction, too_short};

impl Transaction<'_> {
    /// See [`crate::Write::reserve_held`].
    pub(crate) fn reserve_and_hold(&mut self, bytes: u64) -> Result<u64> {
        let block = self.reserve(bytes)?;
        if let (BlockLocation::Extent { page, pages }, _) = self.find(block)? {
            self.allocator.space.hold(page, pages);
        }
        Ok(block)
    }

    /// See [`crate::Write::write_unused`].
    #[inline]
    pub(crate) fn write_in_place_unsaved(
        &mut self,
        block: u64,
        at: u64,
        len: u64,
    ) -> Result<&mut [u8]> {
        let Some(end) = at.checked_add(len) else { return Err(too_short(block)) };
        if block == self.last.0 && end <= self.last.1 {
            return self.take_unused(block + at, len);
        }
        self.write_unused_first(block, (at, len), end)
    }

    /// `write_in_place_unsaved` for a block that is not the one written last.
    fn write_unused_first(
        &mut self,
        block: u64,
        (at, len): (u64, u64),
        end: u64,
    ) -> Result<&mut [u8]> {
        let (place, reserved) = self.find(block)?;
        if end > place.bytes() {
            return Err(too_short(block));
        }
        if reserved.is_some() {
            return self.write(block, at as usize, len as usize);
        }
        self.allocator.borrowed.refuse(place)?;
        self.last = (block, place.bytes());
        self.take_unused(block + at, len)
    }

    fn take_unused(&mut self, offset: u64, len: u64) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        self.writer.levels[self.depth].ranges.add_unsaved(offset..offset + len);
        self.image.bytes_mut(offset, len)
    }
}
