//! Typed entries that are removed after a look at them: pops, and choices by a closure.
//!
//! Purpose: `pop_first`, `pop_last`, `retain` and `extract_if`, of keyspaces and within
//! transactions. Each entry is decoded for the closure.
//! Thread safety: as the keyspace, and as the transaction.

use adamant_slice::Slice;

use super::bounds::KeyBoundsFor;
use super::key::Key;
use super::keyspace::TypedKeyspace;
use super::transaction::TypedTransaction;
use super::value::Value;
use crate::bounds::KeyRange;
use crate::error::Result;
use crate::transaction::shared::TransactionAccess;

impl<K: Key, V: Value> TypedKeyspace<K, V> {
    /// Removes the entry with the lowest key and returns it, like
    /// [`Keyspace::pop_first`](crate::Keyspace::pop_first).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?.typed::<u64, String>()?;
    /// jobs.put(&10, "mop")?;
    /// jobs.put(&9, "sweep")?;
    /// assert_eq!(jobs.pop_first()?, Some((9, "sweep".to_string())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::pop_first`](crate::Keyspace::pop_first);
    /// [`Error::Encoding`](crate::Error::Encoding) as [`TypedKeyspace::get`], and then the entry is
    /// gone.
    pub fn pop_first(&self) -> Result<Option<(K, V)>> {
        self.untyped().pop_first()?.map(|entry| self.entry(entry)).transpose()
    }

    /// Removes the entry with the highest key and returns it, like
    /// [`Keyspace::pop_last`](crate::Keyspace::pop_last).
    ///
    /// # Errors
    /// As [`TypedKeyspace::pop_first`].
    pub fn pop_last(&self) -> Result<Option<(K, V)>> {
        self.untyped().pop_last()?.map(|entry| self.entry(entry)).transpose()
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others, in
    /// one commit; returns how many it deleted. Like [`Keyspace::retain`](crate::Keyspace::retain),
    /// and each entry is decoded.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?.typed::<String, u32>()?;
    /// for (name, count) in [("apples", 7), ("pears", 0), ("plums", 0)] {
    ///     stock.put(name, &count)?;
    /// }
    /// assert_eq!(stock.retain(.., |_, count| *count > 0)?, 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::retain`](crate::Keyspace::retain);
    /// [`Error::Encoding`](crate::Error::Encoding) if one of the entries is not of these types.
    /// Nothing was deleted.
    pub fn retain(
        &self,
        range: impl KeyBoundsFor<K>,
        mut keeps: impl FnMut(&K, &V) -> bool,
    ) -> Result<u64> {
        let deleted = self.extract(range, |(key, value)| (!keeps(&key, &value)).then_some(()))?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, in one commit, and
    /// returns them in the order of their keys. Like
    /// [`Keyspace::extract_if`](crate::Keyspace::extract_if).
    ///
    /// # Errors
    /// As [`TypedKeyspace::retain`].
    pub fn extract_if(
        &self,
        range: impl KeyBoundsFor<K>,
        mut takes: impl FnMut(&K, &V) -> bool,
    ) -> Result<Vec<(K, V)>> {
        self.extract(range, |(key, value)| takes(&key, &value).then_some((key, value)))
    }

    fn extract<T>(
        &self,
        range: impl KeyBoundsFor<K>,
        mut choose: impl FnMut((K, V)) -> Option<T>,
    ) -> Result<Vec<T>> {
        self.untyped().extract(KeyRange::new(&range.encoded()), |key, value| {
            Ok(choose(self.entry((key.into(), value.into()))?))
        })
    }
}

impl<K: Key, V: Value, A: TransactionAccess> TypedTransaction<'_, K, V, A> {
    /// Removes the entry with the lowest key and returns it. Like
    /// [`Transaction::pop_first`](crate::Transaction::pop_first).
    ///
    /// # Errors
    /// As [`Transaction::pop_first`](crate::Transaction::pop_first);
    /// [`Error::Encoding`](crate::Error::Encoding).
    pub fn pop_first(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = self.keyspace;
        let found = self.transaction.access(|tx| tx.pop_first(keyspace.untyped()))?;
        found.map(|entry| keyspace.entry(entry)).transpose()
    }

    /// Removes the entry with the highest key and returns it. Like
    /// [`Transaction::pop_last`](crate::Transaction::pop_last).
    ///
    /// # Errors
    /// As [`TypedTransaction::pop_first`].
    pub fn pop_last(&mut self) -> Result<Option<(K, V)>> {
        let keyspace = self.keyspace;
        let found = self.transaction.access(|tx| tx.pop_last(keyspace.untyped()))?;
        found.map(|entry| keyspace.entry(entry)).transpose()
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others;
    /// returns how many it deleted. Like [`Transaction::retain`](crate::Transaction::retain).
    ///
    /// # Errors
    /// As [`Transaction::retain`](crate::Transaction::retain);
    /// [`Error::Encoding`](crate::Error::Encoding). Nothing was deleted.
    pub fn retain(
        &mut self,
        range: impl KeyBoundsFor<K>,
        mut keeps: impl FnMut(&K, &V) -> bool,
    ) -> Result<u64> {
        let deleted = self.extract(range, |(key, value)| (!keeps(&key, &value)).then_some(()))?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, and returns them in the
    /// order of their keys. Like [`Transaction::extract_if`](crate::Transaction::extract_if).
    ///
    /// # Errors
    /// As [`TypedTransaction::retain`].
    pub fn extract_if(
        &mut self,
        range: impl KeyBoundsFor<K>,
        mut takes: impl FnMut(&K, &V) -> bool,
    ) -> Result<Vec<(K, V)>> {
        self.extract(range, |(key, value)| takes(&key, &value).then_some((key, value)))
    }

    fn extract<T>(
        &mut self,
        range: impl KeyBoundsFor<K>,
        mut choose: impl FnMut((K, V)) -> Option<T>,
    ) -> Result<Vec<T>> {
        let keyspace = self.keyspace;
        keyspace.untyped().check_writes()?;
        let range = KeyRange::new(&range.encoded());
        let choose =
            |key: &Slice, value: &Slice| Ok(choose(keyspace.entry((key.clone(), value.clone()))?));
        self.transaction.access(|tx| tx.extract(keyspace.untyped(), range, choose))
    }
}
