//! Pieces of 2 MiB of a heap's pages: holds that keep them in memory, and the search for the
//! oldest.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use super::piece::{ANONYMOUS, PIECE_BYTES, PIECE_PAGES, PieceCounters, growth};
use super::{Pages, Zone, pages_of};
use crate::layout::{PAGE_BYTES, ZONE_PAGES};
use crate::sync::wait;

/// Pieces of the data pages of a zone.
const DATA_PIECES: u64 = ZONE_PAGES / PIECE_PAGES;
/// Ages of pages that the search for the oldest tells apart.
const AGES: usize = 32;

/// A piece from which pages may be dropped: no reservation holds it, and none will before this is
/// dropped.
#[derive(Debug)]
pub(crate) struct Dropping<'p> {
    pages: &'p Pages,
    piece: u64,
}

impl Drop for Dropping<'_> {
    fn drop(&mut self) {
        self.pages.dropping.store(0, Ordering::SeqCst);
    }
}

fn pieces_of(offset: u64, len: u64) -> RangeInclusive<u64> {
    let pages = pages_of(offset, len);
    pages.start() / PIECE_PAGES..=pages.end() / PIECE_PAGES
}

impl Pages {
    /// Bytes of memory that differ from the file's, at most.
    #[inline]
    pub(crate) fn own_bytes(&self) -> u64 {
        self.own_bytes.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// A piece of data pages.
    fn piece(&self, piece: u64) -> Option<&PieceCounters> {
        let zone = self.zones.get((piece / DATA_PIECES) as usize)?;
        zone.pieces.get((piece % DATA_PIECES) as usize)
    }

    fn make_piece(&self, piece: u64) -> Option<&PieceCounters> {
        let zone = self.zones.get_or_make((piece / DATA_PIECES) as usize, Zone::default)?;
        zone.pieces.get((piece % DATA_PIECES) as usize)
    }

    /// Keeps `len` bytes at a heap offset from being dropped, until `let_go`. Waits while they are
    /// being dropped, some 100 us at most.
    pub(crate) fn hold(&self, offset: u64, len: u64) {
        for number in pieces_of(offset, len) {
            let Some(piece) = self.make_piece(number) else { return };
            piece.held.fetch_add(1, Ordering::SeqCst);
            while self.dropping.load(Ordering::SeqCst) == number + 1 {
                wait(|| self.dropping.load(Ordering::Relaxed) != number + 1);
            }
        }
    }

    /// Ends the hold. All stores happened before.
    pub(crate) fn let_go(&self, offset: u64, len: u64) {
        for piece in pieces_of(offset, len) {
            if let Some(piece) = self.piece(piece) {
                piece.held.fetch_sub(1, Ordering::Release);
            }
        }
    }

    /// A piece, if no reservation holds it, kept so. One thread at a time may call this.
    pub(crate) fn start_dropping(&self, piece: u64) -> Option<Dropping<'_>> {
        self.dropping.store(piece + 1, Ordering::SeqCst);
        let dropping = Dropping { pages: self, piece };
        let held = self.piece(piece).map_or(0, |piece| piece.held.load(Ordering::SeqCst));
        (held == 0).then_some(dropping)
    }

    /// Whether anonymous memory is behind a piece.
    pub(crate) fn is_anonymous(&self, piece: u64) -> bool {
        self.piece(piece).is_some_and(|piece| piece.state.load(Ordering::Acquire) & ANONYMOUS != 0)
    }

    /// Anonymous memory is behind the pieces of a range of pages from now on.
    pub(crate) fn note_anonymous(&self, start: u64, end: u64) {
        if start < end {
            for piece in start / PIECE_PAGES..=(end - 1) / PIECE_PAGES {
                let Some(piece) = self.make_piece(piece) else { return };
                let state = piece.state.fetch_or(ANONYMOUS, Ordering::AcqRel);
                self.own_bytes.fetch_add(growth(state, state | ANONYMOUS), Ordering::AcqRel);
            }
        }
    }

    /// The file is behind all of a piece again.
    pub(crate) fn forget_piece(&self, dropping: &Dropping<'_>) {
        if let Some(piece) = self.piece(dropping.piece) {
            let state = piece.state.fetch_and(!ANONYMOUS, Ordering::AcqRel);
            self.own_bytes.fetch_add(growth(state, state & !ANONYMOUS), Ordering::AcqRel);
            let start = dropping.piece * PIECE_PAGES;
            self.forget(start, start + PIECE_PAGES);
        }
    }

    /// The first piece from `piece` on with a stored-to page below `pages`.
    pub(crate) fn next_stored(&self, mut piece: u64, pages: u64) -> Option<u64> {
        while piece * PIECE_PAGES < pages {
            if self.zones.get((piece / DATA_PIECES) as usize).is_none() {
                piece = (piece / DATA_PIECES + 1) * DATA_PIECES;
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

    /// The newest epoch in a piece; a dirty page counts as one that no checkpoint covers.
    pub(crate) fn newest_in(&self, piece: u64) -> u32 {
        let start = piece * PIECE_PAGES;
        (start..start + PIECE_PAGES).map(|page| self.epoch_if_clean(page)).max().unwrap_or(0)
    }

    /// The lowest epoch such that pages last stored to in it or before come to `wanted` bytes;
    /// `covered`, the highest one whose pages may be dropped, if there are fewer. So the pages last
    /// stored to stay longest. O(pieces that were stored to), some 0.2 us each.
    pub(crate) fn epoch_of_oldest(&self, covered: u32, wanted: u64, pages: u64) -> u32 {
        let mut bytes_by_age = [0; AGES];
        let mut add = |epoch: u32, bytes: u64| {
            if let Some(age) = covered.checked_sub(epoch).filter(|_| epoch > 0) {
                bytes_by_age[(age as usize).min(AGES - 1)] += bytes;
            }
        };
        let mut next = self.next_stored(0, pages);
        while let Some(piece) = next {
            if self.is_anonymous(piece) {
                add(self.newest_in(piece), PIECE_BYTES.unsigned_abs());
            } else {
                let start = piece * PIECE_PAGES;
                let pages = start..start + PIECE_PAGES;
                pages.for_each(|page| add(self.epoch_if_clean(page), PAGE_BYTES));
            }
            next = self.next_stored(piece + 1, pages);
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
