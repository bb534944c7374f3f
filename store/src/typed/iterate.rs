//! Iterators of typed keyspaces, and decoding of what they read.
//!
//! Invariants: bytes that are not of the types are an error that shows some of them.

use adamant_slice::Slice;

use super::bounds::KeyBoundsFor;
use super::key::{Key, PrefixFor, encode_prefix};
use super::keyspace::TypedKeyspace;
use super::malformed::Malformed;
use super::value::{Value, ValueFor};
use crate::error::{Error, Result};
use crate::keyspace::iterate::{Iter, Keys};
use crate::transaction::iterate::TransactionIter;
use crate::transaction::shared::SharedTransactionIter;

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// All entries in the order of their keys, from both ends, like
    /// [`Keyspace::iter`](crate::Keyspace::iter).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// ages.put("ada", &36)?;
    /// ages.put("bob", &41)?;
    /// let oldest = ages.iter().filter_map(Result::ok).max_by_key(|(_, age)| *age);
    /// assert_eq!(oldest, Some(("bob".to_string(), 41)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn iter(&self) -> Decoded<'_, Iter, K, V> {
        Decoded::new(self, self.keyspace.iter())
    }

    /// The entries in a range of keys, like [`Keyspace::range`](crate::Keyspace::range).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let readings = store.keyspace("readings")?.typed::<i32, f64>()?;
    /// for (hour, degrees) in [(-1, 3.5), (0, 4.0), (1, 4.5)] {
    ///     readings.put(&hour, &degrees)?;
    /// }
    /// let entries: Result<Vec<_>, _> = readings.range(-1..=0).collect();
    /// assert_eq!(entries?, [(-1, 3.5), (0, 4.0)]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> Decoded<'_, Iter, K, V> {
        Decoded::new(self, self.keyspace.range(range.encoded()))
    }

    /// The entries whose keys have a prefix: characters of a text, or the first parts of a tuple.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let posts = store.keyspace("posts")?.typed::<(String, u64), String>()?;
    /// posts.put(&("ada", 1), "hello")?;
    /// posts.put(&("adam", 1), "hi")?;
    /// assert_eq!(posts.prefix(&("ada",)).count(), 1, "the first part is whole");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> Decoded<'_, Iter, K, V> {
        Decoded::new(self, self.keyspace.prefix(encode_prefix(prefix)))
    }

    /// The bytes of a value; in `spare` if they are nowhere else.
    pub(super) fn encode<'b, W: ValueFor<V> + ?Sized>(
        &self,
        value: &'b W,
        spare: &'b mut Vec<u8>,
    ) -> Result<&'b [u8]> {
        value.encode_value(spare).map_err(|malformed| self.error(&malformed, &[]))
    }

    /// The value of some bytes.
    pub(super) fn value(&self, bytes: Slice) -> Result<V> {
        V::decode_value(bytes.clone()).map_err(|malformed| self.error(&malformed, &bytes))
    }

    pub(super) fn key(&self, key: &[u8]) -> Result<K> {
        K::decode_last(key).map_err(|malformed| self.error(&malformed, key))
    }

    /// The value, if there are bytes of one.
    pub(super) fn value_of(&self, found: Option<Slice>) -> Result<Option<V>> {
        found.map(|bytes| self.value(bytes)).transpose()
    }

    /// The values, where there are bytes of one.
    pub(super) fn values_of(&self, found: Vec<Option<Slice>>) -> Result<Vec<Option<V>>> {
        found.into_iter().map(|bytes| self.value_of(bytes)).collect()
    }

    pub(super) fn entry(&self, (key, value): (Slice, Slice)) -> Result<(K, V)> {
        Ok((self.key(&key)?, self.value(value)?))
    }

    fn error(&self, malformed: &Malformed, bytes: &[u8]) -> Error {
        malformed.error(self.keyspace.name(), bytes)
    }
}

/// The decoded entries of an iterator. An undecodable entry is an error, and the next one comes
/// after it.
#[derive(Debug)]
#[must_use = "iterators do nothing unless they are asked"]
pub struct Decoded<'k, I, K, V> {
    keyspace: &'k TypedKeyspace<K, V>,
    entries: I,
}

impl<'k, I, K, V> Decoded<'k, I, K, V> {
    pub(super) fn new(keyspace: &'k TypedKeyspace<K, V>, entries: I) -> Self {
        Self { keyspace, entries }
    }
}

impl<'k, K, V> Decoded<'k, Iter, K, V> {
    /// The remaining keys, without their values, which are neither read nor decoded, like
    /// [`Iter::keys`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let readings = store.keyspace("readings")?.typed::<(String, u64), f64>()?;
    /// readings.put(&("Oslo", 1_700_000_000), &-3.5)?;
    /// readings.put(&("Oslo", 1_700_003_600), &-4.0)?;
    /// let last = readings.prefix(&("Oslo",)).keys().next_back().transpose()?;
    /// assert_eq!(last, Some(("Oslo".to_string(), 1_700_003_600)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn keys(self) -> DecodedKeys<'k, Keys, K, V> {
        DecodedKeys { keyspace: self.keyspace, keys: self.entries.keys() }
    }
}

impl<'k, 't, K, V> Decoded<'k, TransactionIter<'t>, K, V> {
    /// The remaining keys, without their values, which are neither read nor decoded, like
    /// [`TransactionIter::keys`].
    pub fn keys(self) -> DecodedKeys<'k, TransactionIter<'t, Slice>, K, V> {
        DecodedKeys { keyspace: self.keyspace, keys: self.entries.keys() }
    }
}

impl<'k, 't, K, V> Decoded<'k, SharedTransactionIter<'k, 't>, K, V> {
    /// The remaining keys, without their values, which are neither read nor decoded, like
    /// [`SharedTransactionIter::keys`].
    pub fn keys(self) -> DecodedKeys<'k, SharedTransactionIter<'k, 't, Slice>, K, V> {
        DecodedKeys { keyspace: self.keyspace, keys: self.entries.keys() }
    }
}

impl<I, K: Key, V: Value> Iterator for Decoded<'_, I, K, V>
where
    I: Iterator<Item = Result<(Slice, Slice)>>,
{
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.entries.next()?.and_then(|entry| self.keyspace.entry(entry)))
    }
}

impl<I, K: Key, V: Value> DoubleEndedIterator for Decoded<'_, I, K, V>
where
    I: DoubleEndedIterator<Item = Result<(Slice, Slice)>>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.entries.next_back()?.and_then(|entry| self.keyspace.entry(entry)))
    }
}

/// The decoded keys of an iterator: [`Decoded::keys`]. An undecodable key is an error, and the next
/// one comes after it.
#[derive(Debug)]
#[must_use = "iterators do nothing unless they are asked"]
pub struct DecodedKeys<'k, I, K, V> {
    keyspace: &'k TypedKeyspace<K, V>,
    keys: I,
}

impl<I, K: Key, V: Value> Iterator for DecodedKeys<'_, I, K, V>
where
    I: Iterator<Item = Result<Slice>>,
{
    type Item = Result<K>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.keys.next()?.and_then(|key| self.keyspace.key(&key)))
    }
}

impl<I, K: Key, V: Value> DoubleEndedIterator for DecodedKeys<'_, I, K, V>
where
    I: DoubleEndedIterator<Item = Result<Slice>>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.keys.next_back()?.and_then(|key| self.keyspace.key(&key)))
    }
}
