//! Changes of typed expiring keyspaces within transactions.

use super::bounds::KeyBoundsFor;
use super::expiring_transaction::TypedExpiringTransaction;
use super::key::{Key, KeyFor, encode_key};
use super::value::{Value, ValueFor};
use crate::bounds::KeyRange;
use crate::error::Result;
use crate::expiring::Deadline;

impl<K: Key, V: Value> TypedExpiringTransaction<'_, K, V> {
    /// Sets the value and the deadline of a key, whether it had them or not. Like
    /// [`ExpiringTransaction::put`](crate::expiring::ExpiringTransaction::put).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::put`](crate::expiring::ExpiringTransaction::put);
    /// [`Error::Encoding`](crate::Error::Encoding) if the value cannot be encoded.
    pub fn put<Q, W>(&mut self, key: &Q, value: &W, deadline: Option<Deadline>) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        self.entries.put(encode_key(key), self.typed.codec.encode(value, &mut spare)?, deadline)
    }

    /// Like [`TypedExpiringTransaction::put`]; true if it replaced an entry that had not expired.
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::put`].
    pub fn insert<Q, W>(&mut self, key: &Q, value: &W, deadline: Option<Deadline>) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        self.entries.insert(encode_key(key), self.typed.codec.encode(value, &mut spare)?, deadline)
    }

    /// Like [`TypedExpiringTransaction::put`], for a key without an entry that has not expired;
    /// false, and nothing is changed, if it has one. Like
    /// [`ExpiringTransaction::insert_unique`](crate::expiring::ExpiringTransaction::insert_unique).
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::put`].
    pub fn insert_unique<Q, W>(
        &mut self,
        key: &Q,
        value: &W,
        deadline: Option<Deadline>,
    ) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        let value = self.typed.codec.encode(value, &mut spare)?;
        self.entries.insert_unique(encode_key(key), value, deadline)
    }

    /// Deletes an entry and its deadline. Like
    /// [`ExpiringTransaction::delete`](crate::expiring::ExpiringTransaction::delete).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::delete`](crate::expiring::ExpiringTransaction::delete).
    pub fn delete<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<()> {
        self.entries.delete(encode_key(key))
    }

    /// Like [`TypedExpiringTransaction::delete`]; true if the entry existed and had not expired.
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::delete`].
    pub fn remove<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        self.entries.remove(encode_key(key))
    }

    /// Removes an entry and returns its value. Like
    /// [`ExpiringTransaction::take`](crate::expiring::ExpiringTransaction::take).
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::delete`]; [`Error::Encoding`](crate::Error::Encoding), and
    /// then the entry is gone.
    pub fn take<Q: KeyFor<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<V>> {
        self.typed.codec.value_of(self.entries.take(encode_key(key))?)
    }

    /// Changes or removes the deadline of an entry; false if there is none. Like
    /// [`ExpiringTransaction::set_deadline`](crate::expiring::ExpiringTransaction::set_deadline).
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::put`].
    pub fn set_deadline<Q: KeyFor<K> + ?Sized>(
        &mut self,
        key: &Q,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        self.entries.set_deadline(encode_key(key), deadline)
    }

    /// Removes expired entries, at most so many. Like
    /// [`remove_expired`](crate::expiring::ExpiringTransaction::remove_expired) of bytes.
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::delete`].
    pub fn remove_expired(&mut self, entries_max: usize) -> Result<u64> {
        self.entries.remove_expired(entries_max)
    }

    /// Deletes all entries of a range that have not expired. Like
    /// [`ExpiringTransaction::delete_range`](crate::expiring::ExpiringTransaction::delete_range).
    ///
    /// # Errors
    /// As
    /// [`ExpiringTransaction::delete_range`](crate::expiring::ExpiringTransaction::delete_range).
    pub fn delete_range(&mut self, range: impl KeyBoundsFor<K>) -> Result<()> {
        self.entries.delete_range(range.encoded())
    }

    /// Removes all entries. Like
    /// [`ExpiringTransaction::clear`](crate::expiring::ExpiringTransaction::clear).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::clear`](crate::expiring::ExpiringTransaction::clear).
    pub fn clear(&mut self) -> Result<()> {
        self.entries.clear()
    }

    /// Removes the entry with the lowest key of those that have not expired and returns it. Like
    /// [`ExpiringTransaction::pop_first`](crate::expiring::ExpiringTransaction::pop_first).
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::take`].
    pub fn pop_first(&mut self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.pop_first()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// Removes the entry with the highest key, like [`TypedExpiringTransaction::pop_first`].
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::take`].
    pub fn pop_last(&mut self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.entries.pop_last()?.map(|entry| self.typed.codec.dated(entry)).transpose()
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others;
    /// returns how many it deleted. Like
    /// [`ExpiringTransaction::retain`](crate::expiring::ExpiringTransaction::retain).
    ///
    /// # Errors
    /// As [`ExpiringTransaction::retain`](crate::expiring::ExpiringTransaction::retain);
    /// [`Error::Encoding`](crate::Error::Encoding) if one of the entries is not of these types.
    /// Nothing was deleted.
    pub fn retain(
        &mut self,
        range: impl KeyBoundsFor<K>,
        mut keeps: impl FnMut(&K, &V, Option<Deadline>) -> bool,
    ) -> Result<u64> {
        let codec = &self.typed.codec;
        let deleted = self.entries.extract(KeyRange::new(&range.encoded()), |entry| {
            let (key, value, deadline) = codec.dated(entry)?;
            Ok((!keeps(&key, &value, deadline)).then_some(()))
        })?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true; returns them. Like
    /// [`ExpiringTransaction::extract_if`](crate::expiring::ExpiringTransaction::extract_if).
    ///
    /// # Errors
    /// As [`TypedExpiringTransaction::retain`].
    pub fn extract_if(
        &mut self,
        range: impl KeyBoundsFor<K>,
        mut takes: impl FnMut(&K, &V, Option<Deadline>) -> bool,
    ) -> Result<Vec<(K, V, Option<Deadline>)>> {
        let codec = &self.typed.codec;
        self.entries.extract(KeyRange::new(&range.encoded()), |entry| {
            let (key, value, deadline) = codec.dated(entry)?;
            Ok(takes(&key, &value, deadline).then_some((key, value, deadline)))
        })
    }
}
