//! Which pages of the image differ from the file's, and since when.
//!
//! Purpose: R6 for heaps whose private memory is bounded. Each data page has a stamp: 0, or the
//! *epoch* in which it was last stored to. An epoch ends while nobody changes anything that a
//! record says (`keeper.rs`), so all records about its stores have sequence numbers up to the last
//! one then; once a successful sync of the pool covers that one, the file's page is what the image
//! has, and the image's can be dropped.
//! Invariants: a page is stamped before the first store to it, and a stamp only rises until the page
//! is dropped. What reservations may store to at any time, without a lock, is *held*, by pieces of
//! 2 MiB: a piece is held before its first byte is handed out, and not dropped while it is. Bytes
//! of a reservation are stamped again when it is published, as that is when they get a record.
//! Thread safety: any thread. To hold a piece and to drop from it exclude each other: who holds says so, then
//! looks whether it is being dropped; who drops says so, then looks whether it is held; all in
//! one total order (`SeqCst`).
//!
//! Tables of descriptors are neither stamped nor dropped: memory has flags in them that the
//! file does not have.

use adamant_wire::mutants::is_planted;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::layout::{PAGE_BYTES, TABLE_BASE, ZONE_PAGES};
use crate::sync::wait;
use crate::zones::Zones;

/// Pages of a piece: 2 MiB, which a huge page can back.
pub(crate) const PIECE_PAGES: u64 = 512;
const PIECE_BYTES: i64 = (PIECE_PAGES * PAGE_BYTES) as i64;
const ZONE_PIECES: u64 = ZONE_PAGES / PIECE_PAGES;
/// Bit of `Piece::state`: memory of its own is behind all of it, instead of the file's pages.
const ANONYMOUS: u32 = 1 << 31;
/// Ages of pages that are told apart when the oldest are looked for.
const AGES: usize = 32;

/// What is known of 2 MiB.
#[derive(Debug, Default)]
struct Piece {
    /// Reservations in it.
    held: AtomicU32,
    /// Pages that are stamped, and `ANONYMOUS` or not. One word, so that what it adds to the dirty
    /// bytes is known from each change of it.
    state: AtomicU32,
}

/// What a piece with that state adds to the dirty bytes.
fn dirty_bytes_of(state: u32) -> i64 {
    match (state & ANONYMOUS, state & !ANONYMOUS) {
        (_, 0) => 0,
        (0, pages) => i64::from(pages) * PAGE_BYTES as i64,
        // A first touch takes a huge page, where there are any.
        _ => PIECE_BYTES,
    }
}

/// The pages of a zone: 256 KiB of stamps, made when one of them is first set.
#[derive(Debug)]
struct Zone {
    stamps: Box<[AtomicU32]>,
    pieces: Box<[Piece]>,
}

impl Default for Zone {
    fn default() -> Self {
        Self {
            stamps: (0..ZONE_PAGES).map(|_| AtomicU32::new(0)).collect(),
            pieces: (0..ZONE_PIECES).map(|_| Piece::default()).collect(),
        }
    }
}

/// The stamps of a heap.
#[derive(Debug)]
pub(crate) struct Written {
    zones: Zones<Zone>,
    epoch: AtomicU32,
    /// The piece that is being dropped from, plus one; 0: none.
    dropping: AtomicU64,
    dirty_bytes: AtomicI64,
    /// A mistake, planted to see that tests notice it: pieces that are held are dropped, too.
    #[cfg(test)]
    pub(crate) skips_held: std::sync::atomic::AtomicBool,
}

/// A piece from which pages may be dropped: nobody holds it, and nobody will before this is gone.
#[derive(Debug)]
pub(crate) struct Dropping<'w> {
    written: &'w Written,
    piece: u64,
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        self.written.dropping.store(0, Ordering::SeqCst);
    }
}

impl Written {
    /// Nothing is stamped, of a heap with addresses for `pages_max` pages.
    pub(crate) fn new(pages_max: u64) -> Self {
        Self {
            zones: Zones::new(pages_max.div_ceil(ZONE_PAGES)),
            epoch: AtomicU32::new(1),
            dropping: AtomicU64::new(0),
            dirty_bytes: AtomicI64::new(0),
            #[cfg(test)]
            skips_held: std::sync::atomic::AtomicBool::new(false),
        }
    }

    /// Bytes of memory that differ from the file's, at most.
    #[inline]
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Stamps the pages of `len` bytes at a heap offset, which are about to be stored to.
    #[inline]
    pub(crate) fn mark(&self, offset: u64, len: u64) {
        if offset >= TABLE_BASE || len == 0 || is_planted("R6.stores-are-not-marked") {
            return;
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        for page in offset / PAGE_BYTES..=(offset + len - 1) / PAGE_BYTES {
            let stamp = self.known(page).map(|zone| &zone.stamps[(page % ZONE_PAGES) as usize]);
            if stamp.is_none_or(|stamp| stamp.load(Ordering::Relaxed) != epoch) {
                self.stamp(page, epoch);
            }
        }
    }

    #[cold]
    fn stamp(&self, page: u64, epoch: u32) {
        let Some(zone) = self.zone(page) else { return };
        // The higher one stays: a thread without a lock may come late with its epoch.
        let before = zone.stamps[(page % ZONE_PAGES) as usize].fetch_max(epoch, Ordering::AcqRel);
        if before == 0 {
            self.change(zone, page / PIECE_PAGES, |piece| {
                let state = piece.state.fetch_add(1, Ordering::AcqRel);
                (state, state + 1)
            });
        }
    }

    /// Changes the state of a piece, and the dirty bytes with it.
    fn change(&self, zone: &Zone, piece: u64, change: impl FnOnce(&Piece) -> (u32, u32)) {
        let (before, after) = change(&zone.pieces[(piece % ZONE_PIECES) as usize]);
        let difference = dirty_bytes_of(after) - dirty_bytes_of(before);
        self.dirty_bytes.fetch_add(difference, Ordering::AcqRel);
    }

    fn known(&self, page: u64) -> Option<&Zone> {
        self.zones.get((page / ZONE_PAGES) as usize)
    }

    fn zone(&self, page: u64) -> Option<&Zone> {
        self.zones.get_or_make((page / ZONE_PAGES) as usize, Zone::default)
    }

    fn piece(&self, piece: u64) -> Option<&Piece> {
        let zone = self.known(piece * PIECE_PAGES)?;
        zone.pieces.get((piece % ZONE_PIECES) as usize)
    }

    fn pieces_of(offset: u64, len: u64) -> std::ops::RangeInclusive<u64> {
        let bytes = PIECE_BYTES.unsigned_abs();
        offset / bytes..=(offset + len.max(1) - 1) / bytes
    }

    /// Keeps `len` bytes at a heap offset from being dropped, until `let_go`. Waits while they are,
    /// some 100 us at most.
    pub(crate) fn hold(&self, offset: u64, len: u64) {
        for piece in Self::pieces_of(offset, len) {
            let Some(zone) = self.zone(piece * PIECE_PAGES) else { return };
            zone.pieces[(piece % ZONE_PIECES) as usize].held.fetch_add(1, Ordering::SeqCst);
            while self.dropping.load(Ordering::SeqCst) == piece + 1 {
                wait(|| self.dropping.load(Ordering::Relaxed) != piece + 1);
            }
        }
    }

    /// The opposite. What was stored happened before.
    pub(crate) fn let_go(&self, offset: u64, len: u64) {
        for piece in Self::pieces_of(offset, len) {
            if let Some(piece) = self.piece(piece) {
                piece.held.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// A piece, if nobody holds it, kept so. One thread at a time asks.
    pub(crate) fn start_dropping(&self, piece: u64) -> Option<Dropping<'_>> {
        self.dropping.store(piece + 1, Ordering::SeqCst);
        let dropping = Dropping { written: self, piece };
        let held = self.piece(piece).map_or(0, |piece| piece.held.load(Ordering::SeqCst));
        #[cfg(test)]
        let held = if self.skips_held.load(Ordering::Relaxed) { 0 } else { held };
        (held == 0 || is_planted("R6.drops-what-is-reserved")).then_some(dropping)
    }

    /// Ends the epoch, and returns its number. Nobody may be within a change that a record is to tell
    /// of: what was stamped until now has one. `None` once there are no more numbers.
    pub(crate) fn end_epoch(&self) -> Option<u32> {
        let ended = self.epoch.load(Ordering::Relaxed);
        self.epoch.store(ended.checked_add(1)?, Ordering::Relaxed);
        Some(ended)
    }

    /// The stamp of a page.
    pub(crate) fn stamp_of(&self, page: u64) -> u32 {
        let stamp = self.known(page).map(|zone| &zone.stamps[(page % ZONE_PAGES) as usize]);
        stamp.map_or(0, |stamp| stamp.load(Ordering::Acquire))
    }

    /// Whether memory of its own is behind a piece.
    pub(crate) fn is_anonymous(&self, piece: u64) -> bool {
        self.piece(piece).is_some_and(|piece| piece.state.load(Ordering::Acquire) & ANONYMOUS != 0)
    }

    /// Memory of its own is behind the pieces of a range of pages from now on.
    pub(crate) fn note_anonymous(&self, start: u64, end: u64) {
        if start < end {
            for piece in start / PIECE_PAGES..=(end - 1) / PIECE_PAGES {
                let Some(zone) = self.zone(piece * PIECE_PAGES) else { return };
                self.change(zone, piece, |piece| {
                    let state = piece.state.fetch_or(ANONYMOUS, Ordering::AcqRel);
                    (state, state | ANONYMOUS)
                });
            }
        }
    }

    /// Pages are the file's again, or are no more. The piece is being dropped from, or nobody can
    /// reach it.
    pub(crate) fn forget(&self, start: u64, end: u64) {
        for page in start..end {
            let Some(zone) = self.known(page) else { continue };
            if zone.stamps[(page % ZONE_PAGES) as usize].swap(0, Ordering::AcqRel) != 0 {
                self.change(zone, page / PIECE_PAGES, |piece| {
                    let state = piece.state.fetch_sub(1, Ordering::AcqRel);
                    (state, state - 1)
                });
            }
        }
    }

    /// The file is behind all of a piece again.
    pub(crate) fn forget_piece(&self, dropping: &Dropping<'_>) {
        let piece = dropping.piece;
        let (start, end) = (piece * PIECE_PAGES, (piece + 1) * PIECE_PAGES);
        if let Some(zone) = self.known(start) {
            self.change(zone, piece, |piece| {
                let state = piece.state.fetch_and(!ANONYMOUS, Ordering::AcqRel);
                (state, state & !ANONYMOUS)
            });
            self.forget(start, end);
        }
    }

    /// The first piece from one on that has a stamped page, below the end of so many pages.
    pub(crate) fn next_marked(&self, mut piece: u64, pages: u64) -> Option<u64> {
        while piece * PIECE_PAGES < pages {
            if self.known(piece * PIECE_PAGES).is_none() {
                piece = (piece / ZONE_PIECES + 1) * ZONE_PIECES;
                continue;
            }
            let state = self.piece(piece).map_or(0, |piece| piece.state.load(Ordering::Acquire));
            if state & !ANONYMOUS != 0 {
                return Some(piece);
            }
            piece += 1;
        }
        None
    }

    /// The newest stamp in a piece.
    pub(crate) fn newest_in(&self, piece: u64) -> u32 {
        let start = piece * PIECE_PAGES;
        (start..start + PIECE_PAGES).map(|page| self.stamp_of(page)).max().unwrap_or(0)
    }

    /// The lowest epoch such that what was last stored to in it or before comes to `wanted` bytes;
    /// `covered`, the highest one whose pages may be dropped, if there is less. So what was
    /// stored to last stays longest. O(stamped pieces), some 0.2 us each.
    pub(crate) fn epoch_of_oldest(&self, covered: u32, wanted: u64, pages: u64) -> u32 {
        let mut bytes_by_age = [0; AGES];
        let mut add = |stamp: u32, bytes: u64| {
            if let Some(age) = covered.checked_sub(stamp).filter(|_| stamp > 0) {
                bytes_by_age[(age as usize).min(AGES - 1)] += bytes;
            }
        };
        let mut next = self.next_marked(0, pages);
        while let Some(piece) = next {
            if self.is_anonymous(piece) {
                add(self.newest_in(piece), PIECE_BYTES.unsigned_abs());
            } else {
                let start = piece * PIECE_PAGES;
                (start..start + PIECE_PAGES).for_each(|page| add(self.stamp_of(page), PAGE_BYTES));
            }
            next = self.next_marked(piece + 1, pages);
        }
        let mut bytes = 0;
        for age in (0..AGES).rev() {
            bytes += bytes_by_age[age];
            if bytes >= wanted {
                return covered.saturating_sub(age as u32);
            }
        }
        covered
    }
}
