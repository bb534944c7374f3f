//! Incremental backup.
//!
//! Purpose: copies what a store has otherwise than a backup of it, while it is in use.
//! Invariants: as those of a backup; and no link of the chain is changed.
//! Thread safety: any thread; one backup of a store is made at a time.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

use crate::care::backup::UNFINISHED_SUFFIX;
use crate::care::unfinished::{Unfinished, split};
use crate::encryption::{EncryptionKey, key_of};
use crate::error::{Error, Result};
use crate::increment::{Chain, Increment, Making};
use crate::store::handle::Store;
use crate::store::open::plain;

impl Store {
    /// Copies what changed since a backup to a free path beside it, while other threads read and
    /// commit. The parent is a backup, or another increment: any number of them form a chain over
    /// one backup, and a parent may have several. Each is the store as left by one commit, and is
    /// whole together with those below it: [`restore`](crate::restore) makes a store of it,
    /// [`Store::open_read_only`] reads it in place. All must stay in one folder, under the names
    /// that they have; the newest can always be removed.
    ///
    /// What is the same as in the parent takes no space: blocks of 4 KiB of the pool, and files of
    /// the engine `lsm`. Both are compared byte by byte, so the whole store is read, and the
    /// backups below it. O(pool + files); memory of 1 MiB for 1 GiB of the pool. Whatever the
    /// parent is, the increment is right: one of another store makes it large.
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// let path = |name: &str| directory.path().join(name);
    /// let store = Store::open(path("app.adamant"))?;
    /// let settings = store.keyspace("settings")?;
    /// settings.put("colour", "green")?;
    /// store.backup(path("monday"))?;
    /// settings.put("colour", "blue")?;
    /// store.backup_since(path("monday"), path("tuesday"))?;
    /// settings.put("colour", "red")?;
    /// let made = store.backup_since(path("tuesday"), path("wednesday"))?;
    /// println!("{} of {} blocks changed", made.blocks, made.pool_blocks);
    ///
    /// let tuesday = Store::open_read_only(path("tuesday"))?;
    /// assert_eq!(tuesday.open_keyspace("settings")?.get("colour")?, Some("blue".into()));
    /// adamant::restore(path("wednesday"), path("restored"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::backup`]. [`Error::NotAParent`] for a parent that is no backup, or in another
    /// folder than the new path; [`Error::MissingLink`] or [`Error::WrongLink`] for a backup below
    /// it that is missing, or was opened for writing since; [`Error::Locked`] if the backup at the
    /// bottom is open for writing.
    pub fn backup_since(
        &self,
        parent: impl AsRef<Path>,
        path: impl AsRef<Path>,
    ) -> Result<Increment> {
        let (parent, path) = (parent.as_ref(), path.as_ref());
        self.refuse_inside(path)?;
        let ((parents_folder, parent_name), (folder, name)) = (split(parent)?, split(path)?);
        let not_a_parent = |found| Error::NotAParent { path: parent.into(), found };
        if parents_folder != folder {
            return Err(not_a_parent(format!("a path that is not in {}", folder.display())));
        }
        // A store in memory has no such path.
        let store = self.shared.heap()?.path().canonicalize().map(plain).ok();
        if parent.canonicalize().map(plain).ok().is_some_and(|parent| Some(parent) == store) {
            return Err(not_a_parent("the store itself".into()));
        }
        let chain = Chain::open(&open_read_only(&folder)?, &parent_name, self.key()?.as_ref())?;
        self.difference_to(chain, Arc::new(OsDirectory::open(&folder)?), (&parent_name, &name))
    }

    /// As [`Store::backup_since`], in a directory of any storage backend: names of the parent and
    /// of the increment in it. The simulator of `testing/sim` uses this in place of a file system.
    ///
    /// # Errors
    /// As [`Store::backup_since`].
    pub fn backup_since_in(
        &self,
        siblings: &Arc<dyn Directory>,
        parent: &str,
        name: &str,
    ) -> Result<Increment> {
        let chain = Chain::open(siblings, parent, self.key()?.as_ref())?;
        self.difference_to(chain, Arc::clone(siblings), (parent, name))
    }

    /// The key that opens the store, if it is encrypted: the increment gets it, and whoever reads
    /// that has one key for the whole chain.
    fn key(&self) -> Result<Option<EncryptionKey>> {
        let key = key_of(self.shared.heap()?.directory().as_ref());
        // That of an increment, which is opened for reading only, is the one it was opened with.
        Ok(key.or_else(|| self.shared.options().key.clone()))
    }

    fn difference_to(
        &self,
        chain: Chain,
        siblings: Arc<dyn Directory>,
        (parent, name): (&str, &str),
    ) -> Result<Increment> {
        let unfinished = Unfinished::create(siblings, name, UNFINISHED_SUFFIX)?;
        let directory = self.encrypted_alike(unfinished.directory()?)?;
        let making = Making::begin(directory, chain)?;
        let sequence = self.back_up(&making, false)?;
        let made = making.finish(parent, sequence)?;
        // Where what is open cannot be renamed.
        drop(making);
        unfinished.finish()?;
        Ok(made)
    }
}

fn open_read_only(folder: &Path) -> Result<Arc<dyn Directory>> {
    Ok(Arc::new(OsDirectory::open_read_only(folder)?))
}
