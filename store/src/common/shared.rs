//! What the handles of one store share: its heap, its catalogue and the keyspaces in use.
//!
//! Purpose: the two doors through which every operation goes: `view` to read, `transaction` to
//! write. Both refuse a closed store, the child of a fork, and a thread that already holds the
//! store's lock. What cannot fail, such as a drop, does nothing in the child of a fork.
//! Invariants: what the handles of a keyspace share is listed here while the keyspace exists and
//! has been opened (`list.rs`); whether it still exists is what the catalogue says.
//! Thread safety, lock order: the turn to write, `list`, the heap's lock; `spare_content` is held
//! for itself. The list is held while a
//! keyspace is created or dropped, which waits for the device; operations on a keyspace that is
//! open never touch it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant_heap::durability::Durability;
use adamant_heap::{Ending, Heap, HeldWritePermit, Transaction, View, WriteGuard};
use parking_lot::Mutex;

use crate::common::background::BackgroundWorkers;
use crate::common::catalogue::Catalogue;
use crate::common::content::Content;
use crate::common::lent_values::Lent;
use crate::common::state::{KeyspaceState, Place};
use crate::common::versions::Versions;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::guard;
use crate::layout::STORE_ROOT;
use crate::metrics::{Begun, Metrics};
use crate::options::Options;

/// Entries of a tree that nobody sees that are freed by one commit: some 5 milliseconds.
const PIECE_ENTRIES: usize = 16 << 10;

/// Is told of a key that a commit will change.
pub(crate) type KeyVisitor<'v> = dyn FnMut(&KeyspaceState, &[u8]) -> Result<()> + 'v;

/// The keyspaces in use.
#[derive(Default)]
pub(crate) struct List {
    /// What new handles get, by the name that it has.
    pub(crate) states: BTreeMap<Box<str>, Arc<KeyspaceState>>,
    /// What all handles of a keyspace share, by its number.
    pub(crate) places: HashMap<u64, Arc<Place>>,
}

/// What all handles of a store point to. Dropping it closes the heap.
pub(crate) struct Shared {
    heap: Arc<Heap>,
    catalogue: Catalogue,
    durability: Durability,
    closed: AtomicBool,
    pub(crate) list: Mutex<List>,
    /// What the last batch left, for the next one.
    spare_content: Mutex<Option<Content>>,
    versions: Arc<Versions>,
    /// Bytes of blocks that a commit in pieces copies at most.
    copied_bytes_max: u64,
    metrics: Metrics,
    workers: Arc<BackgroundWorkers>,
}

impl Shared {
    /// The store on a heap; its head is created if there is none.
    pub(crate) fn new(heap: Heap, lsm_trees: LsmTrees, options: &Options) -> Result<Self> {
        let lsm_trees = Arc::new(lsm_trees);
        let sequences = Arc::clone(lsm_trees.sequences());
        let heap = Arc::new(heap);
        let versions = Arc::new(Versions::new(options.snapshot_bytes_max, sequences));
        let workers = BackgroundWorkers::new(
            Arc::clone(&heap),
            Arc::clone(&versions),
            Arc::clone(&lsm_trees),
            options.background && !options.read_only,
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
        let shared = Self {
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
        };
        let are_all_open = shared.open_trees()?;
        if !options.read_only {
            if are_all_open {
                shared.catalogue.lsm_trees().remove_orphans()?;
            }
            let retired = shared.catalogue.list_retired(&shared.view()?);
            // What is damaged there keeps nobody from the rest.
            shared.destroy_retired(retired.unwrap_or_default());
        }
        Ok(shared)
    }

    /// Opens all log-structured merge trees: what their memtables hold is found by nothing on the heap. False
    /// if one is damaged: that keeps nobody from the others, but which files are its own is not known.
    fn open_trees(&self) -> Result<bool> {
        let mut are_all_open = true;
        let view = self.view()?;
        for (name, entry) in self.catalogue.list(&view)? {
            if Engine::numbered(entry.engine.get(), entry.format.get()) == Some(Engine::Lsm) {
                match self.catalogue.map(&view, &name, &entry) {
                    Err(error) if error.is_damaged() => are_all_open = false,
                    outcome => drop(outcome?),
                }
            }
        }
        Ok(are_all_open)
    }

    /// Whether this is the child of a fork: then nothing is to be touched, and no lock taken.
    #[inline]
    pub(crate) fn is_child(&self) -> bool {
        self.refuse_child().is_err()
    }

    /// Fails then.
    #[inline]
    pub(crate) fn refuse_child(&self) -> Result<()> {
        Ok(self.heap.refuse_child()?)
    }

    /// What open snapshots see beside the trees.
    #[inline]
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// What looks after log-structured merge trees.
    pub(crate) fn workers(&self) -> &Arc<BackgroundWorkers> {
        &self.workers
    }

    /// What is counted and timed.
    #[inline]
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Frees the trees that were kept for snapshots and that nobody sees any more.
    #[inline]
    pub(crate) fn destroy_unseen(&self) {
        if self.versions.has_unseen() {
            self.destroy_unseen_now();
        }
    }

    #[cold]
    fn destroy_unseen_now(&self) {
        // Else they are freed after a later commit.
        if !guard::is_held(self.number()) && !self.heap.has_writer() {
            let trees = self.versions.take_unseen();
            self.destroy_retired(trees.iter().map(Map::head).collect());
        }
    }

    /// What fails here, or is too late, is done by the next opening; a check finds what is damaged.
    pub(crate) fn destroy_retired(&self, heads: Vec<u64>) {
        for head in heads {
            // By pieces, so that neither the record nor the wait of others grows with the tree.
            let thin = |transaction: &mut Transaction<'_>| {
                self.catalogue.thin_retired(transaction, head, PIECE_ENTRIES)
            };
            while let Ok(true) = self.transaction(Durability::Deferred, thin) {}
            let _ = self.transaction(Durability::Deferred, |transaction| {
                self.catalogue.destroy_retired(transaction, head)
            });
        }
        // Files of trees that went are removed now, or by the next opening.
        let _ = self.catalogue.lsm_trees().bury(&self.heap);
    }

    /// As [`Shared::transaction`], for one that changes keys: `keys` names them all, to each closure
    /// that it is given. What open snapshots see of them is kept.
    pub(crate) fn change<T>(
        &self,
        durability: Durability,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_after(None, durability, self.versions.any(), keys, |_| Ok(()), body)
    }

    /// As [`Shared::change`], after a check under the exclusive lock. With `lends`, large values of
    /// the keys are lent before, which spares copying them for whatever snapshot keeps them. It waits
    /// for its turn unless that is given.
    pub(crate) fn change_after<'s, T>(
        &'s self,
        turn: Option<HeldWritePermit<'s>>,
        durability: Durability,
        lends: bool,
        keys: impl Fn(&mut KeyVisitor<'_>) -> Result<()>,
        check: impl FnOnce(&mut Transaction<'_>) -> Result<()>,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let lent = self.lend_large(lends, &keys)?;
        self.transaction_in(turn, durability, |transaction| {
            check(transaction)?;
            self.keep_versions(transaction, &lent, &keys)?;
            body(transaction)
        })
    }

    /// As [`Shared::change`], of so many bytes, which may share its commit with those of other threads:
    /// any of them may run `body`, and again after what it did was undone.
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
        let done = self.heap.transaction_combined(durability, bytes, |transaction| {
            self.check_not_closed()?;
            self.keep_versions(transaction, &lent, &keys)?;
            body(transaction)
        });
        self.end(&begun, done)
    }

    /// Lends large values of keys, before they are changed, if `lends`.
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
                let Some(&tree) = map.tree() else { return Ok(()) };
                let lend = |value: &[u8], block| Ok(lent.get(value, block));
                recorder.keep(transaction, (state.id, tree), key, lend)
            })?;
            recorder.finish();
        }
        Ok(())
    }

    /// Tells this store from the others of the process.
    pub(crate) fn number(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// What commits wait for unless they say otherwise.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// Empty content for a batch.
    pub(crate) fn take_spare_content(&self) -> Content {
        if self.is_child() {
            return Content::default();
        }
        self.spare_content.lock().take().unwrap_or_default()
    }

    /// Takes back content that was cleared.
    pub(crate) fn keep_spare_content(&self, content: Content) {
        if !self.is_child() {
            *self.spare_content.lock() = Some(content);
        }
    }

    /// Where the keyspaces are listed.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The heap, for what is neither reading nor writing of keys.
    pub(crate) fn heap(&self) -> Result<&Heap> {
        self.admit()?;
        self.check_not_closed()?;
        Ok(&self.heap)
    }

    /// The shared lock.
    #[inline]
    pub(crate) fn view(&self) -> Result<View<'_>> {
        self.admit()?;
        self.open_still(self.heap.brief_view())
    }

    /// The same, for what somebody else's closure, or a look at very much, may take: writers wait
    /// for it, but nobody who has a view waits behind them.
    pub(crate) fn long_view(&self) -> Result<View<'_>> {
        self.admit()?;
        self.open_still(self.heap.view())
    }

    fn open_still<'v>(&self, view: adamant_heap::Result<View<'v>>) -> Result<View<'v>> {
        // Under the lock: `close` sets the flag first and then waits for those who had it before.
        // And first of all: a closed heap refuses too, but knows of no store.
        self.check_not_closed()?;
        Ok(view?)
    }

    /// Waits for this thread's turn to write, and keeps it.
    pub(crate) fn take_write_permit(&self) -> Result<HeldWritePermit<'_>> {
        self.check_writes()?;
        let turn = self.heap.take_write_permit();
        self.check_not_closed()?;
        Ok(turn?)
    }

    /// The same, unless that takes longer.
    pub(crate) fn take_write_permit_within(
        &self,
        longest: Duration,
    ) -> Result<Option<HeldWritePermit<'_>>> {
        self.check_writes()?;
        let turn = self.heap.take_write_permit_within(longest);
        self.check_not_closed()?;
        Ok(turn?)
    }

    /// Runs a closure under the exclusive lock and commits what it did; undoes it on `Err`.
    /// Returns when the commit is as durable as asked.
    pub(crate) fn transaction<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.transaction_in(None, durability, body)
    }

    /// The same, in a turn that was taken before.
    pub(crate) fn transaction_in<'s, T>(
        &'s self,
        turn: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        if turn.is_none() {
            self.check_writes()?;
        }
        let begun = self.metrics.begin(durability);
        let done = self.begin_write(turn).and_then(|mut write| {
            let result = body(&mut write)?;
            write.commit(durability)?;
            Ok(result)
        });
        self.end(&begun, done)
    }

    /// As [`Shared::transaction_in`], in pieces: `last` is called when it cannot fail any more.
    pub(crate) fn chunked_transaction<'s, T>(
        &'s self,
        turn: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> Result<T> {
        if turn.is_none() {
            self.check_writes()?;
        }
        let begun = self.metrics.begin(durability);
        let done = self.begin_write(turn).and_then(|mut write| {
            write.chunked(self.copied_bytes_max);
            let result = body(&mut write)?;
            write.commit_chunked(durability, last)?;
            Ok(result)
        });
        self.end(&begun, done)
    }

    /// Begins a transaction of the heap, in a turn that was taken before or in one that this waits for.
    fn begin_write<'s>(&'s self, turn: Option<HeldWritePermit<'s>>) -> Result<WriteGuard<'s>> {
        let write = match turn {
            Some(turn) => turn.begin_write()?,
            None => self.heap.begin_write()?,
        };
        self.check_not_closed()?;
        Ok(write)
    }

    /// Waits for what was committed by now as a commit with this durability would. All that has
    /// nothing to change, and does not ask the heap for a transaction, comes here: what it found is
    /// as safe then as what it would have written. Closing has waited for all of it.
    pub(crate) fn settle(&self, durability: Durability) -> Result<()> {
        self.admit()?;
        Ok(self.heap.settle(durability)?)
    }

    /// What follows a transaction, which came to this.
    fn end<T>(&self, begun: &Begun, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.metrics.commit(begun);
        }
        // It may have closed snapshots that were dropped within a closure, or ended some.
        self.destroy_unseen();
        if !self.heap.has_writer() {
            self.workers.settle();
        }
        done
    }

    /// Makes room where something failed for lack of it, so that it is worth another try; whether it
    /// was made.
    #[cold]
    pub(crate) fn makes_room_for(&self, error: &Error, removes: bool) -> bool {
        let may_succeed = error.is_out_of_space() && !error.is_poisoned();
        may_succeed && self.workers.make_room(removes)
    }

    /// Refuses later operations and closes the heap.
    pub(crate) fn close(&self) -> Result<()> {
        self.admit()?;
        self.check_not_exclusive()?;
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        self.workers.end();
        self.catalogue.lsm_trees().end();
        let closed = self.heap.close();
        self.versions.end();
        Ok(closed?)
    }

    #[inline]
    fn check_not_closed(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// What everybody asks who is about to wait for a turn to write.
    #[inline]
    fn check_writes(&self) -> Result<()> {
        self.admit()?;
        self.check_not_closed()?;
        self.check_not_exclusive()
    }

    #[inline]
    fn check_not_exclusive(&self) -> Result<()> {
        if self.heap.has_writer() { Err(Error::WithinExclusive) } else { Ok(()) }
    }

    /// What every call asks first, before it takes a lock: not in the child of a fork, where there
    /// is no store, and not within a closure that holds the store's lock.
    #[inline]
    pub(crate) fn admit(&self) -> Result<()> {
        self.refuse_child()?;
        if guard::is_held(self.number()) { Err(Error::Reentrant) } else { Ok(()) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.is_child() {
            // Threads stayed with the parent, and so did the right to remove files. What they share
            // is left where it is.
            std::mem::forget((Arc::clone(&self.heap), Arc::clone(&self.versions)));
            let lsm_trees = Arc::clone(self.catalogue.lsm_trees());
            return std::mem::forget((Arc::clone(&self.workers), lsm_trees));
        }
        if !self.closed.load(Ordering::Acquire) {
            self.workers.end();
            self.catalogue.lsm_trees().end();
            // Nobody is left to be told of a failure; what it kept from the pool is recovered
            // from the log by the next open.
            let _ = self.heap.close();
        }
    }
}
