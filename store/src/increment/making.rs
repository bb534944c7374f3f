//! An increment that is being made, as the directory of a copy.
//!
//! Purpose: what copies a store into an empty directory makes an increment by this, without knowing
//! it.
//! Invariants: it has its name once everything in it is durable: the caller sees to that. A file of
//! an LSM tree is left out only if its parent's is the same, byte by byte: numbers are given twice
//! in stores that were restored and went on.
//! Thread safety: one thread makes a copy.

use std::path::Path;
use std::sync::Arc;

use adamant_lsm::number_of;
use adamant_medium::error::Result as MediumResult;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File, Lock};
use adamant_wire::checksum::crc32c;
use parking_lot::Mutex;
use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::increment::chain::{Chain, never_written};
use crate::increment::difference::Difference;
use crate::increment::folder::Folder;
use crate::increment::index::{header_checksum, position_of};
use crate::increment::layout::{BLOCK_BYTES, FileEntry, Header, INCREMENT_NAME, MAGIC, VERSION};
use crate::increment::same_file::SameFile;

/// Figures of an increment that was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Increment {
    /// The number of the commit that it shows.
    pub sequence: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// Blocks of the pool file in it, of 4 KiB: those that the parent has otherwise.
    pub blocks: u64,
    /// Blocks of the whole pool file.
    pub pool_blocks: u64,
    /// Files of LSM trees in it.
    pub files: u64,
    /// All files of LSM trees that the store has.
    pub store_files: u64,
}

/// The directory of an increment that is being made.
#[derive(Debug)]
pub(crate) struct Making {
    inner: Arc<dyn Directory>,
    file: Arc<dyn File>,
    parent: Arc<Chain>,
    uuid: [u8; 16],
    pool: Arc<Difference>,
    files: Arc<Mutex<Vec<FileEntry>>>,
}

impl Making {
    /// Begins one in an empty directory.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub(crate) fn begin(inner: Arc<dyn Directory>, parent: Chain) -> Result<Self> {
        let (mut uuid, parent) = ([0; 16], Arc::new(parent));
        inner.random(&mut uuid)?;
        let file = inner.create(INCREMENT_NAME)?;
        let pool = Arc::new(Difference::new(Arc::clone(&file), Arc::clone(&parent), uuid));
        Ok(Self { inner, file, parent, uuid, pool, files: Arc::default() })
    }

    /// Completes it, durably: the pool shows commit `sequence`, the parent has that name.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub(crate) fn finish(&self, parent_name: &str, sequence: u64) -> Result<Increment> {
        let (kept, files) = (self.pool.finish()?, self.files.lock());
        let mut index = parent_name.as_bytes().to_vec();
        index.extend_from_slice(kept.runs.as_bytes());
        kept.checksums.iter().for_each(|sum| index.extend_from_slice(&sum.to_le_bytes()));
        index.extend_from_slice(files.as_bytes());
        let name_bytes = u32::try_from(parent_name.len())
            .map_err(|_| Error::Damaged { what: "expected a shorter name of a backup".into() })?;
        let mut header = Header {
            magic: MAGIC,
            version: VERSION.into(),
            block_bytes: (BLOCK_BYTES as u32).into(),
            uuid: self.uuid,
            parent: self.parent.identity(),
            sequence: sequence.into(),
            blocks: kept.blocks.into(),
            slots: (kept.checksums.len() as u64).into(),
            runs: (kept.runs.len() as u64).into(),
            files: (files.len() as u64).into(),
            name_bytes: name_bytes.into(),
            index_checksum: crc32c(0, &index).into(),
            checksum: 0.into(),
        };
        header.checksum = header_checksum(&header).into();
        let start = position_of(header.slots.get());
        self.file.write_at(&index, start)?;
        self.file.write_at(header.as_bytes(), 0)?;
        self.file.sync()?;
        self.inner.sync()?;
        let own = files.iter().filter(|file| file.is_here != 0);
        let own_bytes: u64 = own.clone().map(|file| file.bytes.get()).sum();
        Ok(Increment {
            sequence,
            bytes: start + index.len() as u64 + own_bytes,
            blocks: header.slots.get(),
            pool_blocks: kept.blocks,
            files: own.count() as u64,
            store_files: files.len() as u64,
        })
    }
}

impl Directory for Making {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self, _: &str) -> MediumResult<Option<Arc<dyn File>>> {
        Ok(None)
    }

    /// Only the pool is made in here.
    fn create(&self, _: &str) -> MediumResult<Arc<dyn File>> {
        Ok(Arc::clone(&self.pool) as Arc<dyn File>)
    }

    /// The pool gets its name; it has none here.
    fn rename(&self, _: &str, _: &str) -> MediumResult<()> {
        Ok(())
    }

    fn remove(&self, _: &str) -> MediumResult<()> {
        Err(never_written(self.path()))
    }

    fn list(&self) -> MediumResult<Vec<String>> {
        let mut names = self.inner.list()?;
        names.retain(|name| name != INCREMENT_NAME);
        Ok(names)
    }

    fn sync(&self) -> MediumResult<()> {
        self.inner.sync()
    }

    fn subdirectory(&self, name: &str) -> MediumResult<Arc<dyn Directory>> {
        let Some(folder) = Folder::named(name) else {
            // The log, which is empty.
            return Ok(Arc::new(MemoryDirectory::new()));
        };
        let inner = self.inner.subdirectory(name)?;
        let (parent, files) = (Arc::clone(&self.parent), Arc::clone(&self.files));
        Ok(Arc::new(MakingFiles { inner, folder, parent, files }))
    }

    fn lock(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock(name)
    }

    fn lock_shared(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> MediumResult<()> {
        self.inner.random(buffer)
    }
}

/// A folder of files of LSM trees, of which those that the parent has are left out.
#[derive(Debug)]
struct MakingFiles {
    inner: Arc<dyn Directory>,
    folder: Folder,
    parent: Arc<Chain>,
    files: Arc<Mutex<Vec<FileEntry>>>,
}

impl Directory for MakingFiles {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn open(&self, _: &str) -> MediumResult<Option<Arc<dyn File>>> {
        Ok(None)
    }

    fn create(&self, name: &str) -> MediumResult<Arc<dyn File>> {
        let Some((number, _)) = number_of(name) else { return Err(never_written(self.path())) };
        let listed = self.parent.file(self.folder, number);
        let parents = listed.map_or(Ok(None), |listed| self.parent.open_file(listed))?;
        let entry = FileEntry {
            number: number.into(),
            bytes: 0.into(),
            folder: self.folder as u8,
            is_here: 1,
        };
        let own = (Arc::clone(&self.inner), name);
        Ok(Arc::new(SameFile::new(own, parents, Arc::clone(&self.files), entry)))
    }

    fn rename(&self, _: &str, _: &str) -> MediumResult<()> {
        Err(never_written(self.path()))
    }

    fn remove(&self, _: &str) -> MediumResult<()> {
        Err(never_written(self.path()))
    }

    fn list(&self) -> MediumResult<Vec<String>> {
        self.inner.list()
    }

    fn sync(&self) -> MediumResult<()> {
        self.inner.sync()
    }

    fn subdirectory(&self, _: &str) -> MediumResult<Arc<dyn Directory>> {
        Err(never_written(self.path()))
    }

    fn lock(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock(name)
    }

    fn lock_shared(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.inner.lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> MediumResult<()> {
        self.inner.random(buffer)
    }
}
