//! The checksums of pages (R7).
//!
//! Invariants: pages and their checksums match, except for pages that a table names while a
//! checkpoint writes them.
//! Thread safety: free functions.

use std::ops::Range;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::File;
use adamant_wire::checksum::page_checksum;
use adamant_wire::le;

use crate::error::{Error, Result};
use crate::layout::{PAGE_BYTES, checksum_file_offset, file_offset};

/// Consecutive pages of the file, as they were read.
#[derive(Debug, Default)]
pub(crate) struct ReadPages {
    /// Heap offset of the first.
    pub(crate) offset: u64,
    /// The pages.
    pub(crate) bytes: Vec<u8>,
    /// Their checksums, 4 bytes each.
    pub(crate) checksums: Vec<u8>,
}

impl ReadPages {
    /// So many pages from a heap offset on, to be read.
    pub(super) fn reset(&mut self, offset: u64, pages: u64) {
        self.offset = offset;
        self.bytes.resize((pages * PAGE_BYTES) as usize, 0);
        self.checksums.resize(pages as usize * 4, 0);
    }

    /// Verifies the pages of a file; calls `each` with each page, its heap offset, and the result.
    fn verify(&self, file: &dyn File, mut each: impl FnMut(u64, &[u8], Result<()>)) {
        for (index, page) in self.bytes.chunks(PAGE_BYTES as usize).enumerate() {
            let expected = le::u32_at(&self.checksums, index * 4).unwrap_or(0);
            let offset = self.offset + index as u64 * PAGE_BYTES;
            each(offset, page, verify_checksum(file, offset, page_checksum(page), expected));
        }
    }

    /// Verifies the pages of a file; calls `on_damage` for each that is damaged.
    pub(crate) fn find_damage(&self, file: &dyn File, on_damage: &mut dyn FnMut(u64, Error)) {
        self.verify(file, |offset, _, verified| {
            if let Err(error) = verified {
                on_damage(offset, error);
            }
        });
    }
}

/// Verifies a page of a pool file against its stored checksum (R7).
///
/// # Errors
/// `Error::Damaged` if not; those of the medium.
pub(crate) fn verify_page(file: &dyn File, heap_offset: u64, page: &[u8]) -> Result<()> {
    let mut checksum = [0; 4];
    file.read_at(&mut checksum, checksum_file_offset(heap_offset))?;
    verify_checksum(file, heap_offset, page_checksum(page), u32::from_le_bytes(checksum))
}

/// The same for consecutive pages of the file, by number, as the file has them. Calls `whole` with
/// those that match.
///
/// # Errors
/// As [`verify_page`], for the first that does not.
pub(crate) fn verify_pages(
    file: &dyn File,
    pages: Range<u64>,
    whole: &mut dyn FnMut(u64, &[u8]),
) -> Result<()> {
    let offset = pages.start * PAGE_BYTES;
    let mut piece = ReadPages::default();
    piece.reset(offset, pages.end - pages.start);
    let read = file
        .read_at(&mut piece.bytes, file_offset(offset))
        .and_then(|()| file.read_at(&mut piece.checksums, checksum_file_offset(offset)));
    if pages.end - pages.start > 1 && matches!(read, Err(MediumError::NotAuthentic { .. })) {
        // Some of an encrypted file are lost.
        let mut verified = Ok(());
        for page in pages {
            verified = verified.and(verify_pages(file, page..page + 1, whole));
        }
        return verified;
    }
    read?;
    let mut verified = Ok(());
    piece.verify(file, |offset, page, found| match found {
        Ok(()) => whole(offset / PAGE_BYTES, page),
        Err(_) if verified.is_err() => {}
        Err(error) => verified = Err(error),
    });
    verified
}

/// # Errors
/// `Error::Damaged` unless the checksum `found` of a page is the one that is `expected`.
pub(crate) fn verify_checksum(
    file: &dyn File,
    heap_offset: u64,
    found: u32,
    expected: u32,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Damaged {
        file: file.path().into(),
        offset: file_offset(heap_offset),
        what: format!(
            "expected a page with checksum {expected:#010x}, found {found:#010x}; restore a \
             backup, or let `adamant repair` save what can be read"
        ),
    })
}

/// Whether the checksum of the second of two pages follows that of the first, on the same page of
/// the file.
pub(crate) fn are_sums_close(one: u64, other: u64) -> bool {
    let (one, other) = (checksum_file_offset(one), checksum_file_offset(other));
    one < other && one / PAGE_BYTES == other / PAGE_BYTES
}
