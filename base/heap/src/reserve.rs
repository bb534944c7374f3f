//! Reserving blocks: from the arena, and where it has none from runs, extents and growth.
//!
//! Purpose: the slow half of an allocation. What it writes to the medium (descriptors and empty
//! bitmaps of new runs, descriptors of extents) belongs to the transaction and vanishes with it.

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

use crate::class::Class;
use crate::error::{Error, Result};
use crate::image::Place;
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, HEAP_BYTES_MAX, KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_RUN,
    KIND_RUN_CONTINUED, PAGE_BYTES, ZONE_PAGES, descriptor_offset,
};
use crate::tx::Transaction;
use crate::writer::Fresh;

/// The heap grows in multiples of this many pages (256 KiB), so that descriptors fill cache lines.
pub(crate) const GROWTH_PAGES: u64 = 64;
/// Growth takes a sixteenth of the heap, at least 1 MiB and at most 64 MiB: a handful of system
/// calls for a load, and never more than 6 % of a large pool unused.
const GROWTH_PAGES_MIN: u64 = 256;
const GROWTH_PAGES_MAX: u64 = 16_384;
/// Bitmaps looked at before a new run is made: a store whose runs are all full must not read
/// them all before its first insert.
const LOADS_MAX: usize = 8;

impl Transaction<'_> {
    /// Reserves a block of at least `bytes` bytes. O(1) from a run with free blocks.
    pub(crate) fn reserve_block(&mut self, bytes: u64) -> Result<u64> {
        if bytes > HEAP_BYTES_MAX {
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        }
        let Some(class) = self.blocks.classes.for_bytes(bytes.max(1)) else {
            return self.reserve_extent(bytes.div_ceil(PAGE_BYTES));
        };
        let Some(shape) = self.blocks.classes.get(class.into()).copied() else {
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        };
        let (run, index) = match self.writer.arena.take_block(class) {
            Some(found) => found,
            None => self.find_block(class, &shape)?,
        };
        let block = run * PAGE_BYTES + shape.blocks_start + index * shape.block_bytes;
        let place = Place::Run { run, class, index, bytes: shape.block_bytes };
        self.add_fresh(block, place)?;
        Ok(block)
    }

    /// A block of a class that has no loaded run with free blocks.
    #[cold]
    fn find_block(&mut self, class: u8, shape: &Class) -> Result<(u64, u64)> {
        let mut has_booted = false;
        for _ in 0..LOADS_MAX {
            let Some(run) = self.writer.arena.take_unloaded(class) else {
                // Nothing is known after opening. Without a look each opening would make a run of
                // its own, and a program that opens, inserts and closes would only ever grow.
                let Some(zone) = self.writer.arena.unbooted_zone() else { break };
                if has_booted {
                    break;
                }
                has_booted = true;
                self.boot_zone(zone)?;
                continue;
            };
            // It was a run when its zone was booted; by now it may have been emptied, and its
            // pages used for something else.
            let descriptor = self.image.descriptor(run)?;
            if (descriptor.kind, descriptor.class.get()) != (KIND_RUN, u16::from(class)) {
                continue;
            }
            self.load_run(run, class)?;
            if let Some(found) = self.writer.arena.take_block(class) {
                return Ok(found);
            }
        }
        let run = self.take_pages(shape.run_pages)?;
        let depth = self.depth;
        self.writer.levels[depth].runs.push((run, shape.run_pages));
        self.write_run(run, class, shape)?;
        self.writer.arena.add_run(run, class, shape);
        self.writer.arena.take_block(class).ok_or(Error::InvalidPointer {
            offset: run * PAGE_BYTES,
            what: "is a new run without blocks",
        })
    }

    /// Writes the descriptors and the empty bitmap of a new run.
    fn write_run(&mut self, run: u64, class: u8, shape: &Class) -> Result<()> {
        let table = self.track(descriptor_offset(run), shape.run_pages * DESCRIPTOR_BYTES)?;
        for (back, bytes) in (0..).zip(table.chunks_exact_mut(DESCRIPTOR_BYTES as usize)) {
            let descriptor = Descriptor {
                kind: if back == 0 { KIND_RUN } else { KIND_RUN_CONTINUED },
                reserved: 0,
                class: U16::new(class.into()),
                argument: U32::new(back),
            };
            bytes.copy_from_slice(descriptor.as_bytes());
        }
        if !shape.bitmap_in_descriptor {
            let words = shape.bitmap_words() as u64;
            self.track(run * PAGE_BYTES, words * 8)?.fill(0);
        }
        Ok(())
    }

    /// Makes the bitmap of a run known to the arena.
    pub(crate) fn load_run(&mut self, run: u64, class: u8) -> Result<()> {
        if self.writer.arena.is_loaded(run) {
            return Ok(());
        }
        let Some(shape) = self.blocks.classes.get(class.into()).copied() else {
            return Err(Error::InvalidPointer {
                offset: run * PAGE_BYTES,
                what: "is in a run of an unknown class",
            });
        };
        if !shape.bitmap_in_descriptor {
            // R7: allocator pages are verified when first loaded. What this process has changed
            // was either verified before or is verified by the applier, which reads the old page.
            self.settled.verify(self.journal, &self.image, run * PAGE_BYTES, 1)?;
        }
        let words = self.image.bitmap(run, &shape)?;
        self.writer.arena.load_run(run, class, &shape, &words);
        Ok(())
    }

    fn reserve_extent(&mut self, pages: u64) -> Result<u64> {
        let page = self.take_pages(pages)?;
        let place = Place::Extent { page, pages };
        let block = page * PAGE_BYTES;
        self.add_fresh(block, place)?;
        self.write_extent(page, KIND_EXTENT, pages)?;
        let mut zone = page / ZONE_PAGES + 1;
        while zone * ZONE_PAGES < page + pages {
            let left = page + pages - zone * ZONE_PAGES;
            self.write_extent(zone * ZONE_PAGES, KIND_EXTENT_CONTINUED, left)?;
            zone += 1;
        }
        Ok(block)
    }

    /// Notes a reserved block. Its pages may hold other blocks too, so where pages are verified
    /// when first touched, that is now, before the block is written.
    fn add_fresh(&mut self, block: u64, place: Place) -> Result<()> {
        let depth = self.depth;
        self.writer.levels[depth].fresh.insert(block, Fresh { place, written: 0 });
        let Some(first_touch) = self.blocks.first_touch else { return Ok(()) };
        let verified = first_touch.block(&self.image, block, place.bytes());
        if verified.is_err() {
            // The caller never learns of the block, so it must not be published.
            self.writer.levels[depth].fresh.remove(block);
            self.cancel(place)?;
        }
        verified
    }

    fn write_extent(&mut self, page: u64, kind: u8, pages: u64) -> Result<()> {
        let descriptor =
            Descriptor { kind, reserved: 0, class: U16::new(0), argument: U32::new(pages as u32) };
        let bytes = self.track(descriptor_offset(page), DESCRIPTOR_BYTES)?;
        bytes.copy_from_slice(descriptor.as_bytes());
        Ok(())
    }

    /// Takes contiguous pages, growing the heap if none are free.
    fn take_pages(&mut self, pages: u64) -> Result<u64> {
        let start = loop {
            match self.writer.arena.take_pages(pages, self.image.pages()) {
                Ok(start) => break start,
                Err(needed) => match self.writer.arena.unbooted_zone() {
                    Some(zone) => self.boot_zone(zone)?,
                    None => self.grow(needed)?,
                },
            }
        };
        if let Err(error) = self.boot_zones(start, pages) {
            self.writer.arena.give_pages(start, pages);
            return Err(error);
        }
        let depth = self.depth;
        let level = &mut self.writer.levels[depth];
        level.pages_end = level.pages_end.max(start + pages);
        Ok(start)
    }

    /// Looks at the zones of a range of pages, before their descriptors change.
    pub(crate) fn boot_zones(&mut self, start: u64, pages: u64) -> Result<()> {
        for zone in start / ZONE_PAGES..=(start + pages - 1) / ZONE_PAGES {
            self.boot_zone(zone)?;
        }
        Ok(())
    }

    /// Looks at the descriptors of a zone, once: they are verified against their checksums while
    /// they still are what the file holds (R7).
    fn boot_zone(&mut self, zone: u64) -> Result<()> {
        let Some((start, end)) = self.writer.arena.to_boot(zone) else { return Ok(()) };
        let table = descriptor_offset(start);
        let table_len = (end - start) * DESCRIPTOR_BYTES;
        self.settled.verify(self.journal, &self.image, table, table_len)?;
        self.writer.arena.boot(zone, self.blocks.classes, &self.image)
    }

    /// Makes at least `pages` data pages exist: on the medium first (R5), then in memory.
    fn grow(&mut self, pages: u64) -> Result<()> {
        let step = (self.image.pages() / 16).clamp(GROWTH_PAGES_MIN, GROWTH_PAGES_MAX);
        let needed = pages.next_multiple_of(GROWTH_PAGES);
        let wanted = needed.max((self.image.pages() + step).next_multiple_of(GROWTH_PAGES));
        let pages_max = self.image.pages_max();
        if needed > pages_max {
            return Err(Error::TooLarge {
                bytes: needed * PAGE_BYTES,
                bytes_max: pages_max * PAGE_BYTES,
            });
        }
        let wanted = wanted.min(pages_max);
        match self.journal.grow(wanted) {
            Err(error) if error.is_out_of_space() && wanted > needed => {
                self.journal.grow(needed)?;
                self.image.grow(needed)
            }
            result => {
                result?;
                self.image.grow(wanted)
            }
        }
    }
}
