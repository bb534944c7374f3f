//! Serializable transactions: SlateDB's, over keyspaces.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;

use adamant::{Durability, KEY_BYTES_MAX, KeyBounds, Slice};
use slatedb::{DbTransaction, IsolationLevel};

use crate::error::{Error, Result};
use crate::keyspace::bounds::{Range, of_keyspace, of_prefix};
use crate::keyspace::ends::Ends;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::view::{entry, step};
use crate::layout::{ID_BYTES, entry_key};
use crate::limits::{check_key, check_value};
use crate::shared::{KeyspaceState, Shared};

/// Reads and writes of any keyspaces of one store that happen atomically at the commit. They do not
/// happen if another commit changed what was read or writes the same keys: [`Error::Conflict`].
///
/// Reads see the store as it was when the transaction began, and its own writes. Dropping it
/// without a commit discards it. [`Store::transaction`](crate::Store::transaction) runs a closure
/// again after a conflict.
///
/// ```
/// let store = adamant_remote::Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// stock.put("apples", "1")?;
///
/// let mut one = store.begin()?;
/// let mut other = store.begin()?;
/// for transaction in [&mut one, &mut other] {
///     if transaction.get(&stock, "apples")?.is_some() {
///         transaction.delete(&stock, "apples")?;
///     }
/// }
/// one.commit()?;
/// assert!(other.commit().unwrap_err().is_conflict(), "there was only one apple");
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    shared: Arc<Shared>,
    inner: DbTransaction,
    keyspaces: Vec<Arc<KeyspaceState>>,
}

impl Transaction {
    pub(crate) fn begin(shared: &Arc<Shared>) -> Result<Self> {
        let db = shared.writer("a transaction")?;
        let inner = shared.wait(db.begin(IsolationLevel::SerializableSnapshot))?;
        Ok(Self { shared: Arc::clone(shared), inner, keyspaces: Vec::new() })
    }

    /// Does nothing: see [`Keyspace::with_durability`].
    pub fn durability(&mut self, _durability: Durability) {}

    /// The value of a key: its own write, or the value when it began.
    ///
    /// # Errors
    /// As [`Keyspace::get`], and a keyspace of another store.
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = self.key(keyspace, key.as_ref())?;
        if key.len() > ID_BYTES + KEY_BYTES_MAX {
            // Only writes refuse such a key: it cannot be there.
            return Ok(None);
        }
        let found = self.shared.wait(self.inner.get(key))?;
        Ok(found.map(|value| Slice::from(&value[..])))
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn contains(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// Sets the value of a key, without reading it. It conflicts with another commit that writes
    /// the key meanwhile.
    ///
    /// # Errors
    /// A key or value of invalid length, a keyspace of another store.
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        check_value(value.as_ref())?;
        check_key(key.as_ref())?;
        let key = self.key(keyspace, key.as_ref())?;
        self.shared.wait(async { self.inner.put(key, value) })
    }

    /// Deletes a key, whether it exists or not, without reading it. As [`Transaction::put`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        check_key(key.as_ref())?;
        let key = self.key(keyspace, key.as_ref())?;
        self.shared.wait(async { self.inner.delete(key) })
    }

    /// Removes a key and returns its value.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn take(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let value = self.get(keyspace, key.as_ref())?;
        if value.is_some() {
            self.delete(keyspace, key)?;
        }
        Ok(value)
    }

    /// All entries of a keyspace, including own writes. An error of [`Transaction::get`] comes as
    /// the first of them.
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter<'_> {
        self.range(keyspace, ..)
    }

    /// The entries of a range, including own writes. As [`Transaction::iter`].
    pub fn range(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> TransactionIter<'_> {
        self.entries(keyspace, of_keyspace(keyspace.state.id, &range))
    }

    /// The entries whose keys have this prefix, including own writes. As [`Transaction::iter`].
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter<'_> {
        let range = of_prefix(&entry_key(keyspace.state.id, prefix.as_ref()));
        self.entries(keyspace, Some(range))
    }

    fn entries(&mut self, keyspace: &Keyspace, range: Option<Range>) -> TransactionIter<'_> {
        let refused = self.note(keyspace).err();
        TransactionIter { transaction: self, ends: Ends::new(range), refused }
    }

    /// The first entry of a keyspace.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next().transpose()
    }

    /// The last entry of a keyspace.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// Commits, and waits until the commit, and everything that the transaction has read, is in the
    /// objects.
    ///
    /// # Errors
    /// [`Error::Conflict`]; as [`Keyspace::put`].
    pub fn commit(self) -> Result<()> {
        if self.keyspaces.is_empty() {
            return Ok(());
        }
        self.shared.commit_transaction(self.inner, self.keyspaces.iter())
    }

    fn key(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<Vec<u8>> {
        self.note(keyspace)?;
        Ok(entry_key(keyspace.state.id, key))
    }

    fn note(&mut self, keyspace: &Keyspace) -> Result<()> {
        self.shared.check_open()?;
        keyspace.note_in(&self.shared, &mut self.keyspaces)
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("url", &self.shared.url).finish_non_exhaustive()
    }
}

/// Entries of a range as a transaction sees them, from both ends. The transaction reads the entries
/// that it hands out, and the keys between.
pub struct TransactionIter<'t> {
    transaction: &'t Transaction,
    ends: Ends,
    /// An error that comes first, and alone.
    refused: Option<Error>,
}

impl TransactionIter<'_> {
    fn step(&mut self, is_up: bool) -> Option<Result<(Slice, Slice)>> {
        if let Some(error) = self.refused.take() {
            self.ends.end();
            return Some(Err(error));
        }
        let Transaction { shared, inner, .. } = self.transaction;
        let found =
            shared.check_open().and_then(|()| shared.wait(step(inner, &mut self.ends, is_up)));
        if found.is_err() {
            self.ends.end();
        }
        found.map(|found| found.map(entry)).transpose()
    }
}

impl Iterator for TransactionIter<'_> {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl DoubleEndedIterator for TransactionIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl FusedIterator for TransactionIter<'_> {}

impl fmt::Debug for TransactionIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionIter").finish_non_exhaustive()
    }
}
