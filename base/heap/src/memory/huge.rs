//! Promotion of hot pieces of the image to huge pages.
//!
//! Purpose: the image of a file is on small pages, where a dependent load takes about twice as
//! long. Pieces of 2 MiB that this process reads are copied to huge pages, which are moved over the
//! image. From then on they are private memory like any that has grown, counted and evicted with
//! it.
//! Invariants: the copy takes each page from the file if the image was not stored to there, and
//! from the image if it was: so it equals the image at the moment of the move. No pages are evicted
//! in between.
//! Thread safety: under the lock of the evictor's tools; `put` with the image held exclusively.
//!
//! Hot are the pieces of which most pages were touched. The system's page table says so, at no cost
//! for reads. Of two pieces that were touched in whole the lower one goes first.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_medium::address::huge::{HUGE_PAGE_BYTES, HugePage};
use adamant_medium::storage::File;

use crate::error::Result;
use crate::image::mapping::Image;
use crate::image::mapping::guards::Exclusive;
use crate::image::page_state::{PIECE_PAGES, Pages};
use crate::layout::{PAGE_BYTES, file_offset};

const _: () = assert!(PIECE_PAGES * PAGE_BYTES == HUGE_PAGE_BYTES);

/// Touched pages that make a piece worth a huge page: an eighth.
const TOUCHED_MIN: u64 = PIECE_PAGES / 8;
/// Stored-to pages that are copied under the exclusive lock: 0.3 us each. Pieces with more wait
/// until those are evicted.
const STAMPED_MAX: usize = 128;

/// Puts pieces on huge pages.
#[derive(Debug, Default)]
pub(crate) struct Promoter {
    room: Option<HugePage>,
    /// Pieces that are on huge pages.
    pieces: BTreeSet<u64>,
    /// Whether the system had no huge page the last time.
    pub(crate) is_refused: bool,
}

impl Promoter {
    /// Bytes on huge pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.pieces.len() as u64 * HUGE_PAGE_BYTES
    }

    /// Removes a piece; returns whether it was on a huge page.
    pub(crate) fn forget(&mut self, piece: u64) -> bool {
        self.pieces.remove(&piece)
    }

    /// Pieces that could be on huge pages, hottest first. O(pages), 8 bytes read for each.
    pub(crate) fn candidates(image: &Image, states: &Pages) -> Vec<u64> {
        let pieces = 0..image.pages() / PIECE_PAGES;
        let mut found: Vec<(u64, u64)> = pieces
            .filter(|piece| !states.is_anonymous(*piece))
            .map(|piece| {
                (PIECE_PAGES - image.touched_pages(piece * PIECE_PAGES, PIECE_PAGES), piece)
            })
            .filter(|(untouched, _)| PIECE_PAGES - untouched >= TOUCHED_MIN)
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, piece)| piece).collect()
    }

    /// Copies a piece from the file, without any lock of the heap; false if the system has no huge
    /// page.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn prepare(&mut self, pool: &Arc<dyn File>, piece: u64) -> Result<bool> {
        let room = match &mut self.room {
            Some(room) => room,
            none => none.insert(HugePage::new()?),
        };
        let offset = file_offset(piece * PIECE_PAGES * PAGE_BYTES);
        let filled = room.fill(|bytes| pool.read_at(bytes, offset))?;
        self.is_refused = filled.is_none();
        if self.is_refused {
            // Small pages that took its place would stay.
            self.room = None;
        }
        Ok(!self.is_refused)
    }

    /// Puts the prepared piece on a huge page, with what was stored to it; returns whether it did.
    ///
    /// # Errors
    /// Those of the system; then nothing happened.
    pub(crate) fn put(
        &mut self,
        image: &mut Exclusive<'_>,
        states: &Pages,
        piece: u64,
    ) -> Result<bool> {
        let pages = piece * PIECE_PAGES..(piece + 1) * PIECE_PAGES;
        let Some(room) = self.room.as_mut().filter(|_| pages.end <= image.pages()) else {
            return Ok(false);
        };
        let Some(_dropping) = states.start_dropping(piece) else { return Ok(false) };
        let stamped: Vec<u64> = pages.clone().filter(|page| states.epoch_of(*page) > 0).collect();
        if stamped.len() > STAMPED_MAX || states.is_anonymous(piece) {
            return Ok(false);
        }
        for page in stamped {
            let at = ((page - pages.start) * PAGE_BYTES) as usize;
            let target = &mut room.bytes_mut()[at..at + PAGE_BYTES as usize];
            target.copy_from_slice(&image.copy_page(page * PAGE_BYTES)?);
        }
        // SAFETY: no thread stores to the piece: the caller holds the writer lock, the image and
        // the arena, and no reservation is in it. Pages that were never stored to equal the file's,
        // which checkpoints leave alone as they are not dirty; the others were just copied.
        unsafe { image.put_huge(room, pages.start)? };
        states.note_anonymous(pages.start, pages.end);
        // As if it had just been stored to: it counts as dirty, and others are evicted before it.
        states.note_stored(pages.start);
        self.pieces.insert(piece);
        Ok(true)
    }
}
