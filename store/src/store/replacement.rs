//! A store that was made anew takes the place of another one.
//!
//! Purpose: compaction, encryption and repair make a store beside the one that it replaces. It gets
//! the name in one step where the file system exchanges two names, as those of Linux and macOS do.
//! Windows and FreeBSD rename: the old store is called `NAME.being-replaced` in between.
//! Invariants: at any moment one of the two stores has the name; or, between two renamings, none
//! has, and whoever opens the name gives it back to the old store first. Each renaming is durable
//! before the next one begins. What fails is undone, durably. Nothing is removed here.
//! Thread safety: the caller keeps others from committing to either store meanwhile.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::names::{name_of, parent_of, text_of};
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

use crate::error::{Error, Result};

/// The file that makes a directory a store.
pub(super) const POOL_NAME: &str = "pool";
/// The lock file: its holder may use a store.
pub(crate) const LOCK_NAME: &str = "lock";
/// What the name of a store that has lost its own ends in: nobody else calls one so.
const REPLACED_SUFFIX: &str = ".being-replaced";
/// That of the new store while compaction writes it, and of the old one until it is removed.
pub(crate) const COMPACTING_SUFFIX: &str = ".compacting";
/// That of a damaged store that was repaired.
pub(crate) const DAMAGED_SUFFIX: &str = ".damaged";
/// Links that a path may lead through, as systems have it: they refuse more.
const LINKS_MAX: usize = 40;

/// A store that takes the place of another one in the same directory.
pub(crate) struct Replacement<'a> {
    pub(crate) parent: &'a dyn Directory,
    /// The name of the place.
    pub(crate) name: &'a str,
    /// That of the new store until then.
    pub(crate) new: &'a str,
    /// That of the old store from then on; may be `new`.
    pub(crate) aside: &'a str,
    /// Whether names may have changed: then none says which store it is that of.
    pub(crate) is_begun: bool,
}

impl Replacement<'_> {
    /// Changes the names, durably; returns that of the old store, which is not the one that it was
    /// to get if the device fails at the last step. `check` is called with the old store's name
    /// where no other process looks for it, if it is renamed more than once, and may refuse.
    ///
    /// # Errors
    /// [`Error::TargetExists`] if another replacement was cut short that nobody has looked after;
    /// those of `check` and of the storage backend. Then each name is what it was, unless the
    /// device fails again.
    pub(crate) fn take_place(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<String> {
        match self.exchange() {
            Err(error) if error.is_unsupported() => self.rename(check),
            other => Ok(other.map(|()| self.aside.into())?),
        }
    }

    fn exchange(&mut self) -> MediumResult<()> {
        let (parent, is_moved) = (self.parent, self.new != self.aside);
        if is_moved {
            parent.rename(self.new, self.aside)?;
        }
        let take_back = || if is_moved { parent.rename(self.aside, self.new) } else { Ok(()) };
        if let Err(error) = parent.exchange(self.name, self.aside) {
            // Best effort: under either name, the new store is not the one of the place.
            let _ = take_back();
            return Err(error);
        }
        self.is_begun = true;
        parent.sync().inspect_err(|_| {
            // No later sync may make that durable, and later commits would be in the store that a
            // power cut gives the other name. Best effort.
            let exchanged = parent.exchange(self.name, self.aside);
            let _ = exchanged.and_then(|()| take_back()).and_then(|()| parent.sync());
        })
    }

    fn rename(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<String> {
        let replaced = replaced_name(self.name);
        refuse_left(self.parent, self.name)?;
        let steps = [(self.name, &*replaced), (self.new, self.name)];
        for (number, (from, to)) in steps.into_iter().enumerate() {
            let renamed = self.parent.rename(from, to);
            let is_renamed = renamed.is_ok();
            self.is_begun |= is_renamed;
            let done = renamed.and_then(|()| self.parent.sync()).map_err(Error::from);
            let done = done.and_then(|()| if number == 0 { check(to) } else { Ok(()) });
            if let Err(error) = done {
                let steps = &steps[..number + usize::from(is_renamed)];
                // Best effort, in the order that keeps the invariant.
                let _ = steps.iter().rev().try_for_each(|(from, to)| {
                    self.parent.rename(to, from).and_then(|()| self.parent.sync())
                });
                return Err(error);
            }
        }
        // The new store has the name for good, and maybe commits already: nothing is undone.
        let renamed = self.parent.rename(&replaced, self.aside);
        let _ = self.parent.sync();
        Ok(renamed.map_or(replaced, |()| self.aside.into()))
    }
}

/// Ends a replacement that was cut short, before a store is opened: gives it back the name that it
/// lost between two renamings, and makes its name durable. The name is that at the end of links,
/// and may be that of an empty directory. Four calls of the system if nothing is left of one.
///
/// # Errors
/// [`Error::Locked`] if it is being replaced just now; those of the system.
pub(crate) fn settle(path: &Path) -> Result<()> {
    let place = place_of(path);
    let Some(name) = place.file_name().map(text_of) else { return Ok(()) };
    let lost = lost_from(&place)?;
    let beside = |name: &str| parent_of(&place).join(name_of(name));
    let is_left = |suffix| beside(&format!("{name}{suffix}")).symlink_metadata().is_ok();
    if lost.is_none() && ![COMPACTING_SUFFIX, DAMAGED_SUFFIX].into_iter().any(is_left) {
        return Ok(());
    }
    if lost.is_some() {
        // One that was made for a store that is not there. No other is removed so.
        let _ = fs::remove_dir(&place);
    }
    let parent = match OsDirectory::open(parent_of(&place)) {
        // Whoever may not read it has replaced nothing in there.
        Err(error) if lost.is_none() && io_kind(&error) == Some(ErrorKind::PermissionDenied) => {
            return Ok(());
        }
        opened => opened?,
    };
    // Else the process that replaces it would find the name taken. Where nothing is renamed that is
    // open, a lock would be in its way.
    let asks = parent.renames_open() && place.symlink_metadata().is_err();
    let opened = lost.as_ref().filter(|_| asks).and_then(|lost| OsDirectory::open(lost).ok());
    let _lock = opened.map(|lost| lost.lock(LOCK_NAME)).transpose()?;
    let replaced = replaced_name(&name);
    settle_in(&parent, &name, &|name| {
        let path = beside(name);
        match path.symlink_metadata() {
            // Only a store is given a name.
            Ok(_) => Ok(lost.is_some() || name != replaced),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(MediumError::io("look for", &path, None, 0, error)),
        }
    })
}

/// As [`settle`], in a directory. What says whether a name is there may take others for the same,
/// as the system does on Windows.
pub(crate) fn settle_in(
    parent: &dyn Directory,
    name: &str,
    is_there: &dyn Fn(&str) -> MediumResult<bool>,
) -> Result<()> {
    let replaced = replaced_name(name);
    if is_there(&replaced)? && !is_there(name)? {
        let renamed = parent.rename(&replaced, name);
        // Another process may have given it back just now, or have gone on.
        if let (Err(error), false) = (renamed, is_there(name)?) {
            return Err(error.into());
        }
        return Ok(parent.sync()?);
    }
    // The process may have ended before it did this: what is committed from now on must not be in a
    // store that a power cut gives another name.
    for suffix in [REPLACED_SUFFIX, COMPACTING_SUFFIX, DAMAGED_SUFFIX] {
        if is_there(&format!("{name}{suffix}"))? {
            return Ok(parent.sync()?);
        }
    }
    Ok(())
}

/// The system's kind of an error, if it is the system's.
pub(super) fn io_kind(error: &MediumError) -> Option<ErrorKind> {
    match error {
        MediumError::Io { source, .. } => Some(source.kind()),
        _ => None,
    }
}

/// Whether a path is the name that a store has lost.
pub(super) fn is_lost(path: &Path) -> bool {
    lost_from(&place_of(path)).is_ok_and(|lost| lost.is_some())
}

/// The path at the end of links: what it names need not be there.
fn place_of(path: &Path) -> PathBuf {
    let mut place = path.file_name().map_or_else(|| path.into(), |name| parent_of(path).join(name));
    for _ in 0..LINKS_MAX {
        let Ok(target) = place.read_link() else { break };
        place = parent_of(&place).join(target);
    }
    place
}

/// The path of the store that was at a place, if it has lost its name.
fn lost_from(place: &Path) -> Result<Option<PathBuf>> {
    let Some(name) = place.file_name() else { return Ok(None) };
    let lost = parent_of(place).join(name_of(&replaced_name(&text_of(name))));
    // Cheaper than to list what may be a large directory. What fails here fails at the place, too.
    if !lost.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Ok(None);
    }
    let pool = lost.join(POOL_NAME);
    match pool.try_exists() {
        Ok(is_store) => Ok(is_store.then_some(lost)),
        // No other store is made in place of what may be one.
        Err(error) => Err(MediumError::io("look for", &pool, None, 0, error).into()),
    }
}

/// Fails if an earlier replacement was cut short that nobody has looked after.
///
/// # Errors
/// [`Error::TargetExists`]; those of the storage backend.
pub(crate) fn refuse_left(parent: &dyn Directory, name: &str) -> Result<()> {
    let replaced = replaced_name(name);
    match parent.list()?.contains(&replaced) {
        true => Err(Error::TargetExists { path: parent.path().join(name_of(&replaced)) }),
        false => Ok(()),
    }
}

fn replaced_name(name: &str) -> String {
    format!("{name}{REPLACED_SUFFIX}")
}
