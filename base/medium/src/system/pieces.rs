//! Mapped pieces of a direct file, with a bitmap of the pages that have space.
//!
//! Purpose: the state that keeps stores to a file from raising signals.
//! Invariants: memory lies within the file's length at the time of mapping; a page is marked as
//! backed only after space was allocated for it.
//! Thread safety: under the lock of the file (`direct.rs`).

use std::collections::BTreeMap;

use crate::address::region::{Region, page_bytes};
use crate::error::Result;
use crate::storage::File;

/// Bytes of a file that are mapped at a time: mapping costs some 10 us, and a pool of 100 GiB takes
/// 1,600 of the 65,530 mappings that a process may have.
const PIECE_BYTES: u64 = 64 << 20;
/// The unit in which space is allocated.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// A file as memory.
#[derive(Debug, Default)]
pub(crate) struct Mapped {
    /// By start offset.
    pub(crate) pieces: BTreeMap<u64, MappedPiece>,
    /// Whether the system does not map it: then it is not tried again.
    is_refused: bool,
}

/// A piece of a file as memory, and the pages of it for which space was allocated.
#[derive(Debug)]
pub(crate) struct MappedPiece {
    pub(crate) region: Region,
    pub(crate) bytes: u64,
    backed: Box<[u64]>,
}

impl MappedPiece {
    /// Maps the piece of a file that begins at `start`; `None` where the file ends, in whole pages,
    /// before `needed` bytes of it.
    fn map(file: &dyn File, start: u64, needed: u64) -> Result<Option<Self>> {
        let bytes = file.len()?.saturating_sub(start).min(PIECE_BYTES);
        let bytes = bytes - bytes % page_bytes();
        if bytes < needed.max(1) {
            return Ok(None);
        }
        let region = Region::reserve(bytes, bytes)?;
        // SAFETY: the region is new, so no reference into it exists, and this value gives out none;
        // all other changes of the file go through the same pages.
        unsafe { file.map_shared(&region, 0, start, bytes) }?;
        let backed = vec![0; bytes.div_ceil(64 * PAGE_BYTES) as usize].into();
        Ok(Some(Self { region, bytes, backed }))
    }

    /// The words of the pages of a range within the piece, each with the bits that stand for them.
    fn words(offset: u64, len: u64) -> impl Iterator<Item = (usize, u64)> {
        let (first, end) = (offset / PAGE_BYTES, (offset + len).div_ceil(PAGE_BYTES));
        (first / 64..end.div_ceil(64)).map(move |word| {
            let low = first.saturating_sub(word * 64);
            let high = (end - word * 64).min(64);
            (word as usize, (u64::MAX >> (64 - (high - low))) << low)
        })
    }

    pub(crate) fn is_backed(&self, offset: u64, len: u64) -> bool {
        Self::words(offset, len).all(|(word, mask)| self.backed[word] & mask == mask)
    }

    pub(crate) fn set_backed(&mut self, offset: u64, len: u64, is_backed: bool) {
        for (word, mask) in Self::words(offset, len) {
            match is_backed {
                true => self.backed[word] |= mask,
                false => self.backed[word] &= !mask,
            }
        }
    }
}

/// The parts of a range that lie in one piece each: the start of the piece, the offset in it, the
/// length.
pub(crate) fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let (mut at, end) = (offset, offset.saturating_add(len));
    std::iter::from_fn(move || {
        let start = at - at % PIECE_BYTES;
        let part =
            (at < end).then(|| (start, at - start, (end - at).min(start + PIECE_BYTES - at)));
        at += part.map_or(0, |(_, _, len)| len);
        part
    })
}

impl Mapped {
    /// The piece that begins at `start`, of `needed` bytes at least, if it can be mapped.
    pub(crate) fn piece(
        &mut self,
        file: &dyn File,
        start: u64,
        needed: u64,
    ) -> Option<&mut MappedPiece> {
        if !self.is_refused && self.pieces.get(&start).is_none_or(|piece| piece.bytes < needed) {
            match MappedPiece::map(file, start, needed) {
                Ok(Some(piece)) => drop(self.pieces.insert(start, piece)),
                Ok(None) => return None,
                Err(_) => self.is_refused = true,
            }
        }
        self.pieces.get_mut(&start).filter(|piece| needed <= piece.bytes)
    }

    /// Notes for pages of mapped pieces whether they have space.
    pub(crate) fn note_space(&mut self, offset: u64, len: u64, is_backed: bool) {
        for (start, within, len) in parts(offset, len) {
            if let Some(piece) = self.pieces.get_mut(&start) {
                let len = len.min(piece.bytes.saturating_sub(within));
                if len > 0 {
                    piece.set_backed(within, len, is_backed);
                }
            }
        }
    }
}
