//! The commit of a heap transaction: everything it did becomes one record, then visible.
//!
//! Purpose: R5. All that can fail happens before the record is appended; a failure there drops
//! the transaction, which undoes it. After the append only memory changes.

use crate::error::{Error, Result};
use crate::image::Place;
use crate::layout::{
    DESCRIPTOR_BYTES, KIND_EXTENT_CONTINUED, KIND_FREE, PAGE_BYTES, ROOT_OFFSET, ZONE_PAGES,
    descriptor_offset,
};
use crate::tx::Transaction;
use crate::writer::{Bits, Part};

/// Byte of `pages_end` in the root page.
const ROOT_PAGES_END: u64 = 8;

impl Transaction<'_> {
    /// Makes everything one record, and visible. Returns its sequence number; `None` when there
    /// was nothing to do. `released` tells up to which sequence number no pin looks at what
    /// commits freed.
    pub(crate) fn commit(mut self, released: impl FnOnce() -> u64) -> Result<Option<u64>> {
        debug_assert_eq!(self.depth, 0, "savepoints end before their transaction");
        let end = self.writer.levels[0].pages_end;
        if end > self.image.root()?.pages_end.get() {
            self.track(ROOT_OFFSET + ROOT_PAGES_END, 8)?.copy_from_slice(&end.to_le_bytes());
        }
        self.free_extents()?;
        self.collect_bits()?;
        self.free_empty_runs()?;
        self.build_record()?;
        let mut sequence = None;
        if !self.writer.record.is_empty() {
            let appended = self.journal.append(&self.writer.record)?;
            self.publish(appended);
            sequence = Some(appended);
        }
        self.done = true;
        self.writer.levels[0].clear();
        let released = released();
        self.writer.arena.release(released);
        Ok(sequence)
    }

    /// Clears the descriptors of freed extents, and boots the zones of freed runs.
    fn free_extents(&mut self) -> Result<()> {
        for index in 0..self.writer.levels[0].freed.entries().len() {
            let Some(&(_, place)) = self.writer.levels[0].freed.entries().get(index) else { break };
            match place {
                Place::Extent { page, pages } => {
                    self.boot_zones(page, pages)?;
                    self.judge_extent(page, pages)?;
                    self.clear_extent(page, pages)?;
                }
                Place::Run { run, class, .. } => {
                    // All of its pages: a run may lie on both sides of a boundary, and is cleared
                    // on both when it is emptied.
                    let shape = self.blocks.classes.get(class.into());
                    let run_pages = shape.map_or(1, |shape| shape.run_pages);
                    self.boot_zones(run, run_pages)?;
                    self.load_run(run, class)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses to free an extent that covers what is not its own: what a damaged descriptor says
    /// would be given away twice. O(pages), 8 bytes each.
    fn judge_extent(&self, page: u64, pages: u64) -> Result<()> {
        let mut is_whole = !self.writer.arena.has_free(page, pages);
        for inner in page + 1..page + pages {
            let is_boundary = inner.is_multiple_of(ZONE_PAGES);
            let expected = if is_boundary { KIND_EXTENT_CONTINUED } else { KIND_FREE };
            is_whole &= self.image.descriptor(inner)?.kind == expected;
        }
        if is_whole {
            return Ok(());
        }
        Err(Error::InvalidPointer {
            offset: page * PAGE_BYTES,
            what: "is in an extent that overlaps others",
        })
    }

    /// The bits of all blocks reserved and freed, one entry a word, sorted by word.
    fn collect_bits(&mut self) -> Result<()> {
        let mut bits = std::mem::take(&mut self.writer.bits);
        bits.clear();
        let level = &self.writer.levels[0];
        for (_, fresh) in level.fresh.entries() {
            if let Place::Run { run, class, index, .. } = fresh.place {
                let (word, mask) = self.bit(run, class, index);
                bits.push(Bits { word, set: mask, clear: 0, run });
            }
        }
        for (_, place) in level.freed.entries() {
            if let Place::Run { run, class, index, .. } = *place {
                let (word, mask) = self.bit(run, class, index);
                bits.push(Bits { word, set: 0, clear: mask, run });
            }
        }
        bits.sort_unstable_by_key(|bits| bits.word);
        bits.dedup_by(|next, kept| {
            let same = next.word == kept.word;
            if same {
                kept.set |= next.set;
                kept.clear |= next.clear;
            }
            same
        });
        self.writer.bits = bits;
        Ok(())
    }

    /// Runs of which this commit frees the last block give their pages back: their bits are
    /// dropped, their descriptors cleared.
    fn free_empty_runs(&mut self) -> Result<()> {
        self.writer.emptied.clear();
        if self.writer.levels[0].freed.entries().is_empty() {
            return Ok(());
        }
        let mut bits = std::mem::take(&mut self.writer.bits);
        for words in bits.chunk_by(|one, other| one.run == other.run) {
            let Some(first) = words.first() else { continue };
            let cleared: u64 = words.iter().map(|bits| u64::from(bits.clear.count_ones())).sum();
            if cleared > 0 && self.writer.arena.live_unless_current(first.run) == Some(cleared) {
                let class = self.image.descriptor(first.run)?.class.get();
                let pages = self.blocks.classes.get(class).map_or(0, |shape| shape.run_pages);
                self.writer.emptied.push((first.run, pages));
            }
        }
        for index in 0..self.writer.emptied.len() {
            let Some(&(run, pages)) = self.writer.emptied.get(index) else { break };
            bits.retain(|bits| bits.run != run);
            self.track(descriptor_offset(run), pages * DESCRIPTOR_BYTES)?.fill(0);
        }
        self.writer.bits = bits;
        Ok(())
    }

    /// Puts everything into the record, sorted by heap offset: small deltas, and the applier
    /// meets each page once.
    fn build_record(&mut self) -> Result<()> {
        let image = &*self.image;
        let writer = &mut *self.writer;
        let level = &writer.levels[0];
        writer.parts.clear();
        writer.parts.extend(level.ranges.lines().map(|(offset, line)| (offset, Part::Line(line))));
        let fresh = level.fresh.entries().iter().zip(0..);
        writer.parts.extend(
            fresh
                .filter(|((_, fresh), _)| fresh.written > 0)
                .map(|((block, _), i)| (*block, Part::Fresh(i))),
        );
        let bits = writer.bits.iter().zip(0..);
        writer.parts.extend(bits.map(|(bits, index)| (bits.word, Part::Bits(index))));
        writer.parts.sort_unstable();
        writer.record.clear();
        for &(offset, part) in &writer.parts {
            match part {
                Part::Line(line) => {
                    for (start, len) in level.ranges.spans(line) {
                        writer.record.bytes(start, image.bytes(start, len)?);
                    }
                }
                Part::Fresh(index) => {
                    if let Some((_, fresh)) = level.fresh.entries().get(index as usize) {
                        writer.record.bytes(offset, image.bytes(offset, fresh.written)?);
                    }
                }
                Part::Bits(index) => {
                    if let Some(bits) = writer.bits.get(index as usize) {
                        if bits.set != 0 {
                            writer.record.set_bits(bits.word, bits.set);
                        }
                        if bits.clear != 0 {
                            writer.record.clear_bits(bits.word, bits.clear);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies to the image what the record says about bits, and retires what was freed.
    fn publish(&mut self, sequence: u64) {
        let writer = &mut *self.writer;
        for bits in &writer.bits {
            let changed = self.image.change_bits(bits.word, bits.set, bits.clear);
            debug_assert!(changed.is_ok(), "words of known runs exist");
        }
        for &(run, pages) in &writer.emptied {
            writer.arena.remove_run(run);
            writer.arena.retire_pages(sequence, run, pages);
        }
        for (_, place) in writer.levels[0].freed.entries() {
            match *place {
                // The blocks of an emptied run were retired with its pages.
                Place::Run { run, index, .. } if writer.arena.is_loaded(run) => {
                    writer.arena.retire_block(sequence, run, index);
                }
                Place::Run { .. } => {}
                Place::Extent { page, pages } => writer.arena.retire_pages(sequence, page, pages),
            }
        }
    }
}
