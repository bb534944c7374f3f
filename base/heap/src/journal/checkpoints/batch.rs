//! Batches: writes copies of pages to the pool file, with their checksums.
//!
//! Purpose: the one order in which pages of a pool are overwritten, so that recovery can tell every
//! result of a crash from damage.
//! Invariants: a table that names the pages of a batch is durable before the first of them is
//! written (C5); the sync that makes it so covers the batch before, which the table before names.
//! Copies show no record that is not durable in the log (C4): the caller guarantees that. One call
//! writes adjacent pages, and no others between them.
//! Thread safety: one thread at a time writes batches. The pool lock is held for some pages and
//! their checksums at a time, so that its holder finds that they match.

use adamant_wire::checksum::page_checksum;

use crate::error::Result;
use crate::image::pool_file::PoolFile;
use crate::image::pool_file::page_checksums::are_sums_close;
use crate::journal::checkpoints::keepers::Keepers;
use crate::journal::checkpoints::table::{self, Doubt, Name};
use crate::journal::readers::BatchId;
use crate::layout::{DOUBT_PAGES_MAX, DoubtEntry, PAGE_BYTES, checksum_file_offset, file_offset};

/// Pages of a batch at most: 8 MiB.
pub(in crate::journal) const BATCH_PAGES_MAX: usize = DOUBT_PAGES_MAX;
/// Pages written in one hold of the pool lock at most: 1 MiB.
const HOLD_PAGES_MAX: usize = 256;

/// The bytes of a page.
pub(crate) type PageBytes = [u8; PAGE_BYTES as usize];

/// The new contents of a page of the file.
#[derive(Clone, Copy, Debug)]
pub(in crate::journal) struct PageCopy<'c> {
    /// Its heap offset.
    pub(in crate::journal) page: u64,
    pub(in crate::journal) bytes: &'c PageBytes,
}

/// Copies of pages, in the order of their offsets, until they are written.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// Their numbers: heap offsets in pages.
    pages: Vec<u64>,
    bytes: Vec<PageBytes>,
}

impl Copies {
    /// Whether a batch has no more room.
    pub(crate) fn is_full(&self) -> bool {
        self.pages.len() == BATCH_PAGES_MAX
    }

    /// Adds a page, behind all others; returns its bytes, to be filled.
    pub(crate) fn add(&mut self, page: u64) -> &mut PageBytes {
        debug_assert!(self.pages.last().is_none_or(|last| *last < page), "in order");
        let index = self.pages.len();
        self.pages.push(page);
        if self.bytes.len() == index {
            self.bytes.push([0; PAGE_BYTES as usize]);
        }
        &mut self.bytes[index]
    }

    /// Removes all, and keeps the memory.
    pub(in crate::journal) fn clear(&mut self) {
        self.pages.clear();
    }

    /// The copies as a batch to write.
    pub(in crate::journal) fn batch(&self) -> Vec<PageCopy<'_>> {
        let copies = self.pages.iter().zip(&self.bytes);
        copies.map(|(page, bytes)| PageCopy { page: page * PAGE_BYTES, bytes }).collect()
    }
}

/// Writes batches, one after the other.
#[derive(Debug)]
pub(in crate::journal) struct BatchWriter {
    /// Name of the checkpoint and its next batch, and what keeps the pages that it overwrites;
    /// `None` where neither a crash nor readers matter, and no savepoint.
    named: Option<(Name, Keepers)>,
    /// Buffers for the checksums before and after, and for the data behind them.
    pages: Vec<u64>,
    checksums: Vec<u32>,
    entries: Vec<DoubtEntry>,
    run: Vec<u8>,
}

impl BatchWriter {
    /// A writer for checkpoint `number`, whose batches count on from `batch`.
    pub(in crate::journal) fn new(number: u64, batch: u64, keepers: Keepers) -> Self {
        let name = Name { number, batch, durable: 0 };
        Self { named: Some((name, keepers)), ..Self::unnamed() }
    }

    /// A writer for a file that is no pool before it is finished.
    pub(in crate::journal) fn unnamed() -> Self {
        let (pages, checksums, entries, run) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { named: None, pages, checksums, entries, run }
    }

    /// Keeps data pages, by number, that are about to become zeros.
    ///
    /// # Errors
    /// Those of the medium.
    pub(in crate::journal) fn keep_range(
        &self,
        pool: &PoolFile,
        start: u64,
        end: u64,
    ) -> Result<()> {
        self.named.as_ref().map_or(Ok(()), |(_, keepers)| keepers.keep_range(pool, start, end))
    }

    /// Writes a batch: pages that the file has, each at most once, in the order of their offsets.
    /// They show no record above `durable`, up to which the log is durable (C4). The pages
    /// themselves become durable by the next sync, which is that of the next batch.
    ///
    /// # Errors
    /// Those of the medium. Then no batch may follow, nor the checkpoint be finished (R1).
    pub(in crate::journal) fn write(
        &mut self,
        pool: &PoolFile,
        batch: &[PageCopy<'_>],
        durable: u64,
    ) -> Result<()> {
        debug_assert!(batch.len() <= BATCH_PAGES_MAX, "a table names a batch");
        debug_assert!(batch.is_sorted_by(|one, other| one.page < other.page), "in order");
        if batch.is_empty() {
            return Ok(());
        }
        self.pages.clear();
        self.pages.extend(batch.iter().map(|copy| copy.page));
        pool.read_checksums(&self.pages, &mut self.checksums)?;
        self.entries.clear();
        self.entries.extend(
            batch.iter().zip(&self.checksums).map(|(copy, checksum)| {
                table::entry(copy.page, *checksum, page_checksum(copy.bytes))
            }),
        );
        if let Some((name, keepers)) = &mut self.named {
            // Before the table: a page that it names, and a crash may tear, is kept.
            keepers.keep_for_savepoints(pool, &self.pages)?;
            name.durable = durable;
            table::write(pool, *name, &self.entries)?;
            let id = BatchId { number: name.number, batch: name.batch };
            name.batch += 1;
            pool.file().sync()?;
            // Behind the table: a reader that registers later finds the pages in it.
            keepers.readers.keep(pool, id, &self.pages, &self.checksums)?;
        }
        let mut done = 0;
        for group in batch.chunk_by(|one, other| are_sums_close(one.page, other.page)) {
            for part in group.chunks(HOLD_PAGES_MAX) {
                let entries = &self.entries[done..done + part.len()];
                let _no_reader = pool.hold_pages();
                write_pages(pool, part, &mut self.run)?;
                write_sums(pool, part, entries, &mut self.run)?;
                done += part.len();
            }
        }
        Ok(())
    }
}

/// Gives each page in doubt the checksum of its current bytes, durably: the log has its final
/// bytes. Returns how many pages were torn. After a failed sync the cache looks clean, so the pages
/// are written as well, unchanged.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn settle(pool: &PoolFile, doubt: &Doubt) -> Result<u64> {
    if doubt.is_empty() {
        return Ok(0);
    }
    let (mut writer, mut copies, mut torn) = (BatchWriter::unnamed(), Copies::default(), 0);
    doubt.look_at(pool, &mut |page, bytes, is_torn| {
        torn += u64::from(is_torn);
        copies.add(page / PAGE_BYTES).copy_from_slice(bytes);
        if copies.is_full() {
            writer.write(pool, &copies.batch(), 0)?;
            copies.clear();
        }
        Ok(())
    })?;
    writer.write(pool, &copies.batch(), 0)?;
    // The next table overwrites one of these.
    pool.file().sync()?;
    Ok(torn)
}

/// Writes pages, adjacent ones by one call.
fn write_pages(pool: &PoolFile, copies: &[PageCopy<'_>], run: &mut Vec<u8>) -> Result<()> {
    let follows = |one: &PageCopy<'_>, other: &PageCopy<'_>| {
        file_offset(one.page) + PAGE_BYTES == file_offset(other.page)
    };
    for copies in copies.chunk_by(follows) {
        let offset = file_offset(copies[0].page);
        if let [copy] = copies {
            pool.file().write_at(copy.bytes, offset)?;
            continue;
        }
        run.clear();
        copies.iter().for_each(|copy| run.extend_from_slice(copy.bytes));
        pool.file().write_at(run, offset)?;
    }
    Ok(())
}

/// Writes the checksums of pages by one call: those between them stay unchanged.
fn write_sums(
    pool: &PoolFile,
    copies: &[PageCopy<'_>],
    entries: &[DoubtEntry],
    run: &mut Vec<u8>,
) -> Result<()> {
    let start = checksum_file_offset(copies[0].page);
    let end = checksum_file_offset(copies[copies.len() - 1].page) + 4;
    run.clear();
    run.resize((end - start) as usize, 0);
    if run.len() > copies.len() * 4 {
        pool.file().read_at(run, start)?;
    }
    for (copy, entry) in copies.iter().zip(entries) {
        let at = (checksum_file_offset(copy.page) - start) as usize;
        run[at..at + 4].copy_from_slice(&entry.checksum_after.get().to_le_bytes());
    }
    Ok(pool.file().write_at(run, start)?)
}
