//! A copy of a store that goes on being used.
//!
//! Purpose: a second store, as of one commit, at a path where nothing is.
//! Invariants: the copy appears under its name whole and durable, or not at all. It has an identity of
//! its own. Nobody waits for longer than a piece of the pool is read.
//! Thread safety: any thread; one backup of a store is made at a time.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;

use crate::care::unfinished::{Unfinished, parent_of, split};
use crate::error::{Error, Result};
use crate::store::handle::Store;

/// What is added to the name of a backup while it is made.
const UNFINISHED_SUFFIX: &str = ".backing-up";

impl Store {
    /// Makes a copy of the store at a path where nothing is, while others read and commit. The copy
    /// is the store as one commit left it that came after the call, or was the last before it; it
    /// opens as any store does, and is closed. Until it is whole and durable it is called
    /// `NAME.backing-up`; what a crash leaves under that name is removed by the next backup to the
    /// same path.
    ///
    /// Every page is verified on the way: a damaged one is an error, and not copied. Free space takes
    /// no space in the copy. Memory is bounded. Beside the copy it takes space for the log that is
    /// written meanwhile; where the device has none for that, the backup fails, and not the commits.
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// let store = Store::open(directory.path().join("app.adamant"))?;
    /// store.keyspace("settings")?.insert("colour", "green")?;
    /// let path = directory.path().join("monday.adamant");
    /// store.backup(&path)?;
    ///
    /// let copy = Store::open(&path)?;
    /// assert_eq!(copy.keyspace("settings")?.get("colour")?, Some("green".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TargetExists`], [`Error::TargetInside`], [`Error::Missing`] for the directory that the
    /// copy is to be in, [`Error::Locked`] when another backup to the same path is being made; no space,
    /// damage, a store that is closed or poisoned. Nothing is left then.
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.refuse_inside(path)?;
        self.copy_to(path, UNFINISHED_SUFFIX)
    }

    /// As [`Store::backup`], under another name while it is made.
    pub(crate) fn copy_to(&self, path: &Path, suffix: &str) -> Result<()> {
        let (parent, name) = parent_of(path)?;
        self.copy_in(parent, &name, suffix)
    }

    /// As [`Store::copy_to`], to a name in a directory of any medium.
    pub(crate) fn copy_in(
        &self,
        parent: Arc<dyn Directory>,
        name: &str,
        suffix: &str,
    ) -> Result<()> {
        let unfinished = Unfinished::create(parent, name, suffix)?;
        self.backup_into(&unfinished.directory()?)?;
        unfinished.finish()
    }

    /// Makes an empty directory of any medium a copy of the store. This is how the simulator of
    /// `testing/sim` stands in for a file system; programs use [`Store::backup`].
    ///
    /// # Errors
    /// As [`Store::backup`]; the directory holds no store then, but maybe a part of one.
    pub fn backup_into(&self, directory: &Arc<dyn Directory>) -> Result<()> {
        let heap = self.shared.heap()?;
        let lsm_trees = self.shared.catalogue().lsm_trees();
        // From before the copy of the heap on, so that no file goes which that names.
        let _pin = lsm_trees.pin_files();
        heap.back_up(directory.as_ref())?;
        if lsm_trees.environment().is_some() {
            lsm_trees.copy_files(directory.as_ref())?;
        }
        Ok(())
    }

    /// Fails for a path within the store, which would be a copy of itself.
    pub(crate) fn refuse_inside(&self, path: &Path) -> Result<()> {
        let Ok(store) = self.shared.heap()?.path().canonicalize() else {
            // In memory, or renamed since: no path leads into it.
            return Ok(());
        };
        let (parent, _) = split(path)?;
        if parent.starts_with(&store) {
            return Err(Error::TargetInside { path: path.into(), store });
        }
        Ok(())
    }
}
