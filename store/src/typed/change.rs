//! Reads and writes of typed keyspaces beyond single gets and puts: atomic changes of one key, bulk
//! loads, many keys at once.

use adamant_heap::durability::Durability;

use super::key::{Key, KeyFor, encode_key};
use super::keyspace::TypedKeyspace;
use super::value::{Value, ValueFor};
use crate::error::Result;
use crate::keyspace::load::Loaded;

/// The result of a comparison: `Err` holds the value found instead of the expected one.
pub type TypedSwapped<V> = std::result::Result<(), Option<V>>;

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// A handle to the same keyspace whose writes have this durability, like
    /// [`Keyspace::with_durability`](crate::Keyspace::with_durability).
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { keyspace: self.keyspace.with_durability(durability), ..self.clone() }
    }

    /// Calls the closure with the encoded value of a key and returns its result, or `None` without
    /// calling it; nothing is decoded. Like [`Keyspace::get_with`](crate::Keyspace::get_with).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let texts = store.keyspace("texts")?.typed::<u64, String>()?;
    /// texts.put(&1, "hello, world")?;
    /// assert_eq!(texts.get_with(&1, |bytes| bytes.len())?, Some(12));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get_with`](crate::Keyspace::get_with).
    pub fn get_with<T, Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.keyspace.get_with(encode_key(key), reader)
    }

    /// Like [`TypedKeyspace::get_with`], for a closure that takes some microseconds. Like
    /// [`Keyspace::get_briefly`](crate::Keyspace::get_briefly).
    ///
    /// # Errors
    /// As [`TypedKeyspace::get_with`].
    pub fn get_briefly<T, Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        self.keyspace.get_briefly(encode_key(key), reader)
    }

    /// The values of many keys, in the order of the keys. Like
    /// [`Keyspace::multi_get`](crate::Keyspace::multi_get), and decoding.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// ages.extend([("ada", 36), ("bob", 41)])?;
    /// assert_eq!(ages.multi_get(["bob", "eve", "ada"])?, [Some(41), None, Some(36)]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TypedKeyspace::get`].
    pub fn multi_get<Q: KeyFor<K>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<V>>> {
        let keys = keys.into_iter().map(|key| encode_key(&key));
        self.values_of(self.keyspace.multi_get(keys)?)
    }

    /// Sets the value of a key that has none; false, and nothing is changed, if it has one. Like
    /// [`Keyspace::insert_unique`](crate::Keyspace::insert_unique).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// assert!(ages.insert_unique("ada", &36)?);
    /// assert!(!ages.insert_unique("ada", &37)?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TypedKeyspace::put`].
    pub fn insert_unique<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.keyspace.insert_unique(encode_key(key), self.encode(value, &mut Vec::new())?)
    }

    /// Sets (`Some`) or removes (`None`) the value of a key if its value is the expected one;
    /// `None` expects no value. Otherwise changes nothing and returns what it found. Like
    /// [`Keyspace::compare_and_swap`](crate::Keyspace::compare_and_swap): values are compared by
    /// their encoded bytes.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let locks = store.keyspace("locks")?.typed::<u32, String>()?;
    /// assert_eq!(locks.compare_and_swap(&1, None::<&str>, Some("ada"))?, Ok(()));
    /// let taken = locks.compare_and_swap(&1, None::<&str>, Some("bob"))?;
    /// assert_eq!(taken, Err(Some("ada".to_string())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TypedKeyspace::put`]; [`Error::Encoding`](crate::Error::Encoding) if what it found is
    /// not of type `V`.
    pub fn compare_and_swap<Q, E, W>(
        &self,
        key: &Q,
        expected: Option<&E>,
        value: Option<&W>,
    ) -> Result<TypedSwapped<V>>
    where
        Q: KeyFor<K> + ?Sized,
        E: ValueFor<V> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let expected = expected.map(|value| self.encode(value, &mut one)).transpose()?;
        let value = value.map(|value| self.encode(value, &mut other)).transpose()?;
        Ok(match self.keyspace.compare_and_swap(encode_key(key), expected, value)? {
            Ok(()) => Ok(()),
            Err(found) => Err(self.value_of(found)?),
        })
    }

    /// Sets the value of a key to what a closure makes of it, or removes it (`None`); returns the
    /// value before. Like [`Keyspace::fetch_update`](crate::Keyspace::fetch_update): the closure
    /// runs under no lock, and again if the value changes meanwhile.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let visits = store.keyspace("visits")?.typed::<String, u64>()?;
    /// let more = |count: Option<&u64>| Some(count.map_or(1, |count| count + 1));
    /// assert_eq!(visits.fetch_update("today", more)?, None);
    /// assert_eq!(visits.fetch_update("today", more)?, Some(1));
    /// assert_eq!(visits.update_fetch("today", more)?, Some(3));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TypedKeyspace::get`] and [`TypedKeyspace::put`].
    pub fn fetch_update<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        update: impl FnMut(Option<&V>) -> Option<V>,
    ) -> Result<Option<V>> {
        Ok(self.update(key, update)?.0)
    }

    /// Like [`TypedKeyspace::fetch_update`]; returns the value after.
    ///
    /// # Errors
    /// As [`TypedKeyspace::fetch_update`].
    pub fn update_fetch<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        update: impl FnMut(Option<&V>) -> Option<V>,
    ) -> Result<Option<V>> {
        Ok(self.update(key, update)?.1)
    }

    fn update<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        mut update: impl FnMut(Option<&V>) -> Option<V>,
    ) -> Result<(Option<V>, Option<V>)> {
        let key = encode_key(key);
        let mut found = self.keyspace.get(&key)?;
        loop {
            let before = self.value_of(found.clone())?;
            let value = update(before.as_ref());
            let mut spare = Vec::new();
            let encoded = value.as_ref().map(|value| self.encode(value, &mut spare)).transpose()?;
            match self.keyspace.compare_and_swap(&key, found.as_deref(), encoded)? {
                Ok(()) => return Ok((before, value)),
                Err(now) => found = now,
            }
        }
    }

    /// Inserts entries whose keys are strictly ascending: the fastest way to fill a keyspace. Like
    /// [`Keyspace::load_sorted`](crate::Keyspace::load_sorted), which see.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let squares = store.keyspace("squares")?.typed::<u32, u64>()?;
    /// let loaded = squares.load_sorted((0..5_000).map(|n| (n, u64::from(n) * u64::from(n))))?;
    /// assert_eq!((loaded.entries, squares.get(&12)?), (5_000, Some(144)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::load_sorted`](crate::Keyspace::load_sorted);
    /// [`Error::Encoding`](crate::Error::Encoding) for a value without an encoding: the entries
    /// before it are there.
    pub fn load_sorted<Q: KeyFor<K>, W: ValueFor<V>>(
        &self,
        entries: impl IntoIterator<Item = (Q, W)>,
    ) -> Result<Loaded> {
        let mut failed = None;
        let loaded = self.keyspace.load_sorted(self.encoded(entries, &mut failed))?;
        failed.map_or(Ok(loaded), Err)
    }

    /// Inserts entries in any order; of several with the same key the last one wins. Like
    /// [`Keyspace::extend`](crate::Keyspace::extend).
    ///
    /// # Errors
    /// As [`Keyspace::extend`](crate::Keyspace::extend), and as [`TypedKeyspace::load_sorted`].
    pub fn extend<Q: KeyFor<K>, W: ValueFor<V>>(
        &self,
        entries: impl IntoIterator<Item = (Q, W)>,
    ) -> Result<Loaded> {
        let mut failed = None;
        let loaded = self.keyspace.extend(self.encoded(entries, &mut failed))?;
        failed.map_or(Ok(loaded), Err)
    }

    /// The encoded entries, up to the first that has no encoding.
    fn encoded<Q: KeyFor<K>, W: ValueFor<V>>(
        &self,
        entries: impl IntoIterator<Item = (Q, W)>,
        failed: &mut Option<crate::Error>,
    ) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        entries.into_iter().map_while(|(key, value)| {
            let mut spare = Vec::new();
            let value = self.encode(&value, &mut spare).map(<[u8]>::to_vec);
            value.map_err(|error| *failed = Some(error)).ok().map(|value| (encode_key(&key), value))
        })
    }

    /// Removes all entries, in one commit whose size does not depend on how many there are. Like
    /// [`Keyspace::clear`](crate::Keyspace::clear).
    ///
    /// # Errors
    /// As [`Keyspace::clear`](crate::Keyspace::clear).
    pub fn clear(&self) -> Result<()> {
        self.keyspace.clear()
    }

    /// Waits until everything committed so far is as durable as a write through this handle. Like
    /// [`Keyspace::settle`](crate::Keyspace::settle).
    ///
    /// # Errors
    /// As [`Keyspace::settle`](crate::Keyspace::settle).
    pub fn settle(&self) -> Result<()> {
        self.keyspace.settle()
    }
}
