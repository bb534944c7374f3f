//! A store that was made anew takes the place of another one.
//!
//! Purpose: compaction, encryption and repair make a store beside the one that it replaces. It gets
//! the name in one step where the file system exchanges two names, as those of Linux and macOS do.
//! Windows and FreeBSD rename: the old store is called `NAME.being-replaced` in between.
//! Invariants: at any moment one of the two stores has the name; or, between two renamings, none
//! has, and whoever opens the name gives it back to the old store first. Each renaming is durable
//! before the next one begins. What fails is undone, durably. Nothing is removed here.
//! Thread safety: the caller keeps others from committing to either store meanwhile.

use std::path::Path;

use adamant_medium::error::Result as MediumResult;
use adamant_medium::names::{name_of, parent_of, text_of};
use adamant_medium::storage::Directory;
use adamant_medium::system::os::OsDirectory;

use crate::error::{Error, Result};

/// The file that makes a directory a store.
pub(super) const POOL_NAME: &str = "pool";
/// What the name of a store that has lost its own ends in: nobody else calls one so.
const REPLACED_SUFFIX: &str = ".being-replaced";

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
    /// Changes the names, durably. `check` is called with the old store's name where no other
    /// process looks for it, if it is renamed more than once, and may refuse.
    ///
    /// # Errors
    /// [`Error::TargetExists`] if another replacement was cut short that nobody has looked after;
    /// those of `check` and of the storage backend. Then each name is what it was, unless the
    /// device fails again.
    pub(crate) fn take_place(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<()> {
        match self.exchange() {
            Err(error) if error.is_unsupported() => self.rename(check),
            other => Ok(other?),
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
        parent.sync().map_err(|error| {
            // No later sync may make that durable, and later commits would be in the store that a
            // power cut gives the other name. Best effort.
            let exchanged = parent.exchange(self.name, self.aside);
            let _ = exchanged.and_then(|()| take_back()).and_then(|()| parent.sync());
            error
        })
    }

    fn rename(&mut self, check: &dyn Fn(&str) -> Result<()>) -> Result<()> {
        let replaced = replaced_name(self.name);
        if self.parent.list()?.contains(&replaced) {
            return Err(Error::TargetExists { path: self.parent.path().join(name_of(&replaced)) });
        }
        let steps = [(self.name, &*replaced), (self.new, self.name), (&*replaced, self.aside)];
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
        Ok(())
    }
}

/// Gives a store at a path, where nothing is, its name back, which it lost to one that did not take
/// its place: the process ended between two renamings. False if there is none.
///
/// # Errors
/// Those of the system.
pub(crate) fn give_back(path: &Path) -> Result<bool> {
    let Some(name) = path.file_name().map(text_of) else { return Ok(false) };
    let parent = parent_of(path);
    // A store, and cheaper than to list what may be a large directory.
    match parent.join(name_of(&replaced_name(&name))).join(POOL_NAME).try_exists() {
        Ok(true) => give_back_in(&OsDirectory::open(parent)?, &name),
        _ => Ok(false),
    }
}

/// As [`give_back`], in a directory.
pub(crate) fn give_back_in(parent: &dyn Directory, name: &str) -> Result<bool> {
    let replaced = replaced_name(name);
    let is_there = |name: &str| parent.list().map(|names| names.iter().any(|known| known == name));
    // Another process may have given it back just now, or have gone on.
    if !is_there(&replaced)? || is_there(name)? {
        return Ok(is_there(name)?);
    }
    match parent.rename(&replaced, name).and_then(|()| parent.sync()) {
        Err(error) if !is_there(name)? => Err(error.into()),
        // Until it is durable, a power cut has the next opening do this again.
        _ => Ok(true),
    }
}

fn replaced_name(name: &str) -> String {
    format!("{name}{REPLACED_SUFFIX}")
}
