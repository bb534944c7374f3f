//! Old versions that commits kept for snapshots, and the open snapshots.
//!
//! Purpose: the old values by keyspace and key, with the number of the commit that changed them;
//! which versions are dropped, and when.
//! Invariants: the version numbers of a key rise. Each version is in the queue once; queue entries
//! whose version is gone are counted. See `versions.rs` for what the numbers mean.
//! Thread safety: none of its own; `versions.rs` has a lock around it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use adamant_slice::Slice;
use parking_lot::Mutex;

use crate::engine::map::Map;

/// Bytes that a version takes beside its key and value, about.
const VERSION_BYTES: u64 = 160;
/// Versions that are dropped under one hold of the lock: some 100 microseconds.
const FORGET_STEP: usize = 1024;
/// Versions of a key, beyond two for each snapshot, before unseen ones are dropped.
const VERSIONS_SPARE: usize = 8;
/// The least number of stale queue entries before the queue is cleaned.
const QUEUE_SPARE: usize = 1024;

/// Bytes that an indexed changed key takes, about: its own bytes are shared.
const SINCE_BYTES: u64 = 40;

/// The changed keys of a snapshot are indexed only if so many times as many keys are kept;
/// otherwise all are walked.
const FEW: usize = 8;

/// How many handles of a snapshot there are, and when the first was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) count: u64,
    pub(crate) first: Instant,
    since: Mutex<Since>,
}

/// The keys that have changed since a snapshot, as far as they were requested.
#[derive(Debug, Default)]
struct Since {
    /// The position in the queue, counted from the first entry ever, up to which it was read.
    taken: u64,
    keys: HashMap<u64, BTreeSet<Slice>>,
    /// The number of keys.
    len: u64,
}

impl Opened {
    /// So many handles of a snapshot, opened now.
    pub(crate) fn now(count: u64) -> Self {
        Self { count, first: Instant::now(), since: Mutex::default() }
    }
}

/// The state before a commit: the commit's number, and the value, `None` for no such key.
pub(crate) type Version = (u64, Option<Slice>);

/// The versions of one keyspace.
#[derive(Debug, Default)]
pub(crate) struct Keyspace {
    /// By key, the oldest first.
    pub(crate) keys: BTreeMap<Slice, VecDeque<Version>>,
    /// The number of entries before a commit, the oldest first.
    pub(crate) lens: VecDeque<(u64, u64)>,
    /// The commits that cleared or dropped the keyspace, if they succeeded, and the trees that are
    /// kept, the oldest first.
    pub(crate) dropped: Vec<(u64, Map)>,
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

/// All kept versions and open snapshots.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The number of the last commit that found a snapshot open.
    pub(crate) number: u64,
    pub(crate) open: BTreeMap<u64, Opened>,
    /// By number: the last complete moment of the LSM trees when commits with higher numbers began.
    pub(crate) moments: BTreeMap<u64, u64>,
    pub(crate) keyspaces: HashMap<u64, Keyspace>,
    /// Versions by number, in the order in which they are dropped.
    pub(crate) queue: VecDeque<(u64, u64, Slice)>,
    /// How many were ever queued.
    pub(crate) queued: u64,
    /// How many entries of the queue are stale.
    pub(crate) stale: usize,
    /// Trees to be freed.
    pub(crate) unseen: Vec<Map>,
    pub(crate) bytes: u64,
    /// Snapshots ever opened, and those that expired.
    pub(crate) opened: u64,
    pub(crate) expired: u64,
    /// Handles of expired snapshots that are not dropped yet.
    pub(crate) expired_open: u64,
    /// Keys that range reads visited.
    walked: AtomicU64,
    /// Keys that are indexed as changed since an open snapshot.
    since_len: AtomicU64,
}

impl State {
    /// Bytes that all of it takes, about.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.bytes + SINCE_BYTES * self.since_len.load(Ordering::Relaxed)
    }

    /// Closes a snapshot.
    pub(crate) fn end(&mut self, number: u64) -> Option<Opened> {
        let ended = self.open.remove(&number)?;
        self.forget_since(&mut ended.since.lock());
        Some(ended)
    }

    /// Drops the index of changed keys; it is rebuilt on demand.
    fn forget_since(&self, since: &mut Since) {
        let Since { len, .. } = std::mem::take(since);
        self.since_len.fetch_sub(len, Ordering::Relaxed);
    }

    /// Gives a commit the next number. `visible` is the last complete moment before it.
    pub(crate) fn advance(&mut self, visible: u64) {
        let open = &self.open;
        self.moments.retain(|number, _| open.contains_key(number));
        self.moments.insert(self.number, visible);
        self.number += 1;
    }

    /// Queues a version, which is also stored by its key.
    pub(crate) fn push(&mut self, number: u64, id: u64, key: Slice) {
        self.queue.push_back((number, id, key));
        self.queued += 1;
    }

    /// Calls a closure with the keys of a keyspace that have changed since a snapshot, or a
    /// superset; `None` if not many more are kept in all. So the cost of a snapshot is bounded by
    /// what has changed since it was opened, whatever is kept for older ones: the caller walks all
    /// keys only where these are not many more.
    pub(crate) fn since<T>(
        &self,
        (number, id): (u64, u64),
        kept: usize,
        look: impl FnOnce(&BTreeSet<Slice>) -> T,
    ) -> Option<T> {
        let mut since = self.open.get(&number)?.since.lock();
        let start = self.queue.partition_point(|(at, ..)| *at <= number);
        if kept < FEW * (self.queue.len() - start + 1) {
            self.forget_since(&mut since);
            return None;
        }
        let first = self.queued - self.queue.len() as u64;
        let taken = usize::try_from(since.taken.saturating_sub(first)).unwrap_or(usize::MAX);
        let len = since.len;
        for (_, id, key) in self.queue.range(start.max(taken)..) {
            let is_new = since.keys.entry(*id).or_default().insert(key.clone());
            since.len += u64::from(is_new);
        }
        self.since_len.fetch_add(since.len - len, Ordering::Relaxed);
        since.taken = self.queued;
        Some(look(since.keys.entry(id).or_default()))
    }

    /// Counts keys that a range read visited.
    pub(crate) fn walk(&self, keys: usize) {
        self.walked.fetch_add(keys as u64, Ordering::Relaxed);
    }

    /// Keys that range reads visited so far.
    pub(crate) fn walked(&self) -> u64 {
        self.walked.load(Ordering::Relaxed)
    }

    /// The number of the oldest snapshot.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.open.first_key_value().map(|(number, _)| *number)
    }

    /// Drops what is kept of whole keyspaces up to a number.
    pub(crate) fn forget_trees(&mut self, oldest: u64) {
        self.keyspaces.retain(|_, keyspace| {
            keyspace.lens.retain(|(number, _)| *number > oldest);
            let dropped = keyspace.dropped.extract_if(.., |(number, _)| *number <= oldest);
            self.unseen.extend(dropped.map(|(_, tree)| tree));
            !(keyspace.keys.is_empty() && keyspace.lens.is_empty() && keyspace.dropped.is_empty())
        });
    }

    /// Drops some versions up to a number; returns whether there may be more.
    pub(crate) fn forget_some(&mut self, oldest: u64) -> bool {
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

    /// Drops versions of a key that no snapshot sees, though older ones are seen: for a key that is
    /// written time and again while one snapshot stays and others come and go.
    pub(crate) fn thin(&mut self, id: u64, key: &[u8]) {
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
            // Positions in the queue have changed.
            self.open.values().for_each(|opened| self.forget_since(&mut opened.since.lock()));
        }
    }
}

/// Bytes that a version takes, about.
pub(crate) fn bytes_of(key: &[u8], value: Option<&Slice>) -> u64 {
    VERSION_BYTES + key.len() as u64 + value.map_or(0, |value| value.len() as u64)
}
