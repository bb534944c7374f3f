//! Snapshot reads of expiring entries.

use adamant_slice::Slice;

use super::deadline::{Deadline, deadline_of, rows_end};
use super::entries::Living;
use super::keyspace::Expiring;
use crate::bounds::KeyBounds;
use crate::error::Result;
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;
use crate::layout::DEADLINE_BYTES;

impl Expiring {
    /// The keyspace as a snapshot sees it. Time goes on for a snapshot too: expired entries are not
    /// there.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let leases = store.expiring("leases")?.with_clock(|| 4_000_000_000_000);
    /// leases.put("printer", "ada", Some(leases.after(std::time::Duration::from_millis(1))))?;
    /// let before = store.snapshot()?;
    /// leases.delete("printer")?;
    /// assert_eq!(leases.at(&before).get("printer")?, Some("ada".into()));
    /// assert_eq!(leases.with_clock(|| 4_000_000_000_001).at(&before).get("printer")?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn at<'s>(&'s self, snapshot: &'s Snapshot) -> ExpiringSnapshot<'s> {
        ExpiringSnapshot { expiring: self, snapshot, now: self.now() }
    }
}

/// An expiring keyspace as a snapshot sees it, see [`Expiring::at`].
#[derive(Debug)]
pub struct ExpiringSnapshot<'s> {
    pub(super) expiring: &'s Expiring,
    pub(super) snapshot: &'s Snapshot,
    pub(super) now: u64,
}

impl ExpiringSnapshot<'_> {
    /// The value of a key. Like [`Snapshot::get`].
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        Ok(self.get_with_deadline(key)?.map(|(value, _)| value))
    }

    /// The value of a key, and its deadline.
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn get_with_deadline(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        let stored = self.snapshot.get(&self.expiring.entries, key)?;
        self.expiring.living_at(stored, || self.now)
    }

    /// All entries, from both ends. Like [`Snapshot::iter`].
    pub fn iter(&self) -> Living<Iter> {
        self.living(self.snapshot.iter(&self.expiring.entries))
    }

    /// The entries in a range of keys. Like [`Snapshot::range`].
    pub fn range(&self, range: impl KeyBounds) -> Living<Iter> {
        self.living(self.snapshot.range(&self.expiring.entries, range))
    }

    /// The number of entries, exactly. Like [`Snapshot::len`], plus O(log n) for each expired entry
    /// that was not removed.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let leases = store.expiring("leases")?.with_clock(|| 4_000_000_000_000);
    /// leases.put("printer", "ada", Some(leases.after(std::time::Duration::from_millis(1))))?;
    /// leases.put("door", "bob", None)?;
    /// let before = store.snapshot()?;
    /// leases.delete("door")?;
    /// assert_eq!(leases.at(&before).len()?, 2);
    /// assert_eq!(leases.with_clock(|| 4_000_000_000_001).at(&before).len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn len(&self) -> Result<u64> {
        let Expiring { entries, deadlines, .. } = self.expiring;
        let mut living = self.snapshot.len(entries)?;
        let rows = match rows_end(self.now) {
            Some(end) => self.snapshot.range(deadlines, ..end),
            None => self.snapshot.iter(deadlines),
        };
        for row in rows {
            let (row, _) = row?;
            // A row without an entry can remain from a crash during a drop of the keyspace.
            let key = &row[DEADLINE_BYTES.min(row.len())..];
            let of_entry = |stored: &[u8]| deadline_of(entries.name(), stored);
            let deadline =
                self.snapshot.get_briefly(entries, key, of_entry)?.transpose()?.flatten();
            living -=
                u64::from(deadline == deadline_of(deadlines.name(), &row)? && deadline.is_some());
        }
        Ok(living)
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.iter().next().transpose()?.is_none())
    }

    pub(super) fn living(&self, entries: Iter) -> Living<Iter> {
        Living::new(entries, self.expiring.entries.name(), self.now)
    }
}
