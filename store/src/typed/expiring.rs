//! The typed expiring keyspace: typed keys and values with deadlines.
//!
//! Purpose: each call encodes its arguments, calls the expiring keyspace, and decodes the result.
//! Invariants: keys and values are encoded as those of a typed keyspace with the same types; the
//! deadline stands before an encoded value as before any other.
//! Thread safety: as the expiring keyspace: any number of threads.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::time::Duration;

use adamant_heap::durability::Durability;
use adamant_slice::Slice;

use super::bounds::KeyBoundsFor;
use super::key::{Key, KeyFor, PrefixFor, encode_key, encode_prefix};
use super::keyspace::TypedKeyspace;
use super::named::types_of;
use super::value::Value;
use crate::error::Result;
use crate::expiring::{Deadline, Entry, Expiring, Living};
use crate::keyspace::iterate::Iter;
use crate::kind::KeyspaceKind;

/// An entry: key, value and deadline.
pub(super) type TypedEntry<K, V> = (K, V, Option<Deadline>);

/// An [`Expiring`] keyspace with typed keys and values, see [`Expiring::typed`].
pub struct TypedExpiring<K, V> {
    pub(super) expiring: Expiring,
    /// Encodes and decodes: the entries as they are without their deadlines.
    pub(super) codec: TypedKeyspace<K, V>,
}

impl Expiring {
    /// This keyspace, with types for its keys and values. The types are recorded and compared as
    /// those of [`Keyspace::typed`](crate::Keyspace::typed).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use std::time::Duration;
    ///
    /// use adamant::Error;
    ///
    /// let sessions = store.expiring("sessions")?.typed::<(u64, String), f64>()?;
    /// let end = Some(sessions.after(Duration::from_secs(60)));
    /// sessions.put(&(7, "ada"), &0.5, end)?;
    /// sessions.put(&(7, "bob"), &1.5, end)?;
    /// sessions.put(&(8, "eve"), &2.5, Some(sessions.after(Duration::ZERO)))?;
    /// assert_eq!(sessions.get_with_deadline(&(7, "bob"))?, Some((1.5, end)));
    /// assert_eq!(sessions.prefix(&(7,)).count(), 2);
    /// assert_eq!(sessions.last()?.map(|(key, ..)| key), Some((7, "bob".to_string())));
    ///
    /// let refused = store.expiring("sessions")?.typed::<u64, f64>();
    /// assert!(matches!(refused, Err(Error::WrongTypes { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::typed`](crate::Keyspace::typed).
    pub fn typed<K: Key, V: Value>(&self) -> Result<TypedExpiring<K, V>> {
        let keyspace = self.keyspaces().0.clone();
        keyspace.take_types(&types_of::<K, V>(), KeyspaceKind::Expiring)?;
        let codec = TypedKeyspace { keyspace, types: PhantomData };
        Ok(TypedExpiring { expiring: self.clone(), codec })
    }
}

impl<K: Key, V: Value> TypedExpiring<K, V> {
    /// The keyspace of bytes.
    pub fn untyped(&self) -> &Expiring {
        &self.expiring
    }

    /// The same, with another clock. Like [`Expiring::with_clock`].
    #[must_use]
    pub fn with_clock(&self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { expiring: self.expiring.with_clock(clock), codec: self.codec.clone() }
    }

    /// A handle whose own commits have this `durability`. Like [`Expiring::with_durability`].
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { expiring: self.expiring.with_durability(durability), codec: self.codec.clone() }
    }

    /// Milliseconds since 1970, by the clock.
    pub fn now(&self) -> u64 {
        self.expiring.now()
    }

    /// The deadline after this duration.
    pub fn after(&self, duration: Duration) -> Deadline {
        self.expiring.after(duration)
    }

    /// The value of a key that has not expired. Like [`Expiring::get`].
    ///
    /// # Errors
    /// As [`Expiring::get`]; [`Error::Encoding`](crate::Error::Encoding) if the value is not of
    /// type `V`.
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.codec.value_of(self.expiring.get(encode_key(key))?)
    }

    /// The value and the deadline of a key that has not expired.
    ///
    /// # Errors
    /// As [`TypedExpiring::get`].
    pub fn get_with_deadline<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
    ) -> Result<Option<(V, Option<Deadline>)>> {
        self.codec.dated_of(self.expiring.get_with_deadline(encode_key(key))?)
    }

    /// Calls a closure with the encoded bytes of a value that has not expired. Like
    /// [`Expiring::get_with`].
    ///
    /// # Errors
    /// As [`Expiring::get_with`].
    pub fn get_with<T, Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.expiring.get_with(encode_key(key), reader)
    }

    /// Whether there is an entry that has not expired. Like [`Expiring::contains`].
    ///
    /// # Errors
    /// As [`Expiring::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.expiring.contains(encode_key(key))
    }

    /// The values of many keys, in the order of the keys. Like [`Expiring::multi_get`].
    ///
    /// # Errors
    /// As [`TypedExpiring::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys = keys.into_iter().map(|key| encode_key(&key));
        self.codec.values_of(self.expiring.multi_get(keys)?)
    }

    /// The entry with the lowest key of those that have not expired. Like [`Expiring::first`].
    ///
    /// # Errors
    /// As [`TypedExpiring::get`].
    pub fn first(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.expiring.first()?.map(|entry| self.codec.dated(entry)).transpose()
    }

    /// The entry with the highest key of those that have not expired. Like [`Expiring::last`].
    ///
    /// # Errors
    /// As [`TypedExpiring::get`].
    pub fn last(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.expiring.last()?.map(|entry| self.codec.dated(entry)).transpose()
    }

    /// All entries that have not expired, by key, from both ends. Like [`Expiring::iter`].
    pub fn iter(&self) -> DecodedLiving<'_, Iter, K, V> {
        DecodedLiving::new(&self.codec, self.expiring.iter())
    }

    /// Those in a range of keys. Like [`Expiring::range`].
    pub fn range(&self, range: impl KeyBoundsFor<K>) -> DecodedLiving<'_, Iter, K, V> {
        DecodedLiving::new(&self.codec, self.expiring.range(range.encoded()))
    }

    /// Those whose keys start with a prefix. Like [`TypedKeyspace::prefix`].
    pub fn prefix<P: PrefixFor<K> + ?Sized>(&self, prefix: &P) -> DecodedLiving<'_, Iter, K, V> {
        DecodedLiving::new(&self.codec, self.expiring.prefix(encode_prefix(prefix)))
    }

    /// The number of entries that have not expired, exactly. Like [`Expiring::len`].
    ///
    /// # Errors
    /// As [`Expiring::len`].
    pub fn len(&self) -> Result<u64> {
        self.expiring.len()
    }

    /// Whether there are no entries. Like [`Expiring::is_empty`].
    ///
    /// # Errors
    /// As [`Expiring::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.expiring.is_empty()
    }

    /// The earliest deadline, which may have passed. Like [`Expiring::next_deadline`].
    ///
    /// # Errors
    /// As [`Expiring::next_deadline`].
    pub fn next_deadline(&self) -> Result<Option<Deadline>> {
        self.expiring.next_deadline()
    }
}

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// Decodes an entry with its deadline.
    pub(super) fn dated(&self, (key, value, deadline): Entry) -> Result<TypedEntry<K, V>> {
        let (key, value) = self.entry((key, value))?;
        Ok((key, value, deadline))
    }

    /// Decodes a value with its deadline.
    pub(super) fn dated_of(
        &self,
        found: Option<(Slice, Option<Deadline>)>,
    ) -> Result<Option<(V, Option<Deadline>)>> {
        found.map(|(value, deadline)| Ok((self.value(value)?, deadline))).transpose()
    }
}

impl<K, V> Clone for TypedExpiring<K, V> {
    fn clone(&self) -> Self {
        Self { expiring: self.expiring.clone(), codec: self.codec.clone() }
    }
}

impl<K, V> fmt::Debug for TypedExpiring<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedExpiring").field(&self.expiring).finish()
    }
}

/// The decoded entries of an iterator over those that have not expired. One that is not of the
/// types is an error, and the next one comes after it.
#[derive(Debug)]
#[must_use = "iterators do nothing unless they are asked"]
pub struct DecodedLiving<'k, I, K, V> {
    codec: &'k TypedKeyspace<K, V>,
    entries: Living<I>,
}

impl<'k, I, K, V> DecodedLiving<'k, I, K, V> {
    pub(super) fn new(codec: &'k TypedKeyspace<K, V>, entries: Living<I>) -> Self {
        Self { codec, entries }
    }
}

impl<I, K: Key, V: Value> Iterator for DecodedLiving<'_, I, K, V>
where
    I: Iterator<Item = Result<(Slice, Slice)>>,
{
    type Item = Result<(K, V, Option<Deadline>)>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.entries.next()?.and_then(|entry| self.codec.dated(entry)))
    }
}

impl<I, K: Key, V: Value> DoubleEndedIterator for DecodedLiving<'_, I, K, V>
where
    I: DoubleEndedIterator<Item = Result<(Slice, Slice)>>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.entries.next_back()?.and_then(|entry| self.codec.dated(entry)))
    }
}

impl<I, K: Key, V: Value> FusedIterator for DecodedLiving<'_, I, K, V> where
    I: FusedIterator<Item = Result<(Slice, Slice)>>
{
}
