//! Writes of typed keyspaces in transactions.

use adamant_trees::Moved;

use super::bounds::KeyBoundsFor;
use super::key::{Key, KeyFor, encode_key};
use super::keyspace::TypedKeyspace;
use super::transaction::TypedTransaction;
use super::value::{Value, ValueFor};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::moves::MovedRange;
use crate::transaction::handle::Transaction;
use crate::transaction::shared::TransactionAccess;

impl<K: Key, V: Value, T: TransactionAccess> TypedTransaction<'_, K, V, T> {
    /// Sets the value of a key, whether it had one or not. Like [`Transaction::put`].
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn put<Q, W>(&mut self, key: &Q, value: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.write(key, value, |tx, keyspace, key, value| tx.put(keyspace, key, value))
    }

    /// Like [`TypedTransaction::put`], and reports whether the key had a value. Like
    /// [`Transaction::insert`].
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert<Q, W>(&mut self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.write(key, value, |tx, keyspace, key, value| tx.insert(keyspace, key, value))
    }

    /// Sets the value of a key that has none; false, and nothing is written, if it has one. Like
    /// [`Transaction::insert_unique`].
    ///
    /// # Errors
    /// As [`Transaction::insert_unique`].
    pub fn insert_unique<Q, W>(&mut self, key: &Q, value: &W) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.write(key, value, |tx, keyspace, key, value| tx.insert_unique(keyspace, key, value))
    }

    /// Merges an operand with the value of a key. Like [`Transaction::merge`].
    ///
    /// # Errors
    /// As [`Transaction::merge`].
    pub fn merge<Q, W>(&mut self, key: &Q, operand: &W) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        self.write(key, operand, |tx, keyspace, key, operand| tx.merge(keyspace, key, operand))
    }

    fn write<R, Q, W>(
        &mut self,
        key: &Q,
        value: &W,
        write: impl FnOnce(&mut Transaction, &Keyspace, Vec<u8>, &[u8]) -> Result<R>,
    ) -> Result<R>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let (keyspace, mut spare) = (self.keyspace, Vec::new());
        let value = keyspace.encode(value, &mut spare)?;
        self.transaction.access(|tx| write(tx, keyspace.untyped(), encode_key(key), value))
    }

    /// Deletes a key, whether it exists or not. Like [`Transaction::delete`].
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<()> {
        let (keyspace, key) = (self.keyspace.untyped(), encode_key(key));
        self.transaction.access(|tx| tx.delete(keyspace, key))
    }

    /// Like [`TypedTransaction::delete`], and reports whether the key existed. Like
    /// [`Transaction::remove`].
    ///
    /// # Errors
    /// As [`Transaction::remove`].
    pub fn remove<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        let (keyspace, key) = (self.keyspace.untyped(), encode_key(key));
        self.transaction.access(|tx| tx.remove(keyspace, key))
    }

    /// Removes a key and returns its value. Like [`Transaction::take`].
    ///
    /// # Errors
    /// As [`Transaction::take`]; [`Error::Encoding`](crate::Error::Encoding).
    pub fn take<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        let (keyspace, key) = (self.keyspace, encode_key(key));
        keyspace.value_of(self.transaction.access(|tx| tx.take(keyspace.untyped(), key))?)
    }

    /// Deletes all entries of a range of keys. Like [`Transaction::delete_range`].
    ///
    /// # Errors
    /// As [`Transaction::delete_range`].
    pub fn delete_range(&mut self, range: impl KeyBoundsFor<K>) -> Result<()> {
        let keyspace = self.keyspace.untyped();
        self.transaction.access(|tx| tx.delete_range(keyspace, range.encoded()))
    }

    /// Removes all entries. Like [`Transaction::clear`].
    ///
    /// # Errors
    /// As [`Transaction::clear`].
    pub fn clear(&mut self) -> Result<()> {
        let keyspace = self.keyspace.untyped();
        self.transaction.access(|tx| tx.clear(keyspace))
    }

    /// Moves the value of a key to another key. Like [`Transaction::rename`].
    ///
    /// # Errors
    /// As [`Transaction::rename`].
    pub fn rename<Q, R>(&mut self, key: &Q, new_key: &R) -> Result<Moved>
    where
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<K> + ?Sized,
    {
        self.move_to(key, self.keyspace, new_key)
    }

    /// Moves the value of a key to a key of another keyspace of the same store, with values of the
    /// same type. Like [`Transaction::move_to`].
    ///
    /// # Errors
    /// As [`Transaction::move_to`].
    pub fn move_to<L, Q, R>(
        &mut self,
        key: &Q,
        target: &TypedKeyspace<L, V>,
        new_key: &R,
    ) -> Result<Moved>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        let (source, target) = (self.keyspace.untyped(), target.untyped());
        let (key, new_key) = (encode_key(key), encode_key(new_key));
        self.transaction.access(|tx| tx.move_to(source, key, target, new_key))
    }

    /// Swaps the values of two keys; false, and nothing is written, unless both exist. Like
    /// [`Transaction::swap`].
    ///
    /// # Errors
    /// As [`Transaction::swap`].
    pub fn swap<L, Q, R>(
        &mut self,
        key: &Q,
        other: &TypedKeyspace<L, V>,
        other_key: &R,
    ) -> Result<bool>
    where
        L: Key,
        Q: KeyFor<K> + ?Sized,
        R: KeyFor<L> + ?Sized,
    {
        let (keyspace, other) = (self.keyspace.untyped(), other.untyped());
        let (key, other_key) = (encode_key(key), encode_key(other_key));
        self.transaction.access(|tx| tx.swap(keyspace, key, other, other_key))
    }

    /// Moves the entries of a range to another keyspace with the same types. Like
    /// [`Transaction::move_range`].
    ///
    /// # Errors
    /// As [`Transaction::move_range`].
    pub fn move_range(
        &mut self,
        range: impl KeyBoundsFor<K>,
        target: &TypedKeyspace<K, V>,
    ) -> Result<MovedRange> {
        let (source, target) = (self.keyspace.untyped(), target.untyped());
        self.transaction.access(|tx| tx.move_range(source, range.encoded(), target))
    }
}
