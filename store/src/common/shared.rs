//! The state shared by the handles of one store: its heap, its catalogue and the open keyspaces.
//!
//! Purpose: the two entry points of every operation: `view` to read, `transaction` to write. Both
//! refuse a closed store, the child of a fork, and a thread that already holds the store's lock.
//! Calls that cannot fail, such as a drop, do nothing in the child of a fork.
//! Invariants: the shared state of a keyspace's handles is listed here while the keyspace exists
//! and has been opened (`list.rs`); whether it still exists is decided by the catalogue. The last
//! handle closes the store: threads of the store's own share `OpenStore`, and end before.
//! Thread safety, lock order: the write permit, `list`, the heap's lock; `spare_content` is held
//! for itself. The list is held while a keyspace is created or dropped, which waits for the device;
//! operations on an open keyspace never touch it.

pub(crate) mod changes;
mod commit;
mod opening;
mod retired;

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use adamant_heap::durability::Durability;
use adamant_heap::{Heap, View};
use parking_lot::Mutex;

use crate::common::background::BackgroundWorkers;
use crate::common::cache_policy::CachePolicy;
use crate::common::catalogue::Catalogue;
use crate::common::content::Content;
use crate::common::history::History;
use crate::common::state::{KeyspaceState, Place};
use crate::common::sweeper::Sweeper;
use crate::common::versions::Versions;
use crate::error::{Error, Result};
use crate::guard;
use crate::kind::KeyspaceKind;
use crate::metrics::Metrics;
use crate::options::Options;

/// Called with each key that a commit will change.
pub(crate) type KeyVisitor<'v> = dyn FnMut(&KeyspaceState, &[u8]) -> Result<()> + 'v;

/// The keyspaces in use.
#[derive(Default)]
pub(crate) struct List {
    /// The state for new handles, by current name.
    pub(crate) states: BTreeMap<Box<str>, Arc<KeyspaceState>>,
    /// The state that all handles of a keyspace share, by its number.
    pub(crate) places: HashMap<u64, Arc<Place>>,
}

/// The state behind all handles of a store. Dropping it closes the heap.
pub(crate) struct Shared {
    open: Arc<OpenStore>,
    sweeper: Arc<Sweeper>,
}

/// The state of an open store that its own threads share with the handles: it is closed by the last
/// handle, and not by them.
pub(crate) struct OpenStore {
    heap: Arc<Heap>,
    catalogue: Catalogue,
    durability: Durability,
    closed: AtomicBool,
    pub(crate) list: Mutex<List>,
    /// The buffers of the last batch, for the next one.
    spare_content: Mutex<Option<Content>>,
    versions: Arc<Versions>,
    /// The most bytes of blocks that a chunked commit copies.
    copied_bytes_max: u64,
    metrics: Metrics,
    workers: Arc<BackgroundWorkers>,
    /// What it was opened with.
    options: Options,
    history: Arc<History>,
    /// Held while a persistent savepoint is made or deleted.
    pub(crate) savepoints: Mutex<()>,
    /// The policies of caches that are open, by the number of the keyspace.
    caches: Mutex<BTreeMap<u64, Weak<CachePolicy>>>,
    /// Its number among all openings of the process: an address may be that of a later one.
    opening: u64,
}

impl OpenStore {
    /// Whether this is the child of a fork: then nothing may be touched, and no lock taken.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.refuse_child().is_err()
    }

    /// Fails in the child of a fork.
    #[inline]
    pub(crate) fn refuse_child(&self) -> Result<()> {
        Ok(self.heap.refuse_child()?)
    }

    /// The versions that open snapshots see beside the trees.
    #[inline]
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The background workers of the LSM trees.
    pub(crate) fn workers(&self) -> &Arc<BackgroundWorkers> {
        &self.workers
    }

    /// Counters and latencies.
    #[inline]
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The history of changes.
    pub(crate) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Identifies this store among those of the process.
    pub(crate) fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The durability of commits to keyspaces that have none of their own.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// The durability of commits to a keyspace that do not set their own.
    #[inline]
    pub(crate) fn durability_of(&self, state: &KeyspaceState) -> Durability {
        state.place().durability().unwrap_or(self.durability)
    }

    /// That of a commit to several: the strongest that one of them asks for. Deadlines go by the
    /// entries that they belong to.
    pub(crate) fn durability_over<'k>(
        &self,
        states: impl IntoIterator<Item = &'k KeyspaceState>,
    ) -> Durability {
        let asking = states.into_iter().filter(|state| state.kind != KeyspaceKind::Deadlines);
        let asked = asking.map(|state| self.durability_of(state));
        asked.reduce(Durability::or_stronger).unwrap_or(self.durability)
    }

    /// Empty buffers for a batch.
    pub(crate) fn take_spare_content(&self) -> Content {
        if self.is_child() {
            return Content::default();
        }
        self.spare_content.lock().take().unwrap_or_default()
    }

    /// Takes cleared buffers back.
    pub(crate) fn keep_spare_content(&self, content: Content) {
        if !self.is_child() {
            *self.spare_content.lock() = Some(content);
        }
    }

    /// What it was opened with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// The policy of the cache in a keyspace, which all its handles share; made if there is none.
    pub(crate) fn cache_policy(&self, id: u64, bytes_max: u64) -> Arc<CachePolicy> {
        let mut caches = self.caches.lock();
        caches.retain(|_, policy| policy.strong_count() > 0);
        if let Some(policy) = caches.get(&id).and_then(Weak::upgrade) {
            return policy;
        }
        let policy = Arc::new(CachePolicy::new(bytes_max));
        caches.insert(id, Arc::downgrade(&policy));
        policy
    }

    /// The policy of the cache in a keyspace, if one is open.
    pub(crate) fn open_cache_policy(&self, id: u64) -> Option<Arc<CachePolicy>> {
        self.caches.lock().get(&id).and_then(Weak::upgrade)
    }

    /// The catalogue of keyspaces.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Whether pages of trees are often not in memory.
    #[inline]
    pub(crate) fn is_larger_than_memory(&self) -> bool {
        self.heap.is_larger_than_memory()
    }

    /// The heap, for operations other than reading and writing keys.
    pub(crate) fn heap(&self) -> Result<&Heap> {
        self.heap_handle().map(AsRef::as_ref)
    }

    /// The same, for a caller that keeps it.
    pub(crate) fn heap_handle(&self) -> Result<&Arc<Heap>> {
        self.admit()?;
        self.check_not_closed()?;
        Ok(&self.heap)
    }

    /// Takes the shared lock.
    #[inline]
    pub(crate) fn view(&self) -> Result<View<'_>> {
        self.admit()?;
        self.open_still(self.heap.brief_view())
    }

    /// The same, for a caller's closure or a long read: writers wait for it, but no other reader
    /// waits behind them.
    pub(crate) fn long_view(&self) -> Result<View<'_>> {
        self.admit()?;
        self.open_still(self.heap.view())
    }

    /// What was taken of the heap, if the store is still open.
    fn open_still<T>(&self, taken: adamant_heap::Result<T>) -> Result<T> {
        // Under the lock: `close` sets the flag first and then waits for the locks taken before.
        // Checked before the heap's own error: a closed heap refuses too, but with its own error.
        self.check_not_closed()?;
        Ok(taken?)
    }

    #[inline]
    fn check_not_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Checks before waiting for the writer lock.
    #[inline]
    pub(crate) fn check_writes(&self) -> Result<()> {
        self.admit()?;
        self.check_not_closed()?;
        self.check_not_exclusive()
    }

    #[inline]
    fn check_not_exclusive(&self) -> Result<()> {
        if self.heap.has_writer() { Err(Error::WithinExclusive) } else { Ok(()) }
    }

    /// Checks of every call before it takes a lock: not in the child of a fork, where there is no
    /// store, and not within a closure that holds the store's lock.
    #[inline]
    pub(crate) fn admit(&self) -> Result<()> {
        self.refuse_child()?;
        if guard::is_held(self.number()) { Err(Error::Reentrant) } else { Ok(()) }
    }
}

impl Shared {
    /// The state that the store's own threads share.
    pub(crate) fn open_store(&self) -> &Arc<OpenStore> {
        &self.open
    }

    /// The background sweep of expired entries.
    pub(crate) fn sweeper(&self) -> &Arc<Sweeper> {
        &self.sweeper
    }
}

impl Deref for Shared {
    type Target = OpenStore;

    #[inline]
    fn deref(&self) -> &OpenStore {
        &self.open
    }
}
