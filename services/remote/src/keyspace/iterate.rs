//! Range iterators of a keyspace, in both directions.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use adamant::{KeyBounds, Slice};

use crate::error::{Error, Result};
use crate::keyspace::bounds::{Range, of_keyspace, of_prefix};
use crate::keyspace::ends::{Ends, Pair};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::view::{View, entry};
use crate::layout::entry_key;
use crate::shared::{KeyspaceState, Shared};

/// The entries of a range as they were when it was requested, from both ends. Ends with an error if
/// there is one. In a store that is opened read-only each end sees the state at its first step.
pub struct Iter {
    shared: Arc<Shared>,
    keyspace: Arc<KeyspaceState>,
    view: View,
    ends: Ends,
    /// The error of the request, to be returned first.
    failed: Option<Error>,
}

impl Iter {
    pub(crate) fn new(keyspace: &Keyspace, view: Result<View>, range: Option<Range>) -> Self {
        let (view, failed) = match view {
            Ok(view) => (view, None),
            Err(error) => (View::Now, Some(error)),
        };
        let Keyspace { shared, state } = keyspace.clone();
        Self { shared, keyspace: state, view, ends: Ends::new(range), failed }
    }

    pub(crate) fn step(&mut self, is_up: bool) -> Result<Option<Pair>> {
        let found = match self.failed.take() {
            Some(error) => Err(error),
            None if self.ends.is_over() => Ok(None),
            None => self.view.step(&self.shared, &self.keyspace, &mut self.ends, is_up),
        };
        if found.is_err() {
            self.ends.end();
        }
        found
    }
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true).map(|found| found.map(entry)).transpose()
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false).map(|found| found.map(entry)).transpose()
    }
}

impl FusedIterator for Iter {}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("keyspace", &self.keyspace.name).finish_non_exhaustive()
    }
}

impl Keyspace {
    /// All entries in the order of their keys.
    ///
    /// ```
    /// # let store = adamant_remote::Store::in_memory()?;
    /// let days = store.keyspace("days")?;
    /// days.put("monday", "1")?;
    /// days.put("tuesday", "2")?;
    /// assert_eq!(days.iter().rev().next().transpose()?, Some(("tuesday".into(), "2".into())));
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries of a range: see [`KeyBounds`].
    pub fn range(&self, range: impl KeyBounds) -> Iter {
        Iter::new(self, self.hold(), of_keyspace(self.state.id, &range))
    }

    /// The entries whose keys have this prefix.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        let range = of_prefix(&entry_key(self.state.id, prefix.as_ref()));
        Iter::new(self, self.hold(), Some(range))
    }

    fn hold(&self) -> Result<View> {
        self.state.check()?;
        View::hold(&self.shared)
    }

    /// The first entry.
    ///
    /// # Errors
    /// As [`Keyspace::get`](Keyspace::get).
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// As [`Keyspace::get`](Keyspace::get).
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// Number of entries. O(n): all of them are read.
    ///
    /// # Errors
    /// As [`Keyspace::get`](Keyspace::get).
    pub fn len(&self) -> Result<u64> {
        count(self.iter())
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// As [`Keyspace::get`](Keyspace::get).
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.first()?.is_none())
    }
}

/// Number of entries left.
pub(crate) fn count(mut entries: Iter) -> Result<u64> {
    let mut count = 0;
    while entries.step(true)?.is_some() {
        count += 1;
    }
    Ok(count)
}
