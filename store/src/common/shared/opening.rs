//! Opening and closing of a store.
//!
//! Purpose: finds the head, the keyspaces of LSM trees and the history of changes; ends the threads
//! before the heap is closed.
//! Invariants: a keyspace that is damaged, or needs what this build lacks, does not keep others
//! from being used.
//! Thread safety: `close` from any thread; the rest before the store has handles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_heap::access::Read;
use adamant_heap::durability::Durability;
use adamant_heap::{Heap, Transaction};
use parking_lot::Mutex;

use super::{List, OpenStore, Shared};
use crate::common::background::BackgroundWorkers;
use crate::common::catalogue::{Catalogue, kind_of};
use crate::common::catalogue_entry::CatalogueEntry;
use crate::common::history::HISTORY_NAME;
use crate::common::state::{KeyspaceState, Place};
use crate::common::versions::Versions;
use crate::engine::held_files::held_by;
use crate::engine::lsm_trees::LsmTrees;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::STORE_ROOT;
use crate::metrics::Metrics;
use crate::options::Options;

/// The number of the last opening.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

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
