//! Sequential reads of the pool file with its checksums: verification and copies of all of it.
//!
//! Invariants: pages and checksums are read while no checkpoint writes, so they match.
//! Thread safety: any thread.

use adamant_wire::le;

use super::PoolFile;
use super::page_checksums::{ReadPages, are_sums_close};
use crate::error::{Error, Result};
use crate::layout::{
    DESCRIPTOR_BYTES, PAGE_BYTES, TABLE_BASE, ZONE_PAGES, ZONE_TABLE_PAGES, checksum_file_offset,
    file_offset,
};

/// Pages read at once: divides a zone's data pages and equals its table's, so that no
/// piece crosses a zone.
const PIECE_PAGES: u64 = ZONE_TABLE_PAGES;
const _: () = assert!(ZONE_PAGES.is_multiple_of(PIECE_PAGES));

impl PoolFile {
    /// The checksums of pages, in the order of the file: those that lie close are read by one call.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn read_checksums(&self, pages: &[u64], checksums: &mut Vec<u32>) -> Result<()> {
        let mut bytes = [0; PAGE_BYTES as usize];
        checksums.clear();
        for group in pages.chunk_by(|one, other| are_sums_close(*one, *other)) {
            let start = checksum_file_offset(group[0]);
            let len = checksum_file_offset(group[group.len() - 1]) + 4 - start;
            let bytes = &mut bytes[..len as usize];
            self.file.read_at(bytes, start)?;
            let checksum =
                |page: &u64| le::u32_at(bytes, (checksum_file_offset(*page) - start) as usize);
            checksums.extend(group.iter().map(|page| checksum(page).unwrap_or(0)));
        }
        Ok(())
    }

    /// Verifies every page of the file; calls `on_damage` for each that is damaged, with its heap
    /// offset. Pages that are appended to the file meanwhile are not read. Returns the number of
    /// pages verified. O(file).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(u64, Error)) -> Result<u64> {
        let mut verified = 0;
        self.read_all(self.pages_backed(), &|| Ok(()), &mut |piece, _| {
            piece.find_damage(&*self.file, on_damage);
            verified += piece.bytes.len() as u64 / PAGE_BYTES;
            Ok(())
        })?;
        Ok(verified)
    }

    /// Reads all pages with their checksums, descriptors first, some 512 KiB at a time, which no
    /// checkpoint writes meanwhile; of data pages `pages_max` at most. Calls `go_on` before each
    /// read, and `each` with what was read and the number of data pages that the file had then: it
    /// may become longer and shorter.
    ///
    /// # Errors
    /// Those of the medium, of `go_on` and of `each`.
    pub(crate) fn read_all(
        &self,
        pages_max: u64,
        go_on: &dyn Fn() -> Result<()>,
        each: &mut dyn FnMut(&ReadPages, u64) -> Result<()>,
    ) -> Result<()> {
        let mut piece = ReadPages::default();
        for (start, page_bytes) in [(TABLE_BASE, DESCRIPTOR_BYTES), (0, PAGE_BYTES)] {
            let mut offset = start;
            loop {
                go_on()?;
                let no_writer = self.hold_pages();
                let pages = self.pages_backed();
                let bytes = pages.min(pages_max) * page_bytes;
                let end = start + bytes.next_multiple_of(PAGE_BYTES);
                if offset >= end {
                    break;
                }
                self.read_piece(offset, end, &mut piece)?;
                drop(no_writer);
                each(&piece, pages)?;
                offset += piece.bytes.len() as u64;
            }
        }
        Ok(())
    }

    /// Reads pages from a heap offset on, with their checksums: up to `end` at most, which the file
    /// has, and as many as lie in one piece.
    fn read_piece(&self, offset: u64, end: u64, piece: &mut ReadPages) -> Result<()> {
        let within = offset / PAGE_BYTES % PIECE_PAGES;
        piece.reset(offset, ((end - offset) / PAGE_BYTES).min(PIECE_PAGES - within));
        self.file.read_with_lost_at(&mut piece.bytes, file_offset(offset))?;
        Ok(self.file.read_with_lost_at(&mut piece.checksums, checksum_file_offset(offset))?)
    }
}
