//! What open snapshots see that the trees no longer hold.
//!
//! Purpose: before a commit changes a key that an open snapshot sees, it puts the old value here:
//! of up to 4 KiB a copy, of a longer one its block, lent. See `docs/decisions/0060-versions.md`.
//! Invariants: commits that find a snapshot open have numbers, one after the other; a snapshot has
//! the number of the last one before it. For each snapshot `s` and key, the oldest version with a
//! number above `s` is what it sees, and if there is none, what the tree holds. A version is put
//! here before the tree changes, in the same hold of the heap's exclusive lock; one whose
//! transaction failed says what the tree still holds, and does no harm.
//! Thread safety: lock order: the heap's, then `state`. Snapshots are opened under the heap's shared
//! lock, so that none falls into a commit which saw none open; they are closed under no lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use adamant_heap::access::Read;
use adamant_heap::{View, events};
use adamant_slice::Slice;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tracing::warn;

use crate::bounds::{Direction, KeyRange};
use crate::catalogue::Catalogue;
use crate::engine::Tree;
use crate::error::{Error, Result};

/// Bytes that a version takes beside its key and value, about.
const VERSION_BYTES: u64 = 160;
/// Versions that are let go under one hold of the lock: some 100 microseconds.
const FORGET_STEP: usize = 1024;
/// Versions of a key beyond two for each snapshot, before those that none sees are let go.
const VERSIONS_SPARE: usize = 8;
/// Entries of the queue that may be of versions which are gone, at least.
const QUEUE_SPARE: usize = 1024;

/// Figures of the snapshots that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotStats {
    /// Snapshots open.
    pub open: u64,
    /// Age of the oldest one.
    pub oldest: Duration,
    /// Old values and absences that are kept for them.
    pub versions: u64,
    /// Bytes that these take, about.
    pub bytes: u64,
    /// Keyspaces that were dropped, or cleared, and are kept for them.
    pub keyspaces: u64,
    /// Snapshots that were ended because the versions took too many bytes.
    pub expired: u64,
}

/// A snapshot's number, and when it was opened.
#[derive(Clone, Copy, Debug)]
struct Opened {
    count: u64,
    first: Instant,
}

/// What was there before a commit: its number, and the value, `None` for no such key.
type Version = (u64, Option<Slice>);

/// Keys in order, and what a snapshot sees under them; the key where looking at them stopped.
pub(crate) type SeenVersions = (VecDeque<(Slice, Option<Slice>)>, Option<Slice>);

/// The versions of one keyspace.
#[derive(Debug, Default)]
struct Keyspace {
    /// By key, the oldest first.
    keys: BTreeMap<Slice, VecDeque<Version>>,
    /// Entries before a commit, the oldest first.
    lens: VecDeque<(u64, u64)>,
    /// The commits that cleared the keyspace, or dropped it, if they succeeded, and the trees that are
    /// kept, the oldest first.
    dropped: Vec<(u64, Tree)>,
}

impl Keyspace {
    /// Takes the oldest version of a key out, if it has this number.
    fn take_version(&mut self, key: &[u8], number: u64) -> Option<Option<Slice>> {
        let versions = self.keys.get_mut(key)?;
        versions.front().filter(|(oldest, _)| *oldest == number)?;
        let (_, value) = versions.pop_front()?;
        if versions.is_empty() {
            self.keys.remove(key);
        }
        Some(value)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Of the last commit that found a snapshot open.
    number: u64,
    open: BTreeMap<u64, Opened>,
    keyspaces: HashMap<u64, Keyspace>,
    /// Versions by number: which are let go first.
    queue: VecDeque<(u64, u64, Slice)>,
    /// How many of the queue are gone already.
    stale: usize,
    /// Trees that are to be destroyed.
    unseen: Vec<Tree>,
    bytes: u64,
    expired: u64,
    /// Handles of snapshots that were ended, and not dropped yet.
    expired_open: u64,
}

/// The versions of a store.
#[derive(Debug)]
pub(crate) struct Versions {
    /// Whether a snapshot is open: all that a commit looks at otherwise.
    any: AtomicBool,
    /// Whether a commit has come since the first of the open snapshots: else trees say what they see.
    is_changed: AtomicBool,
    /// Whether there are trees to be destroyed.
    has_unseen: AtomicBool,
    bytes_max: u64,
    state: RwLock<State>,
    /// Snapshots closed within a closure that was lent something, and whether there are some.
    closed: Mutex<Vec<u64>>,
    has_closed: AtomicBool,
    /// A mistake, planted to see that tests notice it: ranges are not looked at.
    #[cfg(test)]
    pub(crate) skips_ranges: AtomicBool,
}

impl Versions {
    /// None, which may take so many bytes.
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            any: AtomicBool::new(false),
            is_changed: AtomicBool::new(false),
            has_unseen: AtomicBool::new(false),
            bytes_max,
            state: RwLock::default(),
            closed: Mutex::default(),
            has_closed: AtomicBool::new(false),
            #[cfg(test)]
            skips_ranges: AtomicBool::new(false),
        }
    }

    /// Whether a snapshot is open. Whoever has the heap exclusively can rely on a `false`.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether trees may not say what snapshots see. Whoever has one open, and the heap shared, can
    /// rely on a `false`.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed.load(Ordering::Acquire)
    }

    /// Whether more than one snapshot is open.
    pub(crate) fn are_several(&self) -> bool {
        let state = self.state.read();
        state.open.len() > 1 || state.open.values().any(|opened| opened.count > 1)
    }

    /// Opens a snapshot and returns its number. To be called under the heap's shared lock.
    pub(crate) fn open(&self, view: &View<'_>) -> u64 {
        let mut state = self.state.write();
        // A commit in pieces has a number from its beginning.
        let number = state.number - u64::from(view.is_early());
        let opened = state.open.entry(number).or_insert(Opened { count: 0, first: Instant::now() });
        opened.count += 1;
        self.any.store(true, Ordering::Release);
        number
    }

    /// Closes a snapshot later, because this thread is in a closure that was lent something: the
    /// next one that is closed, or the next commit, closes this one too.
    pub(crate) fn close_later(&self, number: u64) {
        self.closed.lock().push(number);
        self.has_closed.store(true, Ordering::Release);
    }

    /// Closes a snapshot, and lets go what no other one sees.
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
                state.open.remove(&number);
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

    /// Lets go all that is kept: the store is closed, and nobody can look at it any more. Slices of
    /// blocks would keep its directory.
    pub(crate) fn end(&self) {
        self.expire_all();
    }

    /// Lets go all that is kept; no snapshot is open.
    fn forget_all(&self, mut state: RwLockWriteGuard<'_, State>) {
        // Those that were ended must go on finding it out.
        self.is_changed.store(state.expired_open > 0, Ordering::Release);
        state.forget_trees(u64::MAX);
        self.note_unseen(&state);
        (state.bytes, state.stale) = (0, 0);
        let all = (std::mem::take(&mut state.keyspaces), std::mem::take(&mut state.queue));
        // A million versions take a while to free: nobody shall wait for that.
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

    /// Trees that were kept for snapshots and that none sees any more.
    pub(crate) fn take_unseen(&self) -> Vec<Tree> {
        let mut state = self.state.write();
        self.has_unseen.store(false, Ordering::Release);
        std::mem::take(&mut state.unseen)
    }

    /// The versions that a commit adds to; `None` when no snapshot is open, which is one load. To be
    /// called under the heap's exclusive lock.
    #[inline]
    pub(crate) fn recorder(&self) -> Option<Recorder<'_>> {
        if self.any() { self.start_recorder() } else { None }
    }

    #[cold]
    fn start_recorder(&self) -> Option<Recorder<'_>> {
        self.close_late();
        let number = {
            let mut state = self.state.write();
            state.number += u64::from(!state.open.is_empty());
            state.number
        };
        self.resume_recorder(number)
    }

    /// The number of a commit in pieces that begins. To be called under the heap's exclusive lock.
    pub(crate) fn begin_pieces(&self) -> u64 {
        self.close_late();
        let mut state = self.state.write();
        state.number += 1;
        state.number
    }

    /// The versions that a commit with this number, the last one, adds to; `None` when no snapshot is
    /// open. To be called under the heap's exclusive lock.
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

    /// Ends all snapshots: what they see could not be kept.
    pub(crate) fn expire_all(&self) {
        let mut state = self.state.write();
        while let Some((_, opened)) = state.open.pop_first() {
            state.expired += opened.count;
            state.expired_open += opened.count;
        }
        self.any.store(false, Ordering::Release);
        self.forget_all(state);
    }

    /// Keeps the tree of a keyspace that is dropped or cleared, if the commit succeeds. To be called under the
    /// heap's exclusive lock.
    pub(crate) fn drop_keyspace(&self, id: u64, tree: Tree) {
        let mut state = self.state.write();
        if state.open.is_empty() {
            state.unseen.push(tree);
            self.note_unseen(&state);
            return;
        }
        self.is_changed.store(true, Ordering::Release);
        state.number += 1;
        let number = state.number;
        state.keyspaces.entry(id).or_default().dropped.push((number, tree));
    }

    /// What a snapshot sees beside the trees. To be called under the heap's shared lock.
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

    /// Whether any of these keys of a keyspace was changed by a commit that a snapshot does not see,
    /// one of its reads in a transaction. To be called under the heap's exclusive lock.
    ///
    /// # Errors
    /// `Error::SnapshotExpired`.
    pub(crate) fn has_changed(&self, number: u64, id: u64, read: &ReadSet) -> Result<bool> {
        let seen = self.seen_by(number)?;
        let Some(keyspace) = seen.state.keyspaces.get(&id) else { return Ok(false) };
        // Whatever was read of it, it is there no more.
        let is_cleared = keyspace.dropped.iter().any(|(changed, _)| *changed > number);
        if is_cleared && !(read.keys.is_empty() && read.ranges.is_empty()) {
            return Ok(true);
        }
        let is_newer = |versions: &VecDeque<Version>| {
            versions.back().is_some_and(|(changed, _)| *changed > number)
        };
        if read.keys.iter().any(|key| keyspace.keys.get(key).is_some_and(is_newer)) {
            return Ok(true);
        }
        #[cfg(test)]
        if self.skips_ranges.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let mut ranges = read.ranges.iter().map(KeyRange::bounds);
        Ok(ranges.any(|range| {
            keyspace.keys.range::<[u8], _>(range).any(|(_, versions)| is_newer(versions))
        }))
    }

    /// Figures.
    pub(crate) fn stats(&self) -> SnapshotStats {
        let state = self.state.read();
        let oldest = state.open.values().map(|opened| opened.first.elapsed()).max();
        SnapshotStats {
            open: state.open.values().map(|opened| opened.count).sum(),
            oldest: oldest.unwrap_or_default(),
            versions: (state.queue.len() - state.stale) as u64,
            bytes: state.bytes,
            keyspaces: state.keyspaces.values().map(|k| k.dropped.len() as u64).sum(),
            expired: state.expired,
        }
    }
}

impl State {
    /// The number of the oldest snapshot.
    fn oldest(&self) -> Option<u64> {
        self.open.first_key_value().map(|(number, _)| *number)
    }

    /// Lets go what is kept of whole keyspaces up to a number.
    fn forget_trees(&mut self, oldest: u64) {
        self.keyspaces.retain(|_, keyspace| {
            keyspace.lens.retain(|(number, _)| *number > oldest);
            let dropped = keyspace.dropped.extract_if(.., |(number, _)| *number <= oldest);
            self.unseen.extend(dropped.map(|(_, tree)| tree));
            !(keyspace.keys.is_empty() && keyspace.lens.is_empty() && keyspace.dropped.is_empty())
        });
    }

    /// Lets go some versions up to a number; whether there may be more.
    fn forget_some(&mut self, oldest: u64) -> bool {
        for _ in 0..FORGET_STEP {
            if self.queue.front().is_none_or(|(number, ..)| *number > oldest) {
                return false;
            }
            let Some((number, id, key)) = self.queue.pop_front() else { return false };
            let keyspace = self.keyspaces.get_mut(&id);
            match keyspace.and_then(|keyspace| keyspace.take_version(&key, number)) {
                Some(value) => self.bytes -= bytes_of(&key, value.as_ref()),
                None => self.stale -= 1,
            }
        }
        true
    }

    /// Lets go versions of a key that no snapshot sees, though older ones are seen: of a key that is
    /// written time and again, while one snapshot stays and others come and go.
    fn thin(&mut self, id: u64, key: &[u8]) {
        let Some(keyspace) = self.keyspaces.get_mut(&id) else { return };
        let Some(versions) = keyspace.keys.get_mut(key) else { return };
        if versions.len() < VERSIONS_SPARE + 2 * self.open.len() {
            return;
        }
        let mut before = 0;
        versions.retain(|(number, value)| {
            let is_seen = self.open.range(before..*number).next().is_some();
            before = *number;
            if !is_seen {
                self.bytes -= bytes_of(key, value.as_ref());
                self.stale += 1;
            }
            is_seen
        });
        if self.stale > QUEUE_SPARE && self.stale > self.queue.len() / 2 {
            let Self { queue, keyspaces, stale, .. } = self;
            queue.retain(|(number, id, key)| {
                let versions = keyspaces.get(id).and_then(|keyspace| keyspace.keys.get(&key[..]));
                versions.is_some_and(|it| it.binary_search_by_key(number, |(at, _)| *at).is_ok())
            });
            *stale = 0;
        }
    }
}

/// The oldest of what has a number above that of a snapshot, and below `until`: what it sees.
fn oldest_within<T>(all: &VecDeque<(u64, T)>, number: u64, until: u64) -> Option<&T> {
    let (at, found) = all.get(all.partition_point(|(at, _)| *at <= number))?;
    (*at < until).then_some(found)
}

fn bytes_of(key: &[u8], value: Option<&Slice>) -> u64 {
    VERSION_BYTES + key.len() as u64 + value.map_or(0, |value| value.len() as u64)
}

/// Values that were lent just before the heap was locked for a commit, by their blocks: it spares
/// copying them.
#[derive(Debug, Default)]
pub(crate) struct Lent(HashMap<u64, Slice>);

impl Lent {
    /// Lends the value of a key if it has a block of its own.
    ///
    /// # Errors
    /// Those of looking for the key.
    pub(crate) fn add(&mut self, view: &View<'_>, tree: &Tree, key: &[u8]) -> Result<()> {
        if let Some((value, Some(block))) = tree.find_with_block(view, key)? {
            self.0.insert(block, view.lend(block, value.len())?);
        }
        Ok(())
    }

    /// A value, which may lie in a block of its own: lent before, or copied. A block that is lent is not
    /// used for anything else meanwhile.
    pub(crate) fn get(&self, value: &[u8], block: Option<u64>) -> Slice {
        let lent = block.and_then(|block| self.0.get(&block));
        lent.cloned().unwrap_or_else(|| value.into())
    }
}

/// What a commit puts here before it changes anything.
pub(crate) struct Recorder<'v> {
    state: RwLockWriteGuard<'v, State>,
    number: u64,
    newest: u64,
    versions: &'v Versions,
}

impl Recorder<'_> {
    /// Opens a snapshot of the commit before, to be closed by its number, which this returns: what is
    /// kept is not let go then when others are closed, and holds for all that are opened meanwhile.
    pub(crate) fn hold(&mut self) -> u64 {
        let before = self.number - 1;
        let new = || Opened { count: 0, first: Instant::now() };
        self.state.open.entry(before).or_insert_with(new).count += 1;
        self.newest = before;
        before
    }

    /// Keeps what a tree holds under a key that is about to change.
    ///
    /// # Errors
    /// Those of looking for the key.
    pub(crate) fn keep<R: Read>(
        &mut self,
        heap: &R,
        (id, tree): (u64, Tree),
        key: &[u8],
        lend: impl FnOnce(&[u8], Option<u64>) -> Result<Slice>,
    ) -> Result<()> {
        let state = &mut *self.state;
        let keyspace = state.keyspaces.entry(id).or_default();
        if keyspace.lens.back().is_none_or(|(number, _)| *number <= self.newest) {
            keyspace.lens.push_back((self.number, tree.len(heap)?));
        }
        let versions = keyspace.keys.get(key);
        if versions.and_then(|versions| versions.back()).is_some_and(|(n, _)| *n > self.newest) {
            // Every snapshot that is open sees that one, or an older one.
            return Ok(());
        }
        let found = tree.find_with_block(heap, key)?;
        let value = found.map(|(value, block)| lend(value, block)).transpose()?;
        let key = Slice::from(key);
        state.bytes += bytes_of(&key, value.as_ref());
        state.queue.push_back((self.number, id, key.clone()));
        keyspace.keys.entry(key.clone()).or_default().push_back((self.number, value));
        state.thin(id, &key);
        Ok(())
    }

    /// Ends the oldest snapshots if all is too much; whether it did.
    pub(crate) fn finish(mut self) -> bool {
        let state = &mut *self.state;
        let before = state.expired;
        while state.bytes > self.versions.bytes_max
            && let Some((_, opened)) = state.open.pop_first()
        {
            state.expired += opened.count;
            let (count, bytes) = (opened.count, state.bytes);
            warn!(target: events::SNAPSHOT, count, bytes, "snapshots ended: too much kept for them");
            state.expired_open += opened.count;
            let oldest = state.oldest().unwrap_or(u64::MAX);
            state.forget_trees(oldest);
            while state.forget_some(oldest) {}
        }
        self.versions.note_unseen(state);
        if state.open.is_empty() {
            self.versions.any.store(false, Ordering::Release);
        }
        state.expired > before
    }
}

/// What a transaction read of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    pub(crate) keys: BTreeSet<Slice>,
    pub(crate) ranges: Vec<KeyRange>,
}

/// What a snapshot sees beside the trees.
pub(crate) struct Seen<'v> {
    state: RwLockReadGuard<'v, State>,
    number: u64,
}

impl Seen<'_> {
    /// What it sees of one keyspace.
    ///
    /// # Errors
    /// Those of asking the catalogue, for a keyspace that may have been dropped or converted.
    pub(crate) fn keyspace<R: Read>(
        &self,
        heap: &R,
        catalogue: &Catalogue,
        id: u64,
    ) -> Result<SeenKeyspace<'_>> {
        let keyspace = self.state.keyspaces.get(&id);
        let (mut until, mut tree) = (u64::MAX, None);
        let dropped = keyspace.into_iter().flat_map(|keyspace| &keyspace.dropped);
        for (number, dropped) in dropped.filter(|(number, _)| *number > self.number) {
            // The commit that was to drop it may have failed.
            if catalogue.is_retired(heap, id, dropped)? {
                (until, tree) = (*number, Some(*dropped));
                break;
            }
        }
        Ok(SeenKeyspace { keyspace, number: self.number, until, tree })
    }
}

/// What a snapshot sees of a keyspace beside its tree.
pub(crate) struct SeenKeyspace<'s> {
    keyspace: Option<&'s Keyspace>,
    number: u64,
    /// The commit that took the tree away: what later ones changed was in another one.
    until: u64,
    tree: Option<Tree>,
}

impl SeenKeyspace<'_> {
    /// The tree that the keyspace had, if it was dropped or cleared since.
    pub(crate) fn tree(&self) -> Option<Tree> {
        self.tree
    }

    /// Entries that the keyspace had, if the tree does not say.
    pub(crate) fn len(&self) -> Option<u64> {
        oldest_within(&self.keyspace?.lens, self.number, self.until).copied()
    }

    /// What a key had, if the tree does not say: `Some(None)` when it was not there.
    pub(crate) fn version(&self, key: &[u8]) -> Option<Option<Slice>> {
        oldest_within(self.keyspace?.keys.get(key)?, self.number, self.until).cloned()
    }

    /// Versions of keys within bounds, in order, after looking at up to `keys_max` keys; with the
    /// key where it stopped if there may be more beyond it.
    pub(crate) fn versions(
        &self,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        keys_max: usize,
    ) -> SeenVersions {
        let mut found = VecDeque::new();
        let Some(keyspace) = self.keyspace else { return (found, None) };
        let mut range = keyspace.keys.range::<[u8], _>(bounds);
        for looked_at in 1.. {
            let next = match direction {
                Direction::Up => range.next(),
                Direction::Down => range.next_back(),
            };
            let Some((key, versions)) = next else { break };
            let seen = oldest_within(versions, self.number, self.until);
            found.extend(seen.map(|value| (key.clone(), value.clone())));
            if looked_at == keys_max {
                return (found, Some(key.clone()));
            }
        }
        (found, None)
    }
}
