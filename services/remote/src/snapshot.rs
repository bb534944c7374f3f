//! Snapshots: all keyspaces at one moment.

use std::fmt;
use std::sync::Arc;

use adamant::{KeyBounds, Slice};

use crate::error::{Error, Result};
use crate::keyspace::bounds::{of_keyspace, of_prefix};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::{Iter, count};
use crate::keyspace::view::View;
use crate::layout::entry_key;
use crate::shared::Shared;

/// All keyspaces as they were at one moment, unaffected by later commits. Everything that it sees
/// is in the objects.
///
/// ```
/// let store = adamant_remote::Store::in_memory()?;
/// let towns = store.keyspace("towns")?;
/// let before = store.snapshot()?;
/// towns.put("Bern", "134,000")?;
/// assert!(before.is_empty(&towns)? && !towns.is_empty()?);
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    shared: Arc<Shared>,
    view: View,
}

impl Snapshot {
    pub(crate) fn open(shared: &Arc<Shared>) -> Result<Self> {
        shared.writer("a snapshot")?;
        let View::Held(held) = View::hold(shared)? else {
            return Err(Error::ReadOnly { what: "a snapshot" });
        };
        Ok(Self { shared: Arc::clone(shared), view: View::Snapshot(held) })
    }

    /// The value that a key had.
    ///
    /// # Errors
    /// As [`Keyspace::get`], and a keyspace of another store; one that was dropped since is as it
    /// was.
    pub fn get(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.check(keyspace)?;
        self.view.get(&self.shared, &keyspace.state, key.as_ref())
    }

    /// Passes the value that a key had to a closure and returns its result.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_with<T>(
        &self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        Ok(self.get(keyspace, key)?.map(|value| reader(&value)))
    }

    /// Whether a key had a value.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn contains(&self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// Number of entries. O(n): all of them are read.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn len(&self, keyspace: &Keyspace) -> Result<u64> {
        count(self.iter(keyspace))
    }

    /// Whether there were none.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn is_empty(&self, keyspace: &Keyspace) -> Result<bool> {
        Ok(self.first(keyspace)?.is_none())
    }

    /// The first entry.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn first(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn last(&self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// All entries in the order of their keys.
    pub fn iter(&self, keyspace: &Keyspace) -> Iter {
        self.range(keyspace, ..)
    }

    /// The entries of a range.
    pub fn range(&self, keyspace: &Keyspace, range: impl KeyBounds) -> Iter {
        let range = of_keyspace(keyspace.state.id, &range);
        Iter::new(keyspace, self.check(keyspace).map(|()| self.view.clone()), range)
    }

    /// The entries whose keys have this prefix.
    pub fn prefix(&self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> Iter {
        let range = of_prefix(&entry_key(keyspace.state.id, prefix.as_ref()));
        Iter::new(keyspace, self.check(keyspace).map(|()| self.view.clone()), Some(range))
    }

    fn check(&self, keyspace: &Keyspace) -> Result<()> {
        if !Arc::ptr_eq(&keyspace.shared, &self.shared) {
            return Err(Error::OtherStore { name: keyspace.name().to_owned() });
        }
        Ok(())
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("url", &self.shared.url).finish_non_exhaustive()
    }
}
