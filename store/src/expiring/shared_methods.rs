//! What all expiring handles share with plain ones: many keys, the ends, borrowed values, ranges.

use adamant_slice::Slice;

use super::at::ExpiringSnapshot;
use super::deadline::{Deadline, deadline_of};
use super::entries::{Entry, Living};
use super::keyspace::Expiring;
use super::within::ExpiringTransaction;
use crate::bounds::{KeyBounds, KeyRange};
use crate::error::Result;
use crate::keyspace::iterate::Iter;
use crate::layout::DEADLINE_BYTES;
use crate::transaction::iterate::TransactionIter;

impl Expiring {
    /// Calls the closure with the value of a key that has not expired and returns its result, or
    /// `None` without calling it. Like [`Keyspace::get_with`](crate::Keyspace::get_with).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let pages = store.expiring("pages")?;
    /// pages.put("home", "<html>", None)?;
    /// assert_eq!(pages.get_with("home", |page| page.len())?, Some(6));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let read = |stored: &[u8]| self.read_living(stored, self.now(), reader);
        Ok(self.entries.get_with(key, read)?.transpose()?.flatten())
    }

    /// Calls the closure with the value in a stored one, unless it has expired.
    fn read_living<T>(
        &self,
        stored: &[u8],
        now: u64,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let deadline = deadline_of(self.entries.name(), stored)?;
        let is_living = deadline.is_none_or(|deadline| !deadline.is_over(now));
        Ok(is_living.then(|| reader(&stored[DEADLINE_BYTES..])))
    }

    /// The values of many keys, in the order of the keys; `None` for those that have expired. Like
    /// [`Keyspace::multi_get`](crate::Keyspace::multi_get).
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn multi_get<Q: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        self.living_values(self.entries.multi_get(keys)?, self.now())
    }

    fn living_values(&self, found: Vec<Option<Slice>>, now: u64) -> Result<Vec<Option<Slice>>> {
        let value = |stored| Ok(self.living_at(stored, || now)?.map(|(value, _)| value));
        found.into_iter().map(value).collect()
    }

    /// The entry with the lowest key of those that have not expired. O(log n), and it passes the
    /// expired ones before it that were not removed.
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn first(&self) -> Result<Option<Entry>> {
        self.iter().next().transpose()
    }

    /// The entry with the highest key of those that have not expired. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn last(&self) -> Result<Option<Entry>> {
        self.iter().next_back().transpose()
    }

    /// Sets the value and the deadline of a key without an entry that has not expired; false, and
    /// nothing is changed, if it has one. One commit; costs as [`Expiring::insert`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let leases = store.expiring("leases")?;
    /// let end = leases.after(std::time::Duration::from_secs(60));
    /// assert!(leases.insert_unique("printer", "ada", Some(end))?);
    /// assert!(!leases.insert_unique("printer", "bob", Some(end))?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn insert_unique(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.change(false, |all| all.insert_unique(key, value, deadline))
    }

    /// Deletes all entries of a range that have not expired, with their deadlines, in one commit:
    /// O(log n) for each. See [`Expiring::retain`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?;
    /// for token in ["ada/1", "ada/2", "bob/1"] {
    ///     sessions.put(token, "", None)?;
    /// }
    /// sessions.delete_range("ada/".."ada0")?;
    /// assert_eq!(sessions.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::retain`].
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.retain(range, |_, _, _| false).map(drop)
    }
}

impl ExpiringSnapshot<'_> {
    /// Calls the closure with the value of a key that has not expired. Like
    /// [`Snapshot::get_with`](crate::Snapshot::get_with).
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let read = |stored: &[u8]| self.expiring.read_living(stored, self.now, reader);
        Ok(self.snapshot.get_with(&self.expiring.entries, key, read)?.transpose()?.flatten())
    }

    /// Whether there was an entry that has not expired.
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with_deadline(key)?.is_some())
    }

    /// The values of many keys, in the order of the keys. Like
    /// [`Snapshot::multi_get`](crate::Snapshot::multi_get).
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn multi_get<Q: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        let found = self.snapshot.multi_get(&self.expiring.entries, keys)?;
        self.expiring.living_values(found, self.now)
    }

    /// The entry with the lowest key. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn first(&self) -> Result<Option<Entry>> {
        self.iter().next().transpose()
    }

    /// The entry with the highest key. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`].
    pub fn last(&self) -> Result<Option<Entry>> {
        self.iter().next_back().transpose()
    }

    /// Those whose keys start with `prefix`. Like [`Snapshot::prefix`](crate::Snapshot::prefix).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Living<Iter> {
        self.living(self.snapshot.prefix(&self.expiring.entries, prefix))
    }
}

impl ExpiringTransaction<'_> {
    /// Calls the closure with the value of a key that has not expired. Like
    /// [`Transaction::get_with`](crate::Transaction::get_with).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn get_with<T>(
        &mut self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let (expiring, now) = (self.expiring, self.now);
        let read = |stored: &[u8]| expiring.read_living(stored, now, reader);
        Ok(self.transaction.get_with(&expiring.entries, key, read)?.transpose()?.flatten())
    }

    /// Sets the value and the deadline of a key without an entry that has not expired; false, and
    /// nothing is changed, if it has one. Costs as [`ExpiringTransaction::insert`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`].
    pub fn insert_unique(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        let is_absent = !self.contains(&key)?;
        if is_absent {
            self.put(key, value, deadline)?;
        }
        Ok(is_absent)
    }

    /// Whether there is an entry that has not expired. Like
    /// [`Transaction::contains`](crate::Transaction::contains).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn contains(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with_deadline(key)?.is_some())
    }

    /// The values of many keys, in the order of the keys. Like
    /// [`Transaction::multi_get`](crate::Transaction::multi_get).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn multi_get<Q: AsRef<[u8]>>(
        &mut self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        let found = self.transaction.multi_get(&self.expiring.entries, keys)?;
        self.expiring.living_values(found, self.now)
    }

    /// The entry with the lowest key. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn first(&mut self) -> Result<Option<Entry>> {
        self.iter().next().transpose()
    }

    /// The entry with the highest key. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn last(&mut self) -> Result<Option<Entry>> {
        self.iter().next_back().transpose()
    }

    /// Those whose keys start with `prefix`. Like
    /// [`Transaction::prefix`](crate::Transaction::prefix).
    pub fn prefix(&mut self, prefix: impl AsRef<[u8]>) -> Living<TransactionIter<'_>> {
        self.living_in(KeyRange::prefix(prefix.as_ref()))
    }

    /// The number of entries that have not expired, which are read one by one: O(n).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn len(&mut self) -> Result<u64> {
        self.iter().try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    /// Whether there are no entries that have not expired. Like [`ExpiringTransaction::first`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn is_empty(&mut self) -> Result<bool> {
        Ok(self.first()?.is_none())
    }

    /// Deletes all entries of a range that have not expired, with their deadlines. See
    /// [`ExpiringTransaction::retain`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::retain`].
    pub fn delete_range(&mut self, range: impl KeyBounds) -> Result<()> {
        self.retain(range, |_, _, _| false).map(drop)
    }
}
