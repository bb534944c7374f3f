//! Moves of typed entries, in commits of their own and in batches.
//!
//! Purpose: values move as bytes, so the two keyspaces have values of the same type; their keys may
//! differ.

use adamant_trees::Moved;

use super::bounds::KeyBoundsFor;
use super::key::{Key, KeyFor, encode_key};
use super::keyspace::TypedKeyspace;
use super::value::Value;
use crate::batch::builder::Batch;
use crate::error::Result;
use crate::keyspace::moves::MovedRange;

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// Moves the value of a key to another key, in one commit. Like
    /// [`Keyspace::rename`](crate::Keyspace::rename).
    ///
    /// # Errors
    /// As [`Keyspace::rename`](crate::Keyspace::rename).
    pub fn rename<Q, R>(&self, key: &Q, new_key: &R) -> Result<Moved>
    where
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<K> + ?Sized,
    {
        self.move_to(key, self, new_key)
    }

    /// Like [`TypedKeyspace::rename`], as one of the changes of a batch.
    ///
    /// # Errors
    /// As [`Batch::rename`].
    pub fn rename_in<Q, R>(&self, batch: &mut Batch, key: &Q, new_key: &R) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<K> + ?Sized,
    {
        batch.rename(&self.keyspace, encode_key(key), encode_key(new_key))
    }

    /// Moves the value of a key to a key of another keyspace of the same store, with values of the
    /// same type, in one commit. Like [`Keyspace::move_to`](crate::Keyspace::move_to).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let waiting = store.keyspace("waiting")?.typed::<u64, String>()?;
    /// let done = store.keyspace("done")?.typed::<(String, u64), String>()?;
    /// waiting.put(&7, "sweep")?;
    /// assert!(waiting.move_to(&7, &done, &("ada", 7))?.is_moved());
    /// assert_eq!(done.first()?, Some((("ada".to_string(), 7), "sweep".to_string())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::move_to`](crate::Keyspace::move_to).
    pub fn move_to<L, Q, R>(
        &self,
        key: &Q,
        target: &TypedKeyspace<L, V>,
        new_key: &R,
    ) -> Result<Moved>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        self.keyspace.move_to(encode_key(key), &target.keyspace, encode_key(new_key))
    }

    /// Like [`TypedKeyspace::move_to`], as one of the changes of a batch.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let waiting = store.keyspace("waiting")?.typed::<u64, String>()?;
    /// let done = store.keyspace("done")?.typed::<u64, String>()?;
    /// waiting.extend([(7, "sweep"), (8, "mop"), (9, "dust")])?;
    /// let mut batch = store.batch();
    /// waiting.move_in(&mut batch, &7, &done, &1)?;
    /// waiting.rename_in(&mut batch, &8, &7)?;
    /// waiting.swap_in(&mut batch, &7, &waiting, &9)?;
    /// batch.commit()?;
    /// assert_eq!((done.len()?, waiting.get(&7)?), (1, Some("dust".to_string())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::move_to`].
    pub fn move_in<L, Q, R>(
        &self,
        batch: &mut Batch,
        key: &Q,
        target: &TypedKeyspace<L, V>,
        new_key: &R,
    ) -> Result<()>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        batch.move_to(&self.keyspace, encode_key(key), &target.keyspace, encode_key(new_key))
    }

    /// Swaps the values of two keys in one commit; false, and nothing is changed, unless both
    /// exist. Like [`Keyspace::swap`](crate::Keyspace::swap).
    ///
    /// # Errors
    /// As [`Keyspace::swap`](crate::Keyspace::swap).
    pub fn swap<L, Q, R>(&self, key: &Q, other: &TypedKeyspace<L, V>, other_key: &R) -> Result<bool>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        self.keyspace.swap(encode_key(key), &other.keyspace, encode_key(other_key))
    }

    /// Like [`TypedKeyspace::swap`], as one of the changes of a batch.
    ///
    /// # Errors
    /// As [`Batch::swap`].
    pub fn swap_in<L, Q, R>(
        &self,
        batch: &mut Batch,
        key: &Q,
        other: &TypedKeyspace<L, V>,
        other_key: &R,
    ) -> Result<()>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        batch.swap(&self.keyspace, encode_key(key), &other.keyspace, encode_key(other_key))
    }

    /// Moves the entries of a range to another keyspace with the same types, in chunks. Like
    /// [`Keyspace::move_range`](crate::Keyspace::move_range).
    ///
    /// # Errors
    /// As [`Keyspace::move_range`](crate::Keyspace::move_range).
    pub fn move_range(
        &self,
        range: impl KeyBoundsFor<K>,
        target: &TypedKeyspace<K, V>,
    ) -> Result<MovedRange> {
        self.keyspace.move_range(range.encoded(), &target.keyspace)
    }
}
