//! Iterators over entries that have not expired.

use std::iter::FusedIterator;
use std::sync::Arc;

use adamant_slice::Slice;

use super::deadline::{Deadline, split};
use crate::error::Result;

/// The entries of an iterator that had not expired when it began, from both ends. A malformed entry
/// is an error, and the next one comes after it.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let leases = store.expiring("leases")?;
/// leases.put("door", "bob", None)?;
/// leases.put("printer", "ada", Some(leases.after(std::time::Duration::ZERO)))?;
/// let mut entries = leases.iter();
/// assert_eq!(entries.next_back().transpose()?, Some(("door".into(), "bob".into(), None)));
/// assert!(entries.next().is_none());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "iterators do nothing unless they are asked"]
pub struct Living<I> {
    entries: I,
    name: Arc<str>,
    now: u64,
}

impl<I> Living<I> {
    pub(super) fn new(entries: I, name: &str, now: u64) -> Self {
        Self { entries, name: name.into(), now }
    }
}

impl<I> Living<I> {
    /// The entry; `None` if it has expired.
    fn living(&self, entry: Result<(Slice, Slice)>) -> Option<Result<Entry>> {
        let split = entry.and_then(|(key, stored)| {
            let (value, deadline) = split(&self.name, &stored)?;
            Ok((key, value, deadline))
        });
        match split {
            Ok((_, _, Some(deadline))) if deadline.is_over(self.now) => None,
            other => Some(other),
        }
    }
}

/// A key, its value, and its deadline.
pub(crate) type Entry = (Slice, Slice, Option<Deadline>);

impl<I: Iterator<Item = Result<(Slice, Slice)>>> Iterator for Living<I> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = self.entries.next()?;
            if let Some(living) = self.living(entry) {
                return Some(living);
            }
        }
    }
}

impl<I: DoubleEndedIterator<Item = Result<(Slice, Slice)>>> DoubleEndedIterator for Living<I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        loop {
            let entry = self.entries.next_back()?;
            if let Some(living) = self.living(entry) {
                return Some(living);
            }
        }
    }
}

impl<I: FusedIterator<Item = Result<(Slice, Slice)>>> FusedIterator for Living<I> {}
