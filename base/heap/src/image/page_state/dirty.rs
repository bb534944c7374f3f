//! Dirty pages: pages of which a record names bytes that the file may not have yet (C2).
//!
//! Purpose: the pages that a checkpoint copies. A page becomes dirty behind the append of a record
//! that names bytes of it, and clean when it is copied, or when it becomes free, as no reader needs
//! what a record said of it. Both happen while no checkpoint copies, or within one.
//! Thread safety: any thread; making pages dirty and copying them exclude each other.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::piece::PieceCounters;
use super::{DIRTY, EPOCH_MAX, EPOCH_SHIFT, PIECE_PAGES, Pages, TABLE_PAGE, Zone};
use crate::layout::{ZONE_PAGES, ZONE_TABLE_PAGES};

impl Pages {
    /// A record names bytes of these pages.
    #[inline]
    pub(crate) fn note_dirty(&self, pages: Range<u64>) {
        for page in pages {
            if self.load(page) & DIRTY == 0 {
                self.change(page, |word| word | DIRTY);
            }
        }
    }

    /// Pages became free.
    pub(crate) fn note_clean(&self, pages: Range<u64>) {
        for page in pages {
            if self.load(page) & DIRTY != 0 {
                self.change(page, |word| word & !DIRTY);
            }
        }
    }

    /// Whether a page is dirty.
    #[cfg(test)]
    pub(crate) fn is_dirty(&self, page: u64) -> bool {
        self.load(page) & DIRTY != 0
    }

    /// A checkpoint that has ended this epoch (`None`: no epoch is left) copies a dirty page: until
    /// that is done the page stays in memory (R6).
    pub(crate) fn note_copied(&self, page: u64, epoch: Option<u32>) {
        let epoch = epoch.unwrap_or(EPOCH_MAX);
        self.change(page, |word| {
            let newest = epoch.max(word >> EPOCH_SHIFT) << EPOCH_SHIFT;
            newest | word & !(u32::MAX << EPOCH_SHIFT) & !DIRTY
        });
    }

    /// How many pages are dirty, about. O(pieces), some ns each.
    pub(crate) fn dirty_pages(&self) -> u64 {
        let zones = (0..self.zones.count()).filter_map(|zone| self.zones.get(zone as usize));
        zones.flat_map(|zone| &zone.pieces).map(PieceCounters::dirty_pages).sum()
    }

    /// The first dirty page from one on: data pages by number, and behind them those of
    /// descriptors. O(pieces between), some ns each.
    pub(crate) fn next_dirty(&self, page: u64) -> Option<u64> {
        let regions = [(0, 0, ZONE_PAGES), (TABLE_PAGE, ZONE_PAGES, ZONE_TABLE_PAGES)];
        regions.into_iter().find_map(|(base, word, count)| {
            let from = page.saturating_sub(base);
            (from / count..self.zones.count()).find_map(|zone| {
                let zone_start = base + zone * count;
                let start = page.saturating_sub(zone_start);
                let found =
                    self.zones.get(zone as usize)?.next_dirty(word + start..word + count)?;
                Some(zone_start + found - word)
            })
        })
    }
}

impl Zone {
    fn next_dirty(&self, words: Range<u64>) -> Option<u64> {
        let Range { start: mut at, end } = words;
        while at < end {
            if self.pieces[(at / PIECE_PAGES) as usize].dirty_pages() == 0 {
                at = (at / PIECE_PAGES + 1) * PIECE_PAGES;
                continue;
            }
            if self.words[at as usize].load(Ordering::Acquire) & DIRTY != 0 {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}
