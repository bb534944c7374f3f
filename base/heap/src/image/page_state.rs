//! Page states: one atomic word for each page of the image, and counts for each 2 MiB.
//!
//! Purpose: all that a store asks of its page is in one word: whether the page was verified (R7),
//! whether a record names bytes of it that the file does not have (*dirty*), whether this process
//! has memory of its own for it, and the *epoch* of the last store (R6). An epoch ends while no
//! thread changes anything that a record describes (`evictor.rs`), so all records about its stores
//! have sequence numbers up to the last one then. Once a successful sync of the pool covers that
//! one, the file's page equals the image's, and the image's can be dropped.
//! Invariants: a page is touched before the first store to it, and its epoch only rises until the
//! page is dropped. Pages that reservations may store to at any time, without a lock, are *held*,
//! by pieces of 2 MiB: a piece is held before its first byte is handed out, and not dropped while
//! it is. A page may get a record, and become dirty, long after that: through a reservation that is
//! published. So the copy of a checkpoint raises its epoch to the one that this checkpoint has
//! ended. Descriptors are never dropped: memory has flags in them that the file does not have.
//! Thread safety: any thread. Holding a piece and dropping from it exclude each other: each sets
//! its flag, then checks the other's (`SeqCst`). Flags and epoch of a word are changed by compare
//! and exchange, so that none is lost. Copying a group holds a lock, for at most some 50 us.
//!
//! A *filled* image has no file behind it: its pages are read when they are first asked for, and
//! `VERIFIED` says that they were. Such a page takes memory, so it counts as stored to, in an epoch
//! that is covered: it may be dropped at any time.
//!
//! Copied groups: the first store to a page of a private mapping makes the system copy it. If it
//! was read before, its page-table entry changes for all processors that run a thread of this
//! process, by an interrupt to each: 25 us on a virtual machine, for a copy of 0.5 us. Many entries
//! at once take one interrupt, so the second store to a group copies the rest of the group with it.
//! See docs/decisions/0082-copied-groups.md.

mod piece;
mod dirty;
mod pieces;

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::collections::zones::Zones;
use crate::error::Result;
use crate::layout::{PAGE_BYTES, TABLE_BASE, ZONE_PAGES, ZONE_TABLE_PAGES};

pub(crate) use piece::PIECE_PAGES;
use piece::PieceCounters;

/// Words of a zone: its data pages, then the pages of its descriptors.
const ZONE_WORDS: u64 = ZONE_PAGES + ZONE_TABLE_PAGES;
/// Pieces of a zone; the last one is its descriptors.
const ZONE_PIECES: u64 = ZONE_WORDS.div_ceil(PIECE_PAGES);
/// The first page of descriptors; pages count from 0 by heap offset.
const TABLE_PAGE: u64 = TABLE_BASE / PAGE_BYTES;

/// The page has the file's checksum, or this process stored to it.
const VERIFIED: u32 = 1;
/// A record names bytes of the page that the file may not have yet.
const DIRTY: u32 = 2;
/// This process has memory of its own for the page.
const OWN: u32 = 4;
/// Bit 3 is spare. Above it: the epoch of the last store; 0: none.
const EPOCH_SHIFT: u32 = 4;
/// The last epoch, which never ends.
const EPOCH_MAX: u32 = u32::MAX >> EPOCH_SHIFT;

/// The first epoch of pages that were only read.
const FILLED_EPOCH: u32 = 1;

/// Pages of a group: as many as the system maps around a page that is read.
pub(crate) const GROUP_PAGES: u64 = 16;
/// Bytes copied beyond the pages that are stored to, at most.
const COPIED_BYTES_MAX: u64 = 256 << 20;
/// Groups that threads can verify at a time.
const VERIFYING: usize = 64;

/// The memory of the pages, and the file that they come from.
pub(crate) trait Memory {
    /// Compares pages of one group, to which no thread has stored, with their checksums in the
    /// file: by number. Calls `whole` for those that match; in a filled image, once they are there.
    ///
    /// # Errors
    /// `Error::Damaged` for one of the others; those of the medium.
    fn verify(&self, pages: Range<u64>, whole: &mut dyn FnMut(u64)) -> Result<()>;

    /// The pages to verify beside one of some, as reading them by the same call costs little.
    fn around(&self, pages: &RangeInclusive<u64>) -> Option<RangeInclusive<u64>> {
        let _ = pages;
        None
    }

    /// Puts a page of the file into memory, whatever its checksum says; zeros where the file ends.
    ///
    /// # Errors
    /// Those of the medium.
    fn fill(&self, page: u64) -> Result<()> {
        let _ = page;
        Ok(())
    }

    /// Copies `len` bytes of whole pages at a heap offset, to which no thread has stored, into
    /// memory of this process.
    fn copy(&self, offset: u64, len: u64);
}

/// The pages of a zone, made when the first of them is asked for.
#[derive(Debug)]
struct Zone {
    words: Box<[AtomicU32]>,
    pieces: Box<[PieceCounters]>,
}

impl Default for Zone {
    fn default() -> Self {
        Self {
            words: (0..ZONE_WORDS).map(|_| AtomicU32::new(0)).collect(),
            pieces: (0..ZONE_PIECES).map(|_| PieceCounters::default()).collect(),
        }
    }
}

/// The states of the pages of a heap.
#[derive(Debug)]
pub(crate) struct Pages {
    zones: Zones<Zone>,
    /// The current epoch.
    epoch: AtomicU32,
    /// The highest one that a checkpoint covers.
    covered: AtomicU32,
    /// The piece that is being dropped from, plus one; 0: none.
    dropping: AtomicU64,
    /// Bytes of memory that differ from the file's, at most.
    own_bytes: AtomicI64,
    /// The page behind the last whole group that may be copied.
    copied_end: AtomicU64,
    /// Bytes that were copied in groups; locked while a group is copied.
    copied_bytes: Mutex<u64>,
    /// Each for the groups of its remainder. Held while pages of one are verified, and while they
    /// get verified in another way: what is read of them then overwrites no store.
    verifying: [Mutex<()>; VERIFYING],
    is_filled: bool,
}

/// Zone of a page, and index of its word there.
#[inline]
fn place(page: u64) -> (usize, usize) {
    let (zone, index) = match page.checked_sub(TABLE_PAGE) {
        Some(table) => (table / ZONE_TABLE_PAGES, ZONE_PAGES + table % ZONE_TABLE_PAGES),
        None => (page / ZONE_PAGES, page % ZONE_PAGES),
    };
    (zone as usize, index as usize)
}

/// The pages of `len` bytes at a heap offset, at least one.
#[inline]
fn pages_of(offset: u64, len: u64) -> RangeInclusive<u64> {
    offset / PAGE_BYTES..=(offset + len.max(1) - 1) / PAGE_BYTES
}

impl Pages {
    /// The states of a heap with addresses for `pages_max` pages, to which nothing was stored. The
    /// first `copied` of them are the file's and are copied in groups.
    pub(crate) fn new(pages_max: u64, copied: u64) -> Self {
        Self {
            zones: Zones::new(pages_max.div_ceil(ZONE_PAGES)),
            epoch: AtomicU32::new(1),
            covered: AtomicU32::new(0),
            dropping: AtomicU64::new(0),
            own_bytes: AtomicI64::new(0),
            copied_end: AtomicU64::new(copied - copied % GROUP_PAGES),
            copied_bytes: Mutex::new(0),
            verifying: [const { Mutex::new(()) }; VERIFYING],
            is_filled: false,
        }
    }

    /// The states of a filled image, of which nothing was read.
    pub(crate) fn filled(pages_max: u64) -> Self {
        Self {
            epoch: AtomicU32::new(FILLED_EPOCH + 1),
            covered: AtomicU32::new(FILLED_EPOCH),
            is_filled: true,
            ..Self::new(pages_max, 0)
        }
    }

    /// The word of a page; 0 until its zone is first asked for.
    #[inline]
    fn load(&self, page: u64) -> u32 {
        let (zone, index) = place(page);
        let word = self.zones.get(zone).and_then(|zone| zone.words.get(index));
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Changes the word of a page and the counts of its piece.
    fn change(&self, page: u64, change: impl Fn(u32) -> u32) {
        let (zone, index) = place(page);
        let Some(zone) = self.zones.get_or_make(zone, Zone::default) else { return };
        let Some(word) = zone.words.get(index) else { return };
        let mut before = word.load(Ordering::Acquire);
        let after = loop {
            let after = change(before);
            if before == after {
                return;
            }
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            match word.compare_exchange_weak(before, after, success, failure) {
                Ok(_) => break after,
                Err(other) => before = other,
            }
        };
        let piece = &zone.pieces[index / PIECE_PAGES as usize];
        piece.count_dirty(before & DIRTY != 0, after & DIRTY != 0);
        // Descriptors are never dropped, so their stored-to pages are not counted.
        if page < TABLE_PAGE {
            let (was, is) = (before >> EPOCH_SHIFT != 0, after >> EPOCH_SHIFT != 0);
            self.own_bytes.fetch_add(piece.count_stamped(was, is), Ordering::AcqRel);
        }
    }

    /// `len` bytes at a heap offset are about to be stored to, or to get a record. A page that was
    /// not verified is verified first (C7): later its checksum would be that of the changed bytes.
    ///
    /// # Errors
    /// As [`Memory::verify`].
    #[inline]
    pub(crate) fn touch(&self, offset: u64, len: u64, memory: &impl Memory) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let common = self.epoch.load(Ordering::Relaxed) << EPOCH_SHIFT | VERIFIED | OWN;
        let mut pages = pages_of(offset, len);
        match pages.find(|page| self.load(*page) & !DIRTY != common) {
            Some(page) => self.touch_first(page, *pages.end(), memory),
            None => Ok(()),
        }
    }

    #[cold]
    fn touch_first(&self, first: u64, last: u64, memory: &impl Memory) -> Result<()> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let mut start = first;
        while start <= last {
            let end = last.min(start - start % GROUP_PAGES + GROUP_PAGES - 1);
            let is_copied =
                end < self.copied_end.load(Ordering::Acquire) && self.own_group(start, end, memory);
            if is_copied {
                // Two calls for the whole group. A damaged page is reported to its next user.
                let group = start - start % GROUP_PAGES;
                let _ = self.verify_pages(group..=group + GROUP_PAGES - 1, memory);
            }
            self.verify_pages(start..=end, memory)?;
            for page in start..=end {
                self.stamp(page, epoch, VERIFIED | OWN);
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Sets flags of a page and raises its epoch.
    fn stamp(&self, page: u64, epoch: u32, flags: u32) {
        // The higher one stays: a thread without a lock may come late with its epoch.
        self.change(page, |word| {
            let newest = epoch.max(word >> EPOCH_SHIFT) << EPOCH_SHIFT;
            newest | word & !(u32::MAX << EPOCH_SHIFT) | flags
        });
    }

    /// Makes some pages of one group memory of this process. A page alone is left to the system;
    /// else all pages of the group that are still the file's are copied. No thread stores to any of
    /// them before its word says so, which is after that. Returns whether all of the group are.
    fn own_group(&self, first: u64, last: u64, memory: &impl Memory) -> bool {
        let is_own = |page: u64| self.load(page) & OWN != 0;
        if (first..=last).all(is_own) {
            return false;
        }
        let mut copied_bytes = self.copied_bytes.lock();
        let own = |page: u64| self.change(page, |word| word | OWN);
        let start = first - first % GROUP_PAGES;
        let group = start..start + GROUP_PAGES;
        let is_alone = first == last && !group.clone().any(is_own);
        if is_alone || *copied_bytes >= COPIED_BYTES_MAX {
            (first..=last).for_each(own);
            return false;
        }
        let mut page = group.start;
        while page < group.end {
            let end = (page..group.end).find(|page| is_own(*page)).unwrap_or(group.end);
            if page < end {
                memory.copy(page * PAGE_BYTES, (end - page) * PAGE_BYTES);
            }
            page = end + 1;
        }
        *copied_bytes += GROUP_PAGES * PAGE_BYTES;
        group.for_each(own);
        true
    }

    /// A page was just stored to without being read.
    pub(crate) fn note_stored(&self, page: u64) {
        self.stamp(page, self.epoch.load(Ordering::Relaxed), OWN);
    }

    /// Pages of `len` bytes at a heap offset need no verification: whatever is in memory.
    pub(crate) fn note_verified(&self, offset: u64, len: u64) {
        let pages = (len > 0).then(|| pages_of(offset, len));
        for page in pages.into_iter().flatten() {
            let _verifying = self.is_filled.then(|| self.verifying(page).lock());
            self.change(page, |word| word | VERIFIED);
        }
    }

    /// The same for one page whose checksum does not apply, but of which the file has bytes.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn accept(&self, page: u64, memory: &impl Memory) -> Result<()> {
        let _verifying = self.verifying(page).lock();
        if !self.is_verified(page) {
            memory.fill(page)?;
            self.stamp_filled(page, self.epoch.load(Ordering::Relaxed));
        }
        Ok(())
    }

    /// A page is what it has to be, and, in a filled image, there since an epoch.
    fn stamp_filled(&self, page: u64, epoch: u32) {
        match self.is_filled {
            true => self.stamp(page, epoch, VERIFIED | OWN),
            false => self.change(page, |word| word | VERIFIED),
        }
    }

    #[inline]
    fn is_verified(&self, page: u64) -> bool {
        self.load(page) & VERIFIED != 0
    }

    /// Whether no page of `len` bytes at a heap offset has to be verified.
    #[inline]
    pub(crate) fn are_verified(&self, offset: u64, len: u64) -> bool {
        pages_of(offset, len).all(|page| self.is_verified(page))
    }

    fn verifying(&self, page: u64) -> &Mutex<()> {
        &self.verifying[(page / GROUP_PAGES) as usize % VERIFYING]
    }

    /// Verifies those pages of `len` bytes at a heap offset that were not verified, each by one
    /// thread and once.
    ///
    /// # Errors
    /// As [`Memory::verify`].
    pub(crate) fn verify(&self, offset: u64, len: u64, memory: &impl Memory) -> Result<()> {
        self.verify_pages(pages_of(offset, len), memory)
    }

    #[inline]
    fn verify_pages(&self, pages: RangeInclusive<u64>, memory: &impl Memory) -> Result<()> {
        if pages.clone().all(|page| self.is_verified(page)) {
            return Ok(());
        }
        if let Some(around) = memory.around(&pages) {
            // A damaged page is reported to the thread that needs it.
            let _ = self.verify_groups(around, memory);
        }
        self.verify_groups(pages, memory)
    }

    #[cold]
    fn verify_groups(&self, pages: RangeInclusive<u64>, memory: &impl Memory) -> Result<()> {
        let (mut page, pages_end) = (*pages.start(), pages.end() + 1);
        let mut verified = Ok(());
        while page < pages_end {
            let group_end = (page - page % GROUP_PAGES + GROUP_PAGES).min(pages_end);
            let _verifying = self.verifying(page).lock();
            let end = (page..group_end).find(|page| self.is_verified(*page)).unwrap_or(group_end);
            if page < end {
                let whole = &mut |page| self.stamp_filled(page, self.covered());
                verified = verified.and(memory.verify(page..end, whole));
            }
            page = end.max(page + 1);
        }
        verified
    }

    /// Ends the epoch, and returns its number. No thread may be within a change that a record will
    /// describe: all stores until now have one. `None` once the numbers are used up.
    pub(crate) fn end_epoch(&self) -> Option<u32> {
        let ended = self.epoch.load(Ordering::Relaxed);
        let next = ended.checked_add(1).filter(|next| *next <= EPOCH_MAX)?;
        self.epoch.store(next, Ordering::Relaxed);
        Some(ended)
    }

    /// The file durably has all that was stored up to the end of that epoch, dirty pages excepted.
    pub(crate) fn note_covered(&self, epoch: u32) {
        self.covered.store(epoch, Ordering::Release);
    }

    /// The highest epoch of which that is so.
    pub(crate) fn covered(&self) -> u32 {
        self.covered.load(Ordering::Acquire)
    }

    /// The epoch of the last store to a page; 0: none, or it was dropped since.
    pub(crate) fn epoch_of(&self, page: u64) -> u32 {
        self.load(page) >> EPOCH_SHIFT
    }

    /// The same; for a dirty page, an epoch that no checkpoint ever covers.
    pub(crate) fn epoch_if_clean(&self, page: u64) -> u32 {
        let word = self.load(page);
        if word & DIRTY != 0 { EPOCH_MAX } else { word >> EPOCH_SHIFT }
    }

    /// Data pages are the file's again, or no longer exist: the next read of them verifies them
    /// again (C7). Their pieces are being dropped from, or no thread can reach them.
    pub(crate) fn forget(&self, start: u64, end: u64) {
        for page in (start..end).filter(|page| self.load(*page) != 0) {
            self.change(page, |_| 0);
        }
    }

    /// Pages from this one on no longer exist.
    pub(crate) fn cut(&self, pages: u64, before: u64) {
        self.copied_end.fetch_min(pages - pages % GROUP_PAGES, Ordering::AcqRel);
        self.forget(pages, before);
    }
}

#[cfg(test)]
mod tests;
