//! Counters of a piece: 2 MiB of pages.
//!
//! Thread safety: any thread.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::layout::PAGE_BYTES;

/// Pages of a piece: 2 MiB, which a huge page can back.
pub(crate) const PIECE_PAGES: u64 = 512;
/// Bytes of a piece.
pub(super) const PIECE_BYTES: i64 = (PIECE_PAGES * PAGE_BYTES) as i64;
/// Bit of `PieceCounters::state`: anonymous memory is behind all of it, instead of the file's
/// pages.
pub(super) const ANONYMOUS: u32 = 1 << 31;

/// The counters of 2 MiB of pages.
#[derive(Debug, Default)]
pub(super) struct PieceCounters {
    /// Reservations in it.
    pub(super) held: AtomicU32,
    /// Pages that were stored to, with `ANONYMOUS` or not. One word, so that each change of it
    /// tells by how much the bytes of this process change.
    pub(super) state: AtomicU32,
    /// Pages that are dirty.
    dirty: AtomicU32,
}

/// Bytes of memory that differ from the file's, of a piece with that state.
fn own_bytes_of(state: u32) -> i64 {
    match (state & ANONYMOUS, state & !ANONYMOUS) {
        (_, 0) => 0,
        (0, pages) => i64::from(pages) * PAGE_BYTES as i64,
        // A first touch takes a huge page, if there are any.
        _ => PIECE_BYTES,
    }
}

/// By how much those bytes grow when the state changes.
pub(super) fn growth(before: u32, after: u32) -> i64 {
    own_bytes_of(after) - own_bytes_of(before)
}

impl PieceCounters {
    /// Counts that a page of it became dirty or clean.
    #[inline]
    pub(super) fn count_dirty(&self, was: bool, is: bool) {
        match (was, is) {
            (false, true) => _ = self.dirty.fetch_add(1, Ordering::AcqRel),
            (true, false) => _ = self.dirty.fetch_sub(1, Ordering::AcqRel),
            _ => {}
        }
    }

    /// How many pages of it are dirty.
    pub(super) fn dirty_pages(&self) -> u64 {
        self.dirty.load(Ordering::Acquire).into()
    }

    /// The same for pages that have an epoch. Returns by how much the bytes that differ from the
    /// file's grow.
    #[inline]
    pub(super) fn count_stamped(&self, was: bool, is: bool) -> i64 {
        match (was, is) {
            (false, true) => {
                let state = self.state.fetch_add(1, Ordering::AcqRel);
                growth(state, state + 1)
            }
            (true, false) => {
                let state = self.state.fetch_sub(1, Ordering::AcqRel);
                growth(state, state - 1)
            }
            _ => 0,
        }
    }
}
