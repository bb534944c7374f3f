//! Pops: removals of the entry at an end.
//!
//! Purpose: a pop reads an end of the keyspace and deletes what it finds. Pops at one end, one
//! after the other, are a walk over the snapshot in which each entry is deleted; what it read and
//! deleted is noted at its end, once for all of them.
//! Invariants: whatever else iterates, or writes where the walk was, ends it first.

use std::ops::Bound;

use adamant_slice::Slice;

use super::Transaction;
use crate::bounds::{Direction, KeyRange};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;
use crate::transaction::popping::Popping;

impl Transaction {
    /// Removes the entry with the lowest key and returns it; `None` if there is none. It sees the
    /// transaction's own writes. The end of the keyspace up to that key counts as read, as by
    /// [`Transaction::first`]: the commit fails with [`Error::Conflict`](crate::Error::Conflict) if
    /// another one changed it, such as the pop of another transaction.
    ///
    /// O(log n), however much the transaction has removed before it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (waiting, running) = (store.keyspace("waiting")?, store.keyspace("running")?);
    /// waiting.extend([("1", "sweep"), ("2", "mop")])?;
    /// store.transaction(|tx| {
    ///     if let Some((number, job)) = tx.pop_first(&waiting)? {
    ///         tx.put(&running, number, job)?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!((waiting.len()?, running.get("1")?), (1, Some("sweep".into())));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::first`] and [`Transaction::delete`].
    pub fn pop_first(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.pop(keyspace, 0)
    }

    /// Removes the entry with the highest key and returns it, like [`Transaction::pop_first`].
    ///
    /// # Errors
    /// As [`Transaction::pop_first`].
    pub fn pop_last(&mut self, keyspace: &Keyspace) -> Result<Option<(Slice, Slice)>> {
        self.pop(keyspace, 1)
    }

    fn pop(&mut self, keyspace: &Keyspace, end: usize) -> Result<Option<(Slice, Slice)>> {
        keyspace.check_writes()?;
        let table = self.table(keyspace)?;
        if let Some(found) = self.pop_next(table, end)? {
            return Ok(Some(found));
        }
        let found = self.end_of(keyspace, end)?;
        if let Some((key, _)) = &found {
            let popping = self.popping_from(table, end, key);
            self.delete_own(keyspace, key)?;
            self.tables[table].popping = Some(popping);
        }
        Ok(found)
    }

    /// The next pop of those in progress, if there are any at this end.
    fn pop_next(&mut self, table: usize, end: usize) -> Result<Option<(Slice, Slice)>> {
        let table = &mut self.tables[table];
        let Some(popping) = table.popping.as_mut().filter(|popping| popping.end == end) else {
            return Ok(None);
        };
        if !self.savepoints.is_empty() {
            // Each write is noted for itself.
            return Ok(None);
        }
        let inner = match &mut popping.inner {
            Some(inner) => inner,
            none => {
                let behind = Bound::Excluded(popping.last.clone());
                let direction = if end == 0 { Direction::Up } else { Direction::Down };
                let range = KeyRange::all().rest(direction, behind);
                let snapshot = Some(self.snapshot.clone());
                none.insert(Iter::new(table.keyspace.clone(), range, snapshot))
            }
        };
        let next = if end == 0 { inner.next() } else { inner.next_back() };
        let Some((key, value)) = next.transpose()? else { return Ok(None) };
        if popping.limit.as_ref().is_some_and(|limit| !popping.is_before(&key, limit)) {
            return Ok(None);
        }
        table.writes.push(&key, None);
        popping.last = key.clone();
        Ok(Some((key, value)))
    }

    /// Pops at an end whose first one was of this key.
    fn popping_from(&mut self, table: usize, end: usize, key: &Slice) -> Popping {
        let own = self.tables[table].writes.settle();
        let limit = if end == 0 {
            own.range::<[u8], _>((Bound::Excluded(&key[..]), Bound::Unbounded)).next()
        } else {
            own.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&key[..]))).next_back()
        };
        let limit = limit.map(|(key, _)| key.clone());
        Popping { end, last: key.clone(), inner: None, limit }
    }

    /// Ends the pops of a table, and notes what they read and deleted.
    pub(super) fn end_popping(&mut self, table: usize) {
        let table = &mut self.tables[table];
        // The first pop has noted all of its own.
        let Some(Popping { end, last, inner: Some(_), .. }) = table.popping.take() else { return };
        let (notes, all) = (table.notes.get_mut(), KeyRange::all());
        notes.read.settle();
        notes.read.cover(end, &all, Some(&last));
        notes.note_empty(end, &all, last);
        table.ahead[end] = None;
    }
}
