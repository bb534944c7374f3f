//! Online backup.
//!
//! Purpose: copies a store in use to a second store, as of one commit, at a free path.
//! Invariants: the copy appears under its name whole and durable, or not at all. It has an identity
//! of its own. No thread waits longer than it takes to read a part of the pool.
//! Thread safety: any thread; one backup of a store is made at a time.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::care::unfinished::{Unfinished, parent_of, split};
use crate::encryption::created_alike;
use crate::error::{Error, Result};
use crate::store::handle::Store;
use crate::store::open::plain;
use crate::store::replacement::LOCK_NAME;

/// The suffix of a backup's name while it is made.
pub(crate) const UNFINISHED_SUFFIX: &str = ".backing-up";

impl Store {
    /// Copies the store to a free path, while other threads read and commit. The copy is the store
    /// as left by one commit, either the last before the call or a later one. It opens like any
    /// store, and is closed. Until it is whole and durable it is called `NAME.backing-up`; the next
    /// backup to the same path removes what a crash left under that name.
    ///
    /// Every page is verified on the way: a damaged one is an error, and not copied. Free space
    /// takes no space in the copy. Memory is bounded. Beside the copy, the log that is written
    /// meanwhile takes space; if the device has none for that, the backup fails, and commits do
    /// not.
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// let store = Store::open(directory.path().join("app.adamant"))?;
    /// store.keyspace("settings")?.put("colour", "green")?;
    /// let path = directory.path().join("monday.adamant");
    /// store.backup(&path)?;
    ///
    /// let copy = Store::open(&path)?;
    /// assert_eq!(copy.keyspace("settings")?.get("colour")?, Some("green".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TargetExists`], [`Error::TargetInside`], [`Error::Missing`] for the copy's parent
    /// directory, [`Error::Locked`] if another backup to the same path is being made; no space,
    /// damage, a store that is closed or poisoned. Nothing is left then.
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.refuse_inside(path)?;
        self.copy_to(path, UNFINISHED_SUFFIX, false)
    }

    /// As [`Store::backup`], but the files of keyspaces of the engine `lsm` become hard links if
    /// the copy is on the same file system, and are copied otherwise. They never change, so that
    /// takes no time and no space for them, however many they are: only the pool is copied. A file
    /// goes when neither store needs it. Damage of the device hits both stores.
    ///
    /// # Errors
    /// As [`Store::backup`].
    pub fn backup_linked(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.refuse_inside(path)?;
        self.copy_to(path, UNFINISHED_SUFFIX, true)
    }

    /// Like [`Store::backup`], with another suffix while it is made, and with links if asked.
    pub(crate) fn copy_to(&self, path: &Path, suffix: &str, links: bool) -> Result<()> {
        let (parent, name) = parent_of(path)?;
        self.copy_in(parent, &name, (suffix, links))
    }

    /// Like [`Store::copy_to`], to a name in a directory of any storage backend.
    pub(crate) fn copy_in(
        &self,
        parent: Arc<dyn Directory>,
        name: &str,
        (suffix, links): (&str, bool),
    ) -> Result<()> {
        let unfinished = Unfinished::create(parent, name, suffix)?;
        self.back_up(&*self.encrypted_alike(unfinished.directory()?)?, links)?;
        unfinished.finish()
    }

    /// Copies the store into an empty directory of any storage backend. The simulator of
    /// `testing/sim` uses this in place of a file system; programs use [`Store::backup`].
    ///
    /// # Errors
    /// As [`Store::backup`]; the directory holds no store then, but maybe a part of one.
    pub fn backup_into(&self, directory: &Arc<dyn Directory>) -> Result<()> {
        self.back_up(&*self.encrypted_alike(Arc::clone(directory))?, false).map(|_| ())
    }

    /// An empty directory for a copy of this store, encrypted as it is.
    pub(crate) fn encrypted_alike(
        &self,
        directory: Arc<dyn Directory>,
    ) -> Result<Arc<dyn Directory>> {
        let heap = self.shared.heap()?;
        let key = self.shared.options().key.as_ref();
        // Before there is a key file: that of another store would be lost.
        if key.is_some() && directory.list()?.iter().any(|name| name != LOCK_NAME) {
            return Err(Error::TargetExists { path: directory.path().into() });
        }
        created_alike(directory, heap.directory().as_ref(), key)
    }

    /// Copies the store into an empty directory; returns the number of the commit that it shows.
    pub(crate) fn back_up(&self, directory: &dyn Directory, links: bool) -> Result<u64> {
        let heap = self.shared.heap()?;
        let lsm_trees = self.shared.catalogue().lsm_trees();
        // Taken before the heap is copied, so that no file which the copy names is deleted.
        let _pin = lsm_trees.pin_files();
        let sequence = heap.back_up(directory)?;
        lsm_trees.copy_files(directory, (links, self.shared.options().only_reads()))?;
        Ok(sequence)
    }

    /// Fails for a path within the store: the copy would contain itself.
    pub(crate) fn refuse_inside(&self, path: &Path) -> Result<()> {
        let Ok(store) = self.shared.heap()?.path().canonicalize() else {
            // A store in memory, or renamed since: no path leads into it.
            return Ok(());
        };
        let (store, (parent, _)) = (plain(store), split(path)?);
        if parent.starts_with(&store) {
            return Err(Error::TargetInside { path: path.into(), store });
        }
        Ok(())
    }
}
