//! Single writes: each call is one commit.
//!
//! Purpose: a put checks limits, takes the exclusive lock, changes the engine, and commits.
//! Invariants: an `Err` means that nothing was changed, unless the store says that it is poisoned:
//! then the commit may be visible, and reopening decides.

use adamant_heap::Transaction;
use adamant_slice::Slice;

use crate::common::shared::KeyVisitor;
use crate::engine::lsm_keyspace::Foreseen;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};
use crate::reserved::ReservedValue;

impl Keyspace {
    /// Sets the value of a key; true if it replaced another one. O(log n) and one commit: it
    /// returns when the entry is as durable as the keyspace's handle asks for.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let users = store.keyspace("users")?;
    /// assert!(!users.insert("ada", "1815")?);
    /// assert!(users.insert("ada", "1815-1852")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key or value is too long, the keyspace was dropped, the store is closed, or there is no
    /// space: see [`Error::is_out_of_space`](crate::Error::is_out_of_space).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        self.with_room(false, || {
            self.change_small(key, value.len(), Some(false), |transaction, map, foreseen| {
                map.insert(transaction, key, value, foreseen)
            })
        })
    }

    /// Sets the value of a key, whether it had one or not. [`Keyspace::insert`] reports whether it
    /// had one, for which the engine `lsm` has to read, from the device if need be; this does not.
    ///
    /// ```
    /// use adamant::{Engine, KeyspaceOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let readings = store.keyspace_with("readings", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// readings.put("2024-05-01 12:00", "17.5")?;
    /// assert_eq!(readings.get("2024-05-01 12:00")?, Some("17.5".into()));
    /// readings.delete("2024-05-01 12:00")?;
    /// assert!(readings.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        self.with_room(false, || {
            self.change_small(key, value.len(), None, |transaction, map, _| {
                map.write(transaction, key, Some(value))
            })
        })
    }

    /// Removes a key if it exists. Like [`Keyspace::remove`], without reporting whether it did.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// towns.delete("Bern")?;
    /// towns.delete("Bern")?;
    /// assert!(towns.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, None, |transaction, map, _| map.write(transaction, key, None))
        })
    }

    /// Sets the value of a key to one allocated in place, see
    /// [`Store::reserve`](crate::Store::reserve). Like [`Keyspace::put`].
    ///
    /// # Errors
    /// As [`Keyspace::insert`]; the value is of another store.
    pub fn insert_reserved(&self, key: impl AsRef<[u8]>, value: ReservedValue) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.change(key, |transaction, map| map.insert_reserved(transaction, key, value))
    }

    /// Removes a key and its value; true if it existed. O(log n) and one commit.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.insert("Bern", "134,000")?;
    /// assert!(towns.remove("Bern")?);
    /// assert!(!towns.remove("Bern")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, Some(false), |transaction, map, foreseen| {
                map.remove(transaction, key, foreseen)
            })
        })
    }

    /// Removes a key and returns its value. O(log n) and one commit.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.insert("1", "sweep")?;
    /// assert_eq!(jobs.take("1")?, Some("sweep".into()));
    /// assert_eq!(jobs.take("1")?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, Some(true), |transaction, map, foreseen| {
                map.take(transaction, key, foreseen)
            })
        })
    }

    /// Removes all entries, in one commit whose size does not depend on how many there are: the
    /// keyspace gets an empty tree. Open snapshots go on seeing the old one. After the last of
    /// them, or at once, the old tree is freed by commits of some thousand entries each, before
    /// this returns. A crash in between leaves the rest to the next open. Transactions that read
    /// the keyspace conflict. Handles to it stay valid. O(log keyspaces), plus O(entries) for
    /// freeing them. The empty tree takes a block; on a full disk, where there may be none,
    /// `remove_range(..)` does without.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let cache = store.keyspace("cache")?;
    /// cache.insert("page", "text")?;
    /// let before = store.snapshot()?;
    /// cache.clear()?;
    /// assert!(cache.is_empty()?);
    /// assert_eq!(before.get(&cache, "page")?, Some("text".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn clear(&self) -> Result<()> {
        self.check_writes()?;
        self.with_room(true, || self.shared.clear_keyspaces(&[&self.state], self.durability))
    }

    /// Waits until everything committed so far is as durable as a write through this handle,
    /// without writing: for a caller that found nothing to change.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let names = store.keyspace("names")?;
    /// if names.contains("ada")? {
    ///     // Somebody may have written it with less durability than this handle has.
    ///     names.settle()?;
    /// } else {
    ///     names.insert("ada", "1")?;
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is poisoned, or the device fails, which poisons it.
    pub fn settle(&self) -> Result<()> {
        self.shared.settle(self.durability)
    }

    /// Pre-reads what a change of a key needs, in an engine that may have to read the device.
    fn foresee(&self, key: &[u8], with_value: bool) -> Result<Option<Foreseen>> {
        if self.engine() != Engine::Lsm {
            return Ok(None);
        }
        let view = self.shared.view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        map.foresee(view, key, with_value)
    }

    /// Does work that may need space on the device; retries once if space runs out and some can be
    /// made.
    #[inline]
    pub(crate) fn with_room<T>(&self, removes: bool, work: impl Fn() -> Result<T>) -> Result<T> {
        let is_lsm = || self.engine() == Engine::Lsm;
        match work() {
            Err(error) if is_lsm() && self.shared.makes_room_for(&error, removes) => work(),
            done => done,
        }
    }

    /// A small change of one key, which may share its commit with those of other threads; not if it
    /// pre-reads (`Some(true)`: with the value).
    #[inline]
    fn change_small<T: Send>(
        &self,
        key: &[u8],
        value_bytes: usize,
        foresees: Option<bool>,
        body: impl Fn(&mut Transaction<'_>, &Map, Option<Foreseen>) -> Result<T> + Sync,
    ) -> Result<T> {
        if self.engine() == Engine::Lsm {
            let foreseen = foresees.map(|with_value| self.foresee(key, with_value)).transpose()?;
            return self.change(key, |transaction, map| body(transaction, map, foreseen.flatten()));
        }
        self.check_writes()?;
        let keys = |each: &mut KeyVisitor<'_>| each(&self.state, key);
        let bytes = key.len() + value_bytes;
        self.shared.change_combined(self.durability, bytes, keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            body(transaction, &map, None)
        })
    }

    /// A transaction that changes one key.
    pub(crate) fn change<T>(
        &self,
        key: &[u8],
        body: impl FnOnce(&mut Transaction<'_>, &Map) -> Result<T>,
    ) -> Result<T> {
        self.check_writes()?;
        let keys = |each: &mut KeyVisitor<'_>| each(&self.state, key);
        self.shared.change(self.durability, keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            body(transaction, &map)
        })
    }
}
