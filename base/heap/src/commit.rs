//! The commit of a heap transaction: everything it did becomes one record, then visible.
//!
//! Purpose: R5. All that can fail happens before the record is appended; a failure there drops
//! the transaction, which undoes it. After the append only memory changes.

use crate::changes::Written;
use crate::direct::Direct;
use crate::error::Result;
use crate::image::Exclusive;
use crate::lanes::Fresh;
use crate::marked::Finder;
use crate::pieces::Ending;
use crate::tx::Transaction;
use crate::writer::{Part, Placed};

impl<'h> Transaction<'h> {
    /// Makes everything one record, and visible: then nothing is left to undo. Returns its sequence
    /// number; `None` when there was nothing to do. `last` is called when it cannot fail any more, before
    /// anybody sees it, `recycle` at the end, when something waits to become reusable.
    pub(crate) fn commit(
        &mut self,
        last: impl FnOnce(&mut Ending<'_, 'h>),
        recycle: impl FnOnce(&Exclusive<'_>),
    ) -> Result<Option<u64>> {
        debug_assert_eq!(self.depth, 0, "savepoints end before their transaction");
        self.let_in_to_the_end();
        self.judge_freed()?;
        self.collect_changes();
        self.leave_out();
        let fresh = self.build_record()?;
        let journal = self.supply.journal;
        let mut sequence = None;
        if self.writer.record.is_empty() {
            // All that was changed in place was taken back by savepoints.
            self.end_undo();
        } else {
            let record = &self.writer.record;
            let appended = journal.append_commit(record, fresh, &mut self.undo, &self.image)?;
            sequence = Some(appended.sequence);
            self.note_unproven(fresh);
            if self.lets_in {
                // Readers may be in: nothing that they see leads to these blocks.
                self.writer.changes.apply_reserved(self.supply.space);
                last(&mut Ending::of(self));
                self.image.shut_out();
            }
            self.show(appended.sequence);
            journal.applied(appended, &self.writer.record, &self.image);
            self.writer.record.trim();
        }
        self.done = true;
        self.end_pieces();
        let hooks = std::mem::take(&mut self.writer.levels[0].hooks);
        self.writer.levels[0].clear();
        self.writer.clear_copies();
        self.writer.trim();
        if self.supply.space.has_waiting() {
            recycle(&self.image);
        }
        if !hooks.is_empty() {
            // Last: one that panics leaves nothing half done.
            let sequence = sequence.unwrap_or_else(|| journal.last_sequence());
            hooks.into_iter().for_each(|hook| hook.0(sequence));
        }
        Ok(sequence)
    }

    /// Boots the zones of freed blocks, whose words are to change, and loads their runs.
    fn judge_freed(&self) -> Result<()> {
        let freed = &self.writer.levels[0].freed;
        if freed.is_empty() {
            return Ok(());
        }
        let mut arena = self.supply.space.arena();
        freed.words().try_for_each(|word| self.supply.judge_freed(&mut arena, word.place))
    }

    /// The bits and descriptors of all blocks reserved and freed.
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

    /// Takes what was written to blocks that are freed as well out of the record: nobody will read
    /// it. And what was written in two ways once.
    fn leave_out(&mut self) {
        let writer = &mut *self.writer;
        let level = &mut writer.levels[0];
        let (has_unused, has_ranges) = (!level.unused.is_empty(), !level.ranges.is_empty());
        writer.stretches.clear();
        if !level.freed.is_empty() && (has_unused || has_ranges || !level.shadows.is_empty()) {
            level.freed.stretches(self.blocks.classes, &mut writer.stretches);
        }
        if has_unused {
            level.unused.settle(&writer.stretches);
            level.ranges.leave_out(level.unused.all());
        }
        if writer.stretches.is_empty() {
            return;
        }
        level.ranges.leave_out(&writer.stretches);
        let mut finder = Finder::new(&writer.stretches);
        for (original, shadow) in level.shadows.all(self.blocks.classes) {
            if finder.find(original.offset).is_some_and(|(start, _)| start <= original.offset) {
                writer.shadows.leave_out(shadow);
            }
        }
    }

    /// All that goes into the record, sorted by heap offset.
    fn sort_parts(&mut self) {
        let writer = &mut *self.writer;
        let level = &writer.levels[0];
        let parts = &mut writer.parts;
        parts.clear();
        let lines = level.ranges.lines();
        parts.extend(lines.map(|(offset, line)| Placed::new(offset, Part::Line(line))));
        let unused = level.unused.all().iter().zip(0..);
        parts.extend(unused.map(|((start, _), index)| Placed::new(*start, Part::Unused(index))));
        let fresh = level.fresh.numbered(self.blocks.classes);
        parts.extend(fresh.map(|(block, index)| Placed::new(block, Part::Fresh(index))));
        if !level.shadows.is_empty() {
            let (roots, shadows) = level.shadows.words(self.blocks.classes);
            parts.extend(roots.map(|(original, _)| Placed::new(original.offset, Part::Roots)));
            parts.extend(shadows.map(|(block, index)| Placed::new(block, Part::Shadow(index))));
        }
        let bits = writer.changes.bits.iter().zip(0..);
        parts.extend(bits.map(|(bits, index)| Placed::new(bits.offset, Part::Bits(index))));
        let descriptors = writer.changes.descriptors.iter().zip(0..);
        let placed = |(written, index): (&Written, u32)| {
            Placed::new(written.offset, Part::Descriptor(index))
        };
        parts.extend(descriptors.map(placed));
        parts.sort_unstable();
    }

    /// Puts everything into the record, sorted by heap offset: small deltas, and the applier
    /// meets each page once.
    ///
    /// Where memory is the medium, what was written in place (fresh blocks, large blocks) is
    /// flushed here instead, and named by the record; the result says how it becomes durable.
    fn build_record(&mut self) -> Result<Fresh> {
        self.sort_parts();
        let image = &*self.image;
        let writer = &mut *self.writer;
        let level = &writer.levels[0];
        let persist = self.supply.journal.persist();
        writer.named.clear();
        let mut direct =
            persist.map(|persist| Direct::new(persist, image, Some(&mut writer.named)));
        writer.record.clear();
        writer.spans.clear();
        for placed in &writer.parts {
            let offset = placed.offset();
            match placed.part() {
                Part::Line(line) => {
                    for (start, len) in level.ranges.spans(line) {
                        match &mut direct {
                            Some(direct) => direct.add(start, len, &mut writer.record)?,
                            None => writer.record.bytes(start, image.bytes(start, len)?),
                        }
                    }
                }
                Part::Unused(index) => {
                    if let Some(&(start, end)) = level.unused.all().get(index as usize) {
                        match &mut direct {
                            Some(direct) => direct.add(start, end - start, &mut writer.record)?,
                            None => writer.record.bytes(start, image.bytes(start, end - start)?),
                        }
                    }
                }
                Part::Fresh(index) => {
                    for (block, len) in level.fresh.numbers(index, self.blocks.classes) {
                        match &mut direct {
                            Some(direct) => direct.add(block, len, &mut writer.record)?,
                            None => writer.record.bytes(block, image.bytes(block, len)?),
                        }
                    }
                }
                Part::Shadow(index) => {
                    let (record, known) = (&mut writer.record, &mut writer.spans);
                    for (block, shadow) in level.shadows.of_word(index, self.blocks.classes) {
                        writer.shadows.spans(block, shadow, |span, bytes| {
                            record.bytes(span.offset, bytes);
                            known.push(span);
                        });
                    }
                }
                Part::Roots => {
                    let (roots, _) = level.shadows.words(self.blocks.classes);
                    let (record, known) = (&mut writer.record, &mut writer.spans);
                    if let Some((original, shadow)) = roots {
                        writer.shadows.spans(original.offset, shadow, |span, bytes| {
                            record.bytes(span.offset, bytes);
                            known.push(span);
                        });
                    }
                }
                Part::Descriptor(index) => {
                    if let Some(written) = writer.changes.descriptors.get(index as usize) {
                        writer.record.bytes(offset, &written.descriptor.word().to_le_bytes());
                    }
                }
                Part::Bits(index) => {
                    if let Some(bits) = writer.changes.bits.get(index as usize) {
                        let (set, clear) = bits.masks();
                        writer.record.set_bits(bits.offset, set);
                        writer.record.clear_bits(bits.offset, clear);
                    }
                }
            }
        }
        match direct {
            None => Ok(Fresh::Durable),
            Some(direct) => direct.finish(&mut writer.record, self.has_put_back),
        }
    }

    /// Notes the ranges by which recovery would judge the record that was appended.
    fn note_unproven(&mut self, fresh: Fresh) {
        let writer = &mut *self.writer;
        match fresh {
            Fresh::Shared(_) => std::mem::swap(&mut writer.named, &mut writer.unproven),
            Fresh::Durable => writer.unproven.clear(),
        }
        if let Some(lanes) = self.supply.journal.lanes() {
            lanes.note_proven();
        }
    }

    /// Applies to the image what the record says about the allocator, and retires what was freed.
    fn show(&mut self, sequence: u64) {
        let writer = &*self.writer;
        for span in &writer.spans {
            put(&mut self.image, span.offset, writer.shadows.span(*span));
        }
        if self.lets_in {
            self.let_in_afterwards();
            self.writer.changes.apply_freed(self.supply.space);
        } else {
            self.writer.changes.apply(self.supply.space);
        }
        let writer = &*self.writer;
        if writer.levels[0].freed.is_empty() {
            return;
        }
        let mut arena = self.supply.space.arena();
        for freed in writer.changes.freed() {
            self.supply.space.note_freed(sequence, freed);
            arena.retire(sequence, freed);
        }
        self.supply.space.note_waiting(&arena);
    }

    /// Writes the copies of blocks to the blocks.
    pub(crate) fn show_copies(&mut self) {
        let writer = &*self.writer;
        for (original, shadow) in writer.levels[0].shadows.all(self.blocks.classes) {
            writer.shadows.spans(original.offset, shadow, |span, bytes| {
                put(&mut self.image, span.offset, bytes);
            });
        }
    }
}

/// Writes bytes of a copy to its block.
#[inline]
fn put(image: &mut Exclusive<'_>, offset: u64, bytes: &[u8]) {
    let target = image.bytes_mut(offset, bytes.len() as u64);
    debug_assert!(target.is_ok(), "blocks with copies exist");
    if let Ok(target) = target {
        target.copy_from_slice(bytes);
    }
}
