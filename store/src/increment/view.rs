//! An increment as the directory of a store.
//!
//! Purpose: what opens a store for reading only reads an increment by this, without a difference.
//! Invariants: nothing is written.
//! Thread safety: any thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::error::Result as MediumResult;
use adamant_medium::storage::{Directory, File, Lock};

use crate::increment::chain::{Chain, POOL_NAME, never_written};
use crate::increment::difference::refuse_short;
use crate::increment::folder::Folder;
use crate::increment::layout::INCREMENT_NAME;

/// The directory that a chain shows, or a folder in it.
#[derive(Debug)]
pub(crate) struct View {
    chain: Arc<Chain>,
    folder: Option<Folder>,
}

impl View {
    pub(super) fn new(chain: Chain) -> Self {
        Self { chain: Arc::new(chain), folder: None }
    }
}

impl Directory for View {
    fn path(&self) -> &Path {
        self.chain.path()
    }

    fn open(&self, name: &str) -> MediumResult<Option<Arc<dyn File>>> {
        let Some(folder) = self.folder else {
            let (chain, path) = (Arc::clone(&self.chain), self.path().join(INCREMENT_NAME));
            let pool = || Arc::new(PoolView { chain, path }) as Arc<dyn File>;
            return Ok((name == POOL_NAME).then(pool));
        };
        let number = adamant_lsm::number_of(name).map(|(number, _)| number);
        let listed = number.and_then(|number| self.chain.file(folder, number));
        listed.map_or(Ok(None), |listed| self.chain.open_file(listed))
    }

    fn create(&self, _: &str) -> MediumResult<Arc<dyn File>> {
        Err(never_written(self.path()))
    }

    fn rename(&self, _: &str, _: &str) -> MediumResult<()> {
        Err(never_written(self.path()))
    }

    fn remove(&self, _: &str) -> MediumResult<()> {
        Err(never_written(self.path()))
    }

    fn list(&self) -> MediumResult<Vec<String>> {
        let Some(folder) = self.folder else {
            let mut names = self.chain.directory().list()?;
            names.retain(|name| name != INCREMENT_NAME && Folder::named(name).is_none());
            names.extend(Folder::ALL.map(|folder| folder.name().to_string()));
            names.push(POOL_NAME.into());
            names.sort_unstable();
            return Ok(names);
        };
        let files = self.chain.files().iter().filter(|file| file.folder == folder);
        let mut names: Vec<_> = files.map(|file| file.name()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// There is nothing to make durable.
    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }

    fn subdirectory(&self, name: &str) -> MediumResult<Arc<dyn Directory>> {
        match Folder::named(name) {
            Some(folder) => {
                Ok(Arc::new(Self { chain: Arc::clone(&self.chain), folder: Some(folder) }))
            }
            None => Err(never_written(self.path())),
        }
    }

    fn close(&self) {
        self.chain.close();
    }

    fn lock(&self, _: &str) -> MediumResult<Box<dyn Lock>> {
        Err(never_written(self.path()))
    }

    fn lock_shared(&self, name: &str) -> MediumResult<Box<dyn Lock>> {
        self.chain.directory().lock_shared(name)
    }

    fn random(&self, buffer: &mut [u8]) -> MediumResult<()> {
        self.chain.directory().random(buffer)
    }
}

/// The pool file that a chain shows.
#[derive(Debug)]
struct PoolView {
    chain: Arc<Chain>,
    /// For messages: the file that is read first.
    path: PathBuf,
}

impl File for PoolView {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> MediumResult<u64> {
        Ok(self.chain.pool_bytes())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> MediumResult<()> {
        refuse_short(self, self.chain.pool_bytes(), buffer, offset)?;
        self.chain.read(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    fn allocate(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    fn punch(&self, _: u64, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    fn set_len(&self, _: u64) -> MediumResult<()> {
        Err(never_written(&self.path))
    }

    /// There is nothing to make durable.
    fn sync(&self) -> MediumResult<()> {
        Ok(())
    }
}
