//! Range deletion, in one commit.
//!
//! Purpose: an LSM tree records a range tombstone. Trees on the heap delete entry by entry, as
//! `retain.rs` does: a batch under the write permit, whose commit is chunked if it is large.
//! Invariants: all of the range is deleted or nothing. What open snapshots see of the keys is kept
//! first.
//! Thread safety: as all of a keyspace.

use std::ops::Bound;

use adamant_heap::HeldWritePermit;
use adamant_lsm::NEWEST;
use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::versions::Recorder;
use crate::engine::lsm_keyspace::LsmMap;
use crate::engine::map::Map;
use crate::engine::scan::ScanItem;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

impl Keyspace {
    /// Deletes all entries of a range, in one commit: after a crash, and for every reader, all of
    /// them are gone or none.
    ///
    /// A keyspace of the engine `lsm` records a range tombstone, whose size does not depend on the
    /// number of entries: O(log n); merging gives their space back. A range without an end also
    /// needs the last key, by a search that may read the device. The other engines delete entry by
    /// entry, O(log n) for each: some 1 us in `bplus`.
    ///
    /// Other writers wait for all of it. Readers come in after each chunk of some 64 entries, and
    /// see the state before until it is done. They wait longest while the record of the commit is
    /// put together: for 100,000 entries some 5 ms in `bplus` and `btree`, 20 ms in `redblack`.
    ///
    /// ```
    /// use adamant::{Engine, KeyspaceOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let visits = store.keyspace_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// for day in ["2026-03-01", "2026-03-02", "2026-04-01"] {
    ///     visits.put(day, "")?;
    /// }
    /// visits.delete_range("2026-03".."2026-04")?;
    /// assert_eq!(visits.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// Snapshots are not affected; transactions that read in the range conflict.
    ///
    /// # Large ranges of trees
    /// Until the commit has ended, memory holds the keys and what would undo it, also beyond
    /// [`Options::memory_bytes_max`](crate::Options::memory_bytes_max): some 100 bytes an entry in
    /// `bplus` and `btree`, 250 in `critbit`, 400 in `redblack`. What open snapshots see of the
    /// entries, and what readers that come in between need, is limited by
    /// [`Options::snapshot_bytes_max`](crate::Options::snapshot_bytes_max): beyond it the oldest
    /// snapshots expire, and readers wait for the end.
    ///
    /// The log gets half a byte for each of adjacent entries; up to 30 bytes for scattered ones, as
    /// [`Keyspace::retain`] may choose them. A record may be longer than
    /// [`Options::log_bytes_max`](crate::Options::log_bytes_max): the log grows for it. If the disk
    /// has no room for that, nothing is deleted; smaller ranges, one after the other, need less.
    /// [`Keyspace::clear`] empties a keyspace in one commit whose size does not depend on the
    /// number of entries.
    ///
    /// # Errors
    /// As [`Keyspace::put`]; nothing was deleted. A full disk: see
    /// [`Error::is_out_of_space`](crate::Error::is_out_of_space), and above.
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.check_writes()?;
        let Some(range) = KeyRange::new(&range) else { return self.settle() };
        self.with_room(true, || {
            let permit = self.shared.take_write_permit()?;
            // Until the permit ends, nothing converts the keyspace to another engine.
            match self.map()? {
                Map::Lsm(lsm) => self.remove_range(permit, &lsm, &range),
                Map::Tree(_) => {
                    self.extract_in(permit, Some(range.clone()), &mut |_, _| Ok(Some(()))).map(drop)
                }
            }
        })
    }

    /// Removes a range of an LSM keyspace by a tombstone. For a range without an upper bound it
    /// needs the last key, and no key comes behind it by then; the search may read the device.
    fn remove_range(
        &self,
        permit: HeldWritePermit<'_>,
        lsm: &LsmMap,
        range: &KeyRange,
    ) -> Result<()> {
        let key = |key: &[u8], _: ScanItem<'_, '_>| Ok(key.into());
        let last: Option<Slice> = match range.bounds().1 {
            Bound::Unbounded => {
                self.first_of(Direction::Down, range.clone(), Some(NEWEST), false, key)?
            }
            _ => None,
        };
        self.shared.transaction_in(Some(permit), self.durability(), |transaction| {
            // Records that there was a commit.
            self.shared.versions().recorder().map(Recorder::finish);
            lsm.remove_range(transaction, range.bounds(), last)?;
            self.shared.record(transaction, |recording, transaction| {
                recording.say(transaction, &self.state, |encoder, keyspace| {
                    encoder.range(keyspace, range.bounds());
                })
            })
        })
    }
}
