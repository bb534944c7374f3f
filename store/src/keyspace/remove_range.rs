//! Removing the entries of a range.
//!
//! Purpose: what an engine can say of a whole range at once is said at once; of a tree on the heap
//! entries are taken out in pieces, each of which is one commit, so that nobody waits for all of them.
//! Invariants: pieces go from the lowest key up; what was removed when it fails, or when the process
//! dies, is a whole number of them. What open snapshots see of the keys is kept before.
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

/// Entries that are taken out in one commit: some 200 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 256;

impl Keyspace {
    /// Takes all entries of a range out.
    ///
    /// A keyspace of the engine `lsm` notes the range as such: one commit, whose size does not depend on
    /// how many entries there are, O(log n); merging gives their space back. The other engines take
    /// entries out from the lowest key up, in pieces of 256, each of which is one commit: readers and
    /// writers come in between, so it is not atomic as a whole, and when it fails a part is gone; O(log n)
    /// an entry. To empty a whole keyspace of these in one commit there is [`Keyspace::clear`].
    ///
    /// Snapshots go on seeing what they saw; transactions that read in the range conflict.
    ///
    /// ```
    /// use adamant::{Engine, KeyspaceOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let visits = store.keyspace_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// for day in ["2026-03-01", "2026-03-02", "2026-04-01"] {
    ///     visits.insert(day, "")?;
    /// }
    /// visits.remove_range("2026-03".."2026-04")?;
    /// assert_eq!(visits.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::insert`]; the pieces before the failing one are gone.
    pub fn remove_range(&self, range: impl KeyBounds) -> Result<()> {
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

    /// The last key of a range without an upper bound, of a keyspace that notes ranges, and the turn to write,
    /// so that none comes behind it. It may lie on the device: readers do not wait for that, writers do.
    fn last_to_remove(
        &self,
        range: &KeyRange,
    ) -> Result<(Option<HeldWritePermit<'_>>, Option<Slice>)> {
        if range.bounds().1 != Bound::Unbounded || self.engine() != Engine::Lsm {
            return Ok((None, None));
        }
        let turn = self.shared.take_write_permit()?;
        let key = |key: &[u8], _: ScanItem<'_, '_>| Ok(key.into());
        let last = self.first_of(Direction::Down, range.clone(), Some(NEWEST), false, key)?;
        Ok((Some(turn), last))
    }

    /// Takes the first entries of a range out, in one commit; the last of them, if there may be more.
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
        let (turn, last) = self.last_to_remove(range)?;
        self.shared.transaction_in(turn, self.durability, |transaction| {
            let map = self.state.map(transaction, catalogue)?;
            // Also where nothing is kept beside the map: that there was a commit.
            let mut recorder = versions.recorder();
            let tree = match &*map {
                Map::Tree(tree) => *tree,
                Map::Lsm(log) => {
                    recorder.map(Recorder::finish);
                    log.remove_range(transaction, range.bounds(), last)?;
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
