//! The checksums of a pool's pages, in the blocks that the file has them in.
//!
//! Purpose: a savepoint keeps all of them. So whatever is later read as a page of that moment is
//! verified: a page that was not kept is an error, and never a wrong value.
//! Thread safety: pure functions.

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::layout::{
    HEAD_BYTES, PAGE_BYTES, ZONE_PAGES, ZONE_STRIDE, ZONE_SUMS_PAGES, ZONE_TABLE_PAGES,
};

/// Blocks of checksums of a zone with some data pages.
fn blocks_of_zone(pages: u64) -> u64 {
    ((ZONE_TABLE_PAGES + pages) * 4).div_ceil(PAGE_BYTES)
}

/// Blocks of checksums of a pool with some data pages.
pub(in crate::journal) fn block_count(pages: u64) -> u64 {
    let rest = pages % ZONE_PAGES;
    let last = if rest > 0 { blocks_of_zone(rest) } else { 0 };
    pages / ZONE_PAGES * ZONE_SUMS_PAGES + last
}

/// The number of the block of checksums at an offset of the pool file; `None` where there is none,
/// in a pool of some data pages: its bytes are zero there.
pub(in crate::journal) fn block_at(offset: u64, pages: u64) -> Option<u64> {
    let behind = offset.checked_sub(HEAD_BYTES)?;
    let (zone, block) = (behind / ZONE_STRIDE, behind % ZONE_STRIDE / PAGE_BYTES);
    let number = zone * ZONE_SUMS_PAGES + block;
    (block < ZONE_SUMS_PAGES && number < block_count(pages)).then_some(number)
}

/// Reads all of them from a pool of some data pages.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn read(pool: &PoolFile, pages: u64) -> Result<Vec<u8>> {
    let mut blocks = vec![0; (block_count(pages) * PAGE_BYTES) as usize];
    let of_zone = (ZONE_SUMS_PAGES * PAGE_BYTES) as usize;
    for (zone, part) in (0..).zip(blocks.chunks_mut(of_zone)) {
        pool.file().read_at(part, HEAD_BYTES + zone * ZONE_STRIDE)?;
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{TABLE_BASE, checksum_file_offset};

    #[test]
    fn each_page_has_its_checksum_in_a_block() {
        for pages in [2, 64, 1024, ZONE_PAGES - 1, ZONE_PAGES, ZONE_PAGES + 1, 3 * ZONE_PAGES] {
            let last = (pages - 1) * PAGE_BYTES;
            let table = TABLE_BASE + (pages - 1) / 512 * PAGE_BYTES;
            for page in [0, TABLE_BASE, table, last] {
                let offset = checksum_file_offset(page) / PAGE_BYTES * PAGE_BYTES;
                assert!(block_at(offset, pages).is_some(), "{page:#x} of {pages}");
            }
            let offset = checksum_file_offset(last) / PAGE_BYTES * PAGE_BYTES;
            assert_eq!(block_at(offset, pages), Some(block_count(pages) - 1));
        }
        assert_eq!(block_at(0, 64), None);
        assert_eq!(block_at(HEAD_BYTES + 64 * PAGE_BYTES, 64), None, "no page has one there");
    }
}
