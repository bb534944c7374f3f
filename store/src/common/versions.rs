//! Multiversion store: what open snapshots see that the trees no longer hold.
//!
//! Purpose: before a commit changes a key that an open snapshot sees, it puts the old value here:
//! up to 4 KiB a copy, a longer one as its borrowed block. See `docs/decisions/0060-versions.md`.
//! Invariants: commits that find a snapshot open have consecutive numbers; a snapshot has the
//! number of the last one before it. For each snapshot `s` and key, it sees the oldest version with
//! a number above `s`, and if there is none, what the tree holds. A version is put here before the
//! tree changes, in the same hold of the heap's exclusive lock; a version of a failed transaction
//! equals what the tree still holds, and does no harm.
//! Thread safety: lock order: the heap's, then `state`. Snapshots are opened under the heap's
//! shared lock, so that none falls into a commit which saw none open; they are closed under no
//! lock.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant_heap::access::Read;
use adamant_heap::{View, events};
use adamant_lsm::Sequences;
use adamant_slice::Slice;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use tracing::warn;

use crate::bounds::KeyRange;
use crate::common::kept::{Opened, State, Version, bytes_of};
use crate::common::seen::Seen;
use crate::common::spans::Spans;
use crate::engine::map::Map;
use crate::engine::tree_map::TreeMap;
use crate::engine::value_codec::Found;
use crate::error::{Error, Result};

/// Figures of the open snapshots.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// stock.put("apples", "7")?;
/// let before = store.snapshot()?;
/// stock.clear()?;
/// let stats = store.stats()?.snapshots;
/// assert_eq!((stats.open, stats.expired), (1, 0));
/// drop(before);
/// assert_eq!(store.stats()?.snapshots.open, 0);
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotStats {
    /// Handles of open snapshots, including clones and those of iterators.
    pub open: u64,
    /// Age of the oldest one.
    pub oldest: Duration,
    /// Old values and absences that are kept for them.
    pub versions: u64,
    /// Bytes that these take, about.
    pub bytes: u64,
    /// Dropped or cleared keyspaces that are kept for them.
    pub keyspaces: u64,
    /// Snapshots that expired because the versions took too many bytes.
    pub expired: u64,
}

/// The versions of a store.
#[derive(Debug)]
pub(crate) struct Versions {
    /// Whether a snapshot is open: the only check of a commit if none is.
    any: AtomicBool,
    /// Whether there was a commit since the first of the open snapshots: otherwise trees hold what
    /// they see.
    is_changed: AtomicBool,
    /// Whether there are trees to be freed.
    has_unseen: AtomicBool,
    bytes_max: u64,
    /// The sequence clock of the LSM trees, which keep versions themselves.
    sequences: Arc<Sequences>,
    state: RwLock<State>,
    /// Snapshots closed within a closure under the lock, and whether there are any.
    closed: Mutex<Vec<u64>>,
    has_closed: AtomicBool,
}

impl Versions {
    /// No versions yet, which may take so many bytes.
    pub(crate) fn new(bytes_max: u64, sequences: Arc<Sequences>) -> Self {
        Self {
            any: AtomicBool::new(false),
            is_changed: AtomicBool::new(false),
            has_unseen: AtomicBool::new(false),
            bytes_max,
            sequences,
            state: RwLock::default(),
            closed: Mutex::default(),
            has_closed: AtomicBool::new(false),
        }
    }

    /// Whether a snapshot is open. The holder of the heap's exclusive lock can rely on a `false`.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether trees may differ from what snapshots see. The holder of an open snapshot and the
    /// heap's shared lock can rely on a `false`.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed.load(Ordering::Acquire)
    }

    /// Tells the LSM trees which moments snapshots see. To be called when these have changed, while
    /// the lock is held, so that none is opened meanwhile.
    fn tell_moments(&self, state: &State) {
        let moments = state.open.keys().filter_map(|number| state.moments.get(number));
        self.sequences.hold(moments.copied());
    }

    /// Whether more than one snapshot is open.
    pub(crate) fn are_several(&self) -> bool {
        let state = self.state.read();
        state.open.len() > 1 || state.open.values().any(|opened| opened.count > 1)
    }

    /// Opens a snapshot and returns its number. To be called under the heap's shared lock.
    pub(crate) fn open(&self, view: &View<'_>) -> u64 {
        let mut state = self.state.write();
        // A chunked commit has a number from its beginning.
        let number = state.number - u64::from(view.is_early());
        match state.open.get_mut(&number) {
            Some(opened) => opened.count += 1,
            None => {
                // Only here: reading the clock takes as long as all the rest.
                state.open.insert(number, Opened::now(1));
                self.any.store(true, Ordering::Release);
                if view.is_early() {
                    self.tell_moments(&state);
                }
            }
        }
        state.opened += 1;
        number
    }

    /// Opens another handle of a snapshot that is open, or expired.
    pub(crate) fn open_again(&self, number: u64) {
        let mut state = self.state.write();
        match state.open.get_mut(&number) {
            Some(opened) => opened.count += 1,
            None => state.expired_open += 1,
        }
    }

    /// Closes a snapshot later, because this thread is in a closure under the lock: the next close,
    /// or the next commit, closes this one too.
    pub(crate) fn close_later(&self, number: u64) {
        self.closed.lock().push(number);
        self.has_closed.store(true, Ordering::Release);
    }

    /// Closes a snapshot, and drops the versions that no other one sees.
    pub(crate) fn close(&self, number: u64) {
        self.close_late();
        self.close_one(number);
    }

    fn close_late(&self) {
        // Mostly there is none: a load costs less than a locked instruction.
        if !self.has_closed.load(Ordering::Acquire)
            || !self.has_closed.swap(false, Ordering::AcqRel)
        {
            return;
        }
        let closed = std::mem::take(&mut *self.closed.lock());
        closed.into_iter().for_each(|number| self.close_one(number));
    }

    fn close_one(&self, number: u64) {
        let mut state = self.state.write();
        match state.open.get_mut(&number) {
            Some(opened) => {
                opened.count -= 1;
                if opened.count > 0 {
                    return;
                }
                state.end(number);
                self.tell_moments(&state);
            }
            None => state.expired_open -= 1,
        }
        if let Some(oldest) = state.oldest() {
            state.forget_trees(oldest);
            self.note_unseen(&state);
            while state.forget_some(oldest) {
                RwLockWriteGuard::bump(&mut state);
            }
            return;
        }
        self.any.store(false, Ordering::Release);
        if self.is_changed() {
            self.forget_all(state);
        }
    }

    /// Drops all versions: the store is closed, and no read can see them any more. Slices of blocks
    /// would keep its directory.
    pub(crate) fn end(&self) {
        self.expire_all();
    }

    /// Drops all versions; no snapshot is open.
    fn forget_all(&self, mut state: RwLockWriteGuard<'_, State>) {
        // Reads through expired snapshots must still notice that.
        self.is_changed.store(state.expired_open > 0, Ordering::Release);
        state.forget_trees(u64::MAX);
        self.note_unseen(&state);
        (state.bytes, state.stale) = (0, 0);
        let all = (std::mem::take(&mut state.keyspaces), std::mem::take(&mut state.queue));
        // A million versions take a while to free: do so outside the lock.
        drop(state);
        drop(all);
    }

    fn note_unseen(&self, state: &State) {
        if !state.unseen.is_empty() {
            self.has_unseen.store(true, Ordering::Release);
        }
    }

    /// Whether there are trees that were kept for snapshots and that none sees any more.
    #[inline]
    pub(crate) fn has_unseen(&self) -> bool {
        self.has_unseen.load(Ordering::Acquire)
    }

    /// Takes the trees that were kept for snapshots and that none sees any more.
    pub(crate) fn take_unseen(&self) -> Vec<Map> {
        let mut state = self.state.write();
        self.has_unseen.store(false, Ordering::Release);
        std::mem::take(&mut state.unseen)
    }

    /// The recorder for a commit's versions; `None` if no snapshot is open, which costs one load.
    /// To be called under the heap's exclusive lock.
    #[inline]
    pub(crate) fn recorder(&self) -> Option<Recorder<'_>> {
        if self.any() { self.start_recorder() } else { None }
    }

    #[cold]
    fn start_recorder(&self) -> Option<Recorder<'_>> {
        self.close_late();
        let number = {
            let mut state = self.state.write();
            if !state.open.is_empty() {
                state.advance(self.sequences.visible());
                self.tell_moments(&state);
            }
            state.number
        };
        self.resume_recorder(number)
    }

    /// The number of a chunked commit that begins. To be called under the heap's exclusive lock.
    pub(crate) fn begin_chunks(&self) -> u64 {
        self.close_late();
        let mut state = self.state.write();
        state.advance(self.sequences.visible());
        self.tell_moments(&state);
        state.number
    }

    /// The recorder for the commit with this number, the last one; `None` if no snapshot is open.
    /// To be called under the heap's exclusive lock.
    pub(crate) fn resume_recorder(&self, number: u64) -> Option<Recorder<'_>> {
        if !self.any() {
            return None;
        }
        let state = self.state.write();
        debug_assert_eq!(state.number, number, "one commit at a time");
        let newest = *state.open.last_key_value()?.0;
        self.is_changed.store(true, Ordering::Release);
        Some(Recorder { number, newest, versions: self, state })
    }

    /// Makes all snapshots expire: what they see could not be kept.
    pub(crate) fn expire_all(&self) {
        let mut state = self.state.write();
        while let Some(opened) = state.oldest().and_then(|number| state.end(number)) {
            state.expired += opened.count;
            state.expired_open += opened.count;
        }
        self.tell_moments(&state);
        self.any.store(false, Ordering::Release);
        self.forget_all(state);
    }

    /// Keeps the tree of a keyspace that is dropped or cleared, if the commit succeeds. To be
    /// called under the heap's exclusive lock.
    pub(crate) fn drop_keyspace(&self, id: u64, map: Map) {
        let mut state = self.state.write();
        if state.open.is_empty() {
            state.unseen.push(map);
            self.note_unseen(&state);
            return;
        }
        self.is_changed.store(true, Ordering::Release);
        state.advance(self.sequences.visible());
        self.tell_moments(&state);
        let number = state.number;
        state.keyspaces.entry(id).or_default().dropped.push((number, map));
    }

    /// The moment of the LSM trees that a snapshot sees. To be called under the heap's shared lock.
    pub(crate) fn moment_of(&self, number: u64) -> u64 {
        let moment = self.state.read().moments.get(&number).copied();
        moment.unwrap_or_else(|| self.sequences.visible())
    }

    /// The oldest moment that a snapshot sees, or will. To be called under the heap's shared lock.
    pub(crate) fn oldest_moment(&self) -> u64 {
        let state = self.state.read();
        let oldest = state.oldest().and_then(|number| state.moments.get(&number).copied());
        oldest.unwrap_or_else(|| self.sequences.visible())
    }

    /// The newest moment that a snapshot sees; `None` if none is open, for certain where the heap's
    /// exclusive lock is held.
    pub(crate) fn newest_moment(&self) -> Option<u64> {
        let state = self.state.read();
        let newest = *state.open.keys().next_back()?;
        Some(state.moments.get(&newest).copied().unwrap_or_else(|| self.sequences.visible()))
    }

    /// A snapshot's view beside the trees. To be called under the heap's shared lock.
    ///
    /// # Errors
    /// `Error::SnapshotExpired`.
    pub(crate) fn seen_by(&self, number: u64) -> Result<Seen<'_>> {
        let state = self.state.read();
        if !state.open.contains_key(&number) {
            return Err(Error::SnapshotExpired { bytes_max: self.bytes_max });
        }
        Ok(Seen { state, number })
    }

    /// Validates a transaction's reads: whether a commit after its snapshot changed any of these
    /// keys of a keyspace. To be called under the heap's exclusive lock.
    ///
    /// # Errors
    /// `Error::SnapshotExpired`.
    pub(crate) fn has_changed(&self, number: u64, id: u64, read: &ReadSet) -> Result<bool> {
        let seen = self.seen_by(number)?;
        let Some(keyspace) = seen.state.keyspaces.get(&id) else { return Ok(false) };
        // Whatever was read of it is gone.
        let is_cleared = keyspace.dropped.iter().any(|(changed, _)| *changed > number);
        if is_cleared && !read.is_empty() {
            return Ok(true);
        }
        let is_newer = |versions: &VecDeque<Version>| {
            versions.back().is_some_and(|(changed, _)| *changed > number)
        };
        if read.keys.iter().any(|key| keyspace.keys.get(key).is_some_and(is_newer)) {
            return Ok(true);
        }
        let state = &*seen.state;
        let looked_at = Cell::new(0);
        let is_newer = |(_, versions): (&Slice, &VecDeque<Version>)| {
            looked_at.set(looked_at.get() + 1);
            is_newer(versions)
        };
        let looked_up = state.since((number, id), keyspace.keys.len(), |changed| {
            read.ranges().any(|range| {
                let found = |key| keyspace.keys.get_key_value(key).is_some_and(is_newer);
                changed.range::<[u8], _>(range).any(found)
            })
        });
        let has_changed = looked_up.unwrap_or_else(|| {
            read.ranges().any(|range| keyspace.keys.range::<[u8], _>(range).any(is_newer))
        });
        state.walk(looked_at.get());
        Ok(has_changed)
    }

    /// Keys that range reads visited so far.
    pub(crate) fn walked(&self) -> u64 {
        self.state.read().walked()
    }

    /// Versions ever kept.
    #[cfg(test)]
    pub(crate) fn recorded(&self) -> u64 {
        self.state.read().queued
    }

    /// Snapshots ever opened.
    pub(crate) fn opened(&self) -> u64 {
        self.state.read().opened
    }

    /// The figures.
    pub(crate) fn stats(&self) -> SnapshotStats {
        let state = self.state.read();
        let oldest = state.open.values().map(|opened| opened.first.elapsed()).max();
        SnapshotStats {
            open: state.open.values().map(|opened| opened.count).sum(),
            oldest: oldest.unwrap_or_default(),
            versions: (state.queue.len() - state.stale) as u64,
            bytes: state.kept_bytes() + self.sequences.kept_bytes(),
            keyspaces: state.keyspaces.values().map(|k| k.dropped.len() as u64).sum(),
            expired: state.expired,
        }
    }
}

/// Records old versions for a commit, before it changes anything.
pub(crate) struct Recorder<'v> {
    state: RwLockWriteGuard<'v, State>,
    number: u64,
    newest: u64,
    versions: &'v Versions,
}

impl Recorder<'_> {
    /// Opens a snapshot of the commit before and returns its number, by which it is to be closed:
    /// kept versions then stay when others are closed, and serve all that are opened meanwhile.
    pub(crate) fn hold(&mut self) -> u64 {
        let before = self.number - 1;
        self.state.open.entry(before).or_insert_with(|| Opened::now(0)).count += 1;
        self.versions.tell_moments(&self.state);
        self.newest = before;
        before
    }

    /// Keeps what a tree holds under a key that is about to change.
    ///
    /// # Errors
    /// Those of looking up the key.
    pub(crate) fn keep<R: Read>(
        &mut self,
        heap: &R,
        (id, tree): (u64, &TreeMap),
        key: &[u8],
        lend: impl FnOnce(&[u8], Option<u64>) -> Result<Slice>,
    ) -> Result<()> {
        let state = &mut *self.state;
        let keyspace = state.keyspaces.entry(id).or_default();
        if keyspace.lens.back().is_none_or(|(number, _)| *number <= self.newest) {
            keyspace.lens.push_back((self.number, tree.tree().len(heap)?));
        }
        let versions = keyspace.keys.get(key);
        if versions.and_then(|versions| versions.back()).is_some_and(|(n, _)| *n > self.newest) {
            // Every open snapshot sees that version, or an older one.
            return Ok(());
        }
        let found = tree.find_with_block(heap, key)?;
        // Decoded under the lock: what is here is only known now. Most commits find no snapshot.
        let value = found.map(|(value, block)| match value {
            Found::Lent(value) => lend(value, block),
            Found::Own(value) => Ok(value),
        });
        let value = value.transpose()?;
        let key = Slice::from(key);
        state.bytes += bytes_of(&key, value.as_ref());
        keyspace.keys.entry(key.clone()).or_default().push_back((self.number, value));
        state.push(self.number, id, key.clone());
        state.thin(id, &key);
        Ok(())
    }

    /// Makes the oldest snapshots expire if all versions take too much; returns whether it did.
    pub(crate) fn finish(mut self) -> bool {
        let state = &mut *self.state;
        let before = state.expired;
        let kept_bytes = || self.versions.sequences.kept_bytes();
        while state.kept_bytes() + kept_bytes() > self.versions.bytes_max
            && let Some(opened) = state.oldest().and_then(|number| state.end(number))
        {
            state.expired += opened.count;
            let (count, bytes) = (opened.count, state.kept_bytes() + kept_bytes());
            warn!(target: events::SNAPSHOT, count, bytes, "snapshots ended: too much kept for them");
            state.expired_open += opened.count;
            let oldest = state.oldest().unwrap_or(u64::MAX);
            state.forget_trees(oldest);
            while state.forget_some(oldest) {}
            self.versions.tell_moments(state);
        }
        self.versions.note_unseen(state);
        if state.open.is_empty() {
            self.versions.any.store(false, Ordering::Release);
        }
        state.expired > before
    }
}

/// The read set of a transaction in a keyspace.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    keys: BTreeSet<Slice>,
    spans: Spans,
    /// The ranges that the last iterator has covered, from each end.
    open: [Option<KeyRange>; 2],
    /// Whether it will never be validated, since nothing that was read can change.
    pub(crate) is_needless: bool,
}

impl ReadSet {
    /// Notes that a key was read.
    pub(crate) fn note(&mut self, key: &[u8]) {
        if !self.is_needless {
            self.keys.insert(Slice::from(key));
        }
    }

    /// Notes that all keys from an end of a range up to this one were read (0: the low end, 1: the
    /// high one); `None`: all of it. For one iterator at a time.
    pub(crate) fn cover(&mut self, end: usize, range: &KeyRange, key: Option<&Slice>) {
        if self.is_needless {
            return;
        }
        let covered = self.open[end].get_or_insert_with(|| range.clone());
        let bound = key.map(|key| Bound::Included(key.clone()));
        match end {
            0 => covered.upper = bound.unwrap_or_else(|| range.upper.clone()),
            _ => covered.lower = bound.unwrap_or_else(|| range.lower.clone()),
        }
    }

    /// Another iterator begins.
    pub(crate) fn settle(&mut self) {
        for covered in self.open.iter_mut().filter_map(Option::take) {
            self.spans.insert_range(&covered);
        }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges().next().is_none()
    }

    /// The ranges that were read.
    fn ranges(&self) -> impl Iterator<Item = (Bound<&[u8]>, Bound<&[u8]>)> {
        self.spans.bounds().chain(self.open.iter().flatten().map(KeyRange::bounds))
    }

    /// Whether any of it was changed after a moment, in an LSM map.
    pub(crate) fn has_changed(&self, map: &Map, since: u64) -> Result<bool> {
        for key in &self.keys {
            if map.has_changed((Bound::Included(key), Bound::Included(key)), since)? {
                return Ok(true);
            }
        }
        for range in self.ranges() {
            if map.has_changed(range, since)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
