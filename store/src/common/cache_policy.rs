//! The eviction policy of a cache: which entries make room for others (S3-FIFO, by `quick_cache`).
//!
//! Purpose: knows the keys of a cache's entries and their bytes, and says which to evict before an
//! entry is put. It stores nothing: the cache deletes what is evicted in the commit that puts.
//! Invariants: each stored entry is known here, with at least its bytes, while `writing` is not
//! held; so the stored entries have no more bytes than the bound. An entry that is known and not
//! stored (it has expired and was swept a moment ago) only makes evictions come sooner.
//! Thread safety, lock order: `writing`, held by who changes the entries from the plan to the end
//! of the commit; the write permit; `known`, held for a moment.

use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_slice::Slice;
use parking_lot::{Mutex, MutexGuard};
use quick_cache::unsync::Cache;
use quick_cache::{Lifecycle, Options, OptionsBuilder, Weighter};

use crate::error::Result;

/// Bytes that an entry takes beside its key and its value: deadlines, slots, its share of nodes.
const ENTRY_BYTES: u64 = 64;
/// About the bytes of an entry, for the number of evicted keys that are remembered.
const EXPECTED_BYTES: u64 = 1024;
/// The most entries that room is made for in advance.
const EXPECTED_ENTRIES_MAX: u64 = 1 << 16;

/// The bytes that an entry counts for.
pub(crate) fn bytes_of(key: &[u8], value_bytes: usize) -> u64 {
    key.len() as u64 + value_bytes as u64 + ENTRY_BYTES
}

/// Values of the known keys are their bytes.
#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Slice, u64> for Bytes {
    fn weight(&self, _: &Slice, bytes: &u64) -> u64 {
        *bytes
    }
}

/// Collects what is evicted.
#[derive(Clone, Debug, Default)]
struct Evicted(Arc<Mutex<Vec<(Slice, u64)>>>);

impl Lifecycle<Slice, u64> for Evicted {
    type RequestState = ();

    fn begin_request(&self) {}

    fn on_evict(&self, (): &mut (), key: Slice, bytes: u64) {
        self.0.lock().push((key, bytes));
    }
}

struct Known {
    entries: Cache<Slice, u64, Bytes, RandomState, Evicted>,
    evicted: Evicted,
    bytes_max: u64,
    /// Whether the stored entries were read.
    is_built: bool,
}

impl Known {
    fn new(bytes_max: u64) -> Self {
        let evicted = Evicted::default();
        let entries =
            Cache::with_options(options(bytes_max), Bytes, RandomState::new(), evicted.clone());
        Self { entries, evicted, bytes_max, is_built: false }
    }

    fn take_evicted(&self) -> Vec<(Slice, u64)> {
        std::mem::take(&mut *self.evicted.0.lock())
    }

    /// Adds a key or changes its bytes; evicts others for it.
    fn insert(&mut self, key: &Slice, bytes: u64) -> Vec<(Slice, u64)> {
        self.entries.insert(key.clone(), bytes);
        let mut evicted = self.take_evicted();
        // A known key that has got more bytes may evict itself; a new one does not.
        if let Some(own) = evicted.iter().position(|(evicted, _)| evicted == key) {
            evicted.swap_remove(own);
            self.entries.insert(key.clone(), bytes);
            evicted.extend(self.take_evicted());
        }
        debug_assert!(self.entries.weight() <= self.bytes_max, "room was made");
        evicted
    }
}

fn options(bytes_max: u64) -> Options {
    let expected = (bytes_max / EXPECTED_BYTES).clamp(16, EXPECTED_ENTRIES_MAX) as usize;
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(expected).weight_capacity(bytes_max);
    match options.build() {
        Ok(options) => options,
        // Both that it needs were given.
        Err(error) => unreachable!("{error:?}"),
    }
}

/// What a put of an entry changed in the policy.
#[derive(Debug)]
pub(crate) struct Plan {
    key: Slice,
    /// The bytes that the key had, if it was known.
    before: Option<u64>,
    /// What has to go, with its bytes.
    pub(crate) evicted: Vec<(Slice, u64)>,
}

/// The policy of a cache, which all its handles share.
pub(crate) struct CachePolicy {
    writing: Mutex<()>,
    known: Mutex<Known>,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

/// Figures of a cache since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Gets that found an entry.
    pub hits: u64,
    /// Gets that found none, or one that had expired.
    pub misses: u64,
    /// Entries that were deleted to make room.
    pub evictions: u64,
    /// Entries, also those that have expired and were not removed yet.
    pub entries: u64,
    /// Their bytes, as they count.
    pub bytes: u64,
    /// The bound of these.
    pub bytes_max: u64,
}

impl CachePolicy {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let (hits, misses, evictions) = Default::default();
        let (writing, known) = (Mutex::default(), Mutex::new(Known::new(bytes_max)));
        Self { writing, known, hits, misses, evictions }
    }

    /// Excludes other changes of the entries, until it is dropped.
    pub(crate) fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    /// Whether the stored entries were read.
    pub(crate) fn is_built(&self) -> bool {
        self.known.lock().is_built
    }

    /// Begins anew, with another bound.
    pub(crate) fn begin(&self, bytes_max: u64) {
        *self.known.lock() = Known::new(bytes_max);
    }

    /// Notes that the stored entries were read.
    pub(crate) fn end_building(&self) {
        self.known.lock().is_built = true;
    }

    /// The most bytes of entries.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.known.lock().bytes_max
    }

    /// Sets the bound; returns what has to go.
    pub(crate) fn set_bytes_max(&self, bytes_max: u64) -> Vec<(Slice, u64)> {
        let mut known = self.known.lock();
        known.bytes_max = bytes_max;
        known.entries.set_capacity(bytes_max);
        known.take_evicted()
    }

    /// Evicts entries of about so many bytes, or one: for a device that is full.
    pub(crate) fn evict(&self, bytes: u64) -> Vec<(Slice, u64)> {
        let mut known = self.known.lock();
        let (bytes_max, held) = (known.bytes_max, known.entries.weight());
        known.entries.set_capacity(held.saturating_sub(bytes).max(1));
        known.entries.set_capacity(bytes_max);
        known.take_evicted()
    }

    /// Makes room for an entry and adds it.
    pub(crate) fn plan(&self, key: &[u8], bytes: u64) -> Plan {
        let mut known = self.known.lock();
        let before = known.entries.peek(key).copied();
        let key = Slice::from(key);
        let evicted = known.insert(&key, bytes);
        Plan { key, before, evicted }
    }

    /// Undoes a plan whose commit has failed. Only the ranks of the entries are another.
    pub(crate) fn undo(&self, plan: Plan) {
        let mut known = self.known.lock();
        known.entries.remove(&plan.key[..]);
        let before = plan.before.map(|bytes| (plan.key, bytes));
        for (key, bytes) in before.into_iter().chain(plan.evicted) {
            // As much was known before: there is room.
            known.insert(&key, bytes);
        }
    }

    /// Knows entries again whose removal has failed.
    pub(crate) fn keep(&self, entries: Vec<(Slice, u64)>) {
        let mut known = self.known.lock();
        for (key, bytes) in entries {
            known.insert(&key, bytes);
        }
    }

    /// Counts evictions that were committed.
    pub(crate) fn note_evictions(&self, count: usize) {
        self.evictions.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a get: a hit raises the rank of the entry.
    pub(crate) fn note_get(&self, key: &[u8], is_hit: bool) {
        if is_hit {
            self.hits.fetch_add(1, Ordering::Relaxed);
            self.known.lock().entries.get(key);
        } else {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forgets an entry that was removed, under `writing`.
    pub(crate) fn forget(&self, key: &[u8]) {
        self.known.lock().entries.remove(key);
    }

    /// Forgets all entries, under `writing`.
    pub(crate) fn clear(&self) {
        self.known.lock().entries.clear();
    }

    /// Forgets entries that were removed not under `writing`: if they are not there again.
    pub(crate) fn forget_removed<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
        is_there: impl Fn(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        let _writing = self.write();
        for key in keys {
            if !is_there(key)? {
                self.forget(key);
            }
        }
        Ok(())
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let known = self.known.lock();
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            entries: known.entries.len() as u64,
            bytes: known.entries.weight(),
            bytes_max: known.bytes_max,
        }
    }
}
