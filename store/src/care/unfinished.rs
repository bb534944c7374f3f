//! A new store under a temporary name, until it is complete.
//!
//! Purpose: copies, compaction and repair build a store in a directory with a temporary name, and
//! rename it when everything in it is durable. So a crash leaves no half store.
//! Invariants: the leftover of an earlier run is removed only if it is ours: every file in it is a
//! store's, and its lock is free. Dropping this removes the directory.
//! Thread safety: a value that its owner uses.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::names::{self as file_names, name_of, text_of};
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

use crate::error::{Error, Result};
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::open::{NO_FOLDER, plain};
use crate::store::replacement::{LOCK_NAME, Replacement, refuse_left};

/// The names that may be in a directory that becomes a store.
const OUR_NAMES: [&str; 13] = [
    "blobs",
    "increment",
    "key",
    "key.new",
    "lock",
    "log",
    "log.new",
    "pool",
    "pool.new",
    "readers",
    "savepoints",
    "savepoints.new",
    "tables",
];

/// What tells whether a store was changed since it was closed.
pub(crate) struct ClosedState {
    last_commit: u64,
    options: Options,
}

impl ClosedState {
    /// Closes a store.
    ///
    /// # Errors
    /// As [`Store::close`].
    pub(crate) fn of(store: Store) -> Result<Self> {
        let options = store.shared.options().clone().read_only(true);
        let heap = Arc::clone(store.shared.heap_handle()?);
        // Until then its threads commit: they remove what expired, and merge tables.
        store.close()?;
        Ok(Self { last_commit: heap.last_commit(), options })
    }

    /// [`Error::Locked`] if the store has another commit now, or a savepoint, which a store that
    /// is made anew does not have.
    pub(crate) fn check(&self, directory: Arc<dyn Directory>) -> Result<()> {
        let path = directory.path().join(LOCK_NAME);
        let store = Store::open_directory(directory, self.options.clone())?;
        let is_same = store.shared.heap()?.last_commit() == self.last_commit;
        match is_same && store.savepoints()?.is_empty() {
            true => store.close(),
            false => Err(Error::Locked { path, holder: None }),
        }
    }
}

/// A directory that becomes a store.
#[derive(Debug)]
pub(crate) struct Unfinished {
    parent: Arc<dyn Directory>,
    name: String,
    final_name: String,
    is_finished: bool,
}

impl Unfinished {
    /// Makes an empty directory that will get the free name `target`; until then `suffix` is added
    /// to it.
    ///
    /// # Errors
    /// [`Error::TargetExists`], also if a store has lost that name (`store/replacement.rs`);
    /// [`Error::Locked`] if another one is being made, [`Error::NotAStore`] if a foreign directory
    /// has the temporary name; those of the storage backend.
    pub(crate) fn create(parent: Arc<dyn Directory>, target: &str, suffix: &str) -> Result<Self> {
        refuse_taken(parent.as_ref(), target)?;
        Self::beside(parent, target, suffix)
    }

    /// Makes an empty directory beside a store, which it will replace. A leftover with the
    /// temporary name is removed first.
    ///
    /// # Errors
    /// As [`Unfinished::create`], but the store has to exist.
    pub(crate) fn beside(parent: Arc<dyn Directory>, store: &str, suffix: &str) -> Result<Self> {
        refuse_left(parent.as_ref(), store)?;
        let name = format!("{store}{suffix}");
        if is_there(parent.as_ref(), &name)? {
            remove_left(parent.as_ref(), &name)?;
        }
        parent.subdirectory(&name)?;
        let unfinished = Self { parent, name, final_name: store.into(), is_finished: false };
        unfinished.parent.sync()?;
        Ok(unfinished)
    }

    /// The directory.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub(crate) fn directory(&self) -> Result<Arc<dyn Directory>> {
        Ok(self.parent.subdirectory(&self.name)?)
    }

    /// Leaves it under its temporary name, for the caller to rename.
    pub(crate) fn keep(mut self) -> String {
        self.is_finished = true;
        std::mem::take(&mut self.name)
    }

    /// Gives it its name, durably. Everything in it must be durable before.
    ///
    /// # Errors
    /// [`Error::TargetExists`] if the name was taken meanwhile; those of the storage backend. Then
    /// the name is free, unless the device fails again.
    pub(crate) fn finish(mut self) -> Result<()> {
        refuse_taken(self.parent.as_ref(), &self.final_name)?;
        // Locked, so that no process commits to it before its name is durable: else the renaming
        // could not be undone. Where it cannot be locked meanwhile, a store that is open is not
        // renamed, so it stays.
        let _lock = match self.parent.renames_open() {
            true => Some(self.directory()?.lock(LOCK_NAME)?),
            false => None,
        };
        self.parent.rename(&self.name, &self.final_name)?;
        let Err(error) = self.parent.sync() else {
            self.is_finished = true;
            return Ok(());
        };
        // From now on the name may look durable and not be. Unless the undo is durable, its files
        // stay: a power cut may bring the name back.
        let taken_back = self.parent.rename(&self.final_name, &self.name);
        self.is_finished = taken_back.and_then(|()| self.parent.sync()).is_err();
        Err(error.into())
    }

    /// Gives it the name of a store that it holds the contents of, durably, and removes that store.
    /// Everything in it must be durable before.
    ///
    /// # Errors
    /// Those of the storage backend; [`Error::Locked`] where the old store must be closed first
    /// (`Directory::renames_open`) and another process has committed to it since. Then each store
    /// is in its own place, unless the device fails again; both are whole.
    pub(crate) fn replace(mut self, old: Store) -> Result<()> {
        let parent = Arc::clone(&self.parent);
        let (held, closed) = match parent.renames_open() {
            true => (Some((self.directory()?.lock(LOCK_NAME)?, old)), None),
            false => (None, Some(ClosedState::of(old)?)),
        };
        let check = |name: &str| match &closed {
            Some(state) => state.check(parent.subdirectory(name)?),
            None => Ok(()),
        };
        let (name, new) = (&*self.final_name, &*self.name);
        let mut replacement =
            Replacement { parent: &*parent, name, new, aside: new, is_begun: false };
        let taken = replacement.take_place(&check);
        // Unless the names are as they were, or have changed for good, nothing is removed.
        self.is_finished = taken.is_err() && replacement.is_begun;
        let done = taken.map(|old_name| self.name = old_name);
        // Removes one of them, while nobody can open it.
        drop(self);
        drop(held);
        done
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: it is of no use, and its name says so. Where it had to be closed before,
            // another process may have taken it for a leftover, and be making its own.
            let _ = match self.parent.renames_open() {
                true => self.parent.remove_all(&self.name).map_err(Error::from),
                false => remove_left(self.parent.as_ref(), &self.name),
            };
        }
    }
}

/// The parent directory of a path, and the name in it.
///
/// # Errors
/// As [`split`]; those of the storage backend.
pub(crate) fn parent_of(path: &Path) -> Result<(Arc<dyn Directory>, String)> {
    let (parent, name) = split(path)?;
    Ok((Arc::new(OsDirectory::open(parent)?), name))
}

/// The canonical parent directory of a path, and the name in it, as directories take it.
///
/// # Errors
/// [`Error::Missing`] for the directory, [`Error::NotAStore`] for a path without a name; those of
/// the system.
pub(crate) fn split(path: &Path) -> Result<(PathBuf, String)> {
    let Some(name) = path.file_name() else {
        return Err(Error::NotAStore { path: path.into(), found: "a path without a name".into() });
    };
    let parent = file_names::parent_of(path);
    match parent.canonicalize() {
        Ok(parent) => Ok((plain(parent), text_of(name).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::Missing { path: path.into(), what: NO_FOLDER })
        }
        Err(error) => Err(MediumError::io("find", parent, None, 0, error).into()),
    }
}

/// Whether the name is taken, even by a dangling link.
fn is_there(parent: &dyn Directory, name: &str) -> Result<bool> {
    Ok(parent.list()?.iter().any(|known| known == name))
}

fn refuse_taken(parent: &dyn Directory, name: &str) -> Result<()> {
    if is_there(parent, name)? {
        return Err(Error::TargetExists { path: parent.path().join(name_of(name)) });
    }
    Ok(())
}

/// Removes the leftover of an earlier run.
fn remove_left(parent: &dyn Directory, name: &str) -> Result<()> {
    let directory = parent.subdirectory(name)?;
    let names = directory.list()?;
    if let Some(name) = names.iter().find(|name| !OUR_NAMES.contains(&name.as_str())) {
        return Err(Error::NotAStore {
            path: directory.path().into(),
            found: format!("a directory that holds {}; take it away", name_of(name).display()),
        });
    }
    let lock = directory.lock(LOCK_NAME)?;
    // Not held where what is open cannot be removed.
    let held = Some((lock, directory)).filter(|_| parent.renames_open());
    let removed = parent.remove_all(name);
    drop(held);
    Ok(removed?)
}
