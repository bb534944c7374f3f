//! The commit of a heap transaction: it becomes one record, then becomes visible.
//!
//! Purpose: R5. All that can fail happens before the record is appended; a failure there drops the
//! transaction, which undoes it. After the append only memory changes.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::journal::Journal;
use crate::space::block_bits::Finder;
use crate::transaction::calls::Along;
use crate::transaction::chunked::{Ending, Last};
use crate::transaction::scratch::{Part, Placed, Writer};
use crate::transaction::tx::Transaction;

/// Parts of a record that are added before waiting readers are admitted: some 20 us.
const PARTS_AT_ONCE: usize = 256;

/// Poisons the journal if it is dropped: a callback of a commit panicked before memory showed the
/// commit. Undoing the commit there would leave memory that the log contradicts, and a checkpoint
/// would make it durable (C2).
pub(crate) struct Unwound<'j>(pub(crate) &'j Journal);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        self.0.poison(Error::Misuse {
            what: "who is told of a commit must not panic before it is visible; open the heap again",
        });
    }
}

impl Transaction<'_> {
    /// Appends everything as one record and makes it visible: then nothing is left to undo. Returns
    /// the sequence number; `None` when there was nothing to do. Calls `last` when the commit
    /// cannot fail any more, before any other thread sees it. Answers the requests that came
    /// `along` last.
    pub(crate) fn commit(&mut self, last: Last<'_>, mut along: Along<'_>) -> Result<Option<u64>> {
        debug_assert_eq!(self.depth, 0, "savepoints end before their transaction");
        self.end_changes();
        self.verify_freed()?;
        self.collect_changes();
        self.writer.changes.touch(self.allocator.space)?;
        self.build_record()?;
        let journal = self.allocator.journal;
        let mut committed = None;
        if !self.writer.record.is_empty() {
            let journal = journal.writable()?;
            self.admit_until_appended();
            let sequence = journal.append(&self.writer.record)?;
            let unwound = Unwound(journal);
            committed = Some(sequence);
            if self.admits_readers {
                // Readers may be inside: nothing that they see leads to these blocks.
                self.writer.changes.apply_reserved(self.allocator.space);
                last.into_iter().for_each(|last| last(&mut Ending::of(self)));
                self.image.drain_readers();
            }
            self.show(sequence);
            std::mem::forget(unwound);
            self.writer.record.trim();
        }
        self.done = true;
        self.end_chunks();
        let hooks = std::mem::take(&mut self.writer.levels[0].hooks);
        self.writer.levels[0].clear();
        self.writer.trim();
        if let Some(along) = &mut along {
            along.is_done_by(committed.unwrap_or_else(|| journal.last_sequence()));
        }
        if !hooks.is_empty() {
            // Last: a hook that panics leaves nothing half done.
            let sequence = committed.unwrap_or_else(|| journal.last_sequence());
            hooks.into_iter().for_each(|hook| hook.0(sequence));
        }
        Ok(committed)
    }

    /// Loads the zone metadata and the runs of freed blocks, whose words are about to change.
    fn verify_freed(&self) -> Result<()> {
        let freed = &self.writer.levels[0].freed;
        if freed.is_empty() {
            return Ok(());
        }
        let mut arena = self.allocator.space.arena();
        freed.words().try_for_each(|word| self.allocator.verify_freed(&mut arena, word.place))
    }

    /// Collects the bits and descriptors of all blocks reserved and freed.
    fn collect_changes(&mut self) {
        let writer = &mut *self.writer;
        let level = &writer.levels[0];
        writer.changes.clear();
        for word in level.fresh.words() {
            writer.changes.add(self.blocks.classes, word);
        }
        for word in level.freed.words() {
            writer.changes.free(self.blocks.classes, word);
        }
        writer.changes.coalesce();
    }

    /// Sorts all parts of the record by heap offset; collects the heap ranges of freed blocks,
    /// which are left out: no reader needs them.
    fn sort_parts(&mut self) {
        let writer = &mut *self.writer;
        let level = &writer.levels[0];
        writer.page_ranges.clear();
        if !level.freed.is_empty() {
            level.freed.page_ranges(self.blocks.classes, &mut writer.page_ranges);
        }
        let parts = &mut writer.parts;
        parts.clear();
        // Pushed in loops: the parts are few, and iterators that filter cost more than they save
        // (300 instructions).
        for (offset, place) in level.ranges.logged() {
            parts.push(Placed::new(offset, Part::Range(place)));
        }
        for (block, index) in level.fresh.numbered(self.blocks.classes) {
            parts.push(Placed::new(block, Part::Fresh(index)));
        }
        for (bits, index) in writer.changes.bits.iter().zip(0..) {
            parts.push(Placed::new(bits.offset, Part::Bits(index)));
        }
        for (written, index) in writer.changes.descriptors.iter().zip(0..) {
            parts.push(Placed::new(written.offset, Part::Descriptor(index)));
        }
        parts.sort_unstable();
    }

    /// Builds the record, sorted by heap offset: the deltas are small, and each page appears once.
    fn build_record(&mut self) -> Result<()> {
        self.sort_parts();
        self.writer.record.clear();
        let (mut start, count) = (0, self.writer.parts.len());
        // Ranges overlap: what lies before this offset is in the record already.
        let mut ranges_end = 0;
        while start < count {
            self.admit_until_appended();
            let end = count.min(start + PARTS_AT_ONCE);
            self.add_parts(start..end, &mut ranges_end)?;
            start = end;
        }
        Ok(())
    }

    fn add_parts(&mut self, parts: Range<usize>, ranges_end: &mut u64) -> Result<()> {
        let (image, classes) = (&*self.image, self.blocks.classes);
        let Writer { levels, record, changes, parts: all, page_ranges, .. } = &mut *self.writer;
        let level = &levels[0];
        let mut freed = Finder::new(page_ranges);
        for placed in all.get(parts).unwrap_or_default() {
            let offset = placed.offset();
            match placed.part() {
                Part::Range(place) => {
                    let Range { mut start, end } = level.ranges.range(place);
                    start = start.max(*ranges_end);
                    *ranges_end = end.max(*ranges_end);
                    while start < end {
                        let (freed, behind) = freed.find(start).unwrap_or((end, end));
                        let stop = freed.clamp(start, end);
                        record.bytes(start, image.bytes(start, stop - start)?);
                        start = if stop < end { behind } else { end };
                    }
                }
                Part::Fresh(index) => {
                    for (block, len) in level.fresh.numbers(index, classes) {
                        record.bytes(block, image.bytes(block, len)?);
                    }
                }
                Part::Descriptor(index) => {
                    if let Some(written) = changes.descriptors.get(index as usize) {
                        record.bytes(offset, &written.descriptor.word().to_le_bytes());
                    }
                }
                Part::Bits(index) => {
                    if let Some(bits) = changes.bits.get(index as usize) {
                        let (set, clear) = bits.masks();
                        record.set_bits(bits.offset, set);
                        record.clear_bits(bits.offset, clear);
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies to the image what the record says about the allocator, and retires what was freed.
    fn show(&mut self, sequence: u64) {
        if self.admits_readers {
            self.admit_after_commit();
            self.writer.changes.apply_freed(self.allocator.space);
        } else {
            self.writer.changes.apply(self.allocator.space);
        }
        let writer = &*self.writer;
        if !writer.levels[0].freed.is_empty() {
            let space = self.allocator.space;
            writer.changes.retire(space, &mut space.arena(), sequence);
        }
    }
}
