//! How a transaction changes blocks that were there before it, where memory is the medium.
//!
//! Purpose: small blocks are changed in copies (`shadow.rs`), which costs no fence before the
//! commit. Large blocks are changed in place: their old bytes are made durable first, in an undo
//! entry of the lane, by one fence for all ranges that are declared together.
//! A transaction that has changed many small blocks, and looks at blocks often, goes over to changing
//! those in place, too: one that changes most of a tree would look at each node in two places, and
//! keep the tree twice (twice the time of a removal, measured). Each block is then saved as a whole when it is first written, with a fence, and the writes and reads
//! that follow, which are many, cost what they cost in memory.
//! Invariants: no byte of a block that was there before changes in memory unless its old value is
//! durable in an undo entry.

use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::lanes::Lanes;
use crate::place::Original;
use crate::ranges::{Spans, lines_of};
use crate::shadow::Shadow;
use crate::tx::Transaction;

/// Blocks of at most so many bytes are changed in copies: copying one costs less than the fence of
/// an undo entry.
pub(crate) const COPY_BYTES_MAX: u64 = 4096;

impl<'h> Transaction<'h> {
    /// Declares ranges of blocks (block, first byte, bytes) that are going to be written, all of
    /// them. Where changes in place need their old bytes saved durably, it is done for all of the
    /// ranges at once: one fence, where each [`crate::Write::write`] alone would take its own.
    ///
    /// # Errors
    /// As [`crate::Write::write`].
    pub fn snapshot_many(&mut self, ranges: &[(u64, usize, usize)]) -> Result<()> {
        let journal = self.supply.journal;
        let mut in_place = Vec::new();
        for &(block, at, len) in ranges {
            let (at, len) = (at as u64, len as u64);
            let (place, is_fresh) = self.place_to_write(block, at, len)?;
            if is_fresh || len == 0 {
                continue;
            }
            match journal.lanes() {
                None => {
                    if self.lets_in {
                        self.keep_block(block, place.bytes())?;
                    }
                    self.track(block + at, len, true)?;
                }
                Some(_) => match self.shadow_to_write(Original::of(block, place), 0..0)? {
                    Some(shadow) => {
                        self.writer.shadows.write(shadow, at as usize, len as usize);
                    }
                    None => in_place.push((block + at, len)),
                },
            }
        }
        match journal.lanes() {
            Some(lanes) if !in_place.is_empty() => self.declare_in_place(lanes, &in_place),
            _ => Ok(()),
        }
    }

    /// A range of a block that was there before, to be written. `is_uninit`: all of it will be, so
    /// what is handed out need not hold what was there.
    /// `original` is the block as what a copy could be made of.
    #[inline]
    pub(crate) fn write_planned(
        &mut self,
        lanes: &'h Lanes,
        block: u64,
        original: Option<Original>,
        range: (u64, u64),
        is_uninit: bool,
    ) -> Result<&mut [u8]> {
        let (at, len) = range;
        if len == 0 {
            return Ok(&mut []);
        }
        if self.is_in_place
            && let Some(original) = original
        {
            return self.write_in_place(lanes, original, range);
        }
        let skipped = if is_uninit { at as usize..(at + len) as usize } else { 0..0 };
        if let Some(shadow) = self.shadow_to_write(original, skipped)? {
            return Ok(self.writer.shadows.write(shadow, at as usize, len as usize));
        }
        if self.is_in_place
            && let Some(original) = original
        {
            return self.write_in_place(lanes, original, range);
        }
        self.declare_in_place(lanes, &[(block + at, len)])?;
        self.image.bytes_mut(block + at, len)
    }

    /// A range of a small block or of the roots, in a transaction that changes them in place.
    fn write_in_place(
        &mut self,
        lanes: &'h Lanes,
        original: Original,
        (at, len): (u64, u64),
    ) -> Result<&mut [u8]> {
        let (depth, Original { offset, bytes, run, .. }) = (self.depth, original);
        if run == 0 || bytes > COPY_BYTES_MAX {
            self.declare_in_place(lanes, &[(offset + at, len)])?;
        } else if !self.writer.levels[depth].in_place.contains(offset) {
            self.declare_in_place(lanes, &[(offset, bytes)])?;
            self.writer.levels[depth].in_place.insert(offset);
        }
        self.image.bytes_mut(offset + at, len)
    }

    /// Ends the copies of a transaction that has too many: saves the blocks, with one fence for all
    /// of them, and makes them what their copies are.
    #[cold]
    fn put_copies_in_place(&mut self, lanes: &'h Lanes) -> Result<()> {
        debug_assert_eq!(self.depth, 0, "copies of savepoints are their own");
        let copies = self.writer.levels[0].shadows.all(self.blocks.classes);
        let originals: Vec<Original> = copies.map(|(original, _)| original).collect();
        let ranges: Vec<(u64, u64)> = originals.iter().map(|one| (one.offset, one.bytes)).collect();
        self.declare_in_place(lanes, &ranges)?;
        self.show_copies();
        let writer = &mut *self.writer;
        let level = &mut writer.levels[0];
        for original in originals.iter().filter(|original| original.run > 0) {
            level.in_place.insert(original.offset);
        }
        level.shadows.clear();
        writer.shadows.truncate(0);
        self.last_copy.1 = None;
        self.is_in_place = true;
        Ok(())
    }

    /// The innermost copy of something, if there is one.
    #[inline]
    pub(crate) fn shadow(&self, original: Original) -> Option<&[u8]> {
        if self.writer.shadows.mark() == 0 {
            return None;
        }
        let levels = self.writer.levels.iter().take(self.depth + 1).rev();
        let shadow = levels.map(|level| &level.shadows).find_map(|known| known.get(original))?;
        Some(self.writer.shadows.bytes(shadow))
    }

    /// The copy that belongs to the innermost level, made if need be; `None` when the block is to be
    /// changed in place.
    #[inline]
    pub(crate) fn shadow_to_write(
        &mut self,
        original: Option<Original>,
        skipped: std::ops::Range<usize>,
    ) -> Result<Option<Shadow>> {
        let Some(original) = original else { return Ok(None) };
        let shadow = match self.writer.levels[self.depth].shadows.get(original) {
            Some(shadow) => Some(shadow),
            None => self.add_shadow(original, skipped)?,
        };
        // The roots are written by their own function only, as no block is there.
        if original.run > 0 && shadow.is_some() {
            self.last_copy = (original.offset, shadow);
        }
        Ok(shadow)
    }

    fn add_shadow(
        &mut self,
        original: Original,
        skipped: std::ops::Range<usize>,
    ) -> Result<Option<Shadow>> {
        let (depth, bytes) = (self.depth, original.bytes);
        // Where readers are let in they find in memory what was there before, as long as it is.
        let looks = if self.lets_in { 0 } else { self.looks.load(Ordering::Relaxed) };
        let writer = &mut *self.writer;
        let mut outer = writer.levels[..depth].iter().rev();
        let outer = outer.find_map(|level| level.shadows.get(original));
        let shadow = match outer {
            Some(outer) => writer.shadows.add_copy(outer),
            None if self.is_in_place || bytes > COPY_BYTES_MAX => return Ok(None),
            None if writer.shadows.are_enough(bytes, looks) => {
                // Within a savepoint there may be copies of copies: those stay.
                if let (0, Some(lanes)) = (depth, self.supply.journal.lanes()) {
                    self.put_copies_in_place(lanes)?;
                }
                return Ok(None);
            }
            None => {
                let block = self.image.bytes(original.offset, bytes)?;
                writer.shadows.add(original, block, skipped)
            }
        };
        writer.levels[depth].shadows.insert(original, shadow);
        Ok(Some(shadow))
    }

    /// Makes the old bytes of ranges durable, as far as they are not, and notes them.
    fn declare_in_place(&mut self, lanes: &'h Lanes, ranges: &[(u64, u64)]) -> Result<()> {
        let depth = self.depth;
        if self.lets_in {
            // Of what is changed in place here there is no copy in memory.
            self.image.before_mut().give_up();
        }
        let writer = &mut *self.writer;
        writer.old.clear();
        for &(offset, len) in ranges {
            // All of it is looked up once: a range lies in one block.
            let bytes = self.image.bytes(offset, len)?;
            for (line, mask) in lines_of(offset, len) {
                let levels = writer.levels[..=depth].iter();
                let saved = levels.fold(0, |saved, level| saved | level.ranges.saved(line));
                for (start, len) in Spans::new(line, mask & !saved) {
                    let from = (start - offset) as usize;
                    writer.old.bytes(start, &bytes[from..from + len as usize]);
                }
            }
        }
        if !writer.old.is_empty() {
            let undo = match &mut self.undo {
                Some(undo) => undo,
                none => none.insert(lanes.begin_undo()?),
            };
            undo.save(&writer.old, &self.image)?;
        }
        for &(offset, len) in ranges {
            writer.levels[depth].ranges.declare(&self.image, offset, len, true)?;
        }
        Ok(())
    }

    /// Makes the undo entries void: the old bytes are back, their lines flushed.
    pub(crate) fn end_undo(&mut self) {
        if let (Some(undo), Some(persist)) = (self.undo.take(), self.supply.journal.persist()) {
            persist.fence();
            undo.abort(&self.image);
        }
    }

    /// Where a range that is to be written lies, and whether this transaction reserved its block.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when the block or the range in it does not exist.
    fn place_to_write(
        &mut self,
        block: u64,
        at: u64,
        len: u64,
    ) -> Result<(crate::place::Place, bool)> {
        let (place, level) = self.find(block)?;
        if at.checked_add(len).is_none_or(|end| end > place.bytes()) {
            let what = "is shorter than what is written";
            return Err(Error::InvalidPointer { offset: block, what });
        }
        Ok((place, level.is_some()))
    }
}
