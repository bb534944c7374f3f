//! The tables of doubt in the head of the pool: pages that a crash may have torn.
//!
//! Purpose: before a batch of pages is written, a table names each with its checksums before and
//! after. So recovery knows of every page: it is whole, or it was being written, or it is damaged.
//! Invariants: a table is durable before the first of its pages is written. It overwrites the one
//! before the last, whose pages are durable by then. It counts while the checkpoint that it was
//! written for is not finished; both may count, since the newer one can reach the medium in a sync
//! that the pages of the older one do not survive.
//! Thread safety: one thread at a time writes; recovery runs alone.
//!
//! See `docs/format/pool.md`.

use std::collections::BTreeMap;

use adamant_medium::storage::File;
use adamant_wire::checksum::{crc32c, page_checksum};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::checkpoint_slots::COUNTER_MAX;
use crate::journal::readers::BatchId;
use crate::layout::{
    DOUBT_OF_TABLE, DOUBT_OFFSETS, DOUBT_PAGES_MAX, DoubtEntry, DoubtHeader, PAGE_BYTES,
    TABLE_BASE, UNKEPT_OFFSET, Unkept, file_offset,
};

/// Bytes of a table before its checksum.
const SUMMED_BYTES: usize = size_of::<DoubtHeader>() - size_of::<u32>();

/// The identity of a table.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct Name {
    /// Number of the running checkpoint, and of the batch within it.
    pub(in crate::journal) number: u64,
    pub(in crate::journal) batch: u64,
    /// Highest durable sequence number: the pages show no later record (C4). A log that ends before
    /// it has lost something (R3).
    pub(in crate::journal) durable: u64,
}

/// The name of the page at a heap offset in a table.
fn name_of(page: u64) -> u32 {
    match page.checked_sub(TABLE_BASE) {
        Some(offset) => (offset / PAGE_BYTES) as u32 | DOUBT_OF_TABLE,
        None => (page / PAGE_BYTES) as u32,
    }
}

/// Heap offset of the page of that name.
fn page_of(name: u32) -> u64 {
    let base = if name & DOUBT_OF_TABLE == 0 { 0 } else { TABLE_BASE };
    base + u64::from(name & !DOUBT_OF_TABLE) * PAGE_BYTES
}

/// An entry for the page at a heap offset.
pub(in crate::journal) fn entry(
    page: u64,
    checksum_before: u32,
    checksum_after: u32,
) -> DoubtEntry {
    let (checksum_before, checksum_after) = (checksum_before.into(), checksum_after.into());
    DoubtEntry { page: name_of(page).into(), checksum_before, checksum_after }
}

/// Writes the table of a batch. Not durable before the next sync.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn write(pool: &PoolFile, name: Name, entries: &[DoubtEntry]) -> Result<()> {
    debug_assert!(entries.len() <= DOUBT_PAGES_MAX, "a table has room for a batch");
    let mut header = DoubtHeader {
        number: name.number.into(),
        batch: name.batch.into(),
        durable: name.durable.into(),
        count: (entries.len() as u32).into(),
        checksum: 0.into(),
    };
    header.checksum = checksum(pool, &header, entries.as_bytes()).into();
    let offset = DOUBT_OFFSETS[(name.batch % DOUBT_OFFSETS.len() as u64) as usize];
    if pool.file().is_direct() {
        // On memory 8 bytes are written atomically: half of this table and half of the one before
        // could have a matching checksum.
        pool.file().write_at(&[0; size_of::<DoubtHeader>()], offset)?;
    }
    let bytes = [header.as_bytes(), entries.as_bytes()].concat();
    Ok(pool.file().write_at(&bytes, offset)?)
}

fn checksum(pool: &PoolFile, header: &DoubtHeader, entries: &[u8]) -> u32 {
    crc32c(crc32c(crc32c(0, pool.uuid()), &header.as_bytes()[..SUMMED_BYTES]), entries)
}

/// Pages that a crash may have torn.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    /// Heap offset of each, and the checksums that it may have if it is whole.
    pages: BTreeMap<u64, Vec<u32>>,
    /// Number of the next batch.
    pub(in crate::journal) next_batch: u64,
}

impl Doubt {
    /// The pages named by the tables of a pool whose newest checkpoint is `newest`.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn read(pool: &PoolFile, newest: u64) -> Result<Self> {
        let tables = unfinished(pool, newest)?;
        let next_batch = tables.last().map_or(0, |(header, _)| header.batch.get() + 1);
        let mut pages = BTreeMap::new();
        for entry in tables.iter().flat_map(|(_, entries)| entries) {
            let page = page_of(entry.page.get());
            // Nothing was written to pages that the file does not have: it grows durably before.
            if pool.has_page(page) {
                let checksums: &mut Vec<u32> = pages.entry(page).or_default();
                checksums.extend([entry.checksum_before.get(), entry.checksum_after.get()]);
            }
        }
        Ok(Self { pages, next_batch })
    }

    /// Whether no page is in doubt.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether the page at a heap offset is in doubt.
    pub(crate) fn has(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Heap offsets of the pages in doubt.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }

    /// How many of them are torn: equal to neither their old nor their new contents.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn torn(&self, pool: &PoolFile) -> Result<u64> {
        let mut torn = 0;
        self.look_at(pool, &mut |_, _, is_torn| {
            torn += u64::from(is_torn);
            Ok(())
        })?;
        Ok(torn)
    }

    /// Calls `each` with the bytes of every page, and whether it is torn.
    pub(in crate::journal) fn look_at(&self, pool: &PoolFile, each: OnPage<'_>) -> Result<()> {
        let mut bytes = [0; PAGE_BYTES as usize];
        for (page, checksums) in &self.pages {
            pool.file().read_with_lost_at(&mut bytes, file_offset(*page))?;
            each(*page, &bytes, !checksums.contains(&page_checksum(&bytes)))?;
        }
        Ok(())
    }
}

/// The record up to which the log was durable, according to the tables of a pool whose newest
/// checkpoint is `newest`; 0: they say nothing.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn durable(pool: &PoolFile, newest: u64) -> Result<u64> {
    let tables = unfinished(pool, newest)?;
    Ok(tables.iter().map(|(header, _)| header.durable.get()).max().unwrap_or(0))
}

/// The tables of an unfinished checkpoint, by batch.
fn unfinished(pool: &PoolFile, newest: u64) -> Result<Vec<(DoubtHeader, Vec<DoubtEntry>)>> {
    let mut tables = Vec::new();
    for offset in DOUBT_OFFSETS {
        let Some((header, entries)) = read_table(pool, offset)? else { continue };
        let counters = [header.number.get(), header.batch.get(), header.durable.get()];
        let is_finished = counters[0] <= newest || counters.iter().any(|it| *it > COUNTER_MAX);
        if !is_finished {
            tables.push((header, entries));
        }
    }
    tables.sort_by_key(|(header, _)| header.batch.get());
    Ok(tables)
}

/// The newest batch of which there is a whole table, in a pool that another process may write: its
/// pages may be written, and those of all batches before.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn newest_whole(pool: &PoolFile) -> Result<BatchId> {
    let mut newest = BatchId::default();
    for offset in DOUBT_OFFSETS {
        if let Some((header, _)) = read_table(pool, offset)? {
            newest = newest.max(batch_of(&header));
        }
    }
    Ok(newest)
}

/// No batch above this one has written pages, in a pool that another process may write: the heads
/// of the tables as they are, whole or not. Two calls.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn newest_begun(file: &dyn File) -> Result<BatchId> {
    let mut newest = BatchId::default();
    for offset in DOUBT_OFFSETS {
        let mut bytes = [0; size_of::<DoubtHeader>()];
        file.read_with_lost_at(&mut bytes, offset)?;
        if let Ok(header) = DoubtHeader::read_from_bytes(&bytes) {
            newest = newest.max(batch_of(&header));
        }
    }
    Ok(newest)
}

fn batch_of(header: &DoubtHeader) -> BatchId {
    BatchId { number: header.number.get(), batch: header.batch.get() }
}

/// Says that a batch overwrites pages without keeping them for readers.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn write_unkept(pool: &PoolFile, id: BatchId) -> Result<()> {
    let mut unkept =
        Unkept { number: id.number.into(), batch: id.batch.into(), checksum: 0.into() };
    unkept.checksum = unkept_checksum(pool, &unkept).into();
    Ok(pool.file().write_at(unkept.as_bytes(), UNKEPT_OFFSET)?)
}

/// The last such batch; one above all others while it is being written.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn unkept(pool: &PoolFile) -> Result<BatchId> {
    let mut bytes = [0; size_of::<Unkept>()];
    pool.file().read_with_lost_at(&mut bytes, UNKEPT_OFFSET)?;
    let found = Unkept::read_from_bytes(&bytes).ok().filter(|it| {
        bytes == [0; size_of::<Unkept>()] || it.checksum.get() == unkept_checksum(pool, it)
    });
    Ok(found.map_or(BatchId { number: u64::MAX, batch: u64::MAX }, |it| BatchId {
        number: it.number.get(),
        batch: it.batch.get(),
    }))
}

fn unkept_checksum(pool: &PoolFile, unkept: &Unkept) -> u32 {
    let bytes = unkept.as_bytes();
    crc32c(crc32c(0, pool.uuid()), &bytes[..bytes.len() - size_of::<u32>()])
}

/// Called with a page: its heap offset, its bytes, and whether it is torn.
pub(in crate::journal) type OnPage<'a> = &'a mut dyn FnMut(u64, &[u8], bool) -> Result<()>;

/// The table at an offset of the pool, if there is a whole one.
fn read_table(pool: &PoolFile, offset: u64) -> Result<Option<(DoubtHeader, Vec<DoubtEntry>)>> {
    let mut bytes = [0; size_of::<DoubtHeader>()];
    pool.file().read_with_lost_at(&mut bytes, offset)?;
    let Ok(header) = DoubtHeader::read_from_bytes(&bytes) else { return Ok(None) };
    let count = header.count.get() as usize;
    if header.number.get() == 0 || count > DOUBT_PAGES_MAX {
        return Ok(None);
    }
    let mut entries = vec![0; count * size_of::<DoubtEntry>()];
    pool.file().read_with_lost_at(&mut entries, offset + bytes.len() as u64)?;
    if header.checksum.get() != checksum(pool, &header, &entries) {
        return Ok(None);
    }
    let entries = <[DoubtEntry]>::ref_from_bytes(&entries).map(<[_]>::to_vec);
    Ok(entries.ok().map(|entries| (header, entries)))
}

#[cfg(test)]
mod tests {
    use adamant_medium::memory::MemoryDirectory;
    use adamant_medium::storage::Directory;

    use super::*;

    fn id(number: u64, batch: u64) -> BatchId {
        BatchId { number, batch }
    }

    fn pool() -> PoolFile {
        let file = MemoryDirectory::new().create("pool").expect("a file");
        let page = [0; PAGE_BYTES as usize];
        let initial = [(0, &page[..]), (TABLE_BASE, &page[..])];
        PoolFile::create(file, [5; 16], 2, &initial, 0).expect("a pool")
    }

    /// A regression: a reader took the head of a table for true that was half written, and what
    /// later batches overwrote for old.
    #[test]
    fn a_table_that_is_half_written_names_no_batch() {
        let pool = pool();
        let file = pool.file();
        assert_eq!(newest_whole(&pool).expect("read"), id(0, 0));
        let entries = [entry(0, 1, 2); 3];
        let named = |number, batch| Name { number, batch, durable: 7 };
        write(&pool, named(4, 1), &entries).expect("written");
        assert_eq!(newest_whole(&pool).expect("read"), id(4, 1));
        // The next one, as far as its number, its batch, and all but its entries.
        let mut bytes = vec![0; 32];
        write(&pool, named(5, 0), &entries).expect("written");
        file.read_at(&mut bytes, DOUBT_OFFSETS[0]).expect("read");
        for range in [0..8, 8..16, 0..32] {
            write(&pool, named(3, 2), &[entry(0, 3, 4); 3]).expect("written");
            file.write_at(&bytes[range.clone()], DOUBT_OFFSETS[0] + range.start as u64)
                .expect("written");
            assert_eq!(newest_whole(&pool).expect("read"), id(4, 1), "{range:?}");
            assert!(newest_begun(file.as_ref()).expect("read") >= id(4, 1), "{range:?}");
        }
    }

    #[test]
    fn what_was_not_kept_is_told() {
        let pool = pool();
        let file = pool.file();
        assert_eq!(unkept(&pool).expect("read"), id(0, 0));
        write_unkept(&pool, id(4, 1)).expect("written");
        assert_eq!(unkept(&pool).expect("read"), id(4, 1));
        file.write_at(&[9], UNKEPT_OFFSET).expect("half of the next one");
        assert_eq!(unkept(&pool).expect("read"), id(u64::MAX, u64::MAX));
    }
}
