//! Expiring entries that are removed after a look at them: pops, and choices by a closure.
//!
//! Purpose: `pop_first`, `pop_last`, `retain` and `extract_if`, in a commit of their own and within
//! transactions.
//! Invariants: expired entries are neither returned nor shown; they stay until
//! [`Expiring::remove_expired`] removes them. An entry goes together with the row of its deadline.

use adamant_slice::Slice;

use super::deadline::Deadline;
use super::entries::Entry;
use super::keyspace::Expiring;
use super::within::ExpiringTransaction;
use crate::bounds::{KeyBounds, KeyRange};
use crate::error::Result;

impl Expiring {
    /// Removes the entry with the lowest key of those that have not expired, in a commit of its
    /// own, and returns its key, its value and its deadline.
    ///
    /// O(log n), plus the expired entries before it that [`Expiring::remove_expired`] has not
    /// removed yet; in `lsm` a search that may read the device.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let jobs = store.expiring("jobs")?.with_clock(|| 1000);
    /// jobs.put("1", "too late", Some(jobs.after(std::time::Duration::ZERO)))?;
    /// jobs.put("2", "sweep", None)?;
    /// assert_eq!(jobs.pop_first()?, Some(("2".into(), "sweep".into(), None)));
    /// assert_eq!(jobs.pop_first()?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice, Option<Deadline>)>> {
        self.change(true, |all| all.pop_first())
    }

    /// Removes the entry with the highest key of those that have not expired, like
    /// [`Expiring::pop_first`].
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice, Option<Deadline>)>> {
        self.change(true, |all| all.pop_last())
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others with
    /// their deadlines, in one commit; returns how many it deleted. The closure gets the key, the
    /// value and the deadline of each entry that has not expired. Otherwise like
    /// [`Keyspace::retain`](crate::Keyspace::retain), except that it copies what it reads, and that
    /// the closure may read the store; its writes are refused.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?;
    /// let end = sessions.after(std::time::Duration::from_secs(60));
    /// sessions.put("ada/1", "", Some(end))?;
    /// sessions.put("ada/2", "", None)?;
    /// assert_eq!(sessions.retain("ada/".."ada0", |_, _, end| end.is_none())?, 1);
    /// assert!(sessions.contains("ada/2")? && sessions.next_deadline()?.is_none());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`]; nothing was deleted.
    pub fn retain(
        &self,
        range: impl KeyBounds,
        mut keeps: impl FnMut(&[u8], &[u8], Option<Deadline>) -> bool,
    ) -> Result<u64> {
        let deleted = self.extract(KeyRange::new(&range), |(key, value, deadline)| {
            Ok((!keeps(&key, &value, deadline)).then_some(()))
        })?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, in one commit, and
    /// returns them in the order of their keys. Like [`Expiring::retain`], the other way round.
    ///
    /// # Errors
    /// As [`Expiring::retain`].
    pub fn extract_if(
        &self,
        range: impl KeyBounds,
        mut takes: impl FnMut(&[u8], &[u8], Option<Deadline>) -> bool,
    ) -> Result<Vec<(Slice, Slice, Option<Deadline>)>> {
        self.extract(KeyRange::new(&range), |entry| {
            Ok(takes(&entry.0, &entry.1, entry.2).then_some(entry))
        })
    }

    /// Deletes the entries of which the closure makes something, in one commit, and returns what it
    /// made.
    pub(crate) fn extract<T>(
        &self,
        range: Option<KeyRange>,
        mut choose: impl FnMut(Entry) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        self.change(true, |all| all.extract(range.clone(), &mut choose))
    }
}

impl ExpiringTransaction<'_> {
    /// Removes the entry with the lowest key of those that have not expired, and returns its key,
    /// its value and its deadline. Like [`Transaction::pop_first`](crate::Transaction::pop_first).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn pop_first(&mut self) -> Result<Option<(Slice, Slice, Option<Deadline>)>> {
        let found = self.iter().next().transpose()?;
        self.end_entries(found.iter().map(|(key, _, deadline)| (key, *deadline)))?;
        Ok(found)
    }

    /// Removes the entry with the highest key of those that have not expired, like
    /// [`ExpiringTransaction::pop_first`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`].
    pub fn pop_last(&mut self) -> Result<Option<(Slice, Slice, Option<Deadline>)>> {
        let found = self.iter().next_back().transpose()?;
        self.end_entries(found.iter().map(|(key, _, deadline)| (key, *deadline)))?;
        Ok(found)
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others with
    /// their deadlines; returns how many it deleted. The closure gets the key, the value and the
    /// deadline of each entry that has not expired. Like
    /// [`Transaction::retain`](crate::Transaction::retain).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`]; nothing was deleted.
    pub fn retain(
        &mut self,
        range: impl KeyBounds,
        mut keeps: impl FnMut(&[u8], &[u8], Option<Deadline>) -> bool,
    ) -> Result<u64> {
        let deleted = self.extract(KeyRange::new(&range), |(key, value, deadline)| {
            Ok((!keeps(&key, &value, deadline)).then_some(()))
        })?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, and returns them in the
    /// order of their keys. Like [`ExpiringTransaction::retain`], the other way round.
    ///
    /// # Errors
    /// As [`ExpiringTransaction::retain`].
    pub fn extract_if(
        &mut self,
        range: impl KeyBounds,
        mut takes: impl FnMut(&[u8], &[u8], Option<Deadline>) -> bool,
    ) -> Result<Vec<(Slice, Slice, Option<Deadline>)>> {
        self.extract(KeyRange::new(&range), |entry| {
            Ok(takes(&entry.0, &entry.1, entry.2).then_some(entry))
        })
    }

    /// Deletes the entries of which the closure makes something, and returns what it made.
    pub(crate) fn extract<T>(
        &mut self,
        range: Option<KeyRange>,
        mut choose: impl FnMut(Entry) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let (mut ends, mut made) = (Vec::new(), Vec::new());
        for entry in self.living_in(range) {
            let entry = entry?;
            let end = (entry.0.clone(), entry.2);
            if let Some(chosen) = choose(entry)? {
                ends.push(end);
                made.push(chosen);
            }
        }
        self.end_entries(ends.iter().map(|(key, deadline)| (key, *deadline)))?;
        Ok(made)
    }
}
