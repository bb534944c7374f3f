//! Expiring entries within transactions.
//!
//! Purpose: changes an entry and the row of its deadline together.
//! Invariants: after each call each entry with a deadline has its row, and the call has added no
//! other row.

use adamant_slice::Slice;

use super::deadline::{Deadline, deadline_of, join, row, rows_end, split};
use super::entries::Living;
use super::keyspace::Expiring;
use super::reserved::ReservedExpiring;
use crate::bounds::{KeyBounds, KeyRange};
use crate::error::{Error, Result};
use crate::layout::DEADLINE_BYTES;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;

impl Expiring {
    /// The keyspace within a transaction, at the time of this call.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let (tokens, log) = (store.expiring("tokens")?, store.keyspace("log")?);
    /// let end = tokens.after(std::time::Duration::from_secs(60));
    /// let is_new = store.transaction(|tx| {
    ///     let is_new = !tokens.within(tx).insert("42", "ada", Some(end))?;
    ///     tx.put(&log, "42", "given to ada")?;
    ///     Ok::<_, Error>(is_new)
    /// })?;
    /// assert!(is_new);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn within<'t>(&'t self, transaction: &'t mut Transaction) -> ExpiringTransaction<'t> {
        ExpiringTransaction { expiring: self, transaction, now: self.now() }
    }
}

/// An expiring keyspace within a transaction, see [`Expiring::within`]. Writes read the entry
/// first, since its deadline's row has to go: it counts as read.
#[derive(Debug)]
pub struct ExpiringTransaction<'t> {
    pub(super) expiring: &'t Expiring,
    pub(super) transaction: &'t mut Transaction,
    pub(super) now: u64,
}

impl ExpiringTransaction<'_> {
    /// The value of a key. Like [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`Error::Encoding`].
    pub fn get(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        Ok(self.get_with_deadline(key)?.map(|(value, _)| value))
    }

    /// The value of a key, and its deadline.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn get_with_deadline(
        &mut self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        let stored = self.transaction.get(&self.expiring.entries, key)?;
        self.expiring.living_at(stored, || self.now)
    }

    /// Sets the value and the deadline of a key, whether it had them or not; the entry expires at
    /// once if the deadline has passed. Reads the entry first, as [`ExpiringTransaction::get`]
    /// does, and costs as much as [`ExpiringTransaction::insert`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`] and [`Transaction::put`]; [`Error::KeyTooLong`] above 65,527
    /// bytes, [`Error::ValueTooLong`] above 4 GiB - 9. Nothing is changed.
    pub fn put(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        self.insert(key, value, deadline).map(drop)
    }

    /// Like [`ExpiringTransaction::put`], and reports whether the key had a value: true if it
    /// replaced an entry that had not expired.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`].
    pub fn insert(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check(key, value)?;
        let is_replaced = self.replace(key, deadline)?;
        self.transaction.put_own(&self.expiring.entries, key, &join(deadline, value))?;
        Ok(is_replaced)
    }

    /// Like [`ExpiringTransaction::put`], with a value that was allocated in place, see
    /// [`Expiring::reserve`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let pages = store.expiring("pages")?;
    /// let mut page = pages.reserve(100_000)?;
    /// page.fill(b' ');
    /// store.exclusive(|tx| pages.within(tx).put_reserved("empty", page, None))?;
    /// assert_eq!(pages.get("empty")?.map(|page| page.len()), Some(100_000));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`].
    pub fn put_reserved(
        &mut self,
        key: impl AsRef<[u8]>,
        value: ReservedExpiring,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        self.insert_reserved(key, value, deadline).map(drop)
    }

    /// Like [`ExpiringTransaction::put_reserved`], and reports whether it replaced an entry that
    /// had not expired.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`].
    pub fn insert_reserved(
        &mut self,
        key: impl AsRef<[u8]>,
        value: ReservedExpiring,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        let key = key.as_ref();
        check(key, &value)?;
        let is_replaced = self.replace(key, deadline)?;
        let value = value.ending(deadline);
        self.transaction.put_placed(&self.expiring.entries, key, value)?;
        Ok(is_replaced)
    }

    /// The value and the deadline of an entry's stored bytes, as
    /// [`Store::open_stored`](crate::Store::open_stored) returns them: for copies.
    ///
    /// # Errors
    /// [`Error::Encoding`].
    pub fn split_stored(&self, stored: &Slice) -> Result<(Slice, Option<Deadline>)> {
        split(self.expiring.entries.name(), stored)
    }

    /// Deletes an entry and its deadline, whether it exists or not. Reads it first, as
    /// [`ExpiringTransaction::get`] does, and costs as much as [`ExpiringTransaction::remove`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.take(key).map(drop)
    }

    /// Like [`ExpiringTransaction::delete`], and reports whether the entry existed and had not
    /// expired.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.take(key)?.is_some())
    }

    /// Removes an entry and returns its value.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn take(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let value = self.end(key.as_ref())?;
        self.transaction.delete_own(&self.expiring.entries, key.as_ref())?;
        Ok(value)
    }

    /// Changes or removes the deadline of an entry; false if there is no entry. Copies the value.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`].
    pub fn set_deadline(
        &mut self,
        key: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        match self.get_with_deadline(&key)? {
            None => Ok(false),
            Some((_, before)) if before == deadline => Ok(true),
            Some((value, _)) => self.insert(key, value, deadline),
        }
    }

    /// All entries, from both ends. Like [`Transaction::iter`].
    pub fn iter(&mut self) -> Living<TransactionIter<'_>> {
        self.range(..)
    }

    /// The entries in a range of keys. Like [`Transaction::range`].
    pub fn range(&mut self, range: impl KeyBounds) -> Living<TransactionIter<'_>> {
        self.living_in(KeyRange::new(&range))
    }

    /// The entries in a range; none without one.
    pub(super) fn living_in(&mut self, range: Option<KeyRange>) -> Living<TransactionIter<'_>> {
        let entries = self.transaction.iter_over(&self.expiring.entries, range);
        Living::new(entries, self.expiring.entries.name(), self.now)
    }

    /// Deletes entries with these keys and deadlines.
    pub(super) fn end_entries<'k>(
        &mut self,
        ends: impl Iterator<Item = (&'k Slice, Option<Deadline>)>,
    ) -> Result<()> {
        for (key, deadline) in ends {
            self.end_row(key, deadline)?;
            self.transaction.delete_own(&self.expiring.entries, key)?;
        }
        Ok(())
    }

    /// The earliest deadline, which may have passed; `None` if no entry has one. Like
    /// [`Expiring::next_deadline`].
    ///
    /// # Errors
    /// As [`Transaction::first`].
    pub fn next_deadline(&mut self) -> Result<Option<Deadline>> {
        let deadlines = &self.expiring.deadlines;
        let Some((row, _)) = self.transaction.first(deadlines)? else { return Ok(None) };
        deadline_of(deadlines.name(), &row)
    }

    /// Removes expired entries, at most so many; returns how many.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Deadline, Error};
    ///
    /// let (sessions, log) = (store.expiring("sessions")?, store.keyspace("log")?);
    /// sessions.put("ada", "", Some(Deadline::from_millis(4_000_000_001_000)))?;
    /// let later = sessions.with_clock(|| 4_000_000_001_000);
    /// store.transaction(|tx| {
    ///     let removed = later.within(tx).remove_expired(100)?;
    ///     tx.put(&log, "today", format!("{removed} sessions have ended"))?;
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(log.get("today")?, Some("1 sessions have ended".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn remove_expired(&mut self, entries_max: usize) -> Result<u64> {
        let Expiring { entries, deadlines, .. } = self.expiring;
        let rows = match rows_end(self.now) {
            Some(end) => self.transaction.range(deadlines, ..end),
            None => self.transaction.iter(deadlines),
        };
        let rows: Vec<Slice> =
            rows.take(entries_max).map(|row| Ok(row?.0)).collect::<Result<_>>()?;
        let mut removed = 0;
        for row in rows {
            let key = &row[DEADLINE_BYTES.min(row.len())..];
            let deadline = deadline_of(deadlines.name(), &row)?;
            // A row without an entry can remain from a crash during a drop of the keyspace.
            let stored = self.transaction.get(entries, key)?;
            let of_entry = stored.map(|stored| deadline_of(entries.name(), &stored)).transpose()?;
            if of_entry == Some(deadline) {
                self.transaction.delete_own(entries, key)?;
                removed += 1;
            }
            self.transaction.delete_own(deadlines, &row)?;
        }
        Ok(removed)
    }

    /// Removes all entries, expired ones too. O(n), unlike [`Expiring::clear`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn clear(&mut self) -> Result<()> {
        let Expiring { entries, deadlines, .. } = self.expiring;
        for keyspace in [entries, deadlines] {
            let keys = self.transaction.iter(keyspace).keys();
            for key in keys.collect::<Result<Vec<Slice>>>()? {
                self.transaction.delete_own(keyspace, &key)?;
            }
        }
        Ok(())
    }

    /// Replaces the row of an entry by that of another deadline; returns whether the entry exists
    /// and has not expired.
    fn replace(&mut self, key: &[u8], deadline: Option<Deadline>) -> Result<bool> {
        let Expiring { entries, deadlines, .. } = self.expiring;
        // Does not request the value, so that no copy of it is made.
        let of_entry = |stored: &[u8]| deadline_of(entries.name(), stored);
        let before = self.transaction.get_briefly(entries, key, of_entry)?.transpose()?;
        let is_replaced = match before {
            None => false,
            Some(before) => !self.end_row(key, before)?,
        };
        if let Some(deadline) = deadline {
            self.transaction.put_own(deadlines, &row(deadline, key), &[])?;
        }
        Ok(is_replaced)
    }

    /// Removes the row of an entry's deadline; returns the value if the entry exists and has not
    /// expired.
    fn end(&mut self, key: &[u8]) -> Result<Option<Slice>> {
        let entries = &self.expiring.entries;
        let Some(stored) = self.transaction.get(entries, key)? else { return Ok(None) };
        let (value, deadline) = split(entries.name(), &stored)?;
        Ok((!self.end_row(key, deadline)?).then_some(value))
    }

    /// Removes the row of an entry's deadline, if it has one; returns whether that has passed.
    fn end_row(&mut self, key: &[u8], deadline: Option<Deadline>) -> Result<bool> {
        let Some(deadline) = deadline else { return Ok(false) };
        self.transaction.delete_own(&self.expiring.deadlines, &row(deadline, key))?;
        Ok(deadline.is_over(self.now))
    }
}

/// Fails unless key and value leave room for a deadline.
fn check(key: &[u8], value: &[u8]) -> Result<()> {
    let bytes_max = (KEY_BYTES_MAX - DEADLINE_BYTES) as u64;
    if key.len() as u64 > bytes_max {
        return Err(Error::KeyTooLong { bytes: key.len() as u64, bytes_max });
    }
    let bytes_max = VALUE_BYTES_MAX - DEADLINE_BYTES as u64;
    if value.len() as u64 > bytes_max {
        return Err(Error::ValueTooLong { bytes: value.len() as u64, bytes_max });
    }
    Ok(())
}
