//! Range removal.
//!
//! Purpose: an LSM tree records a range tombstone; trees on the heap remove entries chunked, each
//! chunk one commit, so that no thread waits for all of them.
//! Invariants: chunks go from the lowest key up; if it fails, or the process dies, whole chunks are
//! removed. What open snapshots see of the keys is kept first.
//! Thread safety: as all of a keyspace.

use std::ops::Bound;

use adamant_heap::HeldWritePermit;
use adamant_lsm::NEWEST;
use adamant_slice::Slice;

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::lent_values::Lent;
use crate::common::versions::Recorder;
use crate::engine::map::Map;
use crate::engine::scan::ScanItem;
use crate::engine::tree::Engine;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

/// Entries removed in one commit: some 200 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 256;

impl Keyspace {
    /// Deletes all entries of a range.
    ///
    /// A keyspace of the engine `lsm` records a range tombstone: one commit, whose size does not
    /// depend on the number of entries, O(log n); merging gives their space back. The other engines
    /// remove entries from the lowest key up, in chunks of 256, each of which is one commit:
    /// readers and writers run in between, so it is not atomic as a whole, and if it fails a part
    /// is gone; O(log n) an entry. To empty one of these keyspaces in one commit, use
    /// [`Keyspace::clear`].
    ///
    /// Snapshots are not affected; transactions that read in the range conflict.
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
    /// # Errors
    /// As [`Keyspace::put`]; the chunks before the failing one are gone.
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.check_writes()?;
        let mut rest = KeyRange::new(&range);
        if rest.is_none() {
            return self.settle();
        }
        while let Some(range) = rest.take() {
            let last = self.with_room(true, || self.remove_piece(&range))?;
            rest = last.and_then(|last| range.rest(Direction::Up, Bound::Excluded(last)));
        }
        Ok(())
    }

    /// For a range without an upper bound in an LSM keyspace: the last key, and the write permit,
    /// so that no key comes behind it. The search may read the device; writers wait for that,
    /// readers do not.
    fn last_to_remove(
        &self,
        range: &KeyRange,
    ) -> Result<(Option<HeldWritePermit<'_>>, Option<Slice>)> {
        if range.bounds().1 != Bound::Unbounded || self.engine() != Engine::Lsm {
            return Ok((None, None));
        }
        let permit = self.shared.take_write_permit()?;
        let key = |key: &[u8], _: ScanItem<'_, '_>| Ok(key.into());
        let last = self.first_of(Direction::Down, range.clone(), Some(NEWEST), false, key)?;
        Ok((Some(permit), last))
    }

    /// Removes the first entries of a range, in one commit; returns the last of them if there may
    /// be more.
    fn remove_piece(&self, range: &KeyRange) -> Result<Option<Slice>> {
        let (catalogue, versions) = (self.shared.catalogue(), self.shared.versions());
        let mut lent = Lent::default();
        if versions.any() {
            let view = self.shared.view()?;
            let map = self.state.map(&view, catalogue)?;
            if let Some(tree) = map.tree() {
                for key in tree.keys(&view, range.bounds(), PIECE_ENTRIES)? {
                    lent.add(&view, tree, &key)?;
                }
            }
        }
        let (permit, last) = self.last_to_remove(range)?;
        self.shared.transaction_in(permit, self.durability, |transaction| {
            let map = self.state.map(transaction, catalogue)?;
            // Also if nothing is kept beside the map: records that there was a commit.
            let mut recorder = versions.recorder();
            let tree = match &*map {
                Map::Tree(tree) => *tree,
                Map::Lsm(lsm) => {
                    recorder.map(Recorder::finish);
                    lsm.remove_range(transaction, range.bounds(), last)?;
                    return Ok(None);
                }
            };
            let mut keys = tree.keys(transaction, range.bounds(), PIECE_ENTRIES)?;
            if let Some(recorder) = &mut recorder {
                for key in &keys {
                    let lend = |value: &[u8], block| Ok(lent.get(value, block));
                    recorder.keep(transaction, (self.state.id, tree), key, lend)?;
                }
            }
            recorder.map(Recorder::finish);
            for key in &keys {
                tree.remove(transaction, key)?;
            }
            Ok(keys.pop().filter(|_| keys.len() + 1 >= PIECE_ENTRIES))
        })
    }
}
