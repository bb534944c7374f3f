//! Typed keyspaces in snapshots and transactions.

use super::bounds::KeyBoundsFor;
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::keyspace::{Decoded, TypedKeyspace};
use super::value::{Value, ValueFor};
use crate::error::Result;
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// The keyspace as a snapshot sees it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// ages.put("ada", &36)?;
    /// let before = store.snapshot()?;
    /// ages.put("ada", &37)?;
    /// assert_eq!(ages.at(&before).get("ada")?, Some(36));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn at<'s>(&'s self, snapshot: &'s Snapshot) -> TypedSnapshot<'s, K, V> {
        TypedSnapshot { keyspace: self, snapshot }
    }

    /// The keyspace within a transaction.
    pub fn within<'t>(&'t self, transaction: &'t mut Transaction) -> TypedTransaction<'t, K, V> {
        TypedTransaction { keyspace: self, transaction }
    }
}

/// A typed keyspace as a snapshot sees it, see [`TypedKeyspace::at`].
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let readings = store.keyspace("readings")?.typed::<u32, f64>()?;
/// readings.put(&1, &3.5)?;
/// let before = store.snapshot()?;
/// readings.put(&2, &4.0)?;
/// let seen = readings.at(&before);
/// assert_eq!((seen.len()?, seen.range(2_u32..).count()), (1, 0));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Debug)]
pub struct TypedSnapshot<'s, K, V> {
    keyspace: &'s TypedKeyspace<K, V>,
    snapshot: &'s Snapshot,
}

impl<'s, K: Key, V: Value> TypedSnapshot<'s, K, V> {
    /// The value of a key. Like [`Snapshot::get`].
    ///
    /// # Errors
    /// As [`Snapshot::get`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        let found = self.snapshot.get(self.keyspace.untyped(), encode_key(key))?;
        found.map(|bytes| self.keyspace.value(bytes)).transpose()
    }

    /// The number of entries. Like [`Snapshot::len`].
    ///
    /// # Errors
    /// As [`Snapshot::len`].
    pub fn len(&self) -> Result<u64> {
        self.snapshot.len(self.keyspace.untyped())
    }

    /// Whether there is no entry. Like [`Snapshot::is_empty`].
    ///
    /// # Errors
    /// As [`Snapshot::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.snapshot.is_empty(self.keyspace.untyped())
    }

    /// All entries, from both ends. Like [`Snapshot::iter`].
    pub fn iter(&self) -> Decoded<'s, Iter, K, V> {
        Decoded::new(self.keyspace, self.snapshot.iter(self.keyspace.untyped()))
    }

    /// The entries in a range of keys. Like [`Snapshot::range`].
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> Decoded<'s, Iter, K, V> {
        let entries = self.snapshot.range(self.keyspace.untyped(), range.encoded());
        Decoded::new(self.keyspace, entries)
    }

    /// The entries whose keys have a prefix. Like [`TypedKeyspace::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> Decoded<'s, Iter, K, V> {
        let entries = self.snapshot.prefix(self.keyspace.untyped(), encode_prefix(prefix));
        Decoded::new(self.keyspace, entries)
    }
}

/// A typed keyspace within a transaction, see [`TypedKeyspace::within`].
///
/// ```
/// use adamant::{Error, Store};
///
/// let store = Store::in_memory()?;
/// let balances = store.keyspace("balances")?.typed::<String, i64>()?;
/// balances.put("ada", &100)?;
/// store.transaction(|tx| {
///     let mut balances = balances.within(tx);
///     let ada = balances.get("ada")?.unwrap_or(0);
///     balances.put("ada", &(ada - 30))?;
///     balances.put("bob", &30)?;
///     Ok::<_, Error>(())
/// })?;
/// assert_eq!(balances.get("ada")?, Some(70));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct TypedTransaction<'t, K, V> {
    pub(super) keyspace: &'t TypedKeyspace<K, V>,
    pub(super) transaction: &'t mut Transaction,
}

impl<K: Key, V: Value> TypedTransaction<'_, K, V> {
    /// The value of a key. Like [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn get<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let found = self.transaction.get(self.keyspace.untyped(), encode_key(key))?;
        found.map(|bytes| self.keyspace.value(bytes)).transpose()
    }

    /// Sets the value of a key, whether it had one or not. Like [`Transaction::put`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put<Q, W>(&mut self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        let value = self.keyspace.encode(value, &mut spare)?;
        self.transaction.put(self.keyspace.untyped(), encode_key(key), value)
    }

    /// Deletes a key, whether it exists or not. Like [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<()> {
        self.transaction.delete(self.keyspace.untyped(), encode_key(key))
    }

    /// Removes a key and returns its value. Like [`Transaction::take`].
    ///
    /// # Errors
    /// As [`Transaction::take`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn take<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let found = self.transaction.take(self.keyspace.untyped(), encode_key(key))?;
        found.map(|bytes| self.keyspace.value(bytes)).transpose()
    }

    /// All entries, from both ends. Like [`Transaction::iter`].
    pub fn iter(&mut self) -> Decoded<'_, TransactionIter<'_>, K, V> {
        self.range(..)
    }

    /// The entries in a range of keys. Like [`Transaction::range`].
    pub fn range(&mut self, range: impl KeyBoundsFor<K>) -> Decoded<'_, TransactionIter<'_>, K, V> {
        let entries = self.transaction.range(self.keyspace.untyped(), range.encoded());
        Decoded::new(self.keyspace, entries)
    }

    /// The entries whose keys have a prefix. Like [`TypedKeyspace::prefix`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let posts = store.keyspace("posts")?.typed::<(String, u64), String>()?;
    /// posts.put(&("ada", 1), "hello")?;
    /// let next = store.transaction(|tx| {
    ///     let mut posts = posts.within(tx);
    ///     let last = posts.prefix(&("ada",)).keys().next_back().transpose()?;
    ///     let next = last.map_or(1, |(_, number)| number + 1);
    ///     posts.put(&("ada", next), "again")?;
    ///     Ok::<_, Error>(next)
    /// })?;
    /// assert_eq!(next, 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix<P: PrefixFor<K> + ?Sized>(
        &mut self,
        prefix: &P,
    ) -> Decoded<'_, TransactionIter<'_>, K, V> {
        let prefix = encode_prefix(prefix);
        let entries = self.transaction.prefix(self.keyspace.untyped(), prefix);
        Decoded::new(self.keyspace, entries)
    }
}
