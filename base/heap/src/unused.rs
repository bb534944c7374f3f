//! Writing bytes that hold nothing yet: how a transaction appends to a buffer.
//!
//! Purpose: of what nobody reads nothing need be saved, so a transaction writes it where it is: no old
//! bytes in memory, no copy for readers that are let in, no undo entry and no fence before it. The
//! commit makes it durable as it does what was written to a block that it publishes.
//! Invariants (memory is the medium): recovery drops a commit whose bytes in place have another
//! checksum, unless a later entry proves that its fence was complete (`lanes/recover.rs`). So bytes
//! that a commit without such proof has named change only behind an undo entry, which is one. All
//! commits that are not a transaction's have ended when one begins; of those, the last one's ranges
//! are known, and of others that there are some.

use crate::access::Write;
use crate::error::Result;

use crate::lanes::{Lanes, Undo};
use crate::place::{Original, Place};
use crate::planned::COPY_BYTES_MAX;
use crate::tx::{Transaction, too_short};

impl<'h> Transaction<'h> {
    /// See [`crate::Write::reserve_held`].
    pub(crate) fn reserve_and_hold(&mut self, bytes: u64) -> Result<u64> {
        let block = self.reserve(bytes)?;
        let journal = self.supply.journal;
        if let (Place::Extent { page, pages }, Some(_)) = (self.find(block)?.0, journal.holds()) {
            self.supply.space.hold(page, pages, journal.last_sequence());
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
        if self.is_last(block) && end <= self.last.1 {
            return self.take_unused(block + at, len);
        }
        self.write_unused_first(block, (at, len), end)
    }

    /// The same, of a block that is not the one that was written last.
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
        let original = Original::of(block, place);
        let Some(lanes) = self.supply.journal.lanes() else {
            if reserved.is_some() {
                return self.write_range(block, at as usize, len as usize, true);
            }
            self.supply.lent.refuse(place)?;
            self.last = (block, place.bytes());
            return self.take_unused(block + at, len);
        };
        let has_copies = original.is_some_and(|original| original.bytes <= COPY_BYTES_MAX);
        if reserved.is_some() || has_copies {
            return self.write_range(block, at as usize, len as usize, true);
        }
        self.supply.lent.refuse(place)?;
        if self.is_unproven(lanes, block + at, len) {
            return self.write_planned(lanes, block, original, (at, len), true);
        }
        self.take_unused(block + at, len)
    }

    /// Whether recovery may look at bytes to find out whether an earlier commit was complete.
    fn is_unproven(&self, lanes: &'h Lanes, offset: u64, len: u64) -> bool {
        // An undo entry of this transaction proves all that came before.
        !self.undo.as_ref().is_some_and(Undo::has_entry)
            && (lanes.has_unproven() || self.writer.unproven.touches(offset, len))
    }

    fn take_unused(&mut self, offset: u64, len: u64) -> Result<&mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        let depth = self.depth;
        self.writer.levels[depth].unused.add(offset, len);
        self.supply.space.settled.settle(offset, len);
        self.image.bytes_mut(offset, len)
    }
}
