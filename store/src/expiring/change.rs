//! Changes of an expiring keyspace, each call one commit.

use adamant_slice::Slice;

use super::deadline::Deadline;
use super::keyspace::Expiring;
use super::within::ExpiringTransaction;
use crate::error::Result;

impl Expiring {
    /// Sets the value and the deadline of a key, whether it had one or not, in a commit of its own.
    ///
    /// O(log n) with every engine, plus O(log n) for the row of each deadline, old and new. It
    /// finds the entry first, in `lsm` by a search that may read the device, since the row of its
    /// deadline has to go: so it costs as much as [`Expiring::insert`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tokens = store.expiring("tokens")?;
    /// let end = tokens.after(std::time::Duration::from_secs(60));
    /// tokens.put("42", "ada", Some(end))?;
    /// assert_eq!(tokens.get("42")?, Some("ada".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`] and [`Store::exclusive`](crate::Store::exclusive).
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.change(false, |all| all.put(key, value, deadline))
    }

    /// Deletes an entry and its deadline, whether it exists or not, in a commit of its own. Costs
    /// as [`Expiring::put`].
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.change(true, |all| all.delete(key.as_ref()))
    }

    /// Like [`Expiring::put`], at the same cost, and reports whether the key had a value: true if
    /// it replaced an entry that had not expired.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tokens = store.expiring("tokens")?;
    /// let end = tokens.after(std::time::Duration::from_secs(60));
    /// assert!(!tokens.insert("42", "ada", Some(end))?);
    /// assert!(tokens.insert("42", "bob", None)?, "it was there, and stays from now on");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn insert(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.change(false, |all| all.insert(key, value, deadline))
    }

    /// Like [`Expiring::delete`], at the same cost, and reports whether the entry existed and had
    /// not expired.
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.change(true, |all| all.remove(key.as_ref()))
    }

    /// Removes an entry and returns its value, in a commit of its own.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let tokens = store.expiring("tokens")?;
    /// tokens.put("42", "ada", None)?;
    /// assert_eq!(tokens.take("42")?, Some("ada".into()));
    /// assert_eq!(tokens.take("42")?, None, "a token is used once");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.change(true, |all| all.take(key.as_ref()))
    }

    /// Changes or removes the deadline of an entry, in a commit of its own; false if there is no
    /// entry. O(log n) and a copy of the value.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?;
    /// sessions.put("42", "ada", Some(sessions.after(std::time::Duration::from_secs(60))))?;
    /// assert!(sessions.set_deadline("42", None)?, "it stays");
    /// assert!(!sessions.set_deadline("43", None)?, "there is none");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn set_deadline(&self, key: impl AsRef<[u8]>, deadline: Option<Deadline>) -> Result<bool> {
        self.change(false, |all| all.set_deadline(key.as_ref(), deadline))
    }

    /// Removes expired entries, at most so many, in a commit of its own; returns how many. A
    /// background thread does so unless [`Options::sweep_expired`](crate::Options::sweep_expired)
    /// says otherwise. Without it, this is to be called now and then, best when
    /// [`Expiring::next_deadline`] has passed: until then they take space.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?.with_clock(|| 4_000_000_000_000);
    /// for name in ["ada", "bob", "eve"] {
    ///     sessions.put(name, "", Some(sessions.after(std::time::Duration::from_millis(5))))?;
    /// }
    /// let later = sessions.with_clock(|| 4_000_000_000_005);
    /// assert_eq!((later.remove_expired(2)?, later.remove_expired(2)?, later.remove_expired(2)?), (2, 1, 0));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Expiring::put`].
    pub fn remove_expired(&self, entries_max: usize) -> Result<u64> {
        // Most calls find nothing: they do not take the writer lock.
        match self.next_deadline()? {
            Some(deadline) if deadline.is_over(self.now()) => {
                self.change(true, |all| all.remove_expired(entries_max))
            }
            _ => self.settle().map(|()| 0),
        }
    }

    /// Waits until everything committed so far is as durable as a write through this handle,
    /// without writing. Like [`Keyspace::settle`](crate::Keyspace::settle).
    ///
    /// # Errors
    /// As [`Keyspace::settle`](crate::Keyspace::settle).
    pub fn settle(&self) -> Result<()> {
        self.entries.shared.settle(self.durability())
    }

    /// Removes all entries and their deadlines, in one commit. Like
    /// [`Keyspace::clear`](crate::Keyspace::clear).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?;
    /// sessions.put("42", "ada", Some(sessions.after(std::time::Duration::from_secs(60))))?;
    /// sessions.clear()?;
    /// assert!(sessions.is_empty()? && sessions.next_deadline()?.is_none());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::clear`](crate::Keyspace::clear).
    pub fn clear(&self) -> Result<()> {
        let both = [&*self.entries.state, &*self.deadlines.state];
        self.entries
            .with_room(true, || self.entries.shared.clear_keyspaces(&both, self.durability()))
    }

    /// Runs `work` in a transaction of its own; a second time if that makes room for it.
    pub(crate) fn change<T>(
        &self,
        removes: bool,
        mut work: impl FnMut(&mut ExpiringTransaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.entries.with_room(removes, || {
            let mut transaction = self.store.begin_exclusive()?;
            transaction.durability(self.durability());
            let made = work(&mut self.within(&mut transaction))?;
            transaction.commit_once()?;
            Ok(made)
        })
    }
}
