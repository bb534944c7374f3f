//! The typed keyspace: typed keys and values.
//!
//! Purpose: each call encodes its arguments, calls the keyspace, and decodes the result.
//! Thread safety: as the keyspace: any number of threads.

use std::fmt;
use std::marker::PhantomData;

use super::bounds::KeyBoundsFor;
use super::key::{Key, KeyFor, encode_key};
use super::named::types_of;
use super::value::{Value, ValueFor};
use crate::batch::builder::Batch;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::kind::KeyspaceKind;
use crate::limits::check_plain;
use crate::types::KeyspaceTypes;

/// An ordered map of keys of type `K` to values of type `V`: a [`Keyspace`], see
/// [`Keyspace::typed`]. For operations without a method here use the keyspace itself,
/// [`TypedKeyspace::untyped`].
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
/// ages.put("ada", &36)?;
/// assert_eq!(ages.get("ada")?, Some(36));
/// // The same entry, as bytes.
/// assert_eq!(ages.untyped().get("ada")?, Some([36, 0, 0, 0].into()));
/// # Ok::<(), adamant::Error>(())
/// ```
pub struct TypedKeyspace<K, V> {
    pub(super) keyspace: Keyspace,
    pub(super) types: PhantomData<fn() -> (K, V)>,
}

impl Keyspace {
    /// This keyspace, with types for its keys and values; see [`crate::typed`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// ages.put("ada", &36)?;
    /// assert_eq!(ages.get("ada")?, Some(36));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    /// The first time, while there is no entry, the types are recorded, in a commit of its own;
    /// from then on others are refused. For a keyspace that has entries by then, written as bytes
    /// or before types were recorded, or that is only read, the caller's types are trusted:
    /// [`Keyspace::retype`] records them. This handle can always use the keyspace as bytes.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// store.keyspace("ages")?.typed::<String, u32>()?;
    /// let refused = store.keyspace("ages")?.typed::<String, f32>();
    /// assert!(matches!(refused, Err(Error::WrongTypes { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongTypes`](crate::Error::WrongTypes); [`Error::TypeName`](crate::Error::TypeName)
    /// for a name that cannot be recorded; the keyspace was dropped, the store is closed, or the
    /// commit failed.
    pub fn typed<K: Key, V: Value>(&self) -> Result<TypedKeyspace<K, V>> {
        self.declare_types(&types_of::<K, V>())?;
        Ok(TypedKeyspace { keyspace: self.clone(), types: PhantomData })
    }

    /// The recorded types of its keys and values; `None` if none were recorded. O(log k) of k
    /// keyspaces.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?;
    /// assert_eq!(ages.types()?, None);
    /// ages.typed::<String, u32>()?;
    /// assert_eq!(ages.types()?.map(|types| types.key.name), Some("String".to_string()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The keyspace was dropped, the store is closed, or the record is damaged.
    pub fn types(&self) -> Result<Option<KeyspaceTypes>> {
        self.shared.recorded_types(&self.state)
    }

    /// Records or compares types as [`Keyspace::typed`] does, for a program that knows them by
    /// their names only, such as an interpreter; see [`DynamicType`](crate::typed::DynamicType).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// store.keyspace("ages")?.typed::<String, u32>()?;
    /// let ages = store.keyspace("ages")?;
    /// let mut types = ages.types()?.expect("they were recorded");
    /// ages.declare_types(&types)?;
    /// types.value.name = "f32".to_string();
    /// assert!(matches!(ages.declare_types(&types), Err(Error::WrongTypes { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::typed`].
    pub fn declare_types(&self, types: &KeyspaceTypes) -> Result<()> {
        self.take_types(types, KeyspaceKind::Plain)
    }

    /// Records the types of a keyspace of a kind, if it has none and no entry; otherwise compares
    /// them with the recorded ones.
    pub(crate) fn take_types(&self, types: &KeyspaceTypes, kind: KeyspaceKind) -> Result<()> {
        let shared = &self.shared;
        if !shared.has_types(&self.state, types)?
            && shared.takes_types(&self.state, kind)
            && self.is_empty()?
        {
            shared.record_first_types(&self.state, types)?;
        }
        Ok(())
    }

    /// Like [`Keyspace::typed`], and records the types, whatever was recorded: for a keyspace that
    /// was filled before types were recorded, or whose entries were migrated to a new version.
    /// Stored entries are neither read nor changed, and earlier handles go on with their types.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?;
    /// let small = ages.typed::<String, u8>()?;
    /// small.put("ada", &36)?;
    /// // Larger numbers are needed: each entry is written anew, in one commit.
    /// store.exclusive(|tx| {
    ///     for (name, age) in small.iter().collect::<Result<Vec<_>, _>>()? {
    ///         tx.put(&ages, name, u32::from(age).to_le_bytes())?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// let ages = ages.retype::<String, u32>()?;
    /// assert_eq!(ages.get("ada")?, Some(36));
    /// assert!(store.keyspace("ages")?.typed::<String, u8>().is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::typed`], except [`Error::WrongTypes`](crate::Error::WrongTypes);
    /// [`Error::WrongKind`](crate::Error::WrongKind) if its entries expire.
    pub fn retype<K: Key, V: Value>(&self) -> Result<TypedKeyspace<K, V>> {
        check_plain(self.name(), self.state.kind)?;
        self.shared.record_types(&self.state, &types_of::<K, V>())?;
        Ok(TypedKeyspace { keyspace: self.clone(), types: PhantomData })
    }
}

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// The keyspace, as bytes.
    pub fn untyped(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The value of a key. Costs as [`Keyspace::get`]: O(log n), and decoding.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; [`Error::Encoding`](crate::Error::Encoding) if the value is not of
    /// type `V`.
    pub fn get<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.keyspace.get(encode_key(key))?.map(|bytes| self.value(bytes)).transpose()
    }

    /// Whether the key exists. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::contains`].
    pub fn contains<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.keyspace.contains(encode_key(key))
    }

    /// Sets the value of a key, whether it had one or not, in a commit of its own. Costs as
    /// [`Keyspace::put`]: O(log n), and reads no file in `lsm`.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn put<Q, W>(&self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.keyspace.put(encode_key(key), self.encode(value, &mut Vec::new())?)
    }

    /// Like [`TypedKeyspace::put`], as one of the changes of a batch.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
    /// let mut batch = store.batch();
    /// ages.put_into(&mut batch, "ada", &36)?;
    /// ages.put_into(&mut batch, "bob", &41)?;
    /// batch.commit()?;
    /// assert_eq!(ages.len()?, 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::put`].
    pub fn put_into<Q, W>(&self, batch: &mut Batch, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        batch.put(&self.keyspace, encode_key(key), self.encode(value, &mut Vec::new())?)
    }

    /// Merges an operand with the value of a key, by the merge operator that the keyspace records,
    /// in a commit of its own. Values and operands are of one type. Costs as [`Keyspace::merge`]:
    /// O(log n), and reads no file in `lsm`.
    ///
    /// Integers are encoded as the library's operators expect them: `u64` and `i64` as 8 bytes,
    /// little-endian.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let options = adamant::KeyspaceOptions::new().merge_operator("add");
    /// let visits = store.keyspace_with("visits", options)?.typed::<String, u64>()?;
    /// visits.merge("home", &1)?;
    /// visits.merge("home", &2)?;
    /// assert_eq!(visits.get("home")?, Some(3));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::merge`].
    pub fn merge<Q, W>(&self, key: &Q, operand: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.keyspace.merge(encode_key(key), self.encode(operand, &mut Vec::new())?)
    }

    /// Like [`TypedKeyspace::merge`], as one of the changes of a batch.
    ///
    /// # Errors
    /// As [`Batch::merge`].
    pub fn merge_into<Q, W>(&self, batch: &mut Batch, key: &Q, operand: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        batch.merge(&self.keyspace, encode_key(key), self.encode(operand, &mut Vec::new())?)
    }

    /// Deletes a key, whether it exists or not, in a commit of its own. Costs as
    /// [`Keyspace::delete`]: O(log n), and reads no file in `lsm`.
    ///
    /// # Errors
    /// As [`Keyspace::delete`].
    pub fn delete<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<()> {
        self.keyspace.delete(encode_key(key))
    }

    /// Like [`TypedKeyspace::delete`], as one of the changes of a batch.
    ///
    /// # Errors
    /// As [`Batch::delete`].
    pub fn delete_from<Q: KeyFor<K> + ?Sized>(&self, batch: &mut Batch, key: &Q) -> Result<()> {
        batch.delete(&self.keyspace, encode_key(key))
    }

    /// Like [`TypedKeyspace::put`], and reports whether the key had a value: true if it was
    /// replaced. Costs as [`Keyspace::insert`]: O(log n), and in `lsm` a search as well, which may
    /// read the device.
    ///
    /// # Errors
    /// As [`Keyspace::insert`].
    pub fn insert<Q, W>(&self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.keyspace.insert(encode_key(key), self.encode(value, &mut Vec::new())?)
    }

    /// Like [`TypedKeyspace::delete`], and reports whether the key existed. Costs as
    /// [`Keyspace::remove`]: O(log n), and in `lsm` a search as well, which may read the device.
    ///
    /// # Errors
    /// As [`Keyspace::remove`].
    pub fn remove<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.keyspace.remove(encode_key(key))
    }

    /// Removes a key and returns its value. Costs as [`Keyspace::take`]: O(log n), and in `lsm` a
    /// search, which may read the device.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?.typed::<u64, String>()?;
    /// jobs.put(&7, "sweep")?;
    /// assert_eq!(jobs.take(&7)?, Some("sweep".to_string()));
    /// assert!(!jobs.contains(&7)?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::take`]; [`Error::Encoding`](crate::Error::Encoding) as
    /// [`TypedKeyspace::get`], and then the key is gone.
    pub fn take<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.keyspace.take(encode_key(key))?.map(|bytes| self.value(bytes)).transpose()
    }

    /// Deletes all entries in a range of keys, like [`Keyspace::delete_range`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let readings = store.keyspace("readings")?.typed::<i32, f64>()?;
    /// for (hour, degrees) in [(-1, 3.5), (0, 4.0), (1, 4.5)] {
    ///     readings.put(&hour, &degrees)?;
    /// }
    /// readings.delete_range(..0)?;
    /// assert_eq!(readings.first()?, Some((0, 4.0)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::delete_range`].
    pub fn delete_range(&self, range: impl KeyBoundsFor<K>) -> Result<()> {
        self.keyspace.delete_range(range.encoded())
    }

    /// The entry with the lowest key. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::first`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn first(&self) -> Result<Option<(K, V)>> {
        self.keyspace.first()?.map(|entry| self.entry(entry)).transpose()
    }

    /// The entry with the highest key. O(log n).
    ///
    /// # Errors
    /// As [`Keyspace::last`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn last(&self) -> Result<Option<(K, V)>> {
        self.keyspace.last()?.map(|entry| self.entry(entry)).transpose()
    }

    /// The number of entries. O(1).
    ///
    /// # Errors
    /// As [`Keyspace::len`].
    pub fn len(&self) -> Result<u64> {
        self.keyspace.len()
    }

    /// Whether there is no entry. O(1).
    ///
    /// # Errors
    /// As [`Keyspace::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.keyspace.is_empty()
    }
}

impl<K, V> Clone for TypedKeyspace<K, V> {
    fn clone(&self) -> Self {
        Self { keyspace: self.keyspace.clone(), types: PhantomData }
    }
}

impl<K, V> fmt::Debug for TypedKeyspace<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedKeyspace").field(&self.keyspace).finish()
    }
}
