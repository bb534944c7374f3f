//! Writing single entries: each call is one commit.
//!
//! Purpose: the flow of a put: limits, the exclusive lock, the engine, the commit.
//! Invariants: an `Err` means that nothing was changed, unless the store says that it is
//! poisoned: then the commit may be visible, and reopening decides.

use adamant_heap::Transaction;
use adamant_slice::Slice;

use crate::engine::Tree;
use crate::error::Result;
use crate::keyspace::Keyspace;
use crate::limits::{check_key, check_value};
use crate::shared::KeyVisitor;

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
    /// The key or value has no length that is allowed, the keyspace was dropped, the store is
    /// closed, or there is no space: see
    /// [`Error::is_out_of_space`](crate::Error::is_out_of_space).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let (key, value) = (key.as_ref(), value.as_ref());
        check_key(key)?;
        check_value(value)?;
        self.change(key, |transaction, tree| tree.insert(transaction, key, value))
    }

    /// Takes a key and its value out; true if it was there. O(log n) and one commit.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        check_key(key)?;
        self.change(key, |transaction, tree| tree.remove(transaction, key))
    }

    /// Takes a key out and returns its value. O(log n) and one commit.
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
        self.change(key, |transaction, tree| {
            let Some(value) = tree.find(transaction, key)?.map(Slice::from) else {
                return Ok(None);
            };
            let removed = tree.remove(transaction, key)?;
            assert!(removed, "a key that was found under the same lock is there to be removed");
            Ok(Some(value))
        })
    }

    /// Takes all entries out, in one commit, whose size does not depend on how many there are:
    /// the keyspace gets an empty tree. Open snapshots go on seeing what it held; after the last of
    /// them, or at once, the old tree is freed by commits of some thousand entries each, before this
    /// returns. A crash in between leaves the rest to the next opening. Transactions that read of the
    /// keyspace conflict. Handles to it stay good; each operation of one that was opened before looks
    /// for the new tree first, so it is better opened again. O(keyspaces), and of the entries for
    /// freeing them.
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
        self.shared.clear_keyspace(&self.state, self.durability)
    }

    /// A transaction that changes one key.
    pub(crate) fn change<T>(
        &self,
        key: &[u8],
        body: impl FnOnce(&mut Transaction<'_>, Tree) -> Result<T>,
    ) -> Result<T> {
        let keys = |each: &mut KeyVisitor<'_>| each(&self.state, key);
        self.shared.change(self.durability, keys, |transaction| {
            let tree = self.state.tree(transaction, self.shared.catalogue())?;
            body(transaction, tree)
        })
    }
}
