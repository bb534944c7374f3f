//! Typed keyspaces in snapshots.

use super::bounds::KeyBoundsFor;
use super::iterate::Decoded;
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::keyspace::TypedKeyspace;
use super::value::Value;
use crate::error::Result;
use crate::keyspace::iterate::Iter;
use crate::keyspace::snapshot::Snapshot;

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
        self.keyspace.value_of(found)
    }

    /// Calls the closure with the encoded value of a key. Like [`Snapshot::get_with`].
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn get_with<T, Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.snapshot.get_with(self.keyspace.untyped(), encode_key(key), reader)
    }

    /// The values of many keys, in the order of the keys. Like [`Snapshot::multi_get`].
    ///
    /// # Errors
    /// As [`TypedSnapshot::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys = keys.into_iter().map(|key| encode_key(&key));
        self.keyspace.values_of(self.snapshot.multi_get(self.keyspace.untyped(), keys)?)
    }

    /// Whether the key had a value. Like [`Snapshot::contains`].
    ///
    /// # Errors
    /// As [`Snapshot::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.snapshot.contains(self.keyspace.untyped(), encode_key(key))
    }

    /// The entry with the lowest key. Like [`Snapshot::first`].
    ///
    /// # Errors
    /// As [`TypedSnapshot::get`].
    pub fn first(&self) -> Result<Option<(K, V)>> {
        let found = self.snapshot.first(self.keyspace.untyped())?;
        found.map(|entry| self.keyspace.entry(entry)).transpose()
    }

    /// The entry with the highest key. Like [`Snapshot::last`].
    ///
    /// # Errors
    /// As [`TypedSnapshot::get`].
    pub fn last(&self) -> Result<Option<(K, V)>> {
        let found = self.snapshot.last(self.keyspace.untyped())?;
        found.map(|entry| self.keyspace.entry(entry)).transpose()
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
