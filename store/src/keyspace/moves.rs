//! Moving entries between keys and keyspaces, without copying values.
//!
//! Purpose: `rename`, `move_to` and `swap`, each one commit, and `move_range`, one commit per
//! chunk. Only the block of an entry moves, or the small part of it that holds the key: a move
//! costs the same for a value of 5 KB and one of 500 MB, and slices of such a value stay valid.
//! Invariants: an `Err` of a single move means that nothing was changed, as for every other write.
//! A range moves from the lowest key up: if it fails, or the process dies, whole chunks have moved,
//! and each entry is in exactly one of the keyspaces.

use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_trees::{Moved, MovedPart};

use crate::bounds::{Direction, KeyBounds, KeyRange};
use crate::common::lent_values::Lent;
use crate::common::shared::KeyVisitor;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::limits::check_key;

/// Entries of a range that move in one commit: 200 to 500 microseconds during which readers wait.
const PIECE_ENTRIES: usize = 256;

/// The result of moving a range.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let (inbox, done) = (store.keyspace("inbox")?, store.keyspace("done")?);
/// inbox.extend([("1", "sweep"), ("2", "wash up"), ("3", "cook")])?;
/// done.put("1", "sweep, last week")?;
/// let moved = inbox.move_range(.."3", &done)?;
/// assert_eq!((moved.moved, moved.replaced), (2, 1));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedRange {
    /// Entries moved.
    pub moved: u64,
    /// How many of them replaced an entry of the target.
    pub replaced: u64,
}

impl Keyspace {
    /// Moves the value of a key to another key, in one commit. It replaces that key's value, like
    /// the renaming of a file; a move to the same key changes nothing. O(log n), whatever the size
    /// of the value: one of more than 4 KiB is not copied, and slices of it stay valid. In
    /// keyspaces of the engine `lsm` the value is copied.
    ///
    /// ```
    /// use adamant::{Moved, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let files = store.keyspace("files")?;
    /// files.put("draft", vec![7; 100_000])?;
    /// assert_eq!(files.rename("draft", "final")?, Moved::Placed);
    /// assert_eq!(files.rename("draft", "final")?, Moved::Absent);
    /// assert_eq!(files.get("final")?.map(|value| value.len()), Some(100_000));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn rename(&self, key: impl AsRef<[u8]>, new_key: impl AsRef<[u8]>) -> Result<Moved> {
        self.move_to(key, self, new_key)
    }

    /// Moves the value of a key to a key of another keyspace of the same store, in one commit, by
    /// the rules of [`Keyspace::rename`]. The two may use different engines; if one of them is
    /// `lsm`, the value is copied. The commit is as durable as this handle asks for.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let (waiting, done) = (store.keyspace("waiting")?, store.keyspace("done")?);
    /// waiting.put("job 1", "sweep")?;
    /// assert!(waiting.move_to("job 1", &done, "job 1")?.is_moved());
    /// assert_eq!(waiting.get("job 1")?, None);
    /// assert_eq!(done.get("job 1")?, Some("sweep".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`]; [`Error::OtherStore`] if the target is of another store.
    pub fn move_to(
        &self,
        key: impl AsRef<[u8]>,
        target: &Keyspace,
        new_key: impl AsRef<[u8]>,
    ) -> Result<Moved> {
        let (key, new_key) = (key.as_ref(), new_key.as_ref());
        check_key(key)?;
        check_key(new_key)?;
        self.check_pair(target)?;
        let keys = |each: &mut KeyVisitor<'_>| {
            each(&self.state, key)?;
            each(&target.state, new_key)
        };
        self.shared.change_recorded(None, self.durability_with(target), keys, |transaction| {
            let source = self.state.map(transaction, self.shared.catalogue())?;
            let target_map = target.state.map(transaction, self.shared.catalogue())?;
            let moved = source.move_to(transaction, key, &target_map, new_key)?;
            if moved.is_moved() {
                self.record_pair(transaction, false, key, (target, new_key))?;
            }
            Ok(moved)
        })
    }

    /// Swaps the values of two keys in one commit; false, and nothing is changed, unless both
    /// exist. The other key may be in another keyspace of the same store. O(log n), whatever the
    /// size of the values.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let slots = store.keyspace("slots")?;
    /// slots.put("live", "blue")?;
    /// slots.put("idle", "green")?;
    /// assert!(slots.swap("live", &slots, "idle")?);
    /// assert_eq!(slots.get("live")?, Some("green".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::move_to`].
    pub fn swap(
        &self,
        key: impl AsRef<[u8]>,
        other: &Keyspace,
        other_key: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (key, other_key) = (key.as_ref(), other_key.as_ref());
        check_key(key)?;
        check_key(other_key)?;
        self.check_pair(other)?;
        let keys = |each: &mut KeyVisitor<'_>| {
            each(&self.state, key)?;
            each(&other.state, other_key)
        };
        self.shared.change_recorded(None, self.durability_with(other), keys, |transaction| {
            let map = self.state.map(transaction, self.shared.catalogue())?;
            let other_map = other.state.map(transaction, self.shared.catalogue())?;
            let are_swapped = map.swap(transaction, key, &other_map, other_key)?;
            if are_swapped {
                self.record_pair(transaction, true, key, (other, other_key))?;
            }
            Ok(are_swapped)
        })
    }

    /// Records that a value moved, or was swapped with another one; not if it is where it was.
    fn record_pair(
        &self,
        transaction: &mut Transaction<'_>,
        is_swap: bool,
        key: &[u8],
        (target, target_key): (&Self, &[u8]),
    ) -> Result<()> {
        if self.state.id == target.state.id && key == target_key {
            return Ok(());
        }
        self.shared.record(transaction, |recording, transaction| {
            let (source, target) = ((&*self.state, key), (&*target.state, target_key));
            recording.pair(transaction, is_swap, source, target)
        })
    }

    /// Moves the entries of a range to another keyspace of the same store, each under its key,
    /// replacing existing entries there. O(log n) an entry, whatever the sizes of the values.
    ///
    /// The range moves from the lowest key up, in chunks of 256 entries, each of which is one
    /// commit: readers and writers run in between, and a range of any size takes little memory. So
    /// it is not atomic as a whole: if it fails, or the process dies, a part has moved. Calling it
    /// again moves the rest. Entries inserted meanwhile into the part that has moved stay there.
    ///
    /// A range moved to its own keyspace stays: nothing is moved.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let (year, archive) = (store.keyspace("2026")?, store.keyspace("archive")?);
    /// for day in ["2026-03-01", "2026-03-02", "2026-04-01"] {
    ///     year.put(day, "")?;
    /// }
    /// assert_eq!(year.move_range("2026-03".."2026-04", &archive)?.moved, 2);
    /// assert_eq!((year.len()?, archive.len()?), (1, 2));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::move_to`]; the chunks before the failing one have moved.
    pub fn move_range(&self, range: impl KeyBounds, target: &Keyspace) -> Result<MovedRange> {
        self.check_pair(target)?;
        let mut moved = MovedRange::default();
        let mut rest = KeyRange::new(&range);
        if rest.is_none() {
            self.settle()?;
        }
        while let Some(range) = rest.take() {
            let piece = self.move_piece(&range, target)?;
            moved.moved += piece.moved;
            self.state.counts().note_writes(piece.moved);
            target.state.counts().note_writes(piece.moved);
            moved.replaced += piece.replaced;
            let bound = piece.last.map(|key| std::ops::Bound::Excluded(key.as_slice().into()));
            rest = bound.and_then(|bound| range.rest(Direction::Up, bound));
        }
        Ok(moved)
    }

    /// Moves the first entries of a range, in one commit.
    fn move_piece(&self, range: &KeyRange, target: &Self) -> Result<MovedPart> {
        let catalogue = self.shared.catalogue();
        let versions = self.shared.versions();
        let mut lent = Lent::default();
        if versions.any() {
            let view = self.shared.view()?;
            let source = self.state.map(&view, catalogue)?;
            let target = target.state.map(&view, catalogue)?;
            for key in source.keys(&view, range.bounds(), PIECE_ENTRIES)? {
                for tree in [&source, &target].into_iter().filter_map(|map| map.tree()) {
                    lent.add(&view, tree, &key)?;
                }
            }
        }
        self.shared.transaction(self.durability_with(target), |transaction| {
            let source = self.state.map(transaction, catalogue)?;
            let target_map = target.state.map(transaction, catalogue)?;
            if let Some(mut recorder) = versions.recorder() {
                for key in source.keys(transaction, range.bounds(), PIECE_ENTRIES)? {
                    let lend = |value: &[u8], block| Ok(lent.get(value, block));
                    for (id, map) in [(self.state.id, &source), (target.state.id, &target_map)] {
                        if let Some(tree) = map.tree() {
                            recorder.keep(transaction, (id, tree), &key, lend)?;
                        }
                    }
                }
                recorder.finish();
            }
            let keys = match self.shared.history().is_on() {
                true => source.keys(transaction, range.bounds(), PIECE_ENTRIES)?,
                false => Vec::new(),
            };
            let bounds = range.bounds();
            let moved = source.move_range(transaction, bounds, &target_map, PIECE_ENTRIES)?;
            self.shared.record(transaction, |recording, transaction| {
                keys.iter().take(moved.moved as usize).try_for_each(|key| {
                    let (source, target) = ((&*self.state, &key[..]), (&*target.state, &key[..]));
                    recording.pair(transaction, false, source, target)
                })
            })?;
            Ok(moved)
        })
    }

    /// Fails unless both keyspaces are of one store and writable.
    fn check_pair(&self, other: &Self) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &other.shared) {
            return Err(Error::OtherStore { name: other.name().into() });
        }
        self.check_writes()?;
        other.check_writes()
    }
}
