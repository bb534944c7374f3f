//! The allocator changes of a commit: bits of blocks, descriptors of extents.
//!
//! Purpose: collect the changes, with the bits of one word coalesced; add them to a record; and
//! apply them to memory after the record was appended.
//! Thread safety: none of its own; the words themselves are atomics.

use zerocopy::little_endian::{U16, U32};

use crate::collections::offset_map::trim;
use crate::error::Result;
use crate::image::block_location::BlockLocation;
use crate::image::class::ClassTable;
use crate::journal::RecordBuilder;
use crate::layout::{
    Descriptor, KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_FREE, ZONE_PAGES, descriptor_offset,
};
use crate::space::arena::{Arena, Retired};
use crate::space::block_bits::Word;
use crate::space::state::Space;

/// One word of a bitmap that a commit changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    /// Heap offset of the word.
    pub(crate) offset: u64,
    set: u64,
    clear: u64,
    /// The bit of the word at which the bitmap begins.
    shift: u32,
    /// The number of the word in the bitmap.
    word: u32,
    /// First page of the run.
    run: u64,
}

impl Bits {
    /// The bits to set and to clear in the word.
    pub(crate) fn masks(&self) -> (u64, u64) {
        (self.set << self.shift, self.clear << self.shift)
    }
}

/// A descriptor that a commit writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    /// Its heap offset.
    pub(crate) offset: u64,
    pub(crate) descriptor: Descriptor,
}

/// The words that a commit changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) bits: Vec<Bits>,
    pub(crate) descriptors: Vec<Written>,
    /// Extents freed: first page, pages.
    freed_extents: Vec<(u64, u64)>,
}

impl Changes {
    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.bits.clear();
        self.descriptors.clear();
        self.freed_extents.clear();
    }

    /// Frees memory that many changes took.
    #[inline]
    pub(crate) fn trim(&mut self) {
        trim(&mut self.bits);
        trim(&mut self.descriptors);
        trim(&mut self.freed_extents);
    }

    /// Adds blocks that become allocated.
    pub(crate) fn add(&mut self, classes: &ClassTable, word: Word) {
        match word.place {
            BlockLocation::Extent { page, pages } => {
                self.descriptors.extend(extent_descriptors(page, pages, true));
            }
            BlockLocation::Run { run, class, index, .. } => {
                self.add_bits(classes, run, class, index / 64, (word.mask, 0));
            }
        }
    }

    /// Adds blocks that become free.
    pub(crate) fn free(&mut self, classes: &ClassTable, word: Word) {
        match word.place {
            BlockLocation::Extent { page, pages } => {
                self.descriptors.extend(extent_descriptors(page, pages, false));
                self.freed_extents.push((page, pages));
            }
            BlockLocation::Run { run, class, index, .. } => {
                self.add_bits(classes, run, class, index / 64, (0, word.mask));
            }
        }
    }

    fn add_bits(
        &mut self,
        classes: &ClassTable,
        run: u64,
        class: u8,
        word: u64,
        (set, clear): (u64, u64),
    ) {
        let Some(shape) = classes.get(class.into()) else { return };
        let (offset, shift) = shape.bitmap_word(run, word as usize);
        self.bits.push(Bits { offset, set, clear, shift, word: word as u32, run });
    }

    /// Merges the bits of each word into one entry. Call it when all are added.
    pub(crate) fn coalesce(&mut self) {
        self.bits.sort_unstable_by_key(|bits| bits.offset);
        self.bits.dedup_by(|next, kept| {
            let same = next.offset == kept.offset;
            if same {
                kept.set |= next.set;
                kept.clear |= next.clear;
            }
            same
        });
    }

    /// Adds all of them to a record.
    pub(crate) fn put(&self, record: &mut RecordBuilder) {
        for bits in &self.bits {
            let (set, clear) = bits.masks();
            record.set_bits(bits.offset, set);
            record.clear_bits(bits.offset, clear);
        }
        for written in &self.descriptors {
            record.bytes(written.offset, &written.descriptor.word().to_le_bytes());
        }
    }

    /// Touches the memory that `apply` will change after the append, where nothing may fail.
    ///
    /// # Errors
    /// As [`Image::touch`](crate::image::mapping::Image::touch).
    pub(crate) fn touch(&self, space: &Space) -> Result<()> {
        let words = self.bits.iter().map(|bits| bits.offset);
        let mut words = words.chain(self.descriptors.iter().map(|written| written.offset));
        words.try_for_each(|offset| space.image.touch(offset, 8))
    }

    /// Applies the changes to memory after the record was appended.
    pub(crate) fn apply(&self, space: &Space) {
        self.apply_masks(space, u64::MAX, u64::MAX);
    }

    /// Applies only what was reserved.
    pub(crate) fn apply_reserved(&self, space: &Space) {
        self.apply_masks(space, u64::MAX, 0);
    }

    /// Applies only what was freed.
    pub(crate) fn apply_freed(&self, space: &Space) {
        self.apply_masks(space, 0, u64::MAX);
    }

    #[inline]
    fn apply_masks(&self, space: &Space, reserved: u64, freed: u64) {
        for bits in &self.bits {
            let (set, clear) = bits.masks();
            let (set, clear) = (set & reserved, clear & freed);
            if set | clear != 0 {
                let changed = space.image.change_bits(bits.offset, set, clear);
                debug_assert!(changed.is_ok(), "words of known runs exist");
            }
        }
        for written in &self.descriptors {
            let is_free = written.descriptor.kind == KIND_FREE;
            if (if is_free { freed } else { reserved }) == 0 {
                continue;
            }
            let stored = space.image.store_word(written.offset, written.descriptor.word());
            debug_assert!(stored.is_ok(), "descriptors of known extents exist");
        }
    }

    /// Retires what the record with this sequence number freed; memory shows the record already.
    /// Returns how much.
    pub(crate) fn retire(&self, space: &Space, arena: &mut Arena, sequence: u64) -> usize {
        let mut count = 0;
        for freed in self.freed() {
            space.note_freed(sequence, freed);
            arena.retire(sequence, freed);
            count += 1;
        }
        space.note_waiting(arena);
        count
    }

    /// The blocks and extents that the changes free.
    fn freed(&self) -> impl Iterator<Item = Retired> + '_ {
        let blocks = self.bits.iter().filter(|bits| bits.clear != 0).map(|bits| {
            let Bits { run, word, clear: mask, .. } = *bits;
            Retired::Blocks { run, word, mask }
        });
        let extents = self.freed_extents.iter();
        blocks.chain(extents.map(|&(start, pages)| Retired::Pages { start, pages }))
    }
}

/// The descriptors that an extent has, or had: of its first page, and of the first page in each
/// further zone. All others are zero.
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
