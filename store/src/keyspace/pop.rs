//! Pops: the entry at an end is removed and returned, in one commit.
//!
//! Purpose: `pop_first` and `pop_last`, for queues and heaps. The write permit is taken before the
//! entry is looked for, so that it is still the first or the last one when it is removed.
//! Invariants: what is returned was removed by this commit, and by no other.
//! Thread safety: as all of a keyspace; threads that pop take different entries.

use adamant_slice::Slice;

use crate::bounds::Direction;
use crate::common::shared::KeyVisitor;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

impl Keyspace {
    /// Removes the entry with the lowest key and returns it, in one commit; `None` if there is no
    /// entry. Threads that do this at the same time get different entries: none is returned twice,
    /// none is lost.
    ///
    /// O(log n), and a copy of the value: one descent to find the entry and one to remove it in
    /// `bplus`, `btree`, `critbit` and `redblack`. In `lsm` it costs a [`Keyspace::first`], which
    /// may read the device and passes once over removed keys that are not merged yet, and a
    /// tombstone in the memtable. Other writers wait during the search, readers do not.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let jobs = store.keyspace("jobs")?;
    /// jobs.extend([("1", "sweep"), ("2", "mop")])?;
    /// assert_eq!(jobs.pop_first()?, Some(("1".into(), "sweep".into())));
    /// assert_eq!(jobs.pop_first()?, Some(("2".into(), "mop".into())));
    /// assert_eq!(jobs.pop_first()?, None);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::first`] and [`Keyspace::delete`]; nothing was removed.
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(Direction::Up)
    }

    /// Removes the entry with the highest key and returns it, like [`Keyspace::pop_first`].
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let versions = store.keyspace("versions")?;
    /// versions.extend([("1", "draft"), ("2", "final")])?;
    /// assert_eq!(versions.pop_last()?, Some(("2".into(), "final".into())));
    /// assert_eq!(versions.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::pop_first`].
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        self.pop(Direction::Down)
    }

    fn pop(&self, direction: Direction) -> Result<Option<(Slice, Slice)>> {
        self.check_writes()?;
        self.with_room(true, || {
            let permit = self.shared.take_write_permit()?;
            let Some((key, value)) = self.end(direction)? else {
                // Other writers need not wait for the device with it.
                drop(permit);
                return self.settle().map(|()| None);
            };
            let keys = |each: &mut KeyVisitor<'_>| each(&self.state, &key);
            self.shared.change(Some(permit), self.durability(), keys, |transaction| {
                let map = self.state.map(transaction, self.shared.catalogue())?;
                map.write(transaction, &key, None)
            })?;
            Ok(Some((key, value)))
        })
    }
}
