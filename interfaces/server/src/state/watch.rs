//! WATCH: whether keys that a client looked at were changed since.
//!
//! Purpose: who watches a key is told by whoever writes it, so watching costs nothing where nobody
//! watches, and memory for the keys that are watched where somebody does; a snapshot would cost what
//! changes, for as long as the client does not come back.
//! Invariants: keys are entered, told of and asked for by the thread that has the turn to write, so
//! no change can fall between a look and the watch. What a client watches goes when it goes.
//! In a cluster the one that writes is not the one that looked: there what a key had is kept, and compared by EXEC. What was
//! changed and changed back is not noticed, and does no harm.
//! Thread safety: one lock, held for the keys of one call.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use adamant::Deadline;
use bytes::Bytes;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

/// Who watches what, of all databases.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// Keys that are watched, each as often as it is: 0 spares the lock.
    count: AtomicUsize,
    keys: Mutex<HashMap<usize, HashMap<Bytes, Vec<Flag>>>>,
}

/// Of one client: whether something that it watches was changed.
type Flag = Arc<AtomicBool>;

/// What one client watches until its next EXEC, DISCARD or UNWATCH.
#[derive(Debug)]
pub(crate) struct Watched {
    watchers: Arc<Watchers>,
    is_changed: Flag,
    /// Databases and keys, and when what was there ends; being over is a change, too.
    keys: Mutex<HashMap<(usize, Bytes), Option<Deadline>>>,
    /// Of a cluster: what keys had.
    seen: Mutex<HashMap<(usize, Bytes), Option<Print>>>,
}

/// A key, and what it had when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) database: usize,
    pub(crate) key: Bytes,
    pub(crate) found: Option<Print>,
}

/// What tells a value from others, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    pub(crate) bytes: u64,
    pub(crate) hash: u128,
    pub(crate) deadline: Option<u64>,
}

impl Seen {
    /// A key that has this.
    pub(crate) fn new(
        database: usize,
        key: &[u8],
        found: Option<(&[u8], Option<Deadline>)>,
    ) -> Self {
        let found = found.map(|(value, deadline)| Print {
            bytes: value.len() as u64,
            hash: xxh3_128(value),
            deadline: deadline.map(|deadline| deadline.millis()),
        });
        // A copy: the argument would keep all that was read with it.
        Self { database, key: Bytes::copy_from_slice(key), found }
    }
}

impl Watchers {
    /// Nobody watches this key, or all who do are told that it was changed.
    pub(crate) fn tell(&self, database: usize, key: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let keys = self.keys.lock();
        if let Some(watching) = keys.get(&database).and_then(|keys| keys.get(key)) {
            watching.iter().for_each(|flag| flag.store(true, Ordering::Release));
        }
    }

    /// The keys of a database that somebody watches.
    pub(crate) fn keys(&self, database: usize) -> Vec<Bytes> {
        let keys = self.keys.lock();
        keys.get(&database).into_iter().flat_map(HashMap::keys).cloned().collect()
    }
}

impl Watched {
    /// Nothing is watched yet.
    pub(crate) fn new(watchers: &Arc<Watchers>) -> Arc<Self> {
        Arc::new(Self {
            watchers: Arc::clone(watchers),
            is_changed: Flag::default(),
            keys: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    /// Keys that are watched.
    pub(crate) fn len(&self) -> usize {
        self.keys.lock().len() + self.seen.lock().len()
    }

    /// Watches a key by what it has now; what was seen first counts.
    pub(crate) fn see(&self, seen: Seen) {
        self.seen.lock().entry((seen.database, seen.key)).or_insert(seen.found);
    }

    /// Keys that are watched by what they had.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock();
        let all = seen.iter().map(|((database, key), &found)| (*database, key.clone(), found));
        all.map(|(database, key, found)| Seen { database, key, found }).collect()
    }

    /// Watches a key from now on, which holds something until a deadline, if there is one.
    pub(crate) fn watch(&self, database: usize, key: &Bytes, deadline: Option<Deadline>) {
        // A copy: the argument would keep all that was read with it.
        let key = Bytes::copy_from_slice(key);
        let mut own = self.keys.lock();
        let Entry::Vacant(free) = own.entry((database, key.clone())) else { return };
        free.insert(deadline);
        let mut keys = self.watchers.keys.lock();
        let watching = keys.entry(database).or_default().entry(key).or_default();
        watching.push(Arc::clone(&self.is_changed));
        self.watchers.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether something that is watched was changed, or is over by now (milliseconds since 1970).
    pub(crate) fn is_changed(&self, now: u64) -> bool {
        let is_over = |deadline: &Deadline| deadline.millis() <= now;
        self.is_changed.load(Ordering::Acquire) || self.keys.lock().values().flatten().any(is_over)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let own = std::mem::take(self.keys.get_mut());
        if own.is_empty() {
            return;
        }
        let mut keys = self.watchers.keys.lock();
        for (database, key) in own.keys() {
            let Some(database) = keys.get_mut(database) else { continue };
            let Some(watching) = database.get_mut(key) else { continue };
            watching.retain(|flag| !Arc::ptr_eq(flag, &self.is_changed));
            if watching.is_empty() {
                database.remove(key);
            }
        }
        self.watchers.count.fetch_sub(own.len(), Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_watches_is_told() {
        let watchers = Arc::new(Watchers::default());
        let (one, other) = (Watched::new(&watchers), Watched::new(&watchers));
        one.watch(0, &Bytes::from("a"), None);
        one.watch(0, &Bytes::from("a"), None);
        other.watch(1, &Bytes::from("a"), Some(Deadline::from_millis(100)));
        assert_eq!((one.len(), other.len()), (1, 1));
        watchers.tell(0, b"b");
        assert!(!one.is_changed(0));
        watchers.tell(0, b"a");
        assert!(one.is_changed(0) && !other.is_changed(99) && other.is_changed(100));
        assert_eq!(watchers.keys(1), ["a"]);
        watchers.tell(1, b"a");
        assert!(other.is_changed(0));
    }

    #[test]
    fn what_is_not_watched_any_more_takes_no_memory() {
        let watchers = Arc::new(Watchers::default());
        let stays = Watched::new(&watchers);
        stays.watch(0, &Bytes::from("a"), None);
        for number in 0..100 {
            let goes = Watched::new(&watchers);
            goes.watch(0, &Bytes::from("a"), None);
            goes.watch(0, &Bytes::from(format!("{number}")), None);
        }
        assert_eq!(watchers.count.load(Ordering::Relaxed), 1);
        let keys = watchers.keys.lock();
        assert_eq!(keys[&0].values().map(Vec::len).collect::<Vec<_>>(), [1]);
    }
}
