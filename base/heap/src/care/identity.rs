//! Identity of a pool file and of its contents, and its pages, without opening the heap.
//!
//! Purpose: an incremental backup names its parent so, and verifies what it reads of it.
//! Invariants: whatever overwrites a page, opens the log anew or finishes a checkpoint changes the
//! head first, durably; so as long as the head is the same, the pages are.

use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::page_checksums::verify_page;
use crate::layout::{UNKEPT_OFFSET, heap_offset_at};

/// Identity of the pool file in a directory, and of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolIdentity {
    /// UUID of the pool: each backup has one of its own.
    pub uuid: [u8; 16],
    /// Number of the newest checkpoint.
    pub checkpoint: u64,
    /// Number of the last commit that the pages show as a whole.
    pub sequence: u64,
    /// CRC32C of the head: header, checkpoints, tables of doubt.
    pub head_checksum: u32,
    /// Whether the heap was closed: then no log follows, and each page matches its checksum.
    pub was_closed: bool,
}

impl PoolIdentity {
    /// Reads that of the pool in a directory. No thread may write it meanwhile.
    ///
    /// # Errors
    /// `Error::Unsupported` where there is no pool, `Error::Damaged`; those of the medium.
    pub fn read(directory: &dyn Directory) -> Result<Self> {
        let pool = PoolFile::open_in(directory)?;
        let newest = pool.newest_checkpoint()?.ok_or_else(|| pool.no_checkpoint())?;
        // What is behind is for processes that run, and is never synced.
        let mut head = vec![0; UNKEPT_OFFSET as usize];
        pool.file().read_at(&mut head, 0)?;
        Ok(Self {
            uuid: *pool.uuid(),
            checkpoint: newest.number.get(),
            sequence: newest.applied.get(),
            head_checksum: crc32c(0, &head),
            was_closed: newest.position.get() == 0,
        })
    }
}

/// Verifies a page of a closed pool against its checksum, by its offset in the file. What is no
/// page, such as the checksums themselves, has none.
///
/// # Errors
/// `Error::Damaged` if it does not match; those of the medium.
pub fn verify_file_page(file: &dyn File, offset: u64, page: &[u8]) -> Result<()> {
    heap_offset_at(offset).map_or(Ok(()), |heap_offset| verify_page(file, heap_offset, page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{
        DESCRIPTOR_BYTES, HEAD_BYTES, PAGE_BYTES, TABLE_BASE, ZONE_PAGES, checksum_file_offset,
        file_offset,
    };

    #[test]
    fn a_byte_of_the_file_is_that_of_one_page_or_of_none() {
        for page in [0, 1, 511, 512, ZONE_PAGES - 1, ZONE_PAGES, 3 * ZONE_PAGES + 7] {
            let descriptors = TABLE_BASE + (page * DESCRIPTOR_BYTES).next_multiple_of(PAGE_BYTES);
            for offset in [page * PAGE_BYTES, page * PAGE_BYTES + 77, descriptors] {
                assert_eq!(heap_offset_at(file_offset(offset)), Some(offset));
                assert_eq!(heap_offset_at(checksum_file_offset(offset)), None);
            }
        }
        assert_eq!(heap_offset_at(0), None);
        assert_eq!(heap_offset_at(HEAD_BYTES - 1), None);
    }
}
