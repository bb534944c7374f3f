//! The log-structured merge tree of one keyspace.
//!
//! Purpose: writes go to the memtable, reads merge memtables and tables, and the background merges
//! tables. See `docs/lsm.md`.
//! Invariants: a commit alone makes a new version, and only the holder of the write permit does.
//! Thread safety: reads from any thread, under the heap's lock where a heap is taken; one flush and
//! one compaction at a time, which may run on threads of their own.

mod undo;
mod work;
mod read;
mod write;
mod flush;
mod compaction;
pub(crate) mod load;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use adamant_heap::access::{Read, Write};
use adamant_heap::{Durability, Heap, Salvage, Transaction};
use arc_swap::ArcSwap;
use parking_lot::Mutex;

use self::work::WorkCounters;
use crate::cache::BlockUse;
use crate::compact::{Outcome, Parked, Picker};
use crate::compaction_filter::{CompactionFilter, FilterSlot};
use crate::error::Result;
use crate::head;
use crate::memtable::{LostRecords, create_buffer, destroy_buffer};
use crate::merge_operator::NamedOperator;
use crate::options::{Options, TreeOptions};
use crate::version::context::{ObsoleteFile, TreeContext};
use crate::version::edit::Edit;
use crate::version::gaps::Gaps;
use crate::version::tree_version::{Blob, TableFile, TreeVersion};

/// Above all sequence numbers: transactions read at it, because they see their own writes.
pub const NEWEST: u64 = u64::MAX;

/// A tree.
#[derive(Debug)]
pub struct Lsm {
    head: u64,
    context: Arc<TreeContext>,
    /// How its files use the cache.
    used: Arc<BlockUse>,
    /// The store's, with the tree's own in place of them.
    options: ArcSwap<Options>,
    /// Whether tables may have been written with other options since the tree was opened.
    has_changed_options: AtomicBool,
    current: ArcSwap<TreeVersion>,
    gaps: Arc<Gaps>,
    /// Held during a flush.
    flushing: Mutex<()>,
    /// Held during a compaction.
    compacting: Mutex<Picker>,
    /// Files that a merge could not read, until the tree is opened again or compacted by hand.
    parked: Mutex<Parked>,
    is_destroyed: AtomicBool,
    /// Whether there was no room for the last memtable that was to be flushed.
    is_short: AtomicBool,
    /// Layers of the running transaction's edits, in order. The commit handlers own them, so those
    /// of edits that were undone are gone.
    pending: Mutex<Vec<Weak<TreeVersion>>>,
    filter: FilterSlot,
    pub(crate) work: WorkCounters,
}

impl Lsm {
    /// Makes an empty tree. Returns the heap offset of its head.
    ///
    /// # Errors
    /// Those of the heap.
    pub fn create<W: Write>(heap: &mut W, context: &TreeContext) -> Result<u64> {
        let buffer = create_buffer(heap, 0)?;
        head::create(heap, context.uuid(), buffer)
    }

    /// The identity that all files of the tree with this head carry.
    ///
    /// # Errors
    /// Those of the heap, also when there is no head.
    pub fn identity<R: Read>(heap: &R, head: u64) -> Result<[u8; 16]> {
        Ok(head::read(heap, head)?.identity)
    }

    /// Opens the tree with a head. O(n log n) in the content of memtables, O(n) in tables; opens no
    /// file.
    ///
    /// # Errors
    /// Those of the heap, also when there is no head, or what it names is damaged.
    pub fn open<R: Read>(heap: &R, head: u64, context: &Arc<TreeContext>) -> Result<Arc<Self>> {
        Self::open_with(heap, head, context, &TreeOptions::default())
    }

    /// As [`Lsm::open`], with options of its own.
    ///
    /// # Errors
    /// As [`Lsm::open`]; `InvalidOption`.
    pub fn open_with<R: Read>(
        heap: &R,
        head: u64,
        context: &Arc<TreeContext>,
        own: &TreeOptions,
    ) -> Result<Arc<Self>> {
        own.check()?;
        let tree_version = TreeVersion::open(heap, head::read(heap, head)?, context)?;
        Ok(Self::of(head, tree_version, context, own))
    }

    /// As [`Lsm::open`], read-only, with what is left of damaged memtables; `lost` is told what is
    /// lost. For a lost key an older value, or a removed one, may be visible.
    ///
    /// # Errors
    /// As [`Lsm::open`], for everything else.
    pub fn salvage(
        heap: &Salvage,
        head: u64,
        context: &Arc<TreeContext>,
        lost: &mut dyn FnMut(LostRecords),
    ) -> Result<Arc<Self>> {
        let tree_version = TreeVersion::salvage(heap, head::read(heap, head)?, context, lost)?;
        Ok(Self::of(head, tree_version, context, &TreeOptions::default()))
    }

    fn of(
        head: u64,
        tree_version: TreeVersion,
        context: &Arc<TreeContext>,
        own: &TreeOptions,
    ) -> Arc<Self> {
        let options = context.options_with(own);
        let used = Arc::clone(&tree_version.used);
        used.set_caches_data(options.caches_data);
        Arc::new(Self {
            head,
            context: Arc::clone(context),
            used,
            options: ArcSwap::new(options),
            has_changed_options: AtomicBool::new(false),
            current: ArcSwap::from_pointee(tree_version),
            gaps: Arc::default(),
            flushing: Mutex::default(),
            compacting: Mutex::default(),
            parked: Mutex::default(),
            is_destroyed: AtomicBool::new(false),
            is_short: AtomicBool::new(false),
            pending: Mutex::default(),
            filter: FilterSlot::default(),
            work: WorkCounters::default(),
        })
    }

    /// Heap offset of the head.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The state that it shares with other trees.
    pub fn context(&self) -> &Arc<TreeContext> {
        &self.context
    }

    /// Its options: those of the store, with its own in place of them.
    pub fn options(&self) -> Arc<Options> {
        self.options.load_full()
    }

    /// Gives it other options of its own. Tables that are written from then on have them; the next
    /// [`Lsm::compact_all`] writes all of them anew.
    ///
    /// # Errors
    /// `InvalidOption`; nothing is changed.
    pub fn set_options(&self, own: &TreeOptions) -> Result<()> {
        own.check()?;
        let options = self.context.options_with(own);
        self.used.set_caches_data(options.caches_data);
        self.options.store(options);
        self.has_changed_options.store(true, Ordering::Release);
        Ok(())
    }

    /// How its files use the cache.
    pub(crate) fn used(&self) -> &BlockUse {
        &self.used
    }

    /// The current version.
    pub(crate) fn tree_version(&self) -> Arc<TreeVersion> {
        self.current.load_full()
    }

    /// The version as the running transaction sees them. To be called by it.
    fn tree_version_now(&self) -> Arc<TreeVersion> {
        let mut pending = self.pending.lock();
        while let Some(last) = pending.last() {
            match last.upgrade() {
                Some(tree_version) => return tree_version,
                None => drop(pending.pop()),
            }
        }
        self.tree_version()
    }

    /// Whether a file of this number belongs to the tree.
    pub fn has_file(&self, number: u64) -> bool {
        self.current.load().files().any(|file| file == number)
    }

    /// Numbers of the files that belong to the tree.
    pub fn file_numbers(&self) -> Vec<u64> {
        self.current.load().files().collect()
    }

    /// The merge operator of the tree.
    ///
    /// # Errors
    /// `NoOperator` if it has none, not even an unregistered one.
    pub fn operator(&self) -> Result<Arc<NamedOperator>> {
        self.current.load().operator.get()
    }

    /// Gives the tree its merge operator.
    pub fn set_operator(&self, operator: NamedOperator) {
        self.current.load().operator.set(operator);
    }

    /// Has compactions ask a filter about entries, from now on. It is asked about none in a tree
    /// with a merge operator: what lies on top of an entry would change with it.
    pub fn set_filter(&self, filter: Box<dyn CompactionFilter>) {
        self.filter.set(filter);
    }

    /// Whether compactions ask a filter.
    fn filters(&self) -> bool {
        self.filter.is_set() && self.operator().is_err()
    }

    /// Frees all heap objects of the tree; its files are removed when that is durable.
    ///
    /// # Errors
    /// Those of the heap.
    pub fn destroy(self: &Arc<Self>, heap: &mut Transaction<'_>) -> Result<()> {
        let tree_version = self.tree_version_now();
        for memtable in tree_version.memtables() {
            destroy_buffer(heap, memtable.buffer())?;
        }
        let mut gone: Vec<Arc<dyn ObsoleteFile>> = Vec::new();
        for file in tree_version.levels.iter().flatten() {
            heap.free(file.record)?;
            gone.push(Arc::<TableFile>::clone(file));
        }
        for listed in tree_version.blobs.values() {
            heap.free(listed.blob.record)?;
            gone.push(Arc::<Blob>::clone(&listed.blob));
        }
        if tree_version.manifest != 0 {
            heap.free(tree_version.manifest)?;
        }
        heap.free(self.head)?;
        let tree = Arc::clone(self);
        heap.on_commit(move |_| {
            tree.is_destroyed.store(true, Ordering::Release);
            // A reference to the tree must not keep its files and memtables alive.
            tree.current.store(Arc::new(TreeVersion::nothing()));
            tree.context.doom(gone);
        });
        Ok(())
    }

    /// Makes an edit in a transaction; the commit publishes its version. False for a tree that was
    /// destroyed.
    fn edit(self: &Arc<Self>, heap: &mut Transaction<'_>, edit: Edit) -> Result<bool> {
        if self.is_destroyed.load(Ordering::Acquire) {
            return Ok(false);
        }
        let tree_version = self.tree_version_now();
        let (next, gone) = edit.apply(heap, self.head, &tree_version, &self.context)?;
        let (tree, next) = (Arc::clone(self), Arc::new(next));
        self.pending.lock().push(Arc::downgrade(&next));
        heap.on_commit(move |_| {
            tree.pending.lock().clear();
            tree.current.store(next);
            tree.gaps.next_epoch();
            tree.context.doom(gone);
        });
        Ok(true)
    }

    /// Commits the files that were written, if `is_wanted` says so under the heap's exclusive lock.
    /// If that fails and the commit may yet turn out to have succeeded, the files stay, and the
    /// next opening decides.
    fn commit(
        self: &Arc<Self>,
        heap: &Heap,
        outcome: Outcome,
        edit: Edit,
        is_wanted: impl Fn() -> bool,
    ) -> Result<bool> {
        let result = heap.transaction(Durability::Buffered, |transaction| {
            if is_wanted() { self.edit(transaction, edit) } else { Ok(false) }
        });
        match &result {
            Ok(true) => outcome.keep(),
            Ok(false) => drop(outcome),
            Err(error) if error.is_out_of_space() => drop(outcome),
            // If it was undone, the next sync says so.
            Err(_) => outcome.doom(),
        }
        result
    }
}
