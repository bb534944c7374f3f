//! Changes of entries: single keys, and ranges.

use adamant::{KeyBounds, Slice, Swapped};
use slatedb::{DbTransaction, IsolationLevel, WriteBatch};

use crate::error::Result;
use crate::keyspace::bounds::of_keyspace;
use crate::keyspace::ends::Ends;
use crate::keyspace::handle::Keyspace;
use crate::layout::entry_key;
use crate::limits::{check_key, check_value};

/// The decided change of a key.
enum Change<'v> {
    Keep,
    Set(&'v [u8]),
    Remove,
}

impl Keyspace {
    /// Sets the value of a key, whether it had one or not, without reading it. Returns when the
    /// commit is in the objects, as all changes do: one object, which commits at the same time
    /// share.
    ///
    /// ```
    /// # let store = adamant_remote::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(towns.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    ///
    /// # Errors
    /// A key or value of invalid length, a keyspace that was dropped, a store that is closed,
    /// read-only or fenced: then nothing was changed. If the objects could not be reached, or
    /// SlateDB failed in another way, the outcome is unknown.
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        let mut batch = WriteBatch::new();
        batch.put(entry_key(self.state.id, key), value);
        self.shared.write(batch, std::iter::once(&self.state))
    }

    /// Deletes a key, whether it exists or not, without reading it. Costs as [`Keyspace::put`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        let mut batch = WriteBatch::new();
        batch.delete(entry_key(self.state.id, key));
        self.shared.write(batch, std::iter::once(&self.state))
    }

    /// Like [`Keyspace::put`], and reports whether the key had a value: true if it was replaced.
    /// Costs a [`Keyspace::get`] as well, which may read objects, and runs again if another commit
    /// changes the key meanwhile.
    ///
    /// ```
    /// # let store = adamant_remote::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// assert!(!towns.insert("Bern", "133,000")?);
    /// assert!(towns.insert("Bern", "134,000")?);
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let value = value.as_ref();
        check_value(value)?;
        self.change(key.as_ref(), |found| (found.is_some(), Change::Set(value)))
    }

    /// Like [`Keyspace::delete`], and reports whether the key existed. Costs a [`Keyspace::get`] as
    /// well, as [`Keyspace::insert`] does.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.take(key)?.is_some())
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.change(key.as_ref(), |found| {
            let change = if found.is_some() { Change::Remove } else { Change::Keep };
            (found.map(Slice::from), change)
        })
    }

    /// Sets the value of a key that has none; false, and nothing is changed, if it has one.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn insert_unique(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.compare_and_swap(key, None::<&[u8]>, Some(value))?.is_ok())
    }

    /// Sets the value of a key, or removes it (`None`), if its value is the expected one, or it has
    /// none (`None`). Otherwise returns its value, and changes nothing.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<impl AsRef<[u8]>>,
        value: Option<impl AsRef<[u8]>>,
    ) -> Result<Swapped> {
        let expected = expected.as_ref().map(AsRef::as_ref);
        let value = value.as_ref().map(AsRef::as_ref);
        check_value(value.unwrap_or_default())?;
        self.change(key.as_ref(), |found| {
            if found != expected {
                return (Err(found.map(Slice::from)), Change::Keep);
            }
            (Ok(()), value.map_or(Change::Remove, Change::Set))
        })
    }

    /// Sets the value of a key to the result of a closure, or removes it (`None`); returns the
    /// previous value. The closure runs again if the value changes meanwhile.
    ///
    /// ```
    /// # let store = adamant_remote::Store::in_memory()?;
    /// let visits = store.keyspace("visits")?;
    /// let more = |count: Option<&[u8]>| Some([count.map_or(1, |count| count[0] + 1)]);
    /// assert_eq!(visits.fetch_update("today", more)?, None);
    /// assert_eq!(visits.update_fetch("today", more)?, Some([2].into()));
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn fetch_update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<Slice>> {
        Ok(self.update(key.as_ref(), update)?.0)
    }

    /// As [`Keyspace::fetch_update`]; returns the new value.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn update_fetch<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<Slice>> {
        Ok(self.update(key.as_ref(), update)?.1.map(|value| Slice::from(value.as_ref())))
    }

    fn update<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        mut update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<(Option<Slice>, Option<V>)> {
        let mut found = self.get(key)?;
        loop {
            let value = update(found.as_deref());
            match self.compare_and_swap(key, found.as_deref(), value.as_ref())? {
                Ok(()) => return Ok((found, value)),
                Err(now) => found = now,
            }
        }
    }

    /// Deletes the entries of a range, in one commit: as many as fit in memory, because SlateDB
    /// removes keys one by one. O(n).
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let db = self.shared.writer("removing a range")?;
        loop {
            let tx = self.shared.wait(db.begin(IsolationLevel::SerializableSnapshot))?;
            let mut ends = Ends::new(of_keyspace(self.state.id, &range));
            while let Some((key, _)) = self.shared.wait(ends.next(&tx))? {
                self.shared.wait(async { tx.delete(key) })?;
            }
            if self.commit_change(tx)? {
                return Ok(());
            }
        }
    }

    /// Removes all entries, as [`Keyspace::delete_range`].
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }

    /// Reads a key and changes it atomically: repeats if another commit comes between.
    fn change<'v, T>(
        &self,
        key: &[u8],
        mut decide: impl FnMut(Option<&[u8]>) -> (T, Change<'v>),
    ) -> Result<T> {
        check_key(key)?;
        let db = self.shared.writer("a change")?;
        self.state.check()?;
        let key = entry_key(self.state.id, key);
        loop {
            // Two transactions that write the same key conflict; only one key is read.
            let tx = self.shared.wait(db.begin(IsolationLevel::Snapshot))?;
            let found = self.shared.wait(tx.get(&key))?;
            let (made, change) = decide(found.as_deref());
            match change {
                Change::Keep => {
                    drop(tx);
                    // The value that it has seen may not be in the objects yet.
                    self.shared.sync()?;
                    self.state.check()?;
                    return Ok(made);
                }
                Change::Set(value) => self.shared.wait(async { tx.put(&key, value) })?,
                Change::Remove => self.shared.wait(async { tx.delete(&key) })?,
            }
            if self.commit_change(tx)? {
                return Ok(made);
            }
        }
    }

    /// Commits; false if another commit came between.
    fn commit_change(&self, tx: DbTransaction) -> Result<bool> {
        match self.shared.commit_transaction(tx, std::iter::once(&self.state)) {
            Err(error) if error.is_conflict() => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }
}
