//! Files of kept pages: what pages of the pool were before a batch overwrote them.
//!
//! Purpose: the pages of savepoints. A file belongs to none of them: each takes the oldest copy
//! of a page that was kept after it was made.
//! Invariants: a file is whole and durable before it has its name.
//! Thread safety: nothing changes after a file has its name, except that pages that no savepoint
//! needs become holes.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::journal::savepoints::layout::{KEPT_MAGIC, KeptHeader, SAVEPOINT_VERSION};
use crate::layout::{DOUBT_PAGES_MAX, PAGE_BYTES, file_offset};

/// The most pages of a file.
pub(in crate::journal) const KEPT_PAGES_MAX: usize = DOUBT_PAGES_MAX;
/// What stands for a page that cannot be read: its checksum says so.
const LOST: u8 = 0xFF;

/// Byte offset of the page with an index, in a file of some pages.
pub(in crate::journal) fn page_offset(count: usize, index: usize) -> u64 {
    let head = size_of::<KeptHeader>() + count * size_of::<U64>();
    (head as u64).next_multiple_of(PAGE_BYTES) + index as u64 * PAGE_BYTES
}

/// Writes pages of the pool as they are to a new file, durably but for its name. They are in the
/// order of the file.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn write(
    directory: &dyn Directory,
    file_name: &str,
    pool: &PoolFile,
    pages: &[u64],
) -> Result<()> {
    debug_assert!(pages.len() <= KEPT_PAGES_MAX, "at most a batch");
    let entries: Vec<U64> = pages.iter().map(|page| U64::new(*page)).collect();
    let mut header = KeptHeader {
        magic: KEPT_MAGIC,
        version: SAVEPOINT_VERSION.into(),
        count: (pages.len() as u32).into(),
        checksum: 0.into(),
    };
    header.checksum = checksum(&header, entries.as_bytes()).into();
    let mut bytes = [header.as_bytes(), entries.as_bytes()].concat();
    bytes.resize(page_offset(pages.len(), pages.len()) as usize, 0);
    let mut at = page_offset(pages.len(), 0) as usize;
    let follows = |one: &u64, other: &u64| file_offset(*one) + PAGE_BYTES == file_offset(*other);
    for run in pages.chunk_by(follows) {
        let end = at + run.len() * PAGE_BYTES as usize;
        read_run(pool, &mut bytes[at..end], file_offset(run[0]));
        at = end;
    }
    let file = directory.create(file_name)?;
    file.write_at(&bytes, 0)?;
    Ok(file.sync()?)
}

/// Reads consecutive pages. One that cannot be read at a second attempt either is lost to the
/// savepoint, which its checksum says; the store goes on.
fn read_run(pool: &PoolFile, bytes: &mut [u8], offset: u64) {
    let file = pool.file();
    if file.read_with_lost_at(bytes, offset).is_ok() {
        return;
    }
    let offsets = (offset..).step_by(PAGE_BYTES as usize);
    for (page, offset) in bytes.chunks_mut(PAGE_BYTES as usize).zip(offsets) {
        if file.read_with_lost_at(page, offset).is_err() {
            page.fill(LOST);
        }
    }
}

fn checksum(header: &KeptHeader, entries: &[u8]) -> u32 {
    let bytes = header.as_bytes();
    crc32c(crc32c(0, &bytes[..bytes.len() - size_of::<u32>()]), entries)
}

/// The heap offsets of the pages in a file, in their order; `None` if it is none, or not whole.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn read_entries(file: &Arc<dyn File>) -> Result<Option<Vec<u64>>> {
    let mut bytes = [0; size_of::<KeptHeader>()];
    let len = file.len()?;
    if len < bytes.len() as u64 {
        return Ok(None);
    }
    file.read_with_lost_at(&mut bytes, 0)?;
    let Ok(header) = KeptHeader::read_from_bytes(&bytes) else { return Ok(None) };
    let count = header.count.get() as usize;
    let is_ours = header.magic == KEPT_MAGIC && header.version.get() <= SAVEPOINT_VERSION;
    if !is_ours || count > KEPT_PAGES_MAX || len != page_offset(count, count) {
        return Ok(None);
    }
    let mut entries = vec![0; count * size_of::<U64>()];
    file.read_with_lost_at(&mut entries, bytes.len() as u64)?;
    if header.checksum.get() != checksum(&header, &entries) {
        return Ok(None);
    }
    let entries = <[U64]>::ref_from_bytes(&entries);
    Ok(entries.ok().map(|entries| entries.iter().map(|page| page.get()).collect()))
}
