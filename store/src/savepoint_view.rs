//! A savepoint as the directory of a store.
//!
//! Purpose: what opens a store for reading only opens a savepoint by this, without a difference.
//! Invariants: nothing is written. The store that has the savepoint stays open as long as this is
//! in use, unless it is closed by a call: then reads fail.
//! Thread safety: any thread.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_heap::SavepointPool;
use adamant_lsm::number_of;
use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::{Directory, File, Lock};

use crate::common::shared::Shared;
use crate::engine::held_files::decode;
use crate::engine::lsm_trees::FOLDERS;

/// Name of the pool file.
const POOL_NAME: &str = "pool";

/// The directory that a savepoint shows, or a folder in it.
pub(crate) struct SavepointView {
    /// Keeps the store open.
    store: Arc<Shared>,
    pool: SavepointPool,
    /// That of the store, or the folder in it.
    directory: Arc<dyn Directory>,
    path: PathBuf,
    is_folder: bool,
    /// Numbers of the files of LSM trees.
    files: Arc<HashSet<u64>>,
}

impl fmt::Debug for SavepointView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavepointView").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SavepointView {
    pub(crate) fn new(
        store: Arc<Shared>,
        directory: Arc<dyn Directory>,
        pool: SavepointPool,
    ) -> Self {
        let (path, files) = (pool.file().path().into(), Arc::new(decode(pool.attached())));
        Self { store, pool, directory, path, is_folder: false, files }
    }

    fn read_only(&self) -> MediumError {
        let source = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "a savepoint never changes");
        MediumError::io("write", &self.path, None, 0, source)
    }

    fn closed(&self) -> MediumError {
        let source = io::Error::other("the store that has this savepoint was closed");
        MediumError::io("open", &self.path, None, 0, source)
    }

    fn has(&self, name: &str) -> bool {
        let number = number_of(name).filter(|(_, is_finished)| *is_finished);
        number.is_some_and(|(number, _)| self.files.contains(&number))
    }
}

/// Nothing needs to be locked: the store is.
#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}

impl Directory for SavepointView {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self, name: &str) -> MediumResult<Option<Arc<dyn File>>> {
        match self.is_folder {
            // Another process may give the number to another file.
            true if !self.pool.is_open() => Err(self.closed()),
            true if self.has(name) => self.directory.open(name),
            true => Ok(None),
            false => Ok((name == POOL_NAME).then(|| self.pool.file())),
        }
    }

    fn create(&self, _: &str) -> MediumResult<Arc<dyn File>> {
        Err(self.read_only())
    }

    fn rename(&self, _: &str, _: &str) -> MediumResult<()> {
        Err(self.read_only())
    }

    fn remove(&self, _: &str) -> MediumResult<()> {
        Err(self.read_only())
    }

    fn list(&self) -> MediumResult<Vec<String>> {
        if self.is_folder {
            let mut names = self.directory.list()?;
            names.retain(|name| self.has(name));
            return Ok(names);
        }
        let mut names = self.directory.list()?;
        names.retain(|name| FOLDERS.contains(&name.as_str()));
        names.push(POOL_NAME.into());
        names.sort_unstable();
        Ok(names)
    }

    /// There is nothing to make durable.
    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> MediumResult<Arc<dyn Directory>> {
        let is_there = FOLDERS.contains(&name) && self.list()?.iter().any(|known| known == name);
        if self.is_folder || !is_there {
            return Err(self.read_only());
        }
        Ok(Arc::new(Self {
            store: Arc::clone(&self.store),
            pool: self.pool.clone(),
            directory: self.directory.subdirectory(name)?,
            path: self.path.join(name),
            is_folder: true,
            files: Arc::clone(&self.files),
        }))
    }

    fn close(&self) {
        if !self.is_folder {
            self.pool.close();
        }
    }

    fn lock(&self, _: &str) -> MediumResult<Box<dyn Lock>> {
        Err(self.read_only())
    }

    fn lock_shared(&self, _: &str) -> MediumResult<Box<dyn Lock>> {
        Ok(Box::new(NoLock))
    }

    fn random(&self, buffer: &mut [u8]) -> MediumResult<()> {
        self.directory.random(buffer)
    }
}
