//! Single writes: each call is one commit.
//!
//! Purpose: a put checks limits, takes the exclusive lock, changes the engine, and commits.
//! Invariants: an `Err` means that nothing was changed, unless the store says that it is poisoned:
//! then the commit may be visible, and reopening decides.

use std::hint::black_box;

use adamant_heap::Transaction;
use adamant_slice::Slice;
use adamant_trees::Operation;

use crate::common::shared::KeyVisitor;
use crate::engine::lsm_keyspace::PreRead;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::engine::value_codec::Prepared;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};
use crate::merge_operators::{KeyspaceOperator, check_operand};
use crate::reserved::ReservedValue;

impl Keyspace {
    /// Sets the value of a key, whether it had one or not: one commit.
    ///
    /// O(log n) with every engine: one descent in `bplus`, `btree`, `critbit` and `redblack`; one
    /// insert into the memtable in `lsm`, which reads no file. It returns when the entry is as
    /// durable as this handle asks for. [`Keyspace::insert`] also reports whether the key had a
    /// value, which costs more in `lsm`.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let users = store.keyspace("users")?;
    /// users.put("ada", "1815")?;
    /// users.put("ada", "1815-1852")?;
    /// assert_eq!(users.get("ada")?, Some("1815-1852".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The key or value is too long, the keyspace was dropped, the store is closed, or there is no
    /// space: see [`Error::is_out_of_space`](crate::Error::is_out_of_space).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        let prepared = Prepared::new(value, self.state.codec())?;
        self.with_room(false, || {
            self.change_small(key, value.len(), None, |transaction, map, _| {
                map.put(transaction, key, &prepared)
            })
        })
    }

    /// Merges an operand with the value of a key, by the merge operator that the keyspace records:
    /// see [`KeyspaceOptions::merge_operator`]. A key without a value gets the operand as its
    /// value. One commit.
    ///
    /// O(log n). In `lsm` it costs as a put and reads no file, whatever the size of the value: the
    /// operand is merged by reads, flushes and compactions. Operands of a key in the active
    /// memtable are merged at once while they do not grow, so a read finds one of them in each
    /// memtable and table at most, and logarithmically many of those that grow. In the other
    /// engines it costs a [`Keyspace::get`] and a put. While changes are recorded
    /// ([`Store::record_changes`](crate::Store::record_changes)) the merged value is read in `lsm`,
    /// too.
    ///
    /// An operand has up to 1 MiB. Two transactions that merge with the same key do not conflict.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let options = adamant::KeyspaceOptions::new().merge_operator("add");
    /// let visits = store.keyspace_with("visits", options)?;
    /// for _ in 0..3 {
    ///     visits.merge("home", 1_u64.to_le_bytes())?;
    /// }
    /// assert_eq!(visits.get("home")?, Some(3_u64.to_le_bytes()[..].into()));
    /// assert!(visits.merge("home", "3").is_err(), "an integer has 8 bytes");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; the keyspace has no merge operator, or one that is not registered; the
    /// operator refuses the operand, or, in other engines than `lsm`, fails. Nothing is changed.
    ///
    /// [`KeyspaceOptions::merge_operator`]: crate::KeyspaceOptions::merge_operator
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        check_key(key)?;
        check_operand(operand)?;
        let operands = [Operation { key, value: Some(operand) }];
        self.with_room(false, || {
            self.change_small(key, operand.len(), None, |transaction, map, _| {
                map.merge(transaction, &self.state.name, &operands)
            })
        })
    }

    /// The merge operator of the keyspace.
    pub(crate) fn operator(&self) -> Result<KeyspaceOperator> {
        let view = self.shared.view()?;
        self.state.map(&view, self.shared.catalogue())?.operator(&self.state.name)
    }

    /// Deletes a key and its value; does nothing if the key does not exist. One commit.
    ///
    /// O(log n) with every engine; `lsm` writes a tombstone into the memtable and reads no file.
    /// [`Keyspace::remove`] also reports whether the key existed, which costs more in `lsm`.
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
    /// As [`Keyspace::put`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, None, |transaction, map, _| map.write(transaction, key, None))
        })
    }

    /// Like [`Keyspace::put`], with a value that was allocated in place, see
    /// [`Store::reserve`](crate::Store::reserve).
    ///
    /// O(log n). A tree takes over the block of a value above 4,096 bytes without a copy; a shorter
    /// one is copied, as is any value in `lsm` or with
    /// [`ValueCompression`](crate::ValueCompression).
    ///
    /// # Errors
    /// As [`Keyspace::put`]; the value is of another store.
    pub fn put_reserved(&self, key: impl AsRef<[u8]>, value: ReservedValue) -> Result<()> {
        let key = key.as_ref();
        check_key(key)?;
        if self.state.codec().is_some() {
            // Compressed before the lock is taken.
            return self.put(key, value);
        }
        self.change(key, |transaction, map| map.put_reserved(transaction, key, value))
    }

    /// Like [`Keyspace::put`], and reports whether the key had a value: true if it was replaced.
    ///
    /// As cheap as a put in `bplus`, `btree`, `critbit` and `redblack`, O(log n). In `lsm` it costs
    /// a search for the key as well, which may read the device.
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
    /// As [`Keyspace::put`] and [`Keyspace::get`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        let prepared = Prepared::new(value, self.state.codec())?;
        self.with_room(false, || {
            self.change_small(key, value.len(), Some(false), |transaction, map, pre_read| {
                map.insert(transaction, key, &prepared, pre_read)
            })
        })
    }

    /// Like [`Keyspace::delete`], and reports whether the key existed.
    ///
    /// As cheap as a delete in `bplus`, `btree`, `critbit` and `redblack`, O(log n). In `lsm` it
    /// costs a search for the key as well, which may read the device; it writes a tombstone only if
    /// the key exists.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert!(towns.remove("Bern")?);
    /// assert!(!towns.remove("Bern")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`] and [`Keyspace::get`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, Some(false), |transaction, map, pre_read| {
                map.remove(transaction, key, pre_read)
            })
        })
    }

    /// Removes a key and returns its value: one commit.
    ///
    /// Costs a [`Keyspace::get`] and a delete: O(log n), and in `lsm` a search that may read the
    /// device.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.put("1", "sweep")?;
    /// assert_eq!(jobs.take("1")?, Some("sweep".into()));
    /// assert_eq!(jobs.take("1")?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn take(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        check_key(key)?;
        self.with_room(true, || {
            self.change_small(key, 0, Some(true), |transaction, map, pre_read| {
                map.take(transaction, key, pre_read)
            })
        })
    }

    /// Removes all entries, in one commit whose size does not depend on how many there are: the
    /// keyspace gets an empty tree. Open snapshots go on seeing the old one. After the last of
    /// them, or at once, the old tree is freed by commits of some thousand entries each, before
    /// this returns. A crash in between leaves the rest to the next open. Transactions that read
    /// the keyspace conflict. Handles to it stay valid. O(log keyspaces), plus O(entries) for
    /// freeing them. The empty tree takes a block; on a full disk, where there may be none,
    /// `delete_range` does without, in parts if the log has no room for all of it.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let cache = store.keyspace("cache")?;
    /// cache.put("page", "text")?;
    /// let before = store.snapshot()?;
    /// cache.clear()?;
    /// assert!(cache.is_empty()?);
    /// assert_eq!(before.get(&cache, "page")?, Some("text".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn clear(&self) -> Result<()> {
        self.check_writes()?;
        self.with_room(true, || self.shared.clear_keyspaces(&[&self.state], self.durability()))
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
    ///     names.put("ada", "1")?;
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is poisoned, or the device fails, which poisons it.
    pub fn settle(&self) -> Result<()> {
        self.shared.settle(self.durability())
    }

    /// Pre-reads what a change of a key needs, in an engine that may have to read the device.
    fn pre_read(&self, key: &[u8], with_value: bool) -> Result<Option<PreRead>> {
        let view = self.shared.view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        map.pre_read(view, key, with_value)
    }

    /// Reads what a change of a key in a tree will read, before it takes the lock: a page that is
    /// not in memory takes some 100 us, for which no other writer is to wait.
    #[cold]
    fn touch(&self, key: &[u8]) {
        // The change itself reports what fails.
        let _ = self.get_with(key, |value| black_box(value.first().copied()));
    }

    /// Does work that may need space on the device; retries once if space runs out and some can be
    /// made.
    #[inline]
    pub(crate) fn with_room<T>(
        &self,
        removes: bool,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
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
        pre_reads: Option<bool>,
        body: impl Fn(&mut Transaction<'_>, &Map, Option<PreRead>) -> Result<T> + Sync,
    ) -> Result<T> {
        if let Some(with_value) = pre_reads.filter(|_| self.engine() == Engine::Lsm) {
            let pre_read = self.pre_read(key, with_value)?;
            return self.change(key, |transaction, map| body(transaction, map, pre_read));
        }
        self.check_writes()?;
        if self.shared.is_larger_than_memory() && self.engine() != Engine::Lsm {
            self.touch(key);
        }
        let keys = |each: &mut KeyVisitor<'_>| each(&self.state, key);
        let bytes = key.len() + value_bytes;
        self.shared.change_combined(self.durability(), bytes, keys, |transaction| {
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
        self.shared.change(None, self.durability(), keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            body(transaction, &map)
        })
    }
}
