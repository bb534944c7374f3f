//! What is known of a history of changes, and values of changes without what is stored with them.

use adamant_slice::Slice;

use crate::common::change::ChangedKeyspace;
use crate::error::Result;
use crate::expiring::{Deadline, split};
use crate::kind::KeyspaceKind;
use crate::store::handle::Store;

/// Figures of a history of changes, from [`Store::changes_info`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangesInfo {
    /// The number of the first commit that the history has; one more than `last` if it has none.
    pub first: u64,
    /// The number of the last commit; 0 before the first.
    pub last: u64,
    /// Bytes that the commits take.
    pub bytes: u64,
    /// Bytes that they may take: those of [`Store::record_changes`].
    pub bytes_max: u64,
}

impl Store {
    /// Which commits the history of changes has, and what it takes. O(log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.record_changes(Some(1 << 20))?;
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let info = store.changes_info()?;
    /// assert_eq!((info.first, info.last, info.bytes_max), (1, 2, 1 << 20));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ChangesNotRecorded`](crate::Error::ChangesNotRecorded); the store is closed.
    pub fn changes_info(&self) -> Result<ChangesInfo> {
        let head = self.shared.history_head()?;
        let (first, last) = (head.first, head.next - 1);
        Ok(ChangesInfo { first, last, bytes: head.bytes, bytes_max: head.bytes_max })
    }
}

impl ChangedKeyspace {
    /// A value of [`Change::Put`](crate::Change::Put) without what is stored with it: that of an
    /// expiring entry begins with its deadline, which is returned apart. O(1).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Change, Deadline};
    ///
    /// let sessions = store.expiring("sessions")?;
    /// store.record_changes(Some(1 << 20))?;
    /// let end = Deadline::from_millis(1_900_000_000_000);
    /// sessions.put("ada", "token", Some(end))?;
    /// let commit = store.changes(0)?.try_next()?.expect("it was recorded");
    /// let Change::Put { keyspace, value, .. } = &commit.changes[0] else { panic!("{commit:?}") };
    /// assert_eq!(keyspace.split(value)?, ("token".into(), Some(end)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Encoding`](crate::Error::Encoding): the value is too short for a deadline.
    pub fn split(&self, value: &Slice) -> Result<(Slice, Option<Deadline>)> {
        match self.kind {
            KeyspaceKind::Expiring => split(&self.name, value),
            _ => Ok((value.clone(), None)),
        }
    }
}
