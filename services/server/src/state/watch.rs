//! WATCH: detects changes of the keys that a client has read.
//!
//! Purpose: the writer of a key notifies its watchers, so watching costs nothing without watchers,
//! and memory for the watched keys with them; a snapshot would cost memory for every change, for as
//! long as the client does not come back.
//! Invariants: keys are entered, notified and queried under the commit lock, so no change can fall
//! between a read and the watch. A client's watches end with it. In a cluster another node writes
//! than the one that read: there the content of a key is kept, and EXEC compares it. A key that was
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

/// The watched keys of all databases, with their watchers.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    /// Number of watches: 0 saves taking the lock.
    count: AtomicUsize,
    keys: Mutex<HashMap<usize, HashMap<Bytes, Vec<Flag>>>>,
}

/// Of one client: whether one of its watched keys was changed.
type Flag = Arc<AtomicBool>;

/// The watches of one client until its next EXEC, DISCARD or UNWATCH.
#[derive(Debug)]
pub(crate) struct Watched {
    watchers: Arc<Watchers>,
    is_changed: Flag,
    /// Databases and keys, and their deadlines; expiry is a change, too.
    keys: Mutex<HashMap<(usize, Bytes), Option<Deadline>>>,
    /// In a cluster: the content of keys.
    seen: Mutex<HashMap<(usize, Bytes), Option<Print>>>,
}

/// A key, and its content when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) database: usize,
    pub(crate) key: Bytes,
    pub(crate) found: Option<Print>,
}

/// The fingerprint of a value, and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Print {
    pub(crate) bytes: u64,
    pub(crate) hash: u128,
    pub(crate) deadline: Option<u64>,
}

impl Seen {
    /// A key with this content.
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
    /// Notifies all watchers of a key that it was changed.
    pub(crate) fn tell(&self, database: usize, key: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let keys = self.keys.lock();
        if let Some(watching) = keys.get(&database).and_then(|keys| keys.get(key)) {
            watching.iter().for_each(|flag| flag.store(true, Ordering::Release));
        }
    }

    /// The watched keys of a database.
    pub(crate) fn keys(&self, database: usize) -> Vec<Bytes> {
        let keys = self.keys.lock();
        keys.get(&database).into_iter().flat_map(HashMap::keys).cloned().collect()
    }
}

impl Watched {
    /// No watches.
    pub(crate) fn new(watchers: &Arc<Watchers>) -> Arc<Self> {
        Arc::new(Self {
            watchers: Arc::clone(watchers),
            is_changed: Flag::default(),
            keys: Mutex::default(),
            seen: Mutex::default(),
        })
    }

    /// Number of watched keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.lock().len() + self.seen.lock().len()
    }

    /// Watches a key by its current content; the first one counts.
    pub(crate) fn see(&self, seen: Seen) {
        self.seen.lock().entry((seen.database, seen.key)).or_insert(seen.found);
    }

    /// Keys that are watched by content.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.seen.lock();
        let all = seen.iter().map(|((database, key), &found)| (*database, key.clone(), found));
        all.map(|(database, key, found)| Seen { database, key, found }).collect()
    }

    /// Watches a key from now on; its entry expires at the deadline, if there is one.
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

    /// Whether a watched key was changed, or is expired by now (milliseconds since 1970).
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
