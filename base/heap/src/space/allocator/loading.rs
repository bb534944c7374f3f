//! What the allocator loads of the pool: descriptors of zones, and bitmaps of runs.
//!
//! Purpose: nothing is loaded when a heap is opened; each part is when something in it is to
//! change, or in the background.
//! Invariants (R7): what is loaded is verified against its checksums, while it still is what the
//! file holds.
//! Thread safety: as of the allocator, under the arena's lock.

use super::BlockAllocator;
use crate::error::{Error, Result};
use crate::image::block_location::BlockLocation;
use crate::layout::{
    DESCRIPTOR_BYTES, FLAG_OPEN, KIND_EXTENT_CONTINUED, KIND_FREE, PAGE_BYTES, ZONE_PAGES,
    descriptor_offset,
};
use crate::space::arena::Arena;
use crate::space::state::Space;

/// Bitmaps that one call of `load_runs` loads.
const LOADED_PART: usize = 64;

impl BlockAllocator<'_> {
    /// Loads the bitmap of a run into the arena, and the metadata of its zones, so that the run can
    /// change.
    ///
    /// # Errors
    /// `Error::Damaged` when its first page is not what was written (R7); those of the medium.
    pub(super) fn load_run(self, arena: &mut Arena, run: u64, class: u8) -> Result<()> {
        if arena.is_loaded(run) {
            return Ok(());
        }
        let Space { image, classes, .. } = self.space;
        let Some(shape) = classes.get(class.into()) else {
            return Err(Error::InvalidPointer {
                offset: run * PAGE_BYTES,
                what: "is in a run of an unknown class",
            });
        };
        // All of its pages: a run may cross a zone boundary, and its bitmap may be in its
        // descriptor.
        self.boot_zones(arena, run, shape.run_pages)?;
        if !shape.bitmap_in_descriptor {
            // R7: allocator pages are verified when first loaded. A page that this process changed
            // was verified before its first store.
            image.verify(run * PAGE_BYTES, 1)?;
        }
        let is_open = image.descriptor(run)?.flags & FLAG_OPEN != 0;
        arena.load_run(run, class, shape, is_open, |word| image.bitmap_word(run, shape, word))
    }

    /// Loads some of the bitmaps that are not loaded since the heap was opened; false if none is
    /// left. Skips a damaged run: its blocks stay as they are.
    ///
    /// # Errors
    /// `Error::Damaged` for descriptors that are not what was written; those of the medium.
    pub(crate) fn load_runs(self) -> Result<bool> {
        let mut arena = self.space.arena();
        if let Some(zone) = arena.unbooted_zone() {
            self.boot_zone(&mut arena, zone)?;
            return Ok(true);
        }
        let mut left = LOADED_PART;
        for class in 0..=u8::MAX {
            while let Some(run) = arena.take_unloaded(class) {
                if self.space.image.descriptor(run)?.is_run_of(class.into()) {
                    match self.load_run(&mut arena, run, class) {
                        Ok(()) | Err(Error::Damaged { .. } | Error::InvalidPointer { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                left -= 1;
                if left == 0 {
                    self.space.note_waiting(&arena);
                    return Ok(true);
                }
            }
        }
        self.space.note_waiting(&arena);
        Ok(false)
    }

    /// Verifies and loads the metadata of a block before the block is freed.
    ///
    /// # Errors
    /// As [`BlockAllocator::load_run`]; `Error::InvalidPointer` for an extent that covers pages of
    /// other blocks: a damaged descriptor would free them twice. O(pages), 8 bytes each.
    pub(crate) fn verify_freed(self, arena: &mut Arena, place: BlockLocation) -> Result<()> {
        let (page, pages) = match place {
            BlockLocation::Run { run, class, .. } => return self.load_run(arena, run, class),
            BlockLocation::Extent { page, pages } => (page, pages),
        };
        self.boot_zones(arena, page, pages)?;
        let mut is_whole = !arena.has_free(page, pages);
        for inner in page + 1..page + pages {
            let is_boundary = inner.is_multiple_of(ZONE_PAGES);
            let expected = if is_boundary { KIND_EXTENT_CONTINUED } else { KIND_FREE };
            is_whole &= self.space.image.descriptor(inner)?.kind == expected;
        }
        if is_whole {
            return Ok(());
        }
        Err(Error::InvalidPointer {
            offset: page * PAGE_BYTES,
            what: "is in an extent that overlaps others",
        })
    }

    /// Loads the metadata of the zones of a range of pages, before their descriptors change.
    ///
    /// # Errors
    /// `Error::Damaged`, `Error::InvalidPointer` for descriptors that are not what was written or
    /// make no sense; those of the medium.
    pub(crate) fn boot_zones(self, arena: &mut Arena, start: u64, pages: u64) -> Result<()> {
        for zone in start / ZONE_PAGES..=(start + pages - 1) / ZONE_PAGES {
            self.boot_zone(arena, zone)?;
        }
        Ok(())
    }

    /// Loads the descriptors of a zone, once: verifies them against their checksums while they are
    /// still what the file holds (R7).
    pub(super) fn boot_zone(self, arena: &mut Arena, zone: u64) -> Result<()> {
        let Some((start, end)) = arena.to_boot(zone) else { return Ok(()) };
        let Space { image, classes, .. } = self.space;
        let table = descriptor_offset(start);
        let table_len = (end - start) * DESCRIPTOR_BYTES;
        image.verify(table, table_len)?;
        arena.boot(zone, classes, image)
    }
}
