//! Dirty pages in recovery: pages that a log changes, in memory until they are written.
//!
//! Purpose: what recovery and backups apply a log to. Memory is bounded, whatever the size of log
//! and pool: when it is used up, the pages are written and dropped, and read again when they are
//! named again.
//! Invariants: no page is written before there is space for all pages that the log allocates (R5),
//! and none whose bytes in the file were damaged (C7): nothing of such a page may stay. Only the
//! rest of the log can tell that, so it is kept until then. Checksums are compared when pages are
//! written, in their order: that takes one read for a thousand.
//! Thread safety: none of its own; it belongs to its owner.

use adamant_wire::checksum::page_checksum;

use crate::collections::range_set::RangeSet;
use crate::error::Result;
use crate::image::pool_file::page_checksums::verify_checksum;
use crate::image::pool_file::{PoolFile, pages_end_of};
use crate::journal::checkpoints::batch::{BATCH_PAGES_MAX, BatchWriter, PageBytes, PageCopy};
use crate::journal::records::record::Entry;
use crate::journal::recovery::overlay::{OverlayTarget, Under, each_allocated, pages_named};
use crate::journal::recovery::tail::Tail;
use crate::layout::{PAGE_BYTES, ROOT_OFFSET, TABLE_BASE, ZONE_PAGES, file_offset};

/// Pages that are kept at least: fewer would be written too often.
const PAGES_MIN: usize = 16;

/// A page in memory.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its heap offset; `None` if it became free.
    page: Option<u64>,
    /// The checksum of the bytes read, if any of them stay: it must match that of the file.
    sum_read: Option<u32>,
}

/// The dirty pages of a pool.
#[derive(Debug)]
pub(in crate::journal) struct DirtyPages<'p> {
    pool: &'p PoolFile,
    tail: &'p Tail,
    writer: BatchWriter,
    pages_max: usize,
    index: Index,
    slots: Vec<Slot>,
    pages: Vec<PageBytes>,
    /// Data pages that the log names: the pool must have them.
    pages_end: u64,
    /// Heap offsets of pages that became free.
    free: RangeSet,
    /// Data pages, by number, that now belong to a run or an extent.
    allocated: RangeSet,
    /// Whether there is space for all pages that the log allocates.
    is_backed: bool,
    written_bytes: u64,
}

impl<'p> DirtyPages<'p> {
    /// An empty set, of which at most `bytes_max` bytes are kept.
    pub(in crate::journal) fn new(
        pool: &'p PoolFile,
        tail: &'p Tail,
        writer: BatchWriter,
        bytes_max: u64,
    ) -> Self {
        let pages_max = usize::try_from(bytes_max / PAGE_BYTES).unwrap_or(usize::MAX);
        Self {
            pool,
            tail,
            writer,
            pages_max: pages_max.clamp(PAGES_MIN, u32::MAX as usize - 1),
            index: Index::default(),
            slots: Vec::new(),
            pages: Vec::new(),
            pages_end: 0,
            free: RangeSet::default(),
            allocated: RangeSet::default(),
            is_backed: false,
            written_bytes: 0,
        }
    }

    /// Writes the rest, and makes sure that the pool has all pages that were ever allocated.
    /// Nothing is synced. Returns the bytes of pages that were written in all.
    ///
    /// # Errors
    /// `Error::Damaged` for a damaged page; those of the medium.
    pub(in crate::journal) fn finish(mut self) -> Result<u64> {
        let allocated = match self.index.get(ROOT_OFFSET) {
            Some(slot) => pages_end_of(&self.pages[slot]),
            None => self.pool.pages_allocated()?,
        };
        // No record names pages that were allocated but not written.
        self.pages_end = self.pages_end.max(allocated);
        self.is_backed = true;
        self.flush(0)?;
        Ok(self.written_bytes)
    }

    /// Writes the pages and drops them, except for those that were damaged in the file: at most
    /// `damaged_max` may be left.
    fn flush(&mut self, damaged_max: usize) -> Result<()> {
        self.make_space()?;
        let mut order: Vec<usize> = self.index.slots().collect();
        let damaged = self.verify(&mut order, damaged_max)?;
        let mut batch = Vec::with_capacity(order.len().min(BATCH_PAGES_MAX));
        for slots in order.chunks(BATCH_PAGES_MAX) {
            batch.clear();
            batch.extend(slots.iter().filter_map(|slot| {
                let page = self.slots[*slot].page?;
                Some(PageCopy { page, bytes: &self.pages[*slot] })
            }));
            self.writer.write(self.pool, &batch, self.tail.last_sequence())?;
            self.written_bytes += batch.len() as u64 * PAGE_BYTES;
        }
        self.keep(&damaged);
        Ok(())
    }

    /// Makes free pages zero in the file, and allocates space for the others. Free pages come
    /// first: pages that are allocated now may have been free before.
    fn make_space(&mut self) -> Result<()> {
        if !self.is_backed {
            self.is_backed = true;
            self.back_all()?;
        }
        self.pool.grow(self.pages_end)?;
        let mut at = 0;
        while let Some((start, end)) = self.free.first_in(at, TABLE_BASE) {
            self.writer.keep_range(self.pool, start / PAGE_BYTES, end / PAGE_BYTES)?;
            self.pool.clear(start / PAGE_BYTES, (end - start) / PAGE_BYTES)?;
            at = end;
        }
        self.free = RangeSet::default();
        back(self.pool, &std::mem::take(&mut self.allocated))
    }

    /// Allocates space for all pages that the log allocates, also beyond the current position: so a
    /// full disk is noticed before the first page changes.
    fn back_all(&self) -> Result<()> {
        let (mut pages_end, mut allocated) = (0, RangeSet::default());
        self.tail.replay(&mut |_| Ok(()), &mut |entry| {
            pages_end = pages_named(&entry).max(pages_end);
            match entry {
                Entry::Bytes { offset, bytes } => {
                    each_allocated(offset, bytes, &mut |start, end| allocated.add(start, end));
                }
                Entry::Hole { offset, len } => {
                    allocated.remove(offset / PAGE_BYTES, (offset + len) / PAGE_BYTES);
                }
                Entry::Set { .. } | Entry::Clear { .. } => {}
            }
            Ok(())
        })?;
        self.pool.grow(pages_end)?;
        back(self.pool, &allocated)
    }

    /// Takes out the pages that were damaged in the file; an error if they are more than may be
    /// left.
    fn verify(&self, order: &mut Vec<usize>, damaged_max: usize) -> Result<Vec<usize>> {
        let pages: Vec<u64> = order.iter().filter_map(|slot| self.slots[*slot].page).collect();
        let (mut checksums, mut damaged) = (Vec::new(), Vec::new());
        self.pool.read_checksums(&pages, &mut checksums)?;
        let mut checksums = pages.iter().zip(checksums);
        let mut validated = Ok(());
        order.retain(|slot| {
            let Some((page, checksum)) = checksums.next() else { return false };
            let Some(read) = self.slots[*slot].sum_read else { return true };
            let verified = verify_checksum(&**self.pool.file(), *page, read, checksum);
            let Err(error) = verified else { return true };
            if validated.is_ok() {
                validated = Err(error);
            }
            damaged.push(*slot);
            false
        });
        if damaged.len() > damaged_max { validated.map(|()| damaged) } else { Ok(damaged) }
    }

    /// Drops all pages but `kept`.
    fn keep(&mut self, kept: &[usize]) {
        let slots = kept.iter().map(|slot| self.slots[*slot]).collect();
        let pages = kept.iter().map(|slot| self.pages[*slot]).collect::<Vec<_>>();
        self.slots = slots;
        self.pages.clear();
        self.pages.extend(pages);
        self.index = Index::default();
        for (slot, kept) in self.slots.iter().enumerate() {
            kept.page.into_iter().for_each(|page| self.index.set(page, slot));
        }
    }

    /// Brings a page into memory; returns its slot.
    fn load(&mut self, page: u64, under: Under) -> Result<usize> {
        if self.pages.len() >= self.pages_max {
            self.flush(self.pages_max / 2)?;
        }
        let slot = self.pages.len();
        let mut bytes = [0; PAGE_BYTES as usize];
        let mut sum_read = None;
        if under == Under::Kept {
            // If the file does not have the page, it is zero.
            if self.pool.has_page(page) {
                self.pool.file().read_at(&mut bytes, file_offset(page))?;
            }
            sum_read = (!self.tail.torn).then(|| page_checksum(&bytes));
        }
        self.slots.push(Slot { page: Some(page), sum_read });
        self.pages.push(bytes);
        self.index.set(page, slot);
        Ok(slot)
    }
}

impl OverlayTarget for DirtyPages<'_> {
    fn grow(&mut self, pages: u64) -> Result<()> {
        self.pages_end = self.pages_end.max(pages);
        Ok(())
    }

    fn change(&mut self, page: u64, under: Under, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let slot = match self.index.get(page) {
            Some(slot) => slot,
            None => self.load(page, under)?,
        };
        if under != Under::Kept {
            self.slots[slot].sum_read = None;
        }
        change(&mut self.pages[slot]);
        Ok(())
    }

    fn free(&mut self, start: u64, end: u64) {
        self.free.add(start, end);
        self.allocated.remove(start / PAGE_BYTES, end / PAGE_BYTES);
        let (slots, index) = (&mut self.slots, &mut self.index);
        index.remove(start, end, |slot| slots[slot].page = None);
    }

    fn allocate(&mut self, start: u64, end: u64) {
        self.allocated.add(start, end);
    }
}

/// Allocates space for data pages, as far as the pool has them, and for their descriptors: they may
/// have been holes, and a crash may have taken their space back.
fn back(pool: &PoolFile, allocated: &RangeSet) -> Result<()> {
    let pages_end = pool.pages_backed();
    let (mut at, mut zones_done) = (0, 0);
    while let Some((start, end)) = allocated.first_in(at, pages_end) {
        let end = end.min(pages_end);
        let zones_end = end.div_ceil(ZONE_PAGES);
        pool.back_tables_of(zones_done.max(start / ZONE_PAGES)..zones_end)?;
        zones_done = zones_end;
        pool.back(start, end - start)?;
        at = end;
    }
    Ok(())
}

/// Pages of a piece of the index.
const PIECE_PAGES: u64 = 512;

/// Maps pages to slots: data pages and descriptors separately. A piece is made when a page of it is
/// named, so the largest heap takes 4 MiB and 2 KiB for each.
#[derive(Debug, Default)]
struct Index([Vec<Option<Box<[u32; PIECE_PAGES as usize]>>>; 2]);

impl Index {
    fn place(page: u64) -> (usize, usize, usize) {
        let (region, page) = match page.checked_sub(TABLE_BASE) {
            Some(offset) => (1, offset / PAGE_BYTES),
            None => (0, page / PAGE_BYTES),
        };
        (region, (page / PIECE_PAGES) as usize, (page % PIECE_PAGES) as usize)
    }

    /// The slot of the page at a heap offset.
    #[inline]
    fn get(&self, page: u64) -> Option<usize> {
        let (region, piece, at) = Self::place(page);
        let piece = self.0[region].get(piece)?.as_ref()?;
        (piece[at] as usize).checked_sub(1)
    }

    fn set(&mut self, page: u64, slot: usize) {
        let (region, piece, at) = Self::place(page);
        let pieces = &mut self.0[region];
        if pieces.len() <= piece {
            pieces.resize(piece + 1, None);
        }
        let piece = pieces[piece].get_or_insert_with(|| Box::new([0; PIECE_PAGES as usize]));
        piece[at] = slot as u32 + 1;
    }

    /// Removes data pages, from heap offset to heap offset; calls `each` with their slots.
    fn remove(&mut self, start: u64, end: u64, mut each: impl FnMut(usize)) {
        let (start, end) = (start / PAGE_BYTES, end / PAGE_BYTES);
        let pieces = &mut self.0[0];
        let pieces_end = end.div_ceil(PIECE_PAGES).min(pieces.len() as u64);
        for number in start / PIECE_PAGES..pieces_end {
            let Some(piece) = &mut pieces[number as usize] else { continue };
            let first = number * PIECE_PAGES;
            let from = start.saturating_sub(first) as usize;
            let to = (end - first).min(PIECE_PAGES) as usize;
            for slot in &mut piece[from..to] {
                let taken = std::mem::take(slot);
                (taken as usize).checked_sub(1).into_iter().for_each(&mut each);
            }
        }
    }

    /// All slots, in the order of their pages.
    fn slots(&self) -> impl Iterator<Item = usize> {
        let pieces = self.0.iter().flatten().flatten();
        pieces.flat_map(|piece| piece.iter()).filter_map(|slot| (*slot as usize).checked_sub(1))
    }
}
