//! The pool file: its head, its geometry, its page checksums.
//!
//! Purpose: the one place that knows the layout of the file and how its parts are verified. The
//! journal decides which bytes are written when.
//! Invariants: data pages `0 .. pages_backed()` are backed by the file with their descriptors and
//! checksums. A page that was never written is a hole of zeros, and so is its checksum.
//! Thread safety: one thread at a time grows the file, and one (that makes a checkpoint) writes
//! pages and checkpoints; any thread reads.
//!
//! See `docs/format/pool.md`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::{crc32c, page_checksum};
use adamant_wire::le;
use parking_lot::{Mutex, MutexGuard};
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::layout::{
    CHECKPOINT_OFFSETS, Checkpoint, DESCRIPTOR_BYTES, Descriptor, FIRST_PAGE, FORMAT_VERSION,
    HEAD_BYTES, HEAP_BYTES_MAX, HeapRoot, INCOMPAT_UNDO_JOURNAL, KIND_EXTENT,
    KIND_EXTENT_CONTINUED, KIND_RUN, KIND_RUN_CONTINUED, KIND_SYSTEM, PAGE_BYTES,
    POOL_HEADER_OFFSET, POOL_MAGIC, POOL_NAME, PoolHeader, ROOT_MAGIC, ROOT_OFFSET, TABLE_BASE,
    ZONE_PAGES, ZONE_STRIDE, ZONE_SUMS_PAGES, ZONE_TABLE_PAGES, checksum_file_offset,
    descriptor_offset, file_offset,
};

/// Data pages of the largest heap.
const PAGES_MAX: u64 = HEAP_BYTES_MAX / PAGE_BYTES;
/// Bytes of a checkpoint before its checksum.
const CHECKPOINT_SUMMED_BYTES: usize = size_of::<Checkpoint>() - size_of::<u32>();
/// Counters of a pool and its log are at most this: half of what they could be.
pub(crate) const COUNTER_MAX: u64 = u64::MAX / 2;
/// Pages read at once by `verify`: divides a zone's data pages and equals its table's, so that no
/// piece crosses a zone.
const VERIFY_PAGES: u64 = ZONE_TABLE_PAGES;
const _: () = assert!(ZONE_PAGES.is_multiple_of(VERIFY_PAGES));
/// Zeros written by one call.
const CLEAR_BYTES: usize = 256 << 10;

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

/// An open pool file.
#[derive(Debug)]
pub(crate) struct PoolFile {
    file: Arc<dyn File>,
    uuid: [u8; 16],
    pages: AtomicU64,
    /// Held while pages and their checksums are written: its holder finds that they match.
    writing: Mutex<()>,
}

impl PoolFile {
    /// Makes a pool file of `pages` data pages in an empty file: `initial` pages, each with its
    /// heap offset, and a first checkpoint that says that no log follows. Synced on return.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn create(
        file: Arc<dyn File>,
        uuid: [u8; 16],
        pages: u64,
        initial: &[(u64, &[u8])],
    ) -> Result<Self> {
        let pool = Self::begin(file, uuid)?;
        pool.grow(pages.max(FIRST_PAGE))?;
        for &(offset, page) in initial {
            debug_assert_eq!(page.len() as u64, PAGE_BYTES, "initial pages are whole");
            pool.file.write_at(page, file_offset(offset))?;
            pool.file.write_at(&page_checksum(page).to_le_bytes(), checksum_file_offset(offset))?;
        }
        pool.finish(0)?;
        Ok(pool)
    }

    /// An empty file that becomes a pool: it is not one before [`PoolFile::finish`].
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn begin(file: Arc<dyn File>, uuid: [u8; 16]) -> Result<Self> {
        file.allocate(0, HEAD_BYTES)?;
        Ok(Self::of(file, uuid, 0))
    }

    fn of(file: Arc<dyn File>, uuid: [u8; 16], pages: u64) -> Self {
        Self { file, uuid, pages: AtomicU64::new(pages), writing: Mutex::new(()) }
    }

    /// Makes the file a pool, durably: with a header, and a checkpoint that says that it holds
    /// everything up to record `applied`, and no log follows.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish(&self, applied: u64) -> Result<()> {
        self.finish_as(closed_checkpoint(applied, self.pages_backed()))
    }

    /// The same, with a checkpoint.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn finish_as(&self, checkpoint: Checkpoint) -> Result<()> {
        self.file.write_at(header_of(&self.uuid).as_bytes(), POOL_HEADER_OFFSET)?;
        self.write_checkpoint(checkpoint)?;
        Ok(self.file.sync()?)
    }

    /// Opens the pool file of a directory: see [`PoolFile::open`].
    ///
    /// # Errors
    /// `Error::Unsupported` where there is none; as [`PoolFile::open`].
    pub(crate) fn open_in(directory: &dyn Directory) -> Result<Self> {
        Self::open(find_pool(directory)?)
    }

    /// Opens a pool file and verifies its header.
    ///
    /// # Errors
    /// `Error::Unsupported` for a file of another program or of a newer version, `Error::Damaged`
    /// for a damaged header or a file that was cut; those of the medium.
    pub(crate) fn open(file: Arc<dyn File>) -> Result<Self> {
        let len = file.len()?;
        let mut bytes = [0; size_of::<PoolHeader>()];
        if len < bytes.len() as u64 {
            let what = format!(
                "expected a pool of at least {HEAD_BYTES} bytes, found a file of {len} bytes: it was cut, \
                 or is no pool; restore a backup, or choose another directory"
            );
            return Err(Error::Unsupported { file: file.path().into(), what });
        }
        file.read_at(&mut bytes, POOL_HEADER_OFFSET)?;
        let header = check_header(file.as_ref(), &bytes)?;
        let pool = Self::of(file, header.uuid, pages_in(len));
        if pool.pages_backed() < FIRST_PAGE {
            return Err(pool.cut(len, FIRST_PAGE));
        }
        Ok(pool)
    }

    /// Whether a file begins with the pool's magic.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn has_magic(file: &dyn File) -> Result<bool> {
        let mut magic = [0; POOL_MAGIC.len()];
        if file.len()? < magic.len() as u64 {
            return Ok(false);
        }
        file.read_at(&mut magic, POOL_HEADER_OFFSET)?;
        Ok(magic == POOL_MAGIC)
    }

    /// Opens a pool file whose header is damaged: with the first of the identities for which a
    /// checkpoint in it is valid. `None` if there is none.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn open_headless(
        file: &Arc<dyn File>,
        identities: &[[u8; 16]],
    ) -> Result<Option<Self>> {
        let pages = pages_in(file.len()?);
        for uuid in identities {
            let pool = Self::of(Arc::clone(file), *uuid, pages);
            match pool.newest_checkpoint() {
                Ok(Some(_)) => return Ok(Some(pool)),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The file.
    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Identity of the pool.
    pub(crate) fn uuid(&self) -> &[u8; 16] {
        &self.uuid
    }

    /// Data pages that the file backs, with descriptors and checksums.
    pub(crate) fn pages_backed(&self) -> u64 {
        self.pages.load(Ordering::Acquire)
    }

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
        if pages > PAGES_MAX {
            let bytes = pages.saturating_mul(PAGE_BYTES);
            return Err(Error::TooLarge { bytes, bytes_max: HEAP_BYTES_MAX });
        }
        let len = self.file.len()?;
        if let Err(error) = self.grow_zones(backed, pages, back) {
            // Best effort: extra space allocated beyond the pages in use is harmless.
            let _ = self.file.set_len(len);
            return Err(error);
        }
        self.pages.store(pages, Ordering::Release);
        Ok(())
    }

    fn grow_zones(
        &self,
        backed: u64,
        pages: u64,
        back: impl Fn(u64, u64) -> Result<()>,
    ) -> Result<()> {
        for zone in backed / ZONE_PAGES..pages.div_ceil(ZONE_PAGES) {
            let first = zone * ZONE_PAGES;
            let end = pages.min(first + ZONE_PAGES);
            self.back_tables(zone, end - first)?;
            let from = backed.max(first);
            back(from, end - from)?;
        }
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
        self.by_zone(start, pages, |page, count| {
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
        let mut first = 0;
        while first < pages {
            let count = (pages - first).min(ZONE_PAGES);
            let bytes = &mut table[..(count * DESCRIPTOR_BYTES) as usize];
            self.file.read_at(bytes, file_offset(descriptor_offset(first)))?;
            let (words, _) = bytes.as_chunks::<{ DESCRIPTOR_BYTES as usize }>();
            for (page, word) in (first..).zip(words) {
                let Some(count) = pages_allocated_by(word) else { continue };
                if page + count > pages {
                    return Err(Error::Damaged {
                        file: self.file.path().into(),
                        offset: file_offset(descriptor_offset(page)),
                        what: format!(
                            "expected an extent within {pages} pages, found one of {count} pages at \
                             page {page}"
                        ),
                    });
                }
                if page > allocated.end {
                    self.back(allocated.start, allocated.end - allocated.start)?;
                    allocated = page..page;
                }
                allocated.end = allocated.end.max(page + count);
            }
            first += count;
        }
        self.back(allocated.start, allocated.end - allocated.start)
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
        self.by_zone(start, pages, |page, count| {
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

    /// Calls `each` with the parts of a range of data pages that lie in one zone: consecutive pages
    /// of the file.
    fn by_zone(&self, start: u64, pages: u64, each: impl Fn(u64, u64) -> Result<()>) -> Result<()> {
        let (mut page, end) = (start, start + pages);
        while page < end {
            let count = (ZONE_PAGES - page % ZONE_PAGES).min(end - page);
            each(page, count)?;
            page += count;
        }
        Ok(())
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

    /// Data pages that the root page says were ever allocated; 0 if it is none.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn pages_allocated(&self) -> Result<u64> {
        let mut bytes = [0; size_of::<HeapRoot>()];
        self.file.read_at(&mut bytes, file_offset(ROOT_OFFSET))?;
        Ok(pages_end_of(&bytes))
    }

    /// Waits until no pages are being written, and keeps others from writing: the last of all
    /// locks.
    pub(crate) fn hold_pages(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// The newest valid checkpoint of the two slots. A torn or damaged one counts as none: the log
    /// still has what the other one needs, or its absence is noticed.
    ///
    /// # Errors
    /// Those of `on_finding`, which gets `Error::Damaged` when neither is valid, or the file is
    /// shorter than the newest one says; those of the medium.
    pub(crate) fn read_checkpoint(
        &self,
        on_finding: &mut dyn FnMut(Error) -> Result<()>,
    ) -> Result<Option<Checkpoint>> {
        let newest = self.newest_checkpoint()?;
        let pages = newest.map_or(0, |newest| newest.pages.get());
        if newest.is_none() {
            on_finding(self.no_checkpoint())?;
        } else if self.pages_backed() < pages {
            on_finding(self.cut(self.file.len()?, pages))?;
        }
        Ok(newest)
    }

    /// The error for a pool without a valid checkpoint.
    pub(crate) fn no_checkpoint(&self) -> Error {
        Error::Damaged {
            file: self.file.path().into(),
            offset: CHECKPOINT_OFFSETS[0],
            what: "expected a checkpoint in one of two slots, found none that is valid: what the log \
                   holds beyond the pool cannot be told; restore a backup, or let `adamant repair` save \
                   what can be read"
                .into(),
        }
    }

    /// The valid checkpoint with the highest number, whatever the length of the file.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn newest_checkpoint(&self) -> Result<Option<Checkpoint>> {
        let mut newest: Option<Checkpoint> = None;
        for offset in CHECKPOINT_OFFSETS {
            let mut bytes = [0; size_of::<Checkpoint>()];
            match self.file.read_with_lost_at(&mut bytes, offset) {
                // The file was cut.
                Err(MediumError::Truncated { .. }) => continue,
                read => read?,
            }
            let slot = Checkpoint::read_from_bytes(&bytes).ok();
            let valid = slot.filter(|slot| {
                let is_sound = slot.checksum.get() == checkpoint_checksum(&self.uuid, slot);
                is_sound && is_plausible(slot)
            });
            newest = match (newest, valid) {
                (Some(other), Some(slot)) if slot.number.get() < other.number.get() => Some(other),
                (other, slot) => slot.or(other),
            };
        }
        Ok(newest)
    }

    /// Writes a checkpoint into the slot of its number, with its checksum. Not durable before the
    /// next sync.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn write_checkpoint(&self, mut checkpoint: Checkpoint) -> Result<()> {
        checkpoint.checksum = checkpoint_checksum(&self.uuid, &checkpoint).into();
        Ok(self.file.write_at(checkpoint.as_bytes(), slot_of(&checkpoint))?)
    }

    /// Says to all that have the file open that it is no pool any more: it has no checkpoint.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn retire(&self) -> Result<()> {
        for offset in CHECKPOINT_OFFSETS {
            self.file.write_at(&[0; size_of::<Checkpoint>()], offset)?;
        }
        Ok(())
    }

    /// As [`verify_page`].
    ///
    /// # Errors
    /// As [`verify_page`].
    pub(crate) fn verify_page(&self, heap_offset: u64, page: &[u8]) -> Result<()> {
        verify_page(&*self.file, heap_offset, page)
    }

    /// # Errors
    /// `Error::Damaged` unless the checksum `found` of a page is the one that is `expected`.
    pub(crate) fn verify_checksum(
        &self,
        heap_offset: u64,
        found: u32,
        expected: u32,
    ) -> Result<()> {
        verify_checksum(&*self.file, heap_offset, found, expected)
    }

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
    /// offset. No checkpoint writes the pages that are being verified, some 512 KiB at a time;
    /// pages that are appended to the file meanwhile are not read. Returns the number of pages
    /// verified. O(file).
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn verify(&self, on_damage: &mut dyn FnMut(u64, Error)) -> Result<u64> {
        let pages = self.pages_backed();
        let (mut piece, mut verified) = (ReadPages::default(), 0);
        for (start, page_bytes) in [(TABLE_BASE, DESCRIPTOR_BYTES), (0, PAGE_BYTES)] {
            let mut offset = start;
            loop {
                let _no_writer = self.hold_pages();
                // The file may have become shorter.
                let bytes = pages.min(self.pages_backed()) * page_bytes;
                let end = start + bytes.next_multiple_of(PAGE_BYTES);
                if offset >= end {
                    break;
                }
                self.read_piece(offset, end, &mut piece)?;
                self.verify_read_pages(&piece, on_damage);
                offset += piece.bytes.len() as u64;
                verified += piece.bytes.len() as u64 / PAGE_BYTES;
            }
        }
        Ok(verified)
    }

    /// Reads pages from a heap offset on, with their checksums: up to `end` at most, which the file
    /// has, and as many as lie in one piece.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn read_piece(&self, offset: u64, end: u64, piece: &mut ReadPages) -> Result<()> {
        let within = offset % (VERIFY_PAGES * PAGE_BYTES);
        let bytes = (end - offset).min(VERIFY_PAGES * PAGE_BYTES - within) as usize;
        piece.offset = offset;
        piece.bytes.resize(bytes, 0);
        piece.checksums.resize(bytes / PAGE_BYTES as usize * 4, 0);
        self.file.read_with_lost_at(&mut piece.bytes, file_offset(offset))?;
        Ok(self.file.read_with_lost_at(&mut piece.checksums, checksum_file_offset(offset))?)
    }

    /// Verifies the pages of a piece; calls `on_damage` for each that is damaged.
    pub(crate) fn verify_read_pages(
        &self,
        piece: &ReadPages,
        on_damage: &mut dyn FnMut(u64, Error),
    ) {
        for (index, page) in piece.bytes.chunks(PAGE_BYTES as usize).enumerate() {
            let expected = le::u32_at(&piece.checksums, index * 4).unwrap_or(0);
            let offset = piece.offset + index as u64 * PAGE_BYTES;
            if let Err(error) = self.verify_checksum(offset, page_checksum(page), expected) {
                on_damage(offset, error);
            }
        }
    }

    fn cut(&self, len: u64, pages: u64) -> Error {
        Error::Damaged {
            file: self.file.path().into(),
            offset: len,
            what: format!(
                "expected at least {} bytes ({pages} pages), found {len}: the file was cut; \
                 restore a backup",
                file_offset((pages - 1) * PAGE_BYTES) + PAGE_BYTES
            ),
        }
    }
}

/// The checkpoint of a new pool, which holds everything up to a record: no log follows.
pub(crate) fn closed_checkpoint(applied: u64, pages: u64) -> Checkpoint {
    Checkpoint {
        number: 1.into(),
        generation: 0.into(),
        applied: applied.into(),
        durable: applied.into(),
        ordinal: 0.into(),
        position: 0.into(),
        pages: pages.into(),
        applying: 0.into(),
        previous: 0.into(),
        checksum: 0.into(),
    }
}

/// The head of a pool that has only one checkpoint.
pub(crate) fn closed_head(uuid: &[u8; 16], mut checkpoint: Checkpoint) -> Vec<u8> {
    let mut head = vec![0; HEAD_BYTES as usize];
    checkpoint.checksum = checkpoint_checksum(uuid, &checkpoint).into();
    let mut put = |bytes: &[u8], at: u64| head[at as usize..][..bytes.len()].copy_from_slice(bytes);
    put(header_of(uuid).as_bytes(), POOL_HEADER_OFFSET);
    put(checkpoint.as_bytes(), slot_of(&checkpoint));
    head
}

fn header_of(uuid: &[u8; 16]) -> PoolHeader {
    let mut header = PoolHeader {
        magic: POOL_MAGIC,
        version: FORMAT_VERSION.into(),
        page_bytes: (PAGE_BYTES as u32).into(),
        compat: 0.into(),
        ro_compat: 0.into(),
        incompat: 0.into(),
        uuid: *uuid,
        checksum: 0.into(),
    };
    header.checksum = header_checksum(&header).into();
    header
}

/// File offset of the slot of a checkpoint.
fn slot_of(checkpoint: &Checkpoint) -> u64 {
    CHECKPOINT_OFFSETS[(checkpoint.number.get() % CHECKPOINT_OFFSETS.len() as u64) as usize]
}

fn checkpoint_checksum(uuid: &[u8; 16], checkpoint: &Checkpoint) -> u32 {
    crc32c(crc32c(0, uuid), &checkpoint.as_bytes()[..CHECKPOINT_SUMMED_BYTES])
}

/// The file of the pool in a directory.
///
/// # Errors
/// `Error::Unsupported` where there is none; those of the medium.
pub(crate) fn find_pool(directory: &dyn Directory) -> Result<Arc<dyn File>> {
    directory.open(POOL_NAME)?.ok_or_else(|| Error::Unsupported {
        file: directory.path().into(),
        what: "expected a file \"pool\" in here, found none; this is no store".into(),
    })
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
    let count = (pages.end - pages.start) as usize;
    let (mut bytes, mut checksums) = (vec![0; count * PAGE_BYTES as usize], vec![0; count * 4]);
    let read = file
        .read_at(&mut bytes, file_offset(offset))
        .and_then(|()| file.read_at(&mut checksums, checksum_file_offset(offset)));
    if count > 1 && matches!(read, Err(MediumError::NotAuthentic { .. })) {
        // Some of an encrypted file are lost.
        let mut verified = Ok(());
        for page in pages {
            verified = verified.and(verify_pages(file, page..page + 1, whole));
        }
        return verified;
    }
    read?;
    let (checksums, _) = checksums.as_chunks();
    let mut verified = Ok(());
    for ((number, page), checksum) in pages.zip(bytes.chunks(PAGE_BYTES as usize)).zip(checksums) {
        let found = verify_checksum(
            file,
            number * PAGE_BYTES,
            page_checksum(page),
            u32::from_le_bytes(*checksum),
        );
        if found.is_ok() {
            whole(number, page);
        }
        verified = verified.and(found);
    }
    verified
}

fn verify_checksum(file: &dyn File, heap_offset: u64, found: u32, expected: u32) -> Result<()> {
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

/// Whether counting on from there stays within 64 bits, for longer than any disk lasts. With a
/// checksum that matches, only an attacker could have written anything else.
fn is_plausible(checkpoint: &Checkpoint) -> bool {
    let Checkpoint { number, generation, applied, durable, ordinal, position, .. } = *checkpoint;
    let counters = [number, generation, applied, durable, ordinal, position];
    counters.iter().all(|counter| counter.get() <= COUNTER_MAX)
        && checkpoint.pages.get() <= PAGES_MAX
}

fn header_checksum(header: &PoolHeader) -> u32 {
    let bytes = header.as_bytes();
    crc32c(0, &bytes[..bytes.len() - size_of::<u32>()])
}

/// Whether the checksum of the second of two pages follows that of the first, on the same page of
/// the file.
pub(crate) fn are_sums_close(one: u64, other: u64) -> bool {
    let (one, other) = (checksum_file_offset(one), checksum_file_offset(other));
    one < other && one / PAGE_BYTES == other / PAGE_BYTES
}

/// Data pages that a root page says were ever allocated; 0 if it is none.
pub(crate) fn pages_end_of(page: &[u8]) -> u64 {
    let root = HeapRoot::read_from_prefix(page).ok().map(|(root, _)| root);
    root.filter(|root| root.magic == ROOT_MAGIC).map_or(0, |root| root.pages_end.get())
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

/// Data pages in a file of that length. The pages of a zone lie after its checksums and its table.
fn pages_in(len: u64) -> u64 {
    let zones = len.saturating_sub(HEAD_BYTES);
    let before_data = (ZONE_SUMS_PAGES + ZONE_TABLE_PAGES) * PAGE_BYTES;
    let in_last = (zones % ZONE_STRIDE).saturating_sub(before_data) / PAGE_BYTES;
    (zones / ZONE_STRIDE * ZONE_PAGES + in_last).min(PAGES_MAX)
}

fn check_header(file: &dyn File, bytes: &[u8]) -> Result<PoolHeader> {
    let unsupported = |what: String| Error::Unsupported { file: file.path().into(), what };
    let damaged = |offset: u64, what: String| Error::Damaged {
        file: file.path().into(),
        offset: POOL_HEADER_OFFSET + offset,
        what,
    };
    let Ok(header) = PoolHeader::read_from_bytes(bytes) else {
        return Err(damaged(0, "expected a pool header".into()));
    };
    let expected = header_checksum(&PoolHeader { magic: POOL_MAGIC, ..header });
    let found = header.checksum.get();
    if header.magic != POOL_MAGIC && found != expected {
        return Err(unsupported(format!(
            "expected a file that starts with {}, found {}; this is no pool, choose another \
             directory",
            POOL_MAGIC.escape_ascii(),
            header.magic.escape_ascii()
        )));
    }
    // Otherwise its checksum matches, and so does all but this.
    if header.magic != POOL_MAGIC {
        return Err(damaged(
            0,
            format!(
                "expected a pool, which starts with {}, found {}; restore a backup, or let `adamant \
                 repair` save what can be read",
                POOL_MAGIC.escape_ascii(),
                header.magic.escape_ascii()
            ),
        ));
    }
    // The checksum lies at the same offset in all versions, so damage and a newer version can be
    // told apart.
    if found != expected {
        return Err(damaged(
            0,
            format!(
                "expected a pool header with checksum {expected:#010x}, found {found:#010x}; \
                 restore a backup"
            ),
        ));
    }
    if header.version.get() != FORMAT_VERSION {
        return Err(unsupported(format!(
            "expected a pool of format {FORMAT_VERSION}, found format {}; open it with the \
             version of this program that wrote it",
            header.version
        )));
    }
    if u64::from(header.page_bytes.get()) != PAGE_BYTES {
        let pages = header.page_bytes;
        return Err(unsupported(format!("expected pages of {PAGE_BYTES} bytes, found {pages}")));
    }
    if header.incompat.get() & INCOMPAT_UNDO_JOURNAL != 0 {
        return Err(unsupported(
            "expected a pool of the redo log, found one of the undo journal, which this version no \
             longer has; export it by the version that made it (`adamant export`), and import that \
             into a new store"
                .into(),
        ));
    }
    if header.incompat.get() != 0 || header.ro_compat.get() != 0 {
        return Err(unsupported(format!(
            "expected no features that must be known, found incompat {:#x} and ro-compat {:#x}; \
             open it with the version of this program that wrote it",
            header.incompat, header.ro_compat
        )));
    }
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_in_a_file_are_those_that_it_was_grown_to() {
        for pages in [1, 2, 511, 512, ZONE_PAGES - 1, ZONE_PAGES, ZONE_PAGES + 1, 3 * ZONE_PAGES] {
            let len = file_offset((pages - 1) * PAGE_BYTES) + PAGE_BYTES;
            assert_eq!(pages_in(len), pages);
        }
        assert_eq!(pages_in(0), 0);
        assert_eq!(pages_in(HEAD_BYTES + ZONE_STRIDE + 4096), ZONE_PAGES);
    }
}
