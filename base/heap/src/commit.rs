//! The commit of a heap transaction: everything it did becomes one record, then visible.
//!
//! Purpose: R5. All that can fail happens before the record is appended; a failure there drops
//! the transaction, which undoes it. After the append only memory changes.

use zerocopy::little_endian::{U16, U32};

use crate::arena::{Arena, Retired};
use crate::error::{Error, Result};
use crate::image::Place;
use crate::layout::{
    Descriptor, KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_FREE, PAGE_BYTES, ZONE_PAGES,
    descriptor_offset,
};
use crate::tx::Transaction;
use crate::writer::{Bits, Part, Written};

impl Transaction<'_> {
    /// Makes everything one record, and visible. Returns its sequence number; `None` when there
    /// was nothing to do. `released` tells up to which sequence number no pin looks at what
    /// commits freed.
    pub(crate) fn commit(mut self, released: impl FnOnce() -> u64) -> Result<Option<u64>> {
        debug_assert_eq!(self.depth, 0, "savepoints end before their transaction");
        self.judge_freed()?;
        self.collect_descriptors();
        self.collect_bits();
        self.build_record()?;
        let mut sequence = None;
        if !self.writer.record.is_empty() {
            let appended = self.supply.journal.append(&self.writer.record)?;
            self.publish(appended);
            sequence = Some(appended);
        }
        self.done = true;
        self.writer.levels[0].clear();
        if self.supply.space.has_waiting() {
            self.recycle(released());
        }
        Ok(sequence)
    }

    /// Makes reusable what was freed by commits up to `released`.
    pub(crate) fn recycle(&self, released: u64) {
        let mut arena = self.supply.space.arena();
        arena.release(released);
        self.supply.unmake_empty_runs(&mut arena, &self.image);
        self.supply.space.note_waiting(&arena);
    }

    /// Boots the zones of freed extents, whose descriptors are to change, and loads freed runs.
    fn judge_freed(&self) -> Result<()> {
        let freed = self.writer.levels[0].freed.entries();
        if freed.is_empty() {
            return Ok(());
        }
        let mut arena = self.supply.space.arena();
        for &(_, place) in freed {
            match place {
                Place::Extent { page, pages } => {
                    self.supply.boot_zones(&mut arena, page, pages)?;
                    self.judge_extent(&arena, page, pages)?;
                }
                Place::Run { run, class, .. } => self.supply.load_run(&mut arena, run, class)?,
            }
        }
        Ok(())
    }

    /// Refuses to free an extent that covers what is not its own: what a damaged descriptor says
    /// would be given away twice. O(pages), 8 bytes each.
    fn judge_extent(&self, arena: &Arena, page: u64, pages: u64) -> Result<()> {
        let mut is_whole = !arena.has_free(page, pages);
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

    /// The descriptors of all extents reserved and freed.
    fn collect_descriptors(&mut self) {
        let writer = &mut *self.writer;
        writer.descriptors.clear();
        let level = &writer.levels[0];
        for (_, fresh) in level.fresh.entries() {
            if let Place::Extent { page, pages } = fresh.place {
                writer.descriptors.extend(extent_descriptors(page, pages, true));
            }
        }
        for (_, place) in level.freed.entries() {
            if let Place::Extent { page, pages } = *place {
                writer.descriptors.extend(extent_descriptors(page, pages, false));
            }
        }
    }

    /// The bits of all blocks reserved and freed, one entry a word, sorted by word.
    fn collect_bits(&mut self) {
        let writer = &mut *self.writer;
        let classes = self.blocks.classes;
        let bits_of = |place: Place, is_set: bool| {
            let Place::Run { run, class, index, .. } = place else { return None };
            let word = index / 64;
            let (offset, shift) = classes.get(class.into())?.bitmap_word(run, word as usize);
            let mask = 1 << (index % 64);
            let (set, clear) = if is_set { (mask, 0) } else { (0, mask) };
            Some(Bits { offset, set, clear, shift, word: word as u32, run })
        };
        writer.bits.clear();
        let level = &writer.levels[0];
        let fresh = level.fresh.entries().iter();
        writer.bits.extend(fresh.filter_map(|(_, fresh)| bits_of(fresh.place, true)));
        let freed = level.freed.entries().iter();
        writer.bits.extend(freed.filter_map(|(_, place)| bits_of(*place, false)));
        writer.bits.sort_unstable_by_key(|bits| bits.offset);
        writer.bits.dedup_by(|next, kept| {
            let same = next.offset == kept.offset;
            if same {
                kept.set |= next.set;
                kept.clear |= next.clear;
            }
            same
        });
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
        writer.parts.extend(bits.map(|(bits, index)| (bits.offset, Part::Bits(index))));
        let descriptors = writer.descriptors.iter().zip(0..);
        let part = |(written, index): (&Written, u32)| (written.offset, Part::Descriptor(index));
        writer.parts.extend(descriptors.map(part));
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
                Part::Descriptor(index) => {
                    if let Some(written) = writer.descriptors.get(index as usize) {
                        writer.record.bytes(offset, &written.descriptor.word().to_le_bytes());
                    }
                }
                Part::Bits(index) => {
                    if let Some(bits) = writer.bits.get(index as usize) {
                        writer.record.set_bits(bits.offset, bits.set << bits.shift);
                        writer.record.clear_bits(bits.offset, bits.clear << bits.shift);
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies to the image what the record says about the allocator, and retires what was freed.
    fn publish(&mut self, sequence: u64) {
        let writer = &*self.writer;
        for bits in &writer.bits {
            let (set, clear) = (bits.set << bits.shift, bits.clear << bits.shift);
            let changed = self.image.change_bits(bits.offset, set, clear);
            debug_assert!(changed.is_ok(), "words of known runs exist");
        }
        for written in &writer.descriptors {
            self.supply.space.settled.settle(written.offset, 8);
            let stored = self.image.store_word(written.offset, written.descriptor.word());
            debug_assert!(stored.is_ok(), "descriptors of known extents exist");
        }
        let freed = writer.levels[0].freed.entries();
        if freed.is_empty() {
            return;
        }
        let mut arena = self.supply.space.arena();
        for bits in writer.bits.iter().filter(|bits| bits.clear != 0) {
            let Bits { run, word, clear: mask, .. } = *bits;
            arena.retire(sequence, Retired::Blocks { run, word, mask });
        }
        for (_, place) in freed {
            if let Place::Extent { page, pages } = *place {
                arena.retire(sequence, Retired::Pages { start: page, pages });
            }
        }
        self.supply.space.note_waiting(&arena);
    }
}

/// The descriptors that an extent has, or had: of its first page, and of the first in each further
/// zone. All others are zero.
fn extent_descriptors(page: u64, pages: u64, is_there: bool) -> impl Iterator<Item = Written> {
    let later = page / ZONE_PAGES + 1..(page + pages).div_ceil(ZONE_PAGES);
    let starts = std::iter::once(page).chain(later.map(|zone| zone * ZONE_PAGES));
    starts.map(move |start| {
        const { assert!(KIND_FREE == 0) };
        let kind = if start == page { KIND_EXTENT } else { KIND_EXTENT_CONTINUED };
        let left = U32::new((page + pages - start) as u32);
        let there = Descriptor { kind, flags: 0, class: U16::new(0), argument: left };
        let descriptor = if is_there { there } else { Descriptor::default() };
        Written { offset: descriptor_offset(start), descriptor }
    })
}
