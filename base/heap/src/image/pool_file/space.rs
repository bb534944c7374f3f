//! The space of the pool file: growth, holes, and cutting it off.
//!
//! Purpose: backs pages, descriptors and checksums with space of the device before they are used
//! (R5), and gives space back.
//! Invariants: data pages `0 .. pages_backed()` have descriptors and checksums. A page that was
//! never written is a hole of zeros, and so is its checksum.
//! Thread safety: one thread at a time.

use std::ops::Range;
use std::sync::atomic::Ordering;

use zerocopy::FromBytes;

use super::PoolFile;
use crate::error::{Error, Result};
use crate::layout::{
    DESCRIPTOR_BYTES, Descriptor, FIRST_PAGE, HEAD_BYTES, HEAP_BYTES_MAX, KIND_EXTENT,
    KIND_EXTENT_CONTINUED, KIND_RUN, KIND_RUN_CONTINUED, KIND_SYSTEM, PAGE_BYTES, ZONE_PAGES,
    ZONE_STRIDE, ZONE_SUMS_PAGES, ZONE_TABLE_PAGES, checksum_file_offset, descriptor_offset,
    file_offset, pages_in,
};

/// Zeros written by one call.
const CLEAR_BYTES: usize = 256 << 10;

impl PoolFile {
    /// Data pages that the file backs by now, where another process may make it longer.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn find_growth(&self) -> Result<u64> {
        let pages = pages_in(self.file.len()?);
        Ok(self.pages.fetch_max(pages, Ordering::AcqRel).max(pages))
    }

    /// Backs data pages `0 .. pages`. Not durable before the next sync.
    ///
    /// # Errors
    /// `Error::TooLarge` beyond the largest heap; those of the medium, out of space among them.
    /// Then the file is as long as it was.
    pub(crate) fn grow(&self, pages: u64) -> Result<()> {
        self.grow_with(pages, |page, count| self.back(page, count))
    }

    /// As [`PoolFile::grow`], but backs descriptors and checksums only: the data pages are holes.
    ///
    /// # Errors
    /// As [`PoolFile::grow`].
    pub(crate) fn grow_with_holes(&self, pages: u64) -> Result<()> {
        self.grow_with(pages, |_, _| Ok(()))?;
        let len = file_offset((pages.max(1) - 1) * PAGE_BYTES) + PAGE_BYTES;
        if self.file.len()? < len {
            self.file.set_len(len)?;
        }
        Ok(())
    }

    fn grow_with(&self, pages: u64, back: impl Fn(u64, u64) -> Result<()>) -> Result<()> {
        let backed = self.pages_backed();
        if pages <= backed {
            return Ok(());
        }
        if pages > HEAP_BYTES_MAX / PAGE_BYTES {
            let bytes = pages.saturating_mul(PAGE_BYTES);
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        }
        let len = self.file.len()?;
        let grown = by_zone(backed, pages - backed, |page, count| {
            let zone = page / ZONE_PAGES;
            self.back_tables(zone, page + count - zone * ZONE_PAGES)?;
            back(page, count)
        });
        if let Err(error) = grown {
            // Best effort: extra space allocated beyond the pages in use is harmless.
            let _ = self.file.set_len(len);
            return Err(error);
        }
        self.pages.store(pages, Ordering::Release);
        Ok(())
    }

    /// Backs checksums and descriptors of the first pages of a zone: all of them each time, since a
    /// crash may have taken back space that an earlier growth made and left the file its length.
    /// Existing space costs two calls. Not durable before the next sync.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    fn back_tables(&self, zone: u64, pages: u64) -> Result<()> {
        let start = HEAD_BYTES + zone * ZONE_STRIDE;
        let checksums = (ZONE_TABLE_PAGES + pages) * 4;
        self.file.allocate(start, checksums.next_multiple_of(PAGE_BYTES))?;
        let table = (pages * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
        Ok(self.file.allocate(start + ZONE_SUMS_PAGES * PAGE_BYTES, table)?)
    }

    /// The same for all pages that the file has of some zones.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(crate) fn back_tables_of(&self, zones: Range<u64>) -> Result<()> {
        for zone in zones {
            self.back_tables(zone, (self.pages_backed() - zone * ZONE_PAGES).min(ZONE_PAGES))?;
        }
        Ok(())
    }

    /// Backs data pages that may be holes; they are below the end of the file. Not durable before
    /// the next sync.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(crate) fn back(&self, start: u64, pages: u64) -> Result<()> {
        by_zone(start, pages, |page, count| {
            Ok(self.file.allocate(file_offset(page * PAGE_BYTES), count * PAGE_BYTES)?)
        })
    }

    /// Backs all data pages that descriptors say are allocated (R5). O(pages).
    ///
    /// # Errors
    /// `Error::Damaged` for an extent that is longer than the pool; those of the medium, out of
    /// space among them.
    pub(crate) fn back_allocated(&self) -> Result<()> {
        let pages = self.pages_backed();
        let mut table = vec![0; (ZONE_TABLE_PAGES * PAGE_BYTES) as usize];
        let mut allocated = 0..0;
        by_zone(0, pages, |first, count| {
            let bytes = &mut table[..(count * DESCRIPTOR_BYTES) as usize];
            self.file.read_at(bytes, file_offset(descriptor_offset(first)))?;
            let (words, _) = bytes.as_chunks::<{ DESCRIPTOR_BYTES as usize }>();
            for (page, word) in (first..).zip(words) {
                let Some(count) = pages_allocated_by(word) else { continue };
                if page + count > pages {
                    return Err(self.beyond_the_end(page, count, pages));
                }
                if page > allocated.end {
                    self.back(allocated.start, allocated.end - allocated.start)?;
                    allocated = page..page;
                }
                allocated.end = allocated.end.max(page + count);
            }
            Ok(())
        })?;
        self.back(allocated.start, allocated.end - allocated.start)
    }

    fn beyond_the_end(&self, page: u64, count: u64, pages: u64) -> Error {
        Error::Damaged {
            file: self.file.path().into(),
            offset: file_offset(descriptor_offset(page)),
            what: format!(
                "expected an extent within {pages} pages, found one of {count} pages at page {page}"
            ),
        }
    }

    /// Whether the file can have holes. Asks for one where there are zeros anyway, in the head, and
    /// fills it again.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn can_punch(&self) -> Result<bool> {
        let unused = HEAD_BYTES - PAGE_BYTES;
        match self.file.punch(unused, PAGE_BYTES) {
            Ok(()) => Ok(self.file.allocate(unused, PAGE_BYTES).map(|()| true)?),
            Err(error) if error.is_unsupported() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes data pages zero, as far as the file has them, and their checksums too: as holes, or by
    /// writing where holes are not possible. Not durable before the next sync.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn clear(&self, start: u64, pages: u64) -> Result<()> {
        let pages = self.pages_backed().saturating_sub(start).min(pages);
        let zeros = vec![0; CLEAR_BYTES];
        let write = |offset: u64, bytes: u64| -> Result<()> {
            let mut done = 0;
            while done < bytes {
                let count = (bytes - done).min(zeros.len() as u64);
                self.file.write_at(&zeros[..count as usize], offset + done)?;
                done += count;
            }
            Ok(())
        };
        by_zone(start, pages, |page, count| {
            let (offset, bytes) = (file_offset(page * PAGE_BYTES), count * PAGE_BYTES);
            match self.file.punch(offset, bytes) {
                // Splitting an extent of the file can need a block more than the device has, but
                // pages that are backed can be written; and a page that is no hole yet is backed.
                Err(error) if error.is_unsupported() || error.is_out_of_space() => {
                    write(offset, bytes)?;
                }
                result => result?,
            }
            write(checksum_file_offset(page * PAGE_BYTES), count * 4)
        })
    }

    /// Cuts the file off after data page `pages - 1`. No checkpoint may ask for more. Not durable
    /// before the next sync, and need not be: a longer file is as good.
    ///
    /// # Errors
    /// Those of the medium; the file may be as long as it was then.
    pub(crate) fn truncate(&self, pages: u64) -> Result<()> {
        debug_assert!(pages >= FIRST_PAGE, "the system's pages stay");
        // A reader of pages looks up their number under the same lock.
        let _no_reader = self.hold_pages();
        // Whether or not the rest succeeds, pages beyond are backed again before they are used.
        self.pages.fetch_min(pages, Ordering::AcqRel);
        Ok(self.file.set_len(file_offset((pages - 1) * PAGE_BYTES) + PAGE_BYTES)?)
    }
}

/// Calls `each` with the parts of a range of data pages that lie in one zone: consecutive pages of
/// the file.
fn by_zone(start: u64, pages: u64, mut each: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let (mut page, end) = (start, start + pages);
    while page < end {
        let count = (ZONE_PAGES - page % ZONE_PAGES).min(end - page);
        each(page, count)?;
        page += count;
    }
    Ok(())
}

/// Pages that a descriptor says are allocated from its own on, if any.
fn pages_allocated_by(word: &[u8; DESCRIPTOR_BYTES as usize]) -> Option<u64> {
    let descriptor = Descriptor::read_from_bytes(word).ok()?;
    match descriptor.kind {
        KIND_EXTENT | KIND_EXTENT_CONTINUED => Some(descriptor.argument.get().into()),
        KIND_RUN | KIND_RUN_CONTINUED | KIND_SYSTEM => Some(1),
        _ => None,
    }
}
