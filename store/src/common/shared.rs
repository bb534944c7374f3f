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

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::{Ending, Heap, HeldWritePermit, Transaction, View, WriteGuard};
use parking_lot::Mutex;

use crate::common::background::BackgroundWorkers;
use crate::common::cache_policy::CachePolicy;
use crate::common::catalogue::{Catalogue, kind_of};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::content::Content;
use crate::common::history::{HISTORY_NAME, History, Recording, take_recorded};
use crate::common::lent_values::Lent;
use crate::common::state::{KeyspaceState, Place};
use crate::common::sweeper::Sweeper;
use crate::common::versions::Versions;
use crate::engine::held_files::held_by;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::guard;
use crate::kind::KeyspaceKind;
use crate::layout::STORE_ROOT;
use crate::metrics::{Begun, Metrics};
use crate::options::Options;

/// Entries of an unseen tree that one commit frees: some 5 milliseconds.
const PIECE_ENTRIES: usize = 16 << 10;

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

/// The number of the last opening.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The last commit of this thread that was recorded, and the opening of the store that it is
    /// in.
    static OWN_COMMIT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

impl OpenStore {
    /// Opens all LSM trees, since nothing else on the heap leads to their memtables' entries. One
    /// may be damaged, or need what this build lacks: the others can be used, but which files
    /// belong to that one is unknown.
    fn open_trees(&self) -> Result<()> {
        let view = self.view()?;
        for (name, entry) in self.catalogue.list(&view)? {
            if Engine::numbered(entry.engine.get(), entry.format.get()) == Some(Engine::Lsm) {
                match self.catalogue.map(&view, &name, &entry) {
                    Err(error) if is_for_others(&error) => {
                        self.catalogue.lsm_trees().note_unopened();
                    }
                    outcome => drop(outcome?),
                }
            }
        }
        Ok(())
    }

    /// Keeps the files of LSM trees that persistent savepoints need, and removes those that only
    /// deleted ones needed.
    pub(crate) fn hold_savepoints(&self) -> Result<()> {
        let held = held_by(self.heap.attached_to_savepoints()?);
        self.catalogue.lsm_trees().set_held(held);
        Ok(())
    }

    /// Finds the history of changes, if the store has one: then commits go into it. An error if it
    /// cannot be used, since commits would be missing in it; not if there will be none.
    fn find_history(&self) -> Result<()> {
        let view = self.view()?;
        let Some(entry) = self.catalogue.find(&view, HISTORY_NAME)? else { return Ok(()) };
        if kind_of(HISTORY_NAME, &entry)? != KeyspaceKind::Changes {
            return Ok(());
        }
        match self.history_state(&view, &entry) {
            Err(error) if self.options.only_reads() && is_for_others(&error) => Ok(()),
            state => {
                self.history.set(Some(state?));
                Ok(())
            }
        }
    }

    /// The state of the history's keyspace.
    pub(crate) fn history_state<R: Read>(
        &self,
        heap: &R,
        entry: &CatalogueEntry,
    ) -> Result<Arc<KeyspaceState>> {
        let place = Place::new(entry.id.get(), HISTORY_NAME);
        KeyspaceState::new(heap, &self.catalogue, (HISTORY_NAME, entry), &place)
    }

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

    /// Frees the trees that were kept for snapshots and that none sees any more.
    #[inline]
    pub(crate) fn destroy_unseen(&self) {
        if self.versions.has_unseen() {
            self.destroy_unseen_now();
        }
    }

    #[cold]
    fn destroy_unseen_now(&self) {
        // Otherwise they are freed after a later commit.
        if !guard::is_held(self.number()) && !self.heap.has_writer() {
            let trees = self.versions.take_unseen();
            self.destroy_retired(trees.iter().map(Map::head).collect());
        }
    }

    /// Work that fails here, or comes too late, is left to the next open; a check finds damage.
    pub(crate) fn destroy_retired(&self, heads: Vec<u64>) {
        for head in heads {
            // Chunked, so that neither the log record nor the wait of other threads grows with the
            // tree.
            let thin = |transaction: &mut Transaction<'_>| {
                self.catalogue.thin_retired(transaction, head, PIECE_ENTRIES)
            };
            while let Ok(true) = self.transaction(Durability::Deferred, thin) {}
            let _ = self.transaction(Durability::Deferred, |transaction| {
                self.catalogue.destroy_retired(transaction, head)
            });
        }
        // Files of freed trees are removed now, or by the next open.
        let _ = self.catalogue.lsm_trees().delete_obsolete(&self.heap);
    }

    /// Like [`OpenStore::transaction`], for a transaction that changes keys: `keys` passes them all
    /// to each closure that it gets. What open snapshots see of them is kept. Waits for the writer
    /// lock unless it gets a permit.
    pub(crate) fn change<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let body = |transaction: &mut Transaction<'_>| {
            let done = body(transaction)?;
            self.record_keys(transaction, &keys)?;
            Ok(done)
        };
        self.change_recorded(permit, durability, &keys, body)
    }

    /// Like [`OpenStore::change`], for a `body` that records what it changes.
    pub(crate) fn change_recorded<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_after(permit, durability, self.versions.any(), keys, |_| Ok(()), body)
    }

    /// Like [`OpenStore::change_recorded`], after a check under the exclusive lock. With `lends`,
    /// large values of the keys are borrowed before, which saves copying them for snapshots.
    pub(crate) fn change_after<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        check: impl FnOnce(&mut Transaction<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let lent = self.lend_large(lends, &keys)?;
        let done = self.transaction_in(permit, durability, |transaction| {
            check(transaction)?;
            self.keep_versions(transaction, &lent, &keys)?;
            body(transaction)
        })?;
        note_writes(keys);
        Ok(done)
    }

    /// Like [`OpenStore::change`], of so many bytes, which may share its commit with those of other
    /// threads: any of them may run `body`, and may run it again after it was undone.
    pub(crate) fn change_combined<T: Send>(
        &self,
        durability: Durability,
        bytes: usize,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()> + Sync,
        mut body: impl FnMut(&mut Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.check_writes()?;
        let lent = self.lend_large(self.versions.any(), &keys)?;
        let begun = self.metrics.begin(durability);
        let bytes = if self.history.is_on() { 2 * bytes } else { bytes };
        let done = self.heap.transaction_combined(durability, bytes, |transaction| {
            self.check_not_closed()?;
            // Of a commit that failed.
            take_recorded();
            self.keep_versions(transaction, &lent, &keys)?;
            let done = body(transaction)?;
            self.record_keys(transaction, &keys)?;
            // Another thread may be running this.
            Ok((done, take_recorded()))
        });
        let done = done.map(|(done, recorded)| {
            self.note_recorded(recorded);
            note_writes(&keys);
            done
        });
        self.end(&begun, done)
    }

    /// Records the keys that a body has changed, with the values that it left. As
    /// [`OpenStore::record`].
    #[inline]
    pub(crate) fn record_keys(
        &self,
        transaction: &mut Transaction<'_>,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<()> {
        self.record(transaction, |recording, transaction| {
            keys(&mut |state, key| recording.key(transaction, state, key))
        })
    }

    /// Records a commit, if changes are recorded. To be called once in a transaction, at its end.
    #[inline]
    pub(crate) fn record(
        &self,
        transaction: &mut Transaction<'_>,
        say: impl FnOnce(&mut Recording<'_>, &mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(mut recording) = self.history.begin(transaction, &self.catalogue)? else {
            return Ok(());
        };
        say(&mut recording, transaction)?;
        recording.finish(transaction)
    }

    /// A commit of this thread was recorded, under that number; 0: none was.
    #[inline]
    fn note_recorded(&self, number: u64) {
        if number != 0 {
            OWN_COMMIT.set((self.opening, number));
            self.history.notify();
        }
    }

    /// The number of this thread's last commit that was recorded; `None`: there is none, or it was
    /// in another store.
    pub(crate) fn own_commit(&self) -> Option<u64> {
        let (opening, number) = OWN_COMMIT.get();
        (opening == self.opening).then_some(number)
    }

    /// The history of changes.
    pub(crate) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Borrows large values of keys before they are changed, if `lends`.
    #[inline]
    fn lend_large(
        &self,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<Lent> {
        let mut lent = Lent::default();
        if !lends {
            return Ok(lent);
        }
        let view = self.view()?;
        keys(&mut |state, key| match state.map(&view, &self.catalogue)?.tree() {
            Some(tree) => lent.add(&view, tree, key),
            None => Ok(()),
        })?;
        Ok(lent)
    }

    /// Keeps what open snapshots see of keys that are about to change.
    #[inline]
    fn keep_versions(
        &self,
        transaction: &mut Transaction<'_>,
        lent: &Lent,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
    ) -> Result<()> {
        if let Some(mut recorder) = self.versions.recorder() {
            keys(&mut |state, key| {
                let map = state.map(transaction, &self.catalogue)?;
                let Some(tree) = map.tree() else { return Ok(()) };
                let lend = |value: &[u8], block| Ok(lent.get(value, block));
                recorder.keep(transaction, (state.id, tree), key, lend)
            })?;
            recorder.finish();
        }
        Ok(())
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

    fn open_still<'v>(&self, view: adamant_heap::Result<View<'v>>) -> Result<View<'v>> {
        // Under the lock: `close` sets the flag first and then waits for the locks taken before.
        // Checked before the view's own error: a closed heap refuses too, but with its own error.
        self.check_not_closed()?;
        Ok(view?)
    }

    /// Takes the writer lock, and returns its permit.
    pub(crate) fn take_write_permit(&self) -> Result<HeldWritePermit<'_>> {
        self.check_writes()?;
        let permit = self.heap.take_write_permit();
        self.check_not_closed()?;
        Ok(permit?)
    }

    /// The same, but waits at most this long.
    pub(crate) fn take_write_permit_within(
        &self,
        longest: Duration,
    ) -> Result<Option<HeldWritePermit<'_>>> {
        self.check_writes()?;
        let permit = self.heap.take_write_permit_within(longest);
        self.check_not_closed()?;
        Ok(permit?)
    }

    /// Runs a closure under the exclusive lock and commits its changes; undoes them on `Err`.
    /// Returns when the commit is as durable as asked.
    pub(crate) fn transaction<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.transaction_in(None, durability, body)
    }

    /// The same, with a write permit that may have been taken before.
    pub(crate) fn transaction_in<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        if permit.is_none() {
            self.check_writes()?;
        }
        let begun = self.metrics.begin(durability);
        take_recorded();
        let done = self.begin_write(permit).and_then(|mut write| {
            let result = body(&mut write)?;
            write.commit(durability)?;
            self.note_recorded(take_recorded());
            Ok(result)
        });
        self.end(&begun, done)
    }

    /// Like [`OpenStore::transaction_in`], chunked: `last` is called when it cannot fail any more.
    pub(crate) fn chunked_transaction<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> Result<T> {
        if permit.is_none() {
            self.check_writes()?;
        }
        let begun = self.metrics.begin(durability);
        take_recorded();
        let done = self.begin_write(permit).and_then(|mut write| {
            write.chunked(self.copied_bytes_max);
            let result = body(&mut write)?;
            write.commit_chunked(durability, last)?;
            self.note_recorded(take_recorded());
            Ok(result)
        });
        self.end(&begun, done)
    }

    /// Begins a transaction of the heap, with a permit that was taken before or one that this waits
    /// for.
    fn begin_write<'s>(&'s self, permit: Option<HeldWritePermit<'s>>) -> Result<WriteGuard<'s>> {
        let write = match permit {
            Some(permit) => permit.begin_write()?,
            None => self.heap.begin_write()?,
        };
        self.check_not_closed()?;
        Ok(write)
    }

    /// Waits until everything committed so far has this durability. Operations that find nothing to
    /// change, and so begin no transaction, end here: what they found is as safe as what they would
    /// have written. Closing has waited for all of it.
    pub(crate) fn settle(&self, durability: Durability) -> Result<()> {
        self.admit()?;
        Ok(self.heap.settle(durability)?)
    }

    /// Completes a transaction with this outcome.
    fn end<T>(&self, begun: &Begun, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.metrics.commit(begun);
        }
        // It may have closed snapshots that were dropped within a closure, or made some expire.
        self.destroy_unseen();
        if !self.heap.has_writer() {
            self.workers.settle();
        }
        done
    }

    /// Makes room after an operation failed for lack of it, so that a retry is worthwhile; returns
    /// whether it did.
    #[cold]
    pub(crate) fn makes_room_for(&self, error: &Error, removes: bool) -> bool {
        let may_succeed = error.is_out_of_space() && !error.is_poisoned();
        may_succeed && self.workers.make_room(removes)
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

/// Counts the keys of a commit, for each keyspace.
pub(crate) fn note_writes(keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>) {
    let noted = keys(&mut |state, _| {
        state.counts().note_writes(1);
        Ok(())
    });
    debug_assert!(noted.is_ok(), "counting does not fail");
}

/// Whether a keyspace cannot be used, and others can.
fn is_for_others(error: &Error) -> bool {
    error.is_damaged() || error.is_unsupported() || error.is_not_built()
}

impl Shared {
    /// Opens the store on a heap; creates its head if there is none.
    pub(crate) fn new(heap: Arc<Heap>, lsm_trees: LsmTrees, options: &Options) -> Result<Self> {
        let lsm_trees = Arc::new(lsm_trees);
        let sequences = Arc::clone(lsm_trees.sequences());
        let versions = Arc::new(Versions::new(options.snapshot_bytes_max, Arc::clone(&sequences)));
        let seen = Arc::downgrade(&versions);
        sequences.set_newest_held(move || seen.upgrade()?.newest_moment());
        let workers = BackgroundWorkers::new(
            Arc::clone(&heap),
            Arc::clone(&versions),
            Arc::clone(&lsm_trees),
            options.background && !options.only_reads(),
        );
        let root = heap.brief_view()?.root(STORE_ROOT);
        if root == 0 {
            heap.transaction(Durability::Sync, |transaction: &mut Transaction| {
                let head = Catalogue::create(transaction)?;
                transaction.set_root(STORE_ROOT, head)?;
                Ok::<(), Error>(())
            })?;
        }
        let catalogue = {
            let view = heap.brief_view()?;
            let root = view.root(STORE_ROOT);
            Catalogue::open(&view, root, lsm_trees)?
        };
        let open = OpenStore {
            heap,
            catalogue,
            durability: options.durability,
            closed: AtomicBool::new(false),
            list: Mutex::new(List::default()),
            spare_content: Mutex::new(None),
            versions,
            copied_bytes_max: options.snapshot_bytes_max,
            metrics: Metrics::new(),
            workers,
            options: options.clone(),
            history: Arc::default(),
            savepoints: Mutex::new(()),
            caches: Mutex::default(),
            opening: OPENINGS.fetch_add(1, Ordering::Relaxed) + 1,
        };
        open.find_history()?;
        open.open_trees()?;
        if !options.only_reads() {
            open.hold_savepoints()?;
            open.catalogue.lsm_trees().remove_orphans(&open.heap)?;
            let retired = open.catalogue.list_retired(&open.view()?);
            // Damage there does not prevent opening the rest.
            open.destroy_retired(retired.unwrap_or_default());
        }
        Ok(Self { open: Arc::new(open), sweeper: Arc::default() })
    }

    /// The state that the store's own threads share.
    pub(crate) fn open_store(&self) -> &Arc<OpenStore> {
        &self.open
    }

    /// The background sweep of expired entries.
    pub(crate) fn sweeper(&self) -> &Arc<Sweeper> {
        &self.sweeper
    }

    /// Hands the heap over to another state, with the trees for it: this one is closed, and the
    /// heap is not. For a store that only reads, which has no other handle.
    pub(crate) fn hand_over(&mut self) -> (Arc<Heap>, LsmTrees) {
        self.closed.store(true, Ordering::Release);
        self.workers.end();
        (Arc::clone(&self.heap), self.catalogue.lsm_trees().later())
    }

    /// Refuses later operations and closes the heap.
    pub(crate) fn close(&self) -> Result<()> {
        self.admit()?;
        self.check_not_exclusive()?;
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        self.history.notify();
        self.sweeper.end();
        self.workers.end();
        self.catalogue.lsm_trees().end();
        let closed = self.heap.close();
        self.versions.end();
        Ok(closed?)
    }
}

impl Deref for Shared {
    type Target = OpenStore;

    #[inline]
    fn deref(&self) -> &OpenStore {
        &self.open
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_child() {
            // Threads stayed with the parent, and so did the right to remove files. Leak what they
            // share.
            return std::mem::forget((Arc::clone(&self.open), Arc::clone(&self.sweeper)));
        }
        if !self.closed.load(Ordering::Acquire) {
            self.sweeper.end();
            self.workers.end();
            self.catalogue.lsm_trees().end();
            // There is no caller to report a failure to; the next open recovers from the log what
            // the pool does not have.
            let _ = self.heap.close();
        }
    }
}
