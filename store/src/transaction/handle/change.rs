//! Writes of a transaction that depend on what is there: inserts, removals, moves.
//!
//! Purpose: what a keyspace does in one commit each, composed of reads and writes of the
//! transaction. A move copies the value: until the commit the snapshot reads it where it was.
//! Invariants: arguments are checked before the first write, so an `Err` leaves the writes as they
//! were.

use adamant_trees::Moved;

use super::Transaction;
use crate::bounds::{KeyBounds, KeyRange};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::moves::MovedRange;
use crate::limits::check_key;

impl Transaction {
    /// Like [`Transaction::put`], and reports whether the key had a value: true if it was replaced.
    /// Costs a [`Transaction::contains`] as well, O(log n), and the key counts as read.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// assert!(!transaction.insert(&stock, "apples", "7")?);
    /// assert!(transaction.insert(&stock, "apples", "8")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::put`].
    pub fn insert(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let is_there = self.contains(keyspace, &key)?;
        self.put(keyspace, key, value)?;
        Ok(is_there)
    }

    /// Sets the value of a key that has none; false, and nothing is written, if it has one. Costs
    /// as [`Transaction::insert`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let names = store.keyspace("names")?;
    /// let is_mine = store.transaction(|tx| tx.insert_unique(&names, "ada", "1"))?;
    /// assert!(is_mine && !store.transaction(|tx| tx.insert_unique(&names, "ada", "2"))?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::insert`].
    pub fn insert_unique(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let is_absent = !self.contains(keyspace, &key)?;
        if is_absent {
            self.put(keyspace, key, value)?;
        }
        Ok(is_absent)
    }

    /// Like [`Transaction::delete`], and reports whether the key existed. Costs as
    /// [`Transaction::insert`]; writes nothing if there is no such key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let mut transaction = store.begin()?;
    /// assert!(transaction.remove(&stock, "apples")?);
    /// assert!(!transaction.remove(&stock, "apples")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::delete`].
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        let is_there = self.contains(keyspace, &key)?;
        if is_there {
            self.delete(keyspace, key)?;
        }
        Ok(is_there)
    }

    /// Moves the value of a key to another key, replacing what is there. Both count as read. See
    /// [`Keyspace::rename`]; but the value is copied, O(log n) and O(value), since its block
    /// belongs to the snapshot until the commit. [`Batch::rename`](crate::Batch::rename) does not
    /// copy.
    ///
    /// # Errors
    /// As [`Transaction::get`] and [`Transaction::put`]; nothing is changed.
    pub fn rename(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        new_key: impl AsRef<[u8]>,
    ) -> Result<Moved> {
        self.move_to(keyspace, key, keyspace, new_key)
    }

    /// Moves the value of a key to a key of another keyspace of the same store, by the rules of
    /// [`Transaction::rename`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (waiting, done) = (store.keyspace("waiting")?, store.keyspace("done")?);
    /// waiting.put("1", "sweep")?;
    /// let moved = store.transaction(|tx| tx.move_to(&waiting, "1", &done, "1"))?;
    /// assert!(moved.is_moved() && waiting.is_empty()?);
    /// assert_eq!(done.get("1")?, Some("sweep".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::rename`].
    pub fn move_to(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        target: &Keyspace,
        new_key: impl AsRef<[u8]>,
    ) -> Result<Moved> {
        let (key, new_key) = (key.as_ref(), new_key.as_ref());
        self.check_pair((keyspace, key), (target, new_key))?;
        let Some(value) = self.get(keyspace, key)? else { return Ok(Moved::Absent) };
        if keyspace.state.id == target.state.id && key == new_key {
            return Ok(Moved::Placed);
        }
        let is_replaced = self.insert(target, new_key, value)?;
        self.delete(keyspace, key)?;
        Ok(if is_replaced { Moved::Replaced } else { Moved::Placed })
    }

    /// Swaps the values of two keys; false, and nothing is written, unless both exist. The other
    /// key may be in another keyspace of the same store. Costs as [`Transaction::rename`], twice.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let slots = store.keyspace("slots")?;
    /// slots.extend([("live", "blue"), ("idle", "green")])?;
    /// assert!(store.transaction(|tx| tx.swap(&slots, "live", &slots, "idle"))?);
    /// assert_eq!(slots.get("live")?, Some("green".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::rename`].
    pub fn swap(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        other: &Keyspace,
        other_key: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (key, other_key) = (key.as_ref(), other_key.as_ref());
        self.check_pair((keyspace, key), (other, other_key))?;
        let found = (self.get(keyspace, key)?, self.get(other, other_key)?);
        let (Some(value), Some(other_value)) = found else { return Ok(false) };
        self.put(keyspace, key, other_value)?;
        self.put(other, other_key, value)?;
        Ok(true)
    }

    /// Moves the entries of a range to another keyspace of the same store, each under its key, by
    /// the rules of [`Transaction::rename`]. The range and the keys in the target count as read.
    /// Unlike [`Keyspace::move_range`] it is atomic, and the transaction holds all of the values in
    /// memory. O(m log n) in the m entries of the range.
    ///
    /// # Errors
    /// As [`Transaction::rename`]. After an error of the device some may have moved: a
    /// [`Transaction::savepoint`] undoes that.
    pub fn move_range(
        &mut self,
        keyspace: &Keyspace,
        range: impl KeyBounds,
        target: &Keyspace,
    ) -> Result<MovedRange> {
        self.check_pair((keyspace, &[]), (target, &[]))?;
        let mut moved = MovedRange::default();
        if keyspace.state.id == target.state.id {
            return Ok(moved);
        }
        let keys = self.iter_over(keyspace, KeyRange::new(&range)).keys();
        for key in keys.collect::<Result<Vec<_>>>()? {
            let replaced = self.move_to(keyspace, &key, target, &key)? == Moved::Replaced;
            moved.moved += 1;
            moved.replaced += u64::from(replaced);
        }
        Ok(moved)
    }

    /// Fails unless both may be written in this transaction.
    fn check_pair(&mut self, one: (&Keyspace, &[u8]), other: (&Keyspace, &[u8])) -> Result<()> {
        for (keyspace, key) in [one, other] {
            check_key(key)?;
            keyspace.check_writes()?;
            self.table(keyspace)?;
        }
        Ok(())
    }
}
