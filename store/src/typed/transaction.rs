//! Typed keyspaces in transactions.
//!
//! Purpose: each call encodes its arguments, calls the transaction, and decodes the result. The
//! transaction is borrowed alone, or shared with other views of it.

use super::bounds::KeyBoundsFor;
use super::iterate::Decoded;
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::keyspace::TypedKeyspace;
use super::value::Value;
use crate::bounds::KeyRange;
use crate::error::Result;
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;
use crate::transaction::shared::{SharedTransaction, SharedTransactionIter, TransactionAccess};

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// The keyspace within a transaction, which it borrows. For several keyspaces at once see
    /// [`TypedKeyspace::within_shared`].
    pub fn within<'t>(&'t self, transaction: &'t mut Transaction) -> TypedTransaction<'t, K, V> {
        TypedTransaction { keyspace: self, transaction }
    }

    /// The keyspace within a transaction that other views use, too.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// let names = store.keyspace("names")?.typed::<u64, String>()?;
    /// store.transaction(|tx| {
    ///     let tx = tx.share();
    ///     let (mut ages, mut names) = (ages.within_shared(&tx), names.within_shared(&tx));
    ///     for (number, (name, age)) in (1..).zip([("ada", 36), ("bob", 41)]) {
    ///         ages.put(name, &age)?;
    ///         names.put(&number, name)?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!((ages.get("bob")?, names.get(&2)?), (Some(41), Some("bob".to_string())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn within_shared<'s, 't>(
        &'s self,
        transaction: &'s SharedTransaction<'t>,
    ) -> TypedTransaction<'s, K, V, &'s SharedTransaction<'t>> {
        TypedTransaction { keyspace: self, transaction }
    }
}

/// A typed keyspace within a transaction, see [`TypedKeyspace::within`] and
/// [`TypedKeyspace::within_shared`].
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
pub struct TypedTransaction<'t, K, V, T = &'t mut Transaction> {
    pub(super) keyspace: &'t TypedKeyspace<K, V>,
    pub(super) transaction: T,
}

impl<K: Key, V: Value, T: TransactionAccess> TypedTransaction<'_, K, V, T> {
    /// The value of a key. Like [`Transaction::get`].
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn get<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let keyspace = self.keyspace;
        let key = encode_key(key);
        keyspace.value_of(self.transaction.access(|tx| tx.get(keyspace.untyped(), key))?)
    }

    /// Calls the closure with the encoded value of a key. Like [`Transaction::get_with`].
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_with<R, Q: KeyFor<K> + ?Sized>(
        &mut self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let (keyspace, key) = (self.keyspace.untyped(), encode_key(key));
        self.transaction.access(|tx| tx.get_with(keyspace, key, reader))
    }

    /// The values of many keys, in the order of the keys. Like [`Transaction::multi_get`].
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &mut self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keyspace = self.keyspace;
        let keys: Vec<_> = keys.into_iter().map(|key| encode_key(&key)).collect();
        keyspace.values_of(self.transaction.access(|tx| tx.multi_get(keyspace.untyped(), keys))?)
    }

    /// Whether a key has a value. Like [`Transaction::contains`].
    ///
    /// # Errors
    /// As [`Transaction::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        let (keyspace, key) = (self.keyspace.untyped(), encode_key(key));
        self.transaction.access(|tx| tx.contains(keyspace, key))
    }

    /// The entry with the lowest key. Like [`Transaction::first`].
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    pub fn first(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = self.keyspace;
        let found = self.transaction.access(|tx| tx.first(keyspace.untyped()))?;
        found.map(|entry| keyspace.entry(entry)).transpose()
    }

    /// The entry with the highest key. Like [`Transaction::last`].
    ///
    /// # Errors
    /// As [`TypedTransaction::get`].
    pub fn last(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = self.keyspace;
        let found = self.transaction.access(|tx| tx.last(keyspace.untyped()))?;
        found.map(|entry| keyspace.entry(entry)).transpose()
    }

    /// The number of entries. Like [`Transaction::len`]: the whole keyspace counts as read.
    ///
    /// # Errors
    /// As [`Transaction::len`].
    pub fn len(&mut self) -> Result<u64> {
        let keyspace = self.keyspace.untyped();
        self.transaction.access(|tx| tx.len(keyspace))
    }

    /// Whether there is no entry. Like [`Transaction::is_empty`].
    ///
    /// # Errors
    /// As [`Transaction::is_empty`].
    pub fn is_empty(&mut self) -> Result<bool> {
        let keyspace = self.keyspace.untyped();
        self.transaction.access(|tx| tx.is_empty(keyspace))
    }
}

impl<K: Key, V: Value> TypedTransaction<'_, K, V> {
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

impl<'s, 't, K: Key, V: Value> TypedTransaction<'s, K, V, &'s SharedTransaction<'t>> {
    /// All entries, from both ends, see [`SharedTransactionIter`].
    pub fn iter(&self) -> Decoded<'s, SharedTransactionIter<'s, 't>, K, V> {
        self.range(..)
    }

    /// The entries in a range of keys, see [`SharedTransactionIter`].
    pub fn range(
        &self,
        range: impl KeyBoundsFor<K>,
    ) -> Decoded<'s, SharedTransactionIter<'s, 't>, K, V> {
        self.over(KeyRange::new(&range.encoded()))
    }

    /// The entries whose keys have a prefix. Like [`TypedKeyspace::prefix`], see
    /// [`SharedTransactionIter`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(
        &self,
        prefix: &P,
    ) -> Decoded<'s, SharedTransactionIter<'s, 't>, K, V> {
        self.over(KeyRange::prefix(&encode_prefix(prefix)))
    }

    fn over(&self, range: Option<KeyRange>) -> Decoded<'s, SharedTransactionIter<'s, 't>, K, V> {
        let keyspace = self.keyspace;
        let entries = SharedTransactionIter::new(self.transaction, keyspace.untyped(), range);
        Decoded::new(keyspace, entries)
    }
}
