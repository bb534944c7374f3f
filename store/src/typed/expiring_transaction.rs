//! Typed expiring keyspaces in transactions.

use super::bounds::KeyBoundsFor;
use super::expiring::{DecodedLiving, TypedExpiring};
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::value::Value;
use crate::error::Result;
use crate::expiring::{Deadline, ExpiringTransaction};
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;

impl<K: Key, V: Value> TypedExpiring<K, V> {
    /// The keyspace within a transaction, at the time of this call. Like
    /// [`Expiring::within`](crate::Expiring::within).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let visits = store.expiring("visits")?.typed::<String, u32>()?;
    /// let end = visits.after(std::time::Duration::from_secs(60));
    /// for _ in 0..3 {
    ///     store.transaction(|tx| {
    ///         let mut visits = visits.within(tx);
    ///         let count = visits.get("ada")?.unwrap_or(0);
    ///         visits.put("ada", &(count + 1), Some(end))
    ///     })?;
    /// }
    /// assert_eq!(visits.get("ada")?, Some(3));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn within<'t>(
        &'t self,
        transaction: &'t mut Transaction,
    ) -> TypedExpiringTransaction<'t, K, V> {
        TypedExpiringTransaction { typed: self, entries: self.expiring.within(transaction) }
    }
}

/// A typed expiring keyspace within a transaction, see [`TypedExpiring::within`]. Writes read the
/// entry first: it counts as read.
#[derive(Debug)]
pub struct TypedExpiringTransaction<'t, K, V> {
    pub(super) typed: &'t TypedExpiring<K, V>,
    pub(super) entries: ExpiringTransaction<'t>,
}

impl<K: Key, V: Value> TypedExpiringTransaction<'_, K, V> {
    /// The value of a key that has not expired. Like [`ExpiringTransaction::get`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get`]; [`Error::Encoding`](crate::Error::Encoding) if the value is
    /// not of type `V`.
    pub fn get<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        self.typed.codec.value_of(self.entries.get(encode_key(key))?)
    }

    /// The value and the deadline of a key that has not expired.
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::get`].
    pub fn get_with_deadline<Q: KeyFor<K> + ?Sized>(
        &mut self,
        key: &Q,
    ) -> Result<Option<(V, Option<Deadline>)>> {
        self.typed.codec.dated_of(self.entries.get_with_deadline(encode_key(key))?)
    }

    /// Calls a closure with the encoded bytes of a value that has not expired. Like
    /// [`ExpiringTransaction::get_with`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::get_with`].
    pub fn get_with<T, Q: KeyFor<K> + ?Sized>(
        &mut self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.entries.get_with(encode_key(key), reader)
    }

    /// Whether there is an entry that has not expired. Like [`ExpiringTransaction::contains`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        self.entries.contains(encode_key(key))
    }

    /// The values of many keys, in the order of the keys. Like [`ExpiringTransaction::multi_get`].
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &mut self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys = keys.into_iter().map(|key| encode_key(&key));
        self.typed.codec.values_of(self.entries.multi_get(keys)?)
    }

    /// The entry with the lowest key. Like [`ExpiringTransaction::first`].
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::get`].
    pub fn first(&mut self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.first()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// The entry with the highest key. Like [`ExpiringTransaction::last`].
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::get`].
    pub fn last(&mut self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.last()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// All entries that have not expired, by key, from both ends.
    pub fn iter(&mut self) -> DecodedLiving<'_, TransactionIter<'_>, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.iter())
    }

    /// Those in a range of keys. Like [`ExpiringTransaction::range`].
    pub fn range(
        &mut self,
        range: impl KeyBoundsFor<K>,
    ) -> DecodedLiving<'_, TransactionIter<'_>, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.range(range.encoded()))
    }

    /// Those whose keys start with a prefix. Like [`ExpiringTransaction::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(
        &mut self,
        prefix: &P,
    ) -> DecodedLiving<'_, TransactionIter<'_>, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.prefix(encode_prefix(prefix)))
    }

    /// The number of entries that have not expired. Like [`ExpiringTransaction::len`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::len`].
    pub fn len(&mut self) -> Result<u64> {
        self.entries.len()
    }

    /// Whether there are no entries. Like [`ExpiringTransaction::is_empty`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::is_empty`].
    pub fn is_empty(&mut self) -> Result<bool> {
        self.entries.is_empty()
    }

    /// The earliest deadline, which may have passed. Like [`ExpiringTransaction::next_deadline`].
    ///
    /// # Errors
    /// As [`ExpiringTransaction::next_deadline`].
    pub fn next_deadline(&mut self) -> Result<Option<Deadline>> {
        self.entries.next_deadline()
    }
}
