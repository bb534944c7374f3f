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

pub(crate) mod checkpoint_slots;
pub(crate) mod header;
pub(crate) mod page_checksums;
mod space;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::page_checksum;
use parking_lot::{Mutex, MutexGuard};
use zerocopy::{FromBytes, IntoBytes};

use self::checkpoint_slots::{read_slot, sealed};
use self::header::{header_of, read_header};
use crate::error::{Error, Result};
use crate::layout::{
    CHECKPOINT_OFFSETS, Checkpoint, DESCRIPTOR_BYTES, FIRST_PAGE, HEAD_BYTES, HeapRoot, PAGE_BYTES,
    POOL_HEADER_OFFSET, POOL_NAME, ROOT_MAGIC, ROOT_OFFSET, TABLE_BASE, checksum_file_offset,
    file_offset, pages_in,
};

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
    /// heap offset, and a first checkpoint that says that it holds everything up to record
    /// `applied`, and no log follows. Synced on return.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn create(
        file: Arc<dyn File>,
        uuid: [u8; 16],
        pages: u64,
        initial: &[(u64, &[u8])],
        applied: u64,
    ) -> Result<Self> {
        let pool = Self::begin(file, uuid)?;
        pool.grow(pages.max(FIRST_PAGE))?;
        for &(offset, page) in initial {
            debug_assert_eq!(page.len() as u64, PAGE_BYTES, "initial pages are whole");
            pool.file.write_at(page, file_offset(offset))?;
            pool.file.write_at(&page_checksum(page).to_le_bytes(), checksum_file_offset(offset))?;
        }
        pool.finish(applied)?;
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
        let header = read_header(&*file, len)?;
        let pool = Self::of(file, header.uuid, pages_in(len));
        if pool.pages_backed() < FIRST_PAGE {
            return Err(pool.cut(len, FIRST_PAGE));
        }
        Ok(pool)
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
            if pool.newest_checkpoint()?.is_some() {
                return Ok(Some(pool));
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

    /// Whether the file has the page, of data or of descriptors, at a heap offset.
    pub(crate) fn has_page(&self, page: u64) -> bool {
        let first = match page.checked_sub(TABLE_BASE) {
            Some(offset) => offset / DESCRIPTOR_BYTES,
            None => page / PAGE_BYTES,
        };
        first < self.pages_backed()
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

    /// The valid checkpoint with the highest number, whatever the length of the file.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn newest_checkpoint(&self) -> Result<Option<Checkpoint>> {
        let [first, second] = CHECKPOINT_OFFSETS;
        let slot = |at: u64| read_slot(&*self.file, &self.uuid, at);
        let slots = [slot(first)?, slot(second)?];
        Ok(slots.into_iter().flatten().max_by_key(|slot| slot.number.get()))
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

    /// Writes a checkpoint into the slot of its number, with its checksum. Not durable before the
    /// next sync.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn write_checkpoint(&self, checkpoint: Checkpoint) -> Result<()> {
        let (checkpoint, at) = sealed(&self.uuid, checkpoint);
        Ok(self.file.write_at(checkpoint.as_bytes(), at)?)
    }

    /// Says to all that have the file open that it is no pool any more: it has no checkpoint.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn retire(&self) -> Result<()> {
        let number_at = |at: u64| {
            Ok::<_, Error>(read_slot(&*self.file, &self.uuid, at)?.map(|it| it.number.get()))
        };
        let [first, second] = CHECKPOINT_OFFSETS;
        // The newest last: whoever looks in between must not take the one before it for that.
        let offsets = match number_at(first)? < number_at(second)? {
            true => [first, second],
            false => [second, first],
        };
        for offset in offsets {
            self.file.write_at(&[0; size_of::<Checkpoint>()], offset)?;
        }
        Ok(())
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
pub(crate) fn closed_head(uuid: &[u8; 16], checkpoint: Checkpoint) -> Vec<u8> {
    let mut head = vec![0; HEAD_BYTES as usize];
    let (checkpoint, slot) = sealed(uuid, checkpoint);
    let mut put = |bytes: &[u8], at: u64| head[at as usize..][..bytes.len()].copy_from_slice(bytes);
    put(header_of(uuid).as_bytes(), POOL_HEADER_OFFSET);
    put(checkpoint.as_bytes(), slot);
    head
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

/// Data pages that a root page says were ever allocated; 0 if it is none.
pub(crate) fn pages_end_of(page: &[u8]) -> u64 {
    let root = HeapRoot::read_from_prefix(page).ok().map(|(root, _)| root);
    root.filter(|root| root.magic == ROOT_MAGIC).map_or(0, |root| root.pages_end.get())
}
