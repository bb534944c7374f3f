//! A new store beside the place where it is to be, until it is whole.
//!
//! Purpose: whoever makes a store out of another one works in a directory with a name that says so,
//! and gives it its own name when everything in it is durable. So a crash leaves no half store.
//! Invariants: what an earlier run left under that name is removed only if it is ours: if nothing is in
//! it that no store has, and nobody holds its lock. Dropping it removes it.
//! Thread safety: a value that its owner uses.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::names::{name_of, text_of};
use adamant_medium::os::OsDirectory;
use adamant_medium::storage::Directory;
use adamant_wire::mutants::is_planted;

use crate::error::{Error, Result};
use crate::store::open::NO_FOLDER;

/// What may be in a directory that becomes a store.
const OUR_NAMES: [&str; 7] = ["blobs", "lock", "log", "log.new", "pool", "pool.new", "tables"];
/// Who holds it may use a store.
pub(crate) const LOCK_NAME: &str = "lock";

/// A directory that becomes a store.
#[derive(Debug)]
pub(crate) struct Unfinished {
    parent: Arc<dyn Directory>,
    name: String,
    final_name: String,
    is_finished: bool,
}

impl Unfinished {
    /// Makes an empty directory that is to have the name `target`, where nothing is; until then
    /// `suffix` is added to it.
    ///
    /// # Errors
    /// [`Error::TargetExists`], [`Error::Locked`] if another one is being made just now,
    /// [`Error::NotAStore`] for what is no leftover of ours; those of the medium.
    pub(crate) fn create(parent: Arc<dyn Directory>, target: &str, suffix: &str) -> Result<Self> {
        refuse_taken(parent.as_ref(), target)?;
        Self::beside(parent, target, suffix)
    }

    /// Makes an empty directory beside a store, the place of which it is to take. Another one of that
    /// name that is of no use any more is removed before.
    ///
    /// # Errors
    /// As [`Unfinished::create`], but the target has to be there.
    pub(crate) fn beside(parent: Arc<dyn Directory>, store: &str, suffix: &str) -> Result<Self> {
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
    /// Those of the medium.
    pub(crate) fn directory(&self) -> Result<Arc<dyn Directory>> {
        Ok(self.parent.subdirectory(&self.name)?)
    }

    /// The name that it has until then.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Leaves it where it is: whoever has the name gives it another one.
    pub(crate) fn keep(mut self) -> String {
        self.is_finished = true;
        std::mem::take(&mut self.name)
    }

    /// Gives it its name, durably. Everything in it is durable before.
    ///
    /// # Errors
    /// [`Error::TargetExists`] if something took the name meanwhile; those of the medium. Then nothing has
    /// the name, unless the device fails again.
    pub(crate) fn finish(mut self) -> Result<()> {
        refuse_taken(self.parent.as_ref(), &self.final_name)?;
        // Nobody commits to it before its name is durable: else it could not be taken back.
        let _lock = self.directory()?.lock(LOCK_NAME)?;
        self.parent.rename(&self.name, &self.final_name)?;
        if is_planted("rename.a-finished-store-is-not-synced") {
            self.is_finished = true;
            return Ok(());
        }
        let Err(error) = self.parent.sync() else {
            self.is_finished = true;
            return Ok(());
        };
        if is_planted("rename.a-doubtful-name-stays") {
            self.is_finished = true;
            return Err(error.into());
        }
        // From now on the name may look durable and not be. Unless it is durably gone, its files stay:
        // a power cut may give it back.
        let taken_back = self.parent.rename(&self.final_name, &self.name);
        self.is_finished = taken_back.and_then(|()| self.parent.sync()).is_err();
        Err(error.into())
    }

    /// Gives it its name, durably, and removes what had it. Everything in it is durable before.
    ///
    /// # Errors
    /// Those of the medium, that it cannot do this in one step among them. Then each is where it was,
    /// or in the place of the other, but both are whole.
    pub(crate) fn replace(mut self) -> Result<()> {
        let _lock = self.directory()?.lock(LOCK_NAME)?;
        self.parent.exchange(&self.name, &self.final_name)?;
        // A power cut may take that back until the sync, so nothing is removed before.
        self.is_finished = true;
        if !is_planted("rename.a-successor-is-not-synced")
            && let Err(error) = self.parent.sync()
        {
            if !is_planted("rename.a-doubtful-successor-stays") {
                // No later sync may make that durable, and commits that follow would be in the one that a
                // power cut gives the other name. Best effort: each gets its own again, which is synced anew.
                let taken_back = self.parent.exchange(&self.name, &self.final_name);
                let _ = taken_back.and_then(|()| self.parent.sync());
            }
            return Err(error.into());
        }
        self.is_finished = false;
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: it is no use to anybody, and its name says so.
            let _ = self.parent.remove_all(&self.name);
        }
    }
}

/// The directory that a path lies in, and its name there.
///
/// # Errors
/// As [`split`]; those of the medium.
pub(crate) fn parent_of(path: &Path) -> Result<(Arc<dyn Directory>, String)> {
    let (parent, name) = split(path)?;
    Ok((Arc::new(OsDirectory::open(parent)?), name))
}

/// The directory that a path lies in, without links and dots, and its name there, as directories
/// take it.
///
/// # Errors
/// [`Error::Missing`] for the directory, [`Error::NotAStore`] for a path without a name; those of
/// the system.
pub(crate) fn split(path: &Path) -> Result<(PathBuf, String)> {
    let Some(name) = path.file_name() else {
        return Err(Error::NotAStore { path: path.into(), found: "a path without a name".into() });
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    match parent.canonicalize() {
        Ok(parent) => Ok((parent, text_of(name).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Error::Missing { path: path.into(), what: NO_FOLDER })
        }
        Err(error) => Err(MediumError::io("find", parent, None, 0, error).into()),
    }
}

/// Whether there is anything of that name, a link to nowhere included.
fn is_there(parent: &dyn Directory, name: &str) -> Result<bool> {
    Ok(parent.list()?.iter().any(|known| known == name))
}

fn refuse_taken(parent: &dyn Directory, name: &str) -> Result<()> {
    if is_there(parent, name)? {
        return Err(Error::TargetExists { path: parent.path().join(name_of(name)) });
    }
    Ok(())
}

/// Removes what an earlier run left that did not come to its end.
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
    let removed = parent.remove_all(name);
    drop(lock);
    Ok(removed?)
}
