//! Typed expiring keyspaces in snapshots.

use super::bounds::KeyBoundsFor;
use super::expiring::{DecodedLiving, TypedExpiring};
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::value::Value;
use crate::error::Result;
use crate::expiring::{Deadline, ExpiringSnapshot};
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;

impl<K: Key, V: Value> TypedExpiring<K, V> {
    /// The keyspace as a snapshot sees it, at the time of this call. Like
    /// [`Expiring::at`](crate::Expiring::at).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let leases = store.expiring("leases")?.typed::<String, u32>()?;
    /// leases.put("printer", &7, None)?;
    /// let before = store.snapshot()?;
    /// leases.clear()?;
    /// assert_eq!(leases.at(&before).get("printer")?, Some(7));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn at<'s>(&'s self, snapshot: &'s Snapshot) -> TypedExpiringSnapshot<'s, K, V> {
        TypedExpiringSnapshot { typed: self, entries: self.expiring.at(snapshot) }
    }
}

/// A typed expiring keyspace as a snapshot sees it, see [`TypedExpiring::at`].
#[derive(Debug)]
pub struct TypedExpiringSnapshot<'s, K, V> {
    typed: &'s TypedExpiring<K, V>,
    entries: ExpiringSnapshot<'s>,
}

impl<'s, K: Key, V: Value> TypedExpiringSnapshot<'s, K, V> {
    /// The value of a key that has not expired. Like [`ExpiringSnapshot::get`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get`]; [`Error::Encoding`](crate::Error::Encoding) if the value is
    /// not of type `V`.
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.typed.codec.value_of(self.entries.get(encode_key(key))?)
    }

    /// The value and the deadline of a key that has not expired.
    ///
    /// # Errors
    /// As [`TypedExpiringSnapshot::get`].
    pub fn get_with_deadline<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
    ) -> Result<Option<(V, Option<Deadline>)>> {
        self.typed.codec.dated_of(self.entries.get_with_deadline(encode_key(key))?)
    }

    /// Calls a closure with the encoded bytes of a value that has not expired. Like
    /// [`ExpiringSnapshot::get_with`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::get_with`].
    pub fn get_with<T, Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.entries.get_with(encode_key(key), reader)
    }

    /// Whether there is an entry that has not expired. Like [`ExpiringSnapshot::contains`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.entries.contains(encode_key(key))
    }

    /// The values of many keys, in the order of the keys. Like [`ExpiringSnapshot::multi_get`].
    ///
    /// # Errors
    /// As [`TypedExpiringSnapshot::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys = keys.into_iter().map(|key| encode_key(&key));
        self.typed.codec.values_of(self.entries.multi_get(keys)?)
    }

    /// The entry with the lowest key. Like [`ExpiringSnapshot::first`].
    ///
    /// # Errors
    /// As [`TypedExpiringSnapshot::get`].
    pub fn first(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.first()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// The entry with the highest key. Like [`ExpiringSnapshot::last`].
    ///
    /// # Errors
    /// As [`TypedExpiringSnapshot::get`].
    pub fn last(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.last()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// All entries that have not expired, by key, from both ends.
    pub fn iter(&self) -> DecodedLiving<'s, Iter, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.iter())
    }

    /// Those in a range of keys. Like [`ExpiringSnapshot::range`].
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> DecodedLiving<'s, Iter, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.range(range.encoded()))
    }

    /// Those whose keys start with a prefix. Like [`ExpiringSnapshot::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> DecodedLiving<'s, Iter, K, V> {
        DecodedLiving::new(&self.typed.codec, self.entries.prefix(encode_prefix(prefix)))
    }

    /// The number of entries that have not expired. Like [`ExpiringSnapshot::len`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::len`].
    pub fn len(&self) -> Result<u64> {
        self.entries.len()
    }

    /// Whether there are no entries. Like [`ExpiringSnapshot::is_empty`].
    ///
    /// # Errors
    /// As [`ExpiringSnapshot::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.entries.is_empty()
    }
}
