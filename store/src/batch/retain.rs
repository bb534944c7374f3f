//! Deletes of the entries that a closure chooses, in one commit.
//!
//! Purpose: `retain` and `extract_if`. Entries are lent to the closure under the write permit: no
//! other commit changes them between its look and the delete, and readers go on. The chosen keys
//! become a batch, whose commit is chunked if it is large: readers run between the chunks too, and
//! see the state before.
//! Invariants: nothing is written before the closure has seen the last entry. So an error, a panic
//! or a crash leaves everything as it was. Nothing is handed out before the commit has succeeded.
//! Thread safety: as all of a keyspace.

use std::ops::ControlFlow;
use std::sync::Arc;

use adamant_heap::HeldWritePermit;
use adamant_slice::Slice;

use crate::batch::builder::Batch;
use crate::bounds::{KeyBounds, KeyRange};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;

impl Keyspace {
    /// Keeps the entries of a range for which the closure returns true, and deletes the others, in
    /// one commit: after a crash, and for every reader, all of them are gone or none. Returns how
    /// many it deleted.
    ///
    /// The closure gets each entry once, in the order of the keys, borrowed as by [`Iter::lend`]:
    /// nothing is copied. It must not use the same store, which gives
    /// [`Error::Reentrant`](crate::Error::Reentrant). It may panic: nothing is deleted then. If the
    /// disk is full, a keyspace of the engine `lsm` may make room and begin again, and then the
    /// closure gets the entries once more.
    ///
    /// O(m) in the m entries of the range, and O(log n) for each that is deleted; `lsm` writes a
    /// tombstone for each. Writers wait for all of it; readers, memory and log: see
    /// [`Keyspace::delete_range`].
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.extend([("apples", "7"), ("pears", "0"), ("plums", "0")])?;
    /// assert_eq!(stock.retain(.., |_, count| count != b"0")?, 2);
    /// assert_eq!(stock.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`] and [`Keyspace::delete_range`]; nothing was deleted.
    pub fn retain(
        &self,
        range: impl KeyBounds,
        mut keeps: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<u64> {
        let deleted = self
            .extract(KeyRange::new(&range), |key, value| Ok((!keeps(key, value)).then_some(())))?;
        Ok(deleted.len() as u64)
    }

    /// Deletes the entries of a range for which the closure returns true, in one commit, and
    /// returns them in the order of their keys: [`Keyspace::retain`] the other way round, at the
    /// same cost, plus a copy of each entry that is deleted.
    ///
    /// They are returned together, not by an iterator or to a second closure: they may be used only
    /// once the commit has succeeded, and are held until then. To take entries out in parts, give a
    /// range for each part.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.extend([("1", "monday"), ("2", "friday"), ("3", "monday")])?;
    /// let due = jobs.extract_if(.., |_, day| day == b"monday")?;
    /// assert_eq!(due.iter().map(|(number, _)| &number[..]).collect::<Vec<_>>(), [b"1", b"3"]);
    /// assert_eq!(jobs.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::retain`]; nothing was deleted.
    pub fn extract_if(
        &self,
        range: impl KeyBounds,
        mut takes: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<Vec<(Slice, Slice)>> {
        self.extract(KeyRange::new(&range), |key, value| {
            Ok(takes(key, value).then(|| (Slice::from(key), Slice::from(value))))
        })
    }

    /// Deletes the entries of a range of which the closure makes something, in one commit, and
    /// returns what it made.
    pub(crate) fn extract<T>(
        &self,
        range: Option<KeyRange>,
        mut choose: impl FnMut(&[u8], &[u8]) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        self.check_writes()?;
        self.with_room(true, || {
            let permit = self.shared.take_write_permit()?;
            self.extract_in(permit, range.clone(), &mut choose)
        })
    }

    /// Like [`Keyspace::extract`], with a write permit.
    pub(crate) fn extract_in<T>(
        &self,
        permit: HeldWritePermit<'_>,
        range: Option<KeyRange>,
        choose: &mut impl FnMut(&[u8], &[u8]) -> Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let mut batch = Batch::new(Arc::clone(&self.shared));
        batch.durability(self.durability());
        let mut made = Vec::new();
        let mut take = |key: &[u8], value: &[u8]| {
            if let Some(chosen) = choose(key, value)? {
                batch.delete(self, key)?;
                made.push(chosen);
            }
            Ok(())
        };
        let failed =
            Iter::new(self.clone(), range, None).lend(|key, value| match take(key, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if batch.is_empty() {
            // Other writers need not wait for the device with it.
            drop(permit);
            self.settle()?;
            return Ok(made);
        }
        batch.commit_in(permit)?;
        Ok(made)
    }
}
