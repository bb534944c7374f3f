//! Changes of a typed expiring keyspace, each call one commit.

use super::bounds::KeyBoundsFor;
use super::expiring::TypedExpiring;
use super::key::{Key, KeyFor, encode_key};
use super::value::{Value, ValueFor};
use crate::bounds::KeyRange;
use crate::error::Result;
use crate::expiring::Deadline;

impl<K: Key, V: Value> TypedExpiring<K, V> {
    /// Sets the value and the deadline of a key, whether it had them or not. Like
    /// [`Expiring::put`](crate::Expiring::put).
    ///
    /// # Errors
    /// As [`Expiring::put`](crate::Expiring::put); [`Error::Encoding`](crate::Error::Encoding) if
    /// the value cannot be encoded.
    pub fn put<Q, W>(&self, key: &Q, value: &W, deadline: Option<Deadline>) -> Result<()>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        self.expiring.put(encode_key(key), self.codec.encode(value, &mut spare)?, deadline)
    }

    /// Like [`TypedExpiring::put`]; true if it replaced an entry that had not expired.
    ///
    /// # Errors
    /// As [`TypedExpiring::put`].
    pub fn insert<Q, W>(&self, key: &Q, value: &W, deadline: Option<Deadline>) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        self.expiring.insert(encode_key(key), self.codec.encode(value, &mut spare)?, deadline)
    }

    /// Like [`TypedExpiring::put`], for a key without an entry that has not expired; false, and
    /// nothing is changed, if it has one. Like
    /// [`Expiring::insert_unique`](crate::Expiring::insert_unique).
    ///
    /// # Errors
    /// As [`TypedExpiring::put`].
    pub fn insert_unique<Q, W>(
        &self,
        key: &Q,
        value: &W,
        deadline: Option<Deadline>,
    ) -> Result<bool>
    where
        Q: KeyFor<K> + ?Sized,
        W: ValueFor<V> + ?Sized,
    {
        let mut spare = Vec::new();
        let value = self.codec.encode(value, &mut spare)?;
        self.expiring.insert_unique(encode_key(key), value, deadline)
    }

    /// Deletes an entry and its deadline. Like [`Expiring::delete`](crate::Expiring::delete).
    ///
    /// # Errors
    /// As [`Expiring::delete`](crate::Expiring::delete).
    pub fn delete<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<()> {
        self.expiring.delete(encode_key(key))
    }

    /// Like [`TypedExpiring::delete`]; true if the entry existed and had not expired.
    ///
    /// # Errors
    /// As [`TypedExpiring::delete`].
    pub fn remove<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<bool> {
        self.expiring.remove(encode_key(key))
    }

    /// Removes an entry and returns its value. Like [`Expiring::take`](crate::Expiring::take).
    ///
    /// # Errors
    /// As [`TypedExpiring::delete`]; [`Error::Encoding`](crate::Error::Encoding), and then the
    /// entry is gone.
    pub fn take<Q: KeyFor<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>> {
        self.codec.value_of(self.expiring.take(encode_key(key))?)
    }

    /// Changes or removes the deadline of an entry; false if there is none. Like
    /// [`Expiring::set_deadline`](crate::Expiring::set_deadline).
    ///
    /// # Errors
    /// As [`TypedExpiring::put`].
    pub fn set_deadline<Q: KeyFor<K> + ?Sized>(
        &self,
        key: &Q,
        deadline: Option<Deadline>,
    ) -> Result<bool> {
        self.expiring.set_deadline(encode_key(key), deadline)
    }

    /// Removes expired entries, at most so many. Like
    /// [`Expiring::remove_expired`](crate::Expiring::remove_expired).
    ///
    /// # Errors
    /// As [`TypedExpiring::delete`].
    pub fn remove_expired(&self, entries_max: usize) -> Result<u64> {
        self.expiring.remove_expired(entries_max)
    }

    /// Deletes all entries of a range that have not expired. Like
    /// [`Expiring::delete_range`](crate::Expiring::delete_range).
    ///
    /// # Errors
    /// As [`Expiring::delete_range`](crate::Expiring::delete_range).
    pub fn delete_range(&self, range: impl KeyBoundsFor<K>) -> Result<()> {
        self.expiring.delete_range(range.encoded())
    }

    /// Removes all entries. Like [`Expiring::clear`](crate::Expiring::clear).
    ///
    /// # Errors
    /// As [`Expiring::clear`](crate::Expiring::clear).
    pub fn clear(&self) -> Result<()> {
        self.expiring.clear()
    }

    /// Waits until all commits so far are as durable as its own. Like
    /// [`Expiring::settle`](crate::Expiring::settle).
    ///
    /// # Errors
    /// As [`Expiring::settle`](crate::Expiring::settle).
    pub fn settle(&self) -> Result<()> {
        self.expiring.settle()
    }

    /// Removes the entry with the lowest key of those that have not expired and returns it. Like
    /// [`Expiring::pop_first`](crate::Expiring::pop_first).
    ///
    /// # Errors
    /// As [`TypedExpiring::take`].
    pub fn pop_first(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.expiring.pop_first()?.map(|entry| self.codec.dated(entry)).transpose()
    }

    /// Removes the entry with the highest key, like [`TypedExpiring::pop_first`].
    ///
    /// # Errors
    /// As [`TypedExpiring::take`].
    pub fn pop_last(&self) -> Result<Option<(K, V, Option<Deadline>)>> {
        self.expiring.pop_last()?.map(|entry| self.codec.dated(entry)).transpose()
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others, in
    /// one commit; returns how many it deleted. Like [`Expiring::retain`](crate::Expiring::retain).
    ///
    /// # Errors
    /// As [`Expiring::retain`](crate::Expiring::retain);
    /// [`Error::Encoding`](crate::Error::Encoding) if one of the entries is not of these types.
    /// Nothing was deleted.
    pub fn retain(
        &self,
        range: impl KeyBoundsFor<K>,
        mut keeps: impl FnMut(&K, &V, Option<Deadline>) -> bool,
    ) -> Result<u64> {
        let deleted = self.expiring.extract(KeyRange::new(&range.encoded()), |entry| {
            let (key, value, deadline) = self.codec.dated(entry)?;
            Ok((!keeps(&key, &value, deadline)).then_some(()))
        })?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, in one commit, and
    /// returns them. Like [`Expiring::extract_if`](crate::Expiring::extract_if).
    ///
    /// # Errors
    /// As [`TypedExpiring::retain`].
    pub fn extract_if(
        &self,
        range: impl KeyBoundsFor<K>,
        mut takes: impl FnMut(&K, &V, Option<Deadline>) -> bool,
    ) -> Result<Vec<(K, V, Option<Deadline>)>> {
        self.expiring.extract(KeyRange::new(&range.encoded()), |entry| {
            let (key, value, deadline) = self.codec.dated(entry)?;
            Ok(takes(&key, &value, deadline).then_some((key, value, deadline)))
        })
    }
}
