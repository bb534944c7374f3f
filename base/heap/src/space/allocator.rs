//! The block allocator: takes blocks and pages from loaded runs, unloaded runs, new runs, and
//! growth.
//!
//! Purpose: the slow half of an allocation, for transactions and for the reservations of any
//! thread. It writes to the medium by *commits of its own*: a new run (its descriptors and an empty
//! bitmap), pages beyond all that were ever allocated, empty runs that become free pages. Each is
//! one record, appended before memory shows it, and never undone: if the caller that asked for a
//! block fails or dies, the empty run stays for the next caller. So no transaction ever has
//! allocator words to restore, and several threads can reserve blocks of one run.
//! Invariants: the end of the allocated pages is raised only here, under the arena's lock, which is
//! held until the record is appended. So the end rises from record to record.
//! Thread safety: any thread; `state.rs` gives the lock order.

mod loading;

use adamant_medium::error::Error as MediumError;
use adamant_wire::faults::refuses_reservation;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

use crate::error::{Error, Result};
use crate::image::block_location::BlockLocation;
use crate::image::class::{Class, ClassId, RUN_PAGES_MAX};
use crate::image::mapping::guards::Exclusive;
use crate::journal::{Opened, RecordBuilder};
use crate::layout::{
    CLASS_COUNT_MAX, CLASS_TABLE_OFFSET, ClassEntry, DESCRIPTOR_BYTES, Descriptor, FLAG_OPEN,
    HEAP_BYTES_MAX, KIND_RUN, KIND_RUN_CONTINUED, PAGE_BYTES, ROOT_CLASS_COUNT, ROOT_PAGES_END,
    descriptor_offset,
};
use crate::space::arena::{Arena, CHUNK_PAGES};
use crate::space::borrowed::BorrowedBlocks;
use crate::space::shard::{Active, Shard};
use crate::space::state::Space;

/// The heap grows by a sixteenth, at least 1 MiB and at most 64 MiB: a handful of system calls for
/// a bulk load, and never more than 6 % of a large pool unused.
const GROWTH_PAGES_MIN: u64 = 256;
const GROWTH_PAGES_MAX: u64 = 16_384;
/// Bitmaps loaded before the allocator makes a new run: a store whose runs are all full must not
/// read all bitmaps before its first insert.
const LOADS_MAX: usize = 8;

/// Pages by which a heap of `pages` pages grows, if the caller needs no more.
fn growth_step(pages: u64) -> u64 {
    (pages / 16).clamp(GROWTH_PAGES_MIN, GROWTH_PAGES_MAX)
}

/// The allocator's view of a heap: its space, its journal, and the borrowed blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockAllocator<'h> {
    pub(crate) space: &'h Space,
    pub(crate) journal: &'h Opened,
    pub(crate) borrowed: &'h BorrowedBlocks,
}

impl BlockAllocator<'_> {
    /// Reserves a block of at least `bytes` bytes with a shard; returns its heap offset and its
    /// location. O(1) from a run with free blocks.
    ///
    /// # Errors
    /// `Error::TooLarge`, `Error::AddressesExhausted`; those of growing and of appending a record.
    /// Then nothing changed.
    #[inline]
    pub(crate) fn reserve(self, shard: &mut Shard, bytes: u64) -> Result<(u64, BlockLocation)> {
        if bytes > HEAP_BYTES_MAX {
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        }
        let classes = &self.space.classes;
        let Some(class) = classes.for_bytes(bytes.max(1)) else {
            let pages = bytes.div_ceil(PAGE_BYTES);
            let page = self.take_extent(pages)?;
            return Ok((page * PAGE_BYTES, BlockLocation::Extent { page, pages }));
        };
        let Some(shape) = classes.get(class.into()) else {
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        };
        self.reserve_in(shard, class, shape)
    }

    /// Reserves a block of a class with a shard; returns its heap offset and its location.
    ///
    /// # Errors
    /// Those of growing and of appending a record. Then nothing changed.
    #[inline]
    pub(crate) fn reserve_in(
        self,
        shard: &mut Shard,
        class: u8,
        shape: &Class,
    ) -> Result<(u64, BlockLocation)> {
        if refuses_reservation() {
            return Err(self.refusal(shape.block_bytes));
        }
        let (run, index) = match shard.take(class) {
            Some(found) => found,
            None => {
                self.refill(shard, class, shape)?;
                let what = "is a run without blocks that was said to have some";
                shard.take(class).ok_or(Error::InvalidPointer { offset: 0, what })?
            }
        };
        let block = run * PAGE_BYTES + shape.blocks_start + index * shape.block_bytes;
        // Whether the run is open makes no difference to the caller that reserved the block.
        let place =
            BlockLocation::Run { run, class, index, bytes: shape.block_bytes, is_open: false };
        Ok((block, place))
    }

    /// Gives blocks of a class to a shard that has none available.
    ///
    /// # Errors
    /// Those of growing and of appending a record; then nothing changed.
    #[cold]
    fn refill(self, shard: &mut Shard, class: u8, shape: &Class) -> Result<()> {
        let mut arena = self.space.arena();
        let is_open = shard.is_open();
        let is_packing = shard.is_packing();
        let active = shard.active(class);
        if arena.refill(active) {
            return Ok(());
        }
        if is_packing {
            let start = self.take_packed(&mut arena, shape.run_pages);
            let made = start
                .and_then(|run| self.make_run(&mut arena, active, run, (class, shape), is_open));
            match made {
                // Blocks in partly full runs are scattered, but take no space.
                Err(error) if error.is_out_of_space() => {}
                made => return made,
            }
        }
        if arena.give_run(active, class, is_open) {
            return Ok(());
        }
        let mut has_booted = false;
        for _ in 0..LOADS_MAX {
            let Some(run) = arena.take_unloaded(class) else {
                // After opening, nothing is loaded. Without loading one zone, each opening would
                // make a run of its own, and a program that opens, inserts and closes would only
                // ever grow.
                let Some(zone) = arena.unbooted_zone() else { break };
                if has_booted {
                    break;
                }
                has_booted = true;
                self.boot_zone(&mut arena, zone)?;
                continue;
            };
            // It was a run when its zone metadata was loaded. Since then it may have been emptied
            // and its pages used for something else.
            if !self.space.image.descriptor(run)?.is_run_of(class.into()) {
                continue;
            }
            self.load_run(&mut arena, run, class)?;
            if arena.give_run(active, class, is_open) {
                return Ok(());
            }
        }
        if is_open {
            self.open_closed_run(&mut arena, class, shape)?;
        }
        // A writer has every block to itself while it works, open run or not.
        if arena.give_run(active, class, true) {
            return Ok(());
        }
        let run = self.take_pages(&mut arena, shape.run_pages)?;
        self.make_run(&mut arena, active, run, (class, shape), is_open)
    }

    /// Turns a run that no shard owns into an open one, unless a thread reads the image right now:
    /// a reader that learned earlier that it need not check the bitmap may still hold a reference.
    fn open_closed_run(self, arena: &mut Arena, class: u8, shape: &Class) -> Result<()> {
        let Some(run) = arena.closed_run(class) else { return Ok(()) };
        // The free blocks of an open run are invisible to readers and are not written to the file.
        // A pin may still read blocks that are retired (C3).
        if arena.may_have_retired(run) {
            return Ok(());
        }
        let Some(image) = self.space.image.try_write() else { return Ok(()) };
        for page in run..run + shape.run_pages {
            let flags = Descriptor { flags: FLAG_OPEN, ..Descriptor::default() };
            image.change_bits(descriptor_offset(page), flags.word(), 0)?;
        }
        arena.open_run(run);
        Ok(())
    }

    /// Makes a run of pages that were taken for it, from `run` on, for a shard that owns none;
    /// gives them back if that fails.
    fn make_run(
        self,
        arena: &mut Arena,
        active: &mut Active,
        run: u64,
        (class, shape): (u8, &Class),
        is_open: bool,
    ) -> Result<()> {
        let pages = shape.run_pages;
        let descriptor = |back: u64, flags: u8| Descriptor {
            kind: if back == 0 { KIND_RUN } else { KIND_RUN_CONTINUED },
            flags,
            class: U16::new(class.into()),
            argument: U32::new(back as u32),
        };
        let bitmap_words = if shape.bitmap_in_descriptor { 0 } else { shape.bitmap_words() };
        arena.record.clear();
        self.add_end(arena, run + pages);
        for word in 0..bitmap_words as u64 {
            arena.record.bytes(run * PAGE_BYTES + word * 8, &[0; 8]);
        }
        for back in 0..pages {
            let word = descriptor(back, 0).word();
            arena.record.bytes(descriptor_offset(run + back), &word.to_le_bytes());
        }
        let bitmap = (run * PAGE_BYTES, bitmap_words as u64 * 8);
        let descriptors = (descriptor_offset(run), pages * DESCRIPTOR_BYTES);
        self.append(arena, run, pages, &[bitmap, descriptors])?;
        let image = &self.space.image;
        for word in 0..bitmap_words as u64 {
            image.store_word(run * PAGE_BYTES + word * 8, 0)?;
        }
        let flags = if is_open { FLAG_OPEN } else { 0 };
        for back in 0..pages {
            image.store_word(descriptor_offset(run + back), descriptor(back, flags).word())?;
        }
        arena.add_run(run, class, shape, is_open);
        active.begin(run, shape.block_count);
        Ok(())
    }

    /// Takes contiguous pages for an extent. The caller writes their descriptors.
    ///
    /// # Errors
    /// Those of growing and of appending a record; then nothing changed.
    fn take_extent(self, pages: u64) -> Result<u64> {
        if refuses_reservation() {
            return Err(self.refusal(pages * PAGE_BYTES));
        }
        let mut arena = self.space.arena();
        let page = self.take_pages(&mut arena, pages)?;
        if page + pages > arena.pages_end {
            arena.record.clear();
            self.add_end(&mut arena, page + pages);
            self.append(&mut arena, page, pages, &[])?;
        }
        Ok(page)
    }

    /// The error of a reservation that a test planned to fail: that of a full device.
    #[cold]
    fn refusal(self, bytes: u64) -> Error {
        Error::Medium(MediumError::OutOfSpace {
            operation: "reserve a block in",
            path: self.journal.pool().file().path().into(),
            bytes,
            source: std::io::ErrorKind::StorageFull.into(),
        })
    }

    /// Adds to the arena's record that the allocated pages end at `end`, if that raises the end.
    fn add_end(self, arena: &mut Arena, end: u64) {
        if end > arena.pages_end {
            arena.record.bytes(ROOT_PAGES_END, &end.to_le_bytes());
        }
    }

    /// Appends the arena's record, which is about pages just taken; gives the pages back if that
    /// fails. The caller applies the rest of the record, to these ranges (offset, length).
    fn append(
        self,
        arena: &mut Arena,
        start: u64,
        pages: u64,
        ranges: &[(u64, u64)],
    ) -> Result<()> {
        let ranges = ranges.iter().copied().chain([(ROOT_PAGES_END, 8)]);
        if let Err(error) = self.append_for(&arena.record, ranges) {
            arena.give_pages(start, pages);
            return Err(error);
        }
        if start + pages > arena.pages_end {
            arena.pages_end = start + pages;
            self.space.image.store_word(ROOT_PAGES_END, arena.pages_end)?;
        }
        Ok(())
    }

    /// Appends a record of what memory is to show in these ranges (offset, length). Touches them
    /// first: a failure after the append would leave memory with half of it.
    ///
    /// # Errors
    /// As [`Image::touch`](crate::image::mapping::Image::touch) and those of appending; then
    /// nothing changed.
    pub(crate) fn append_for(
        self,
        record: &RecordBuilder,
        mut ranges: impl Iterator<Item = (u64, u64)>,
    ) -> Result<()> {
        ranges.try_for_each(|(offset, len)| self.space.image.touch(offset, len))?;
        self.journal.writable()?.append(record)?;
        Ok(())
    }

    /// Makes reusable what commits up to `released` freed: no pin can see it any more. Skips
    /// borrowed blocks.
    pub(crate) fn recycle(self, image: &Exclusive<'_>, released: u64) {
        let mut arena = self.space.arena();
        self.release(&mut arena, released, usize::MAX);
        self.unmake_empty_runs(&mut arena, image, usize::MAX);
        self.space.note_waiting(&arena);
    }

    /// A part of `recycle`: at most `count_max` of the words and extents that wait and, when none
    /// is left, at most as many of the empty runs. Returns whether there may be more.
    pub(crate) fn recycle_part(
        self,
        image: &Exclusive<'_>,
        released: u64,
        count_max: usize,
    ) -> bool {
        let mut arena = self.space.arena();
        let has_more = self.release(&mut arena, released, count_max)
            || self.unmake_empty_runs(&mut arena, image, count_max);
        self.space.note_waiting(&arena);
        has_more
    }

    /// Makes blocks and pages reusable; returns whether there may be more than `count_max` of them.
    fn release(self, arena: &mut Arena, released: u64, count_max: usize) -> bool {
        if self.borrowed.has_any() {
            // All at once: borrowed blocks stay at the front, and a part might reach nothing else.
            let is_lent = |page, index| self.borrowed.is_on_loan((page, index));
            let has_more = arena.release(released, usize::MAX, is_lent);
            self.space.forget_held(arena);
            return has_more;
        }
        let has_more = arena.release(released, count_max, |_, _| false);
        self.space.forget_held(arena);
        has_more
    }

    /// Frees the pages of runs that have become empty, by a record of their own. No thread may read
    /// the image meanwhile: a forged pointer may have led a reader to a free block. Runs whose
    /// record fails are left for the next time; a broken journal reports to the next commit. At
    /// most `count_max` of them; returns whether there may be more.
    fn unmake_empty_runs(self, arena: &mut Arena, image: &Exclusive<'_>, count_max: usize) -> bool {
        let mut found = std::mem::take(&mut arena.unmaking);
        let has_more = arena.take_emptied(&mut found, count_max);
        let run_pages = |class: u8| self.space.classes.get(class.into()).map_or(0, |s| s.run_pages);
        arena.record.clear();
        for &(run, class) in &found {
            for page in run..run + run_pages(class) {
                arena.record.bytes(descriptor_offset(page), &[0; DESCRIPTOR_BYTES as usize]);
            }
        }
        let descriptors = found
            .iter()
            .map(|&(run, class)| (descriptor_offset(run), run_pages(class) * DESCRIPTOR_BYTES));
        let has_failed = !found.is_empty() && self.append_for(&arena.record, descriptors).is_err();
        for (run, class) in found.drain(..) {
            if has_failed {
                arena.keep_emptied(run);
                continue;
            }
            for page in run..run + run_pages(class) {
                let stored = image.store_word(descriptor_offset(page), 0);
                debug_assert!(stored.is_ok(), "descriptors of known runs exist");
            }
            arena.remove_run(run, run_pages(class));
        }
        arena.unmaking = found;
        has_more && !has_failed
    }

    /// Takes contiguous pages for a run of blocks that are to lie side by side. Whole chunks, not
    /// pages between those of others: so what is moved leaves whole chunks behind.
    fn take_packed(self, arena: &mut Arena, pages: u64) -> Result<u64> {
        if let Some(start) = arena.take_from_plot(pages) {
            return Ok(start);
        }
        const { assert!(RUN_PAGES_MAX <= CHUNK_PAGES) };
        let start = self.take_by(arena, CHUNK_PAGES, Arena::take_chunk)?;
        arena.set_plot(start + pages..start + CHUNK_PAGES);
        Ok(start)
    }

    /// Takes back the runs of a shard that packs, and the pages for its next ones.
    pub(crate) fn give_up_packing(self, shard: &mut Shard) {
        let mut arena = self.space.arena();
        shard.give_up(|run, words| arena.take_back(run, words));
        arena.set_plot(0..0);
    }

    /// Takes contiguous pages, growing the heap if none are free.
    fn take_pages(self, arena: &mut Arena, pages: u64) -> Result<u64> {
        self.take_by(arena, pages, |arena, backed| arena.take_pages(pages, backed))
    }

    /// Takes contiguous pages as `take` does, growing the heap if it finds none; `take` gets the
    /// pages that the heap has, and may ask for more.
    fn take_by(
        self,
        arena: &mut Arena,
        pages: u64,
        take: impl Fn(&mut Arena, u64) -> std::result::Result<u64, u64>,
    ) -> Result<u64> {
        let start = loop {
            match take(arena, self.space.image.pages()) {
                Ok(start) => break start,
                Err(needed) => match arena.unbooted_zone() {
                    Some(zone) => self.boot_zone(arena, zone)?,
                    None => {
                        let grown = self.grow(needed);
                        self.space.note_growth(grown.is_ok());
                        if let Err(error) = grown
                            && !(error.is_out_of_space() && arena.set_plot(0..0))
                        {
                            return Err(error);
                        }
                    }
                },
            }
        };
        let image = &self.space.image;
        let taken = self
            .boot_zones(arena, start, pages)
            .and_then(|()| self.back(arena, start, pages))
            // The pages were free: they hold no data, damaged or not.
            .and_then(|()| image.note_verified(start * PAGE_BYTES, pages * PAGE_BYTES));
        if let Err(error) = taken {
            arena.give_pages(start, pages);
            return Err(error);
        }
        Ok(start)
    }

    /// Backs those pages of a range that may be holes in the file, before anything is written to
    /// them (R5). Continues into the free holes behind them as growth would, so that a bulk load
    /// after a shrink takes a handful of system calls.
    fn back(self, arena: &mut Arena, start: u64, pages: u64) -> Result<()> {
        let end = start + pages;
        let step = growth_step(self.space.image.pages());
        while let Some((hole, hole_end)) = arena.holes.first_in(start, end) {
            let first = (start - start % CHUNK_PAGES).max(hole);
            let needed = end.next_multiple_of(CHUNK_PAGES).min(hole_end);
            let wanted = (first + step).next_multiple_of(CHUNK_PAGES).clamp(needed, hole_end);
            let journal = self.journal.writable()?;
            let backed = match journal.back(first, wanted - first) {
                Err(error) if error.is_out_of_space() && wanted > needed => {
                    journal.back(first, needed - first)?;
                    needed
                }
                result => result.map(|()| wanted)?,
            };
            arena.note_backed(first, backed);
        }
        Ok(())
    }

    /// Adds a class to the table, by a record of its own, or finds it there.
    ///
    /// # Errors
    /// `Error::Misuse` when the table is full; those of appending a record.
    pub(crate) fn register(self, entry: &ClassEntry) -> Result<ClassId> {
        let mut arena = self.space.arena();
        let Space { image, classes, .. } = self.space;
        if let Some(known) = classes.find(entry) {
            return Ok(known);
        }
        let count = classes.len() as u64;
        if count >= CLASS_COUNT_MAX as u64 {
            return Err(Error::Misuse { what: "a heap has at most 255 classes" });
        }
        let at = CLASS_TABLE_OFFSET + count * size_of::<ClassEntry>() as u64;
        arena.record.clear();
        arena.record.bytes(ROOT_CLASS_COUNT, &(count + 1).to_le_bytes());
        arena.record.bytes(at, entry.as_bytes());
        let ranges = [(at, size_of::<ClassEntry>() as u64), (ROOT_CLASS_COUNT, 8)];
        self.append_for(&arena.record, ranges.into_iter())?;
        for (word, bytes) in (at..).step_by(8).zip(entry.as_bytes().chunks_exact(8)) {
            image.store_word(word, bytes.try_into().map_or(0, u64::from_le_bytes))?;
        }
        image.store_word(ROOT_CLASS_COUNT, count + 1)?;
        let id = classes.add(entry).ok_or(Error::Misuse { what: "the class table is full" })?;
        arena.add_class(count as u8);
        Ok(id)
    }

    /// Makes at least `pages` data pages exist: on the medium first (R5), then in memory. The
    /// caller holds the arena's lock.
    pub(crate) fn grow(self, pages: u64) -> Result<()> {
        let image = &self.space.image;
        let step = growth_step(image.pages());
        let needed = pages.next_multiple_of(CHUNK_PAGES);
        let wanted = needed.max((image.pages() + step).next_multiple_of(CHUNK_PAGES));
        image.need_addresses(needed)?;
        let wanted = wanted.min(image.pages_max());
        let journal = self.journal.writable()?;
        match journal.grow(wanted) {
            Err(error) if error.is_out_of_space() && wanted > needed => {
                journal.grow(needed)?;
                image.grow(needed)
            }
            result => {
                result?;
                image.grow(wanted)
            }
        }
    }
}
