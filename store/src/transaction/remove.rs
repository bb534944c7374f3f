//! Removals of ranges, and of entries that a closure chooses, in a transaction.
//!
//! Invariants: nothing is deleted before the closure has seen all entries of the range; so an error
//! or a panic in it leaves the transaction's writes as they were. What the closure saw counts as
//! read.
//! Thread safety: as all of a transaction. Closures run under no lock of their own.

use adamant_slice::Slice;

use crate::bounds::{KeyBounds, KeyRange};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::transaction::handle::Transaction;

impl Transaction {
    /// Deletes all entries of a range, which counts as read. See [`Keyspace::delete_range`]; but it
    /// deletes entry by entry with every engine: O(m) in the m entries of the range, and a copy of
    /// each key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let visits = store.keyspace("visits")?;
    /// visits.extend([("2026-03-01", ""), ("2026-03-02", ""), ("2026-04-01", "")])?;
    /// store.transaction(|tx| {
    ///     tx.put(&visits, "2026-03-03", "")?;
    ///     tx.delete_range(&visits, "2026-03".."2026-04")
    /// })?;
    /// assert_eq!(visits.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::delete`]; nothing was deleted.
    pub fn delete_range(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> Result<()> {
        keyspace.check_writes()?;
        let keys = self.iter_over(keyspace, KeyRange::new(&range)).keys();
        for key in keys.collect::<Result<Vec<Slice>>>()? {
            self.delete_own(keyspace, &key)?;
        }
        Ok(())
    }

    /// Removes all entries: [`Transaction::delete_range`] of the whole keyspace.
    ///
    /// # Errors
    /// As [`Transaction::delete_range`].
    pub fn clear(&mut self, keyspace: &Keyspace) -> Result<()> {
        self.delete_range(keyspace, ..)
    }

    /// Keeps the entries of a range for which the closure returns true, and deletes the others;
    /// returns how many it deleted. The whole range counts as read. See [`Keyspace::retain`].
    ///
    /// The closure runs under no lock: it may use the store, but what it writes there belongs to
    /// other commits. If it panics, the transaction goes on as if this had not been called.
    ///
    /// O(m) in the m entries of the range, and O(log w) in the w writes of the transaction for each
    /// that is deleted.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.extend([("apples", "7"), ("pears", "0"), ("plums", "0")])?;
    /// let deleted = store.transaction(|tx| {
    ///     tx.put(&stock, "quinces", "0")?;
    ///     tx.retain(&stock, "b".., |_, count| count != b"0")
    /// })?;
    /// assert_eq!((deleted, stock.len()?), (3, 1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::delete`]; nothing was deleted.
    pub fn retain(
        &mut self,
        keyspace: &Keyspace,
        range: impl KeyBounds,
        mut keeps: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        keyspace.check_writes()?;
        let deleted = self.extract(keyspace, KeyRange::new(&range), |key, value| {
            Ok((!keeps(key, value)).then_some(()))
        })?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, and returns them in the
    /// order of their keys. Like [`Transaction::retain`], the other way round.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (waiting, due) = (store.keyspace("waiting")?, store.keyspace("due")?);
    /// waiting.extend([("1", "monday"), ("2", "friday"), ("3", "monday")])?;
    /// store.transaction(|tx| {
    ///     for (number, day) in tx.extract_if(&waiting, .., |_, day| day == b"monday")? {
    ///         tx.put(&due, number, day)?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!((waiting.len()?, due.len()?), (1, 2));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::retain`].
    pub fn extract_if(
        &mut self,
        keyspace: &Keyspace,
        range: impl KeyBounds,
        mut takes: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Vec<(Slice, Slice)>> {
        keyspace.check_writes()?;
        self.extract(keyspace, KeyRange::new(&range), |key, value| {
            Ok(takes(key, value).then(|| (key.clone(), value.clone())))
        })
    }

    /// Deletes the entries of a range of which the closure makes something, and returns what it
    /// made. Without the keyspace's check of writes.
    pub(crate) fn extract<T>(
        &mut self,
        keyspace: &Keyspace,
        range: Option<KeyRange>,
        mut choose: impl FnMut(&Slice, &Slice) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let (mut keys, mut made) = (Vec::new(), Vec::new());
        for entry in self.iter_over(keyspace, range) {
            let (key, value) = entry?;
            if let Some(chosen) = choose(&key, &value)? {
                made.push(chosen);
                keys.push(key);
            }
        }
        for key in &keys {
            self.delete_own(keyspace, key)?;
        }
        Ok(made)
    }
}
