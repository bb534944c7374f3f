//! The log-structured merge tree of one keyspace.
//!
//! Purpose: writes go to the memtable, reads merge memtables and tables, and the background merges
//! tables. See `docs/lsm.md`.
//! Invariants: a commit alone makes a new version, and only the holder of the write permit does.
//! Thread safety: reads from any thread, under the heap's lock where a heap is taken; one flush and
//! one compaction at a time, which may run on threads of their own.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use adamant_heap::access::{Read, Write};
use adamant_heap::{Durability, Heap, Salvage, Transaction};
use adamant_medium::error::Error as MediumError;
use adamant_slice::Slice;
use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::cache::BlockUse;
use crate::compact::{
    Job, LoadPlace, Outcome, Pace, Parked, Picker, compact, flush, is_bottom, load, pick, pick_all,
    reclaim,
};
use crate::compaction_filter::{CompactionFilter, FilterSlot, Filtering};
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::head;
use crate::key::{EntryKind, RangeTombstone, check_key};
use crate::level_compression::LEVELS;
use crate::memtable::{
    Change, CopyLimits, LostRecords, Memtable, Said, create_buffer, destroy_buffer,
};
use crate::merge_operator::NamedOperator;
use crate::options::{Options, TreeOptions};
use crate::read::estimate::{RangeEstimate, estimate};
use crate::read::lookup::{Glance, MemtableLookup, look};
use crate::read::scan::{Count, TableScan, scan};
use crate::version::context::{ObsoleteFile, TreeContext};
use crate::version::edit::Edit;
use crate::version::gaps::Gaps;
use crate::version::tree_version::{Blob, TableFile, TreeVersion};

/// Above all sequence numbers: transactions read at it, because they see their own writes.
pub const NEWEST: u64 = u64::MAX;

/// Memtables of full size in memory beyond which the excess counts twice: one that is filled and
/// one that is flushed, half of it on average.
const HELD_SOFT: f64 = 1.5;

/// Maximum part of a memtable's size that its range tombstones may take.
const MEMTABLE_RANGES_PART: u64 = 4;

/// How long a filtered compaction waits for snapshots to be closed, and how often: some 100 ms.
const SNAPSHOT_WAIT: Duration = Duration::from_millis(1);
const SNAPSHOT_WAITS_MAX: u32 = 100;

/// Removed entries that scans stepped over before a memtable is flushed and its tombstones are
/// merged; and the same when the store is idle.
const STEPPED_MAX: u64 = 100_000;
const STEPPED_REST: u64 = 1_000;

/// Counters of the background work.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compacted_bytes: AtomicU64,
    pub(crate) moves: AtomicU64,
    /// Bytes of tables, by the level that they were written to.
    pub(crate) written: [AtomicU64; LEVELS],
    /// Bytes of blob files that flushes wrote, and that merges wrote.
    pub(crate) blobs_written: AtomicU64,
    pub(crate) blobs_moved: AtomicU64,
}

impl Work {
    fn note_flush(&self, tables: u64, blobs: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(tables + blobs, Ordering::Relaxed);
        self.written[0].fetch_add(tables, Ordering::Relaxed);
        self.blobs_written.fetch_add(blobs, Ordering::Relaxed);
    }

    fn note_compaction(&self, target: usize, tables: u64, blobs: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compacted_bytes.fetch_add(tables + blobs, Ordering::Relaxed);
        self.written[target].fetch_add(tables, Ordering::Relaxed);
        self.blobs_moved.fetch_add(blobs, Ordering::Relaxed);
    }
}

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
    pub(crate) work: Work,
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
            work: Work::default(),
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

    /// Sets values, or removes keys; each key at most once in a call.
    ///
    /// # Errors
    /// Those of keys, and of the heap. Then the transaction, or the savepoint, must be undone.
    pub fn write<'w>(
        &self,
        heap: &mut Transaction<'_>,
        changes: impl IntoIterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> Result<()> {
        let has_room = !self.is_short();
        self.change(heap, |heap, change| {
            for (key, value) in changes {
                check_key(key)?;
                if value.is_some() && !has_room {
                    return Err(self.no_room(change.memtable()));
                }
                let kind = if value.is_some() { EntryKind::Value } else { EntryKind::Tombstone };
                change.write(heap, Said::Entry(kind), (key, value.unwrap_or_default()))?;
                if value.is_some() {
                    self.gaps.fill(key);
                }
            }
            Ok(())
        })
    }

    /// Appends operands to keys, which the tree's operator merges with what the keys have: no table
    /// is read. Keys ascend, and may repeat. An operand is merged at once with those of its key in
    /// the active memtable that are at most twice as long: so a key has as many of them there as
    /// its bytes have bits, and one if its operands do not grow.
    ///
    /// # Errors
    /// `NoOperator`; `MergeFailed` if the operator refuses the operand; as [`Lsm::write`].
    pub fn merge<'w>(
        &self,
        heap: &mut Transaction<'_>,
        operands: impl IntoIterator<Item = (&'w [u8], &'w [u8])>,
    ) -> Result<()> {
        let (has_room, operator) = (!self.is_short(), self.operator()?);
        let mut last: Option<&[u8]> = None;
        let mut operands = operands.into_iter().peekable();
        while operands.peek().is_some() {
            self.change(heap, |heap, change| {
                // A change has one entry of a key.
                while let Some((key, operand)) = operands.next_if(|(key, _)| last != Some(*key)) {
                    check_key(key)?;
                    operator.check(key, operand)?;
                    if !has_room {
                        return Err(self.no_room(change.memtable()));
                    }
                    let (kind, value) = change.absorb(heap, &operator, key, operand)?;
                    change.write(heap, Said::Entry(kind), (key, &value))?;
                    self.gaps.fill(key);
                    last = Some(key);
                }
                Ok(())
            })?;
            last = None;
        }
        Ok(())
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

    /// Whether a memtable could not be flushed for lack of room, and still waits. Then values are
    /// refused, so that memtables hold no more than the reserved room can take; removals are not.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire) && !self.current.load().frozen.is_empty()
    }

    /// Bytes that [`Write::keep_log`] must keep for the memtables, which can be flushed one after
    /// the other.
    pub fn log_bytes_kept(&self) -> u64 {
        let tree_version = self.current.load();
        let bytes = tree_version.memtables().map(|memtable| memtable.bytes_written_at_most());
        bytes.max().unwrap_or(0)
    }

    fn no_room(&self, active: &Memtable) -> Error {
        Error::Medium(MediumError::OutOfSpace {
            operation: "write to tables what memtables hold in",
            path: self.context.directory(FileKind::Tables).path().into(),
            bytes: active.bytes(),
            source: std::io::ErrorKind::StorageFull.into(),
        })
    }

    /// Removes all keys from `start` on and below `end`, whatever their number: O(1).
    ///
    /// # Errors
    /// `RangeEmpty`; as [`Lsm::write`].
    pub fn remove_range(&self, heap: &mut Transaction<'_>, start: &[u8], end: &[u8]) -> Result<()> {
        check_key(start)?;
        check_key(end)?;
        if start >= end {
            return Err(Error::RangeEmpty);
        }
        let undone = UndoneGap(Some(Arc::clone(&self.gaps)));
        self.change(heap, |heap, change| {
            change.write(heap, Said::Range, (start, end))?;
            let (start, end, sequence) = (Slice::new(start), Slice::new(end), change.sequence());
            self.gaps.empty(RangeTombstone { start, end, sequence });
            Ok(())
        })?;
        heap.on_commit(move |_| undone.keep());
        Ok(())
    }

    /// Makes a change of the active memtable under a number of its own; it is visible with the
    /// commit.
    fn change(
        &self,
        heap: &mut Transaction<'_>,
        work: impl FnOnce(&mut Transaction<'_>, &mut Change) -> Result<()>,
    ) -> Result<()> {
        let active = Arc::clone(&self.current.load().active);
        let mut change = Change::begin(heap, &active, self.context.sequences())?;
        work(heap, &mut change)?;
        let undo = change.finish(heap)?;
        heap.on_commit(move |_| undo.commit());
        Ok(())
    }

    /// Looks a key up in memtables, at a sequence number.
    ///
    /// # Errors
    /// Those of the heap.
    #[inline]
    pub fn look<R: Read>(&self, heap: &R, key: &[u8], sequence: u64) -> Result<MemtableLookup> {
        look(&self.current.load(), heap, key, sequence)
    }

    /// A pre-read for a write that depends on what it reads. It is made before the writer has the
    /// write permit, so that no other writer waits for the device meanwhile; [`Lsm::is_as_seen`]
    /// tells whether it still holds. To be called under the heap's lock.
    pub fn glance(&self) -> Glance {
        Glance::new(self.tree_version(), self.context.sequences().visible())
    }

    /// Whether a transaction that has changed nothing yet would see the same keys between bounds as
    /// the pre-read; false where that is not certain. Reads no file. O(keys between the bounds in
    /// memtables).
    pub fn is_as_seen(&self, glance: &Glance, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        glance.holds(&self.tree_version(), bounds)
    }

    /// An estimate of the entries between two bounds and of their bytes: of tables by their
    /// indexes, without reading a data block; of memtables by theirs. Versions that are not merged
    /// yet count one by one, and what range tombstones remove counts until it is merged away.
    /// O(log n) for each table in which the range begins or ends, O(tables) in any case.
    ///
    /// # Errors
    /// Those of tables.
    pub fn estimate(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<RangeEstimate> {
        estimate(&self.tree_version(), bounds)
    }

    /// Begins to count the current entries. To be called under the heap's lock.
    pub fn count(&self) -> Count {
        Count::new(self.tree_version(), self.context.sequences().visible())
    }

    /// Copies the memtables' entries of a range, as seen at a sequence number, about as many as the
    /// limits say.
    ///
    /// # Errors
    /// Those of the heap.
    pub fn scan<R: Read>(
        &self,
        heap: &R,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
        sequence: u64,
        limits: CopyLimits,
    ) -> Result<TableScan> {
        let sequences = self.context.sequences();
        let gaps = (&self.gaps, self.gaps.seen(sequence, sequences));
        scan(&self.current.load(), heap, bounds, forward, (sequence, limits), gaps)
    }

    /// Hands on the entries between bounds, as seen at a sequence number, until `each` breaks, by
    /// as many scans as necessary. For callers that hold the heap anyway: a transaction, or a store
    /// that is not open.
    ///
    /// # Errors
    /// As [`Lsm::scan`] and [`TableScan::finish`], and those of blob files; what came before was
    /// handed on.
    pub fn walk<R: Read>(
        &self,
        heap: &R,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        forward: bool,
        sequence: u64,
        limits: CopyLimits,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut lower, mut upper) = (lower.map(Slice::new), upper.map(Slice::new));
        let (mut is_broken, mut failed) = (false, Ok(()));
        while !is_broken {
            let bounds = (lower.as_ref().map(|key| &key[..]), upper.as_ref().map(|key| &key[..]));
            let scan = self.scan(heap, bounds, forward, sequence, limits)?;
            let rest = scan.finish(usize::MAX, |key, value| {
                let flow = value.with(key, |value| each(key, value)).unwrap_or_else(|error| {
                    failed = Err(error);
                    ControlFlow::Break(())
                });
                is_broken = flow.is_break();
                flow
            })?;
            match rest {
                None => break,
                Some(bound) if forward => lower = bound,
                Some(bound) => upper = bound,
            }
        }
        failed
    }

    /// Whether there may be an entry between bounds; false is certain.
    pub fn may_hold(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        let tree_version = self.current.load();
        tree_version.are_in_memtables(bounds) || tree_version.are_in_tables(bounds)
    }

    /// Whether a commit after `since` changed a key between bounds.
    ///
    /// # Errors
    /// Those of tables.
    pub fn has_changed(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), since: u64) -> Result<bool> {
        self.current.load().has_changed(bounds, since)
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

    /// Approximate number of entries: versions of a key that were not merged yet count one by one.
    pub fn entries_about(&self) -> u64 {
        let tree_version = self.current.load();
        let memtables: u64 = tree_version.memtables().map(|memtable| memtable.entries()).sum();
        let tables = tree_version.levels.iter().flatten();
        let live = tables.map(|file| file.meta.entries.saturating_sub(2 * file.meta.tombstones));
        memtables + live.sum::<u64>()
    }

    /// Bytes of memory that memtables take, beside their buffers on the heap.
    pub fn index_bytes(&self) -> u64 {
        self.current.load().memtables().map(|memtable| memtable.index_bytes()).sum()
    }

    /// Whether the active memtable is full.
    pub fn is_full(&self) -> bool {
        let tree_version = self.current.load();
        let bytes_max = self.context.options().memtable_bytes_max;
        tree_version.active.bytes() >= bytes_max
            || tree_version.active.emptied().bytes() >= bytes_max / MEMTABLE_RANGES_PART
            || self.gaps.stepped() >= STEPPED_MAX
    }

    /// Removed entries that scans stepped over since a memtable was last frozen.
    pub fn stepped(&self) -> u64 {
        self.gaps.stepped()
    }

    /// Number of gaps, the empty ranges that scans skip.
    pub fn gaps(&self) -> usize {
        self.gaps.len()
    }

    /// Whether the active memtable is to be flushed when the store is idle, because scans have
    /// stepped over removed entries.
    pub fn wants_flush_at_rest(&self) -> bool {
        self.gaps.stepped() >= STEPPED_REST
    }

    /// The compaction debt, in memtables of full size: the content of memtables, of which the part
    /// beyond one and a half counts twice, because it is memory; and half for each table of level 0
    /// beyond those that are merged at once.
    pub fn debt(&self) -> f64 {
        let tree_version = self.current.load();
        let options = self.context.options();
        let bytes: u64 = tree_version.memtables().map(|memtable| memtable.bytes()).sum();
        let held = bytes as f64 / options.memtable_bytes_max.max(1) as f64;
        let held = held + (held - HELD_SOFT).max(0.0);
        // Files that cannot be merged must not stall writers.
        let tables = self.parked.lock().movable(&tree_version);
        let bytes = tables.iter().map(|file| file.meta.file_bytes).sum();
        let share = options.level0_share(tables.len(), bytes).max(1.0);
        held + tables.len() as f64 * (1.0 - 1.0 / share) / 2.0
    }

    /// Freezes the active memtable, unless it is empty: later writes go to a new one.
    ///
    /// # Errors
    /// Those of the heap; nothing is changed.
    pub fn rotate(self: &Arc<Self>, heap: &Heap) -> Result<()> {
        self.gaps.begin_to_count(STEPPED_REST);
        heap.transaction(Durability::Deferred, |transaction| {
            if self.current.load().active.entries() == 0 {
                return Ok(());
            }
            self.edit(transaction, Edit { rotates: true, ..Edit::default() }).map(|_| ())
        })
    }

    /// Flushes the oldest frozen memtable; false if there is none. `oldest_seen` returns the oldest
    /// sequence number that a reader looks at, or will look at; `progress` is told how many bytes
    /// were read, and can end the work by an error.
    ///
    /// # Errors
    /// Those of the storage backend and the heap; nothing is changed, and it can be tried again.
    pub fn flush(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.flush_with(heap, oldest_seen, progress, false)
    }

    /// As [`Lsm::flush`], without the entries that newer memtables remove: takes longer, and less
    /// room.
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn flush_least(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.flush_with(heap, oldest_seen, progress, true)
    }

    fn flush_with(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
        is_least: bool,
    ) -> Result<bool> {
        let _one = self.flushing.lock();
        let tree_version = self.tree_version();
        let Some(oldest) = tree_version.frozen.last() else { return Ok(false) };
        let seen = oldest_seen()?;
        let seen = (seen, is_least);
        let options = self.options();
        let parts = (&self.context, &*options);
        let flushed =
            flush(heap, parts, &tree_version, oldest, seen, progress).and_then(|outcome| {
                let (tables, blobs) = outcome.bytes();
                let edit = Edit { flushes: true, ..outcome.edit(0) };
                let is_done = self.commit(heap, outcome, edit)?;
                if is_done {
                    self.work.note_flush(tables, blobs);
                }
                Ok(is_done)
            });
        // Whether the files found no space or the commit that names them.
        let is_short = flushed.as_ref().is_err_and(Error::is_out_of_space);
        self.is_short.store(is_short, Ordering::Release);
        if flushed.is_err() && self.is_destroyed.load(Ordering::Acquire) {
            // Its buffers were freed meanwhile.
            return Ok(false);
        }
        flushed
    }

    /// Commits the files that were written. If that fails and the commit may yet turn out to have
    /// succeeded, the files stay, and the next opening decides.
    fn commit(self: &Arc<Self>, heap: &Heap, outcome: Outcome, edit: Edit) -> Result<bool> {
        self.commit_if(heap, outcome, edit, || true)
    }

    /// As [`Lsm::commit`], if `is_wanted` says so under the heap's exclusive lock.
    fn commit_if(
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

    /// Merges the tables that need it most; false if none do. As [`Lsm::flush`]. A file that turns
    /// out to be damaged is left alone from then on, and others are merged, until the tree is
    /// opened again or [`Lsm::compact_all`] is called.
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_once(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.compact_next(heap, Pace::Busy, oldest_seen, progress)
    }

    /// Whether there is a memtable to be flushed, or tables to be merged.
    pub fn has_work(&self) -> bool {
        self.is_full() || !self.current.load().frozen.is_empty() || self.wants_rest()
    }

    /// Whether [`Lsm::compact_at_rest`] finds work, maybe such as [`Lsm::compact_once`] does not.
    pub fn wants_rest(&self) -> bool {
        let options = self.options();
        let parked = self.parked.lock();
        pick(&self.current.load(), (&options, Pace::Rest), &mut Picker::default(), &parked)
            .is_some()
    }

    /// As [`Lsm::compact_once`], for an idle store: also does what is worth it only then.
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_at_rest(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        self.compact_next(heap, Pace::Rest, oldest_seen, progress)
    }

    fn compact_next(
        self: &Arc<Self>,
        heap: &Heap,
        pace: Pace,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let mut picker = self.compacting.lock();
        picker.is_stepped_over |= self.gaps.take_stepped_over();
        let tree_version = self.tree_version();
        let parked = self.parked.lock().clone();
        let options = self.options();
        let Some(job) = pick(&tree_version, (&options, pace), &mut picker, &parked) else {
            return Ok(false);
        };
        let done = self.run(heap, &tree_version, &job, oldest_seen()?, progress);
        if let Some(file) = done.as_ref().err().and_then(Error::unreadable_file) {
            self.park(&job, file);
        }
        done
    }

    /// Parks a file of a job.
    fn park(&self, job: &Job, file: &Path) {
        let is_it = |kind: FileKind, number: u64| {
            let name = self.context.identity(number).name();
            file.ends_with(&name) && file == self.context.directory(kind).path().join(name)
        };
        let mut parked = self.parked.lock();
        let tables = job.inputs.iter().map(|input| input.meta.number);
        parked.tables.extend(tables.filter(|number| is_it(FileKind::Tables, *number)));
        let blobs = job.moved_blobs.iter().copied();
        parked.blobs.extend(blobs.filter(|number| is_it(FileKind::Blobs, *number)));
    }

    /// Numbers of the tables that merges leave alone, because they cannot be read.
    pub(crate) fn parked_tables(&self) -> Vec<u64> {
        self.parked.lock().tables.iter().copied().collect()
    }

    /// Merges all tables to one ordered run on the last level, without entries that no reader sees
    /// any more. As [`Lsm::flush`].
    ///
    /// # Errors
    /// As [`Lsm::flush`].
    pub fn compact_all(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<()> {
        self.rotate(heap)?;
        while self.flush(heap, oldest_seen, progress)? {}
        let _picker = self.compacting.lock();
        // The job reads all of them: it fails, or they are intact again.
        *self.parked.lock() = Parked::default();
        let tree_version = self.tree_version();
        let is_changed = self.has_changed_options.swap(false, Ordering::AcqRel);
        let is_anew = is_changed || self.filters();
        let Some(job) = pick_all(&tree_version, is_anew) else { return Ok(()) };
        let done = self.run(heap, &tree_version, &job, oldest_seen()?, progress);
        if done.is_err() && is_changed {
            self.has_changed_options.store(true, Ordering::Release);
        }
        done.map(drop)
    }

    /// Reclaims the room of entries that no reader sees any more, table by table, from the oldest
    /// on. Each rewrite takes no more room than what is left of its table, and none if nothing is
    /// left. For a device that is too full for a merge. Returns whether any room was reclaimed.
    ///
    /// # Errors
    /// As [`Lsm::flush`]. If there is no room for a table the others are tried, too; that is an
    /// error if none was written.
    pub fn reclaim(
        self: &Arc<Self>,
        heap: &Heap,
        oldest_seen: &dyn Fn() -> Result<u64>,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let _picker = self.compacting.lock();
        let all = self.tree_version();
        let files = all.levels.iter().enumerate().rev();
        let files = files.flat_map(|(level, files)| files.iter().rev().map(move |f| (level, f)));
        let (mut is_done, mut failed) = (false, None);
        for (level, file) in files {
            match self.reclaim_table(heap, (level, file), oldest_seen()?, progress) {
                Ok(is_some) => is_done |= is_some,
                // Damage of one table must not prevent others from giving room back.
                Err(error) if error.is_out_of_space() || error.is_damage() => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        match failed {
            Some(error) if !is_done => Err(error),
            _ => Ok(is_done),
        }
    }

    fn reclaim_table(
        self: &Arc<Self>,
        heap: &Heap,
        (level, file): (usize, &Arc<TableFile>),
        oldest_seen: u64,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let tree_version = self.tree_version();
        let is_bottom = is_bottom(&tree_version, std::slice::from_ref(file), level);
        let of = (oldest_seen, is_bottom);
        let options = self.options();
        let parts = (&self.context, &*options);
        let written = reclaim(parts, &tree_version, (level, file), of, progress)?;
        let Some(outcome) = written else { return Ok(false) };
        let (tables, blobs) = outcome.bytes();
        let removed = [file.meta.number].into();
        let edit = Edit { removed, ..outcome.edit(level) };
        let is_done = self.commit(heap, outcome, edit)?;
        if is_done {
            self.work.note_compaction(level, tables, blobs);
            self.context.delete_obsolete(heap)?;
        }
        Ok(is_done)
    }

    fn run(
        self: &Arc<Self>,
        heap: &Heap,
        tree_version: &TreeVersion,
        job: &Job,
        oldest_seen: u64,
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<bool> {
        let numbers = job.inputs.iter().map(|file| file.meta.number);
        if job.is_move {
            let moved = numbers.map(|number| (number, job.target)).collect();
            let is_done = heap.transaction(Durability::Buffered, |transaction| {
                self.edit(transaction, Edit { moved, ..Edit::default() })
            })?;
            self.work.moves.fetch_add(is_done.into(), Ordering::Relaxed);
            return Ok(is_done);
        }
        let sequences = self.context.sequences();
        let after = || sequences.newest_held().unwrap_or(0);
        let filtering = if self.filters() { self.filter.next(after()) } else { None };
        let is_filtered = filtering.is_some();
        let mut done =
            self.run_once(heap, tree_version, job, (oldest_seen, filtering), progress)?;
        if is_filtered {
            self.filter.note(done.is_some());
        }
        if done.is_none() {
            // A snapshot was opened meanwhile that sees what the filter would have taken from it.
            done = self.run_once(heap, tree_version, job, (oldest_seen, None), progress)?;
        }
        Ok(done.unwrap_or(false))
    }

    /// Runs a job; `None` if a snapshot sees what the filter removed or changed.
    fn run_once(
        self: &Arc<Self>,
        heap: &Heap,
        tree_version: &TreeVersion,
        job: &Job,
        seen: (u64, Option<Filtering>),
        progress: &(dyn Fn(u64) -> Result<()> + Sync),
    ) -> Result<Option<bool>> {
        let options = self.options();
        let outcome = compact((&self.context, &options), tree_version, job, seen, progress)?;
        let (tables, blobs) = outcome.bytes();
        let removed = job.inputs.iter().map(|file| file.meta.number).collect();
        let edit = Edit { removed, ..outcome.edit(job.target) };
        let sequences = self.context.sequences();
        let filtered_from = outcome.filtered_from.unwrap_or(u64::MAX);
        let is_in_the_way = || sequences.newest_held().is_some_and(|held| held >= filtered_from);
        for _ in 0..SNAPSHOT_WAITS_MAX {
            if !is_in_the_way() {
                break;
            }
            // Most are open for a short time.
            progress(0)?;
            thread::sleep(SNAPSHOT_WAIT);
        }
        let is_seen = Cell::new(false);
        let result = self.commit_if(heap, outcome, edit, || {
            is_seen.set(is_in_the_way());
            !is_seen.get()
        });
        if is_seen.get() {
            return result.map(|_| None);
        }
        let is_done = result?;
        if is_done {
            self.work.note_compaction(job.target, tables, blobs);
            self.context.delete_obsolete(heap)?;
        }
        Ok(Some(is_done))
    }

    /// Writes pairs whose keys ascend strictly directly to tables, as part of a transaction. They
    /// replace existing pairs. Does nothing and returns false if memtables have a key between the
    /// first and the last of them, because tables are older than memtables. If the transaction is
    /// undone, the next [`TreeContext::delete_obsolete`] removes the files.
    ///
    /// # Errors
    /// `NotAscending`; those of keys, the storage backend and the heap. Then the transaction must
    /// be undone.
    pub fn load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        heap: &mut Transaction<'_>,
        pairs: &[(K, V)],
    ) -> Result<bool> {
        if pairs.is_empty() {
            return Ok(true);
        }
        match self.prepare_load_on(&self.tree_version_now(), pairs, 1)? {
            Some(load) => load.commit(heap).map(|()| true),
            None => Ok(false),
        }
    }

    /// The first part of [`Lsm::load`], which waits for the device. The holder of the write permit
    /// calls it under no lock, and then calls [`Load::commit`] with the same permit. `None` where
    /// `load` does nothing. So many threads write the tables, each some of them.
    ///
    /// # Errors
    /// As [`Lsm::load`].
    pub fn prepare_load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        pairs: &[(K, V)],
        threads: usize,
    ) -> Result<Option<Load>> {
        self.prepare_load_on(&self.tree_version(), pairs, threads)
    }

    fn prepare_load_on<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        tree_version: &TreeVersion,
        pairs: &[(K, V)],
        threads: usize,
    ) -> Result<Option<Load>> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(None);
        };
        let bounds = (Bound::Included(first.as_ref()), Bound::Included(last.as_ref()));
        if tree_version.are_in_memtables(bounds) {
            return Ok(None);
        }
        let level = if tree_version.are_in_tables(bounds) { 0 } else { LEVELS - 1 };
        let sequence = self.context.sequences().assign();
        let (options, place) = (self.options(), LoadPlace { level, sequence, threads });
        let outcome = load((&self.context, &options), tree_version, &place, pairs)?;
        let keys = (Slice::new(first.as_ref()), Slice::new(last.as_ref()));
        Ok(Some(Load { tree: Arc::clone(self), outcome, level, sequence, keys }))
    }
}

/// A gap that must be forgotten unless the transaction commits.
struct UndoneGap(Option<Arc<Gaps>>);

impl UndoneGap {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for UndoneGap {
    fn drop(&mut self) {
        if let Some(gaps) = &self.0 {
            gaps.forget();
        }
    }
}

/// Pairs that are in tables, and in no tree yet.
#[derive(Debug)]
pub struct Load {
    tree: Arc<Lsm>,
    outcome: Outcome,
    level: usize,
    sequence: u64,
    /// The first and the last key.
    keys: (Slice, Slice),
}

impl Load {
    /// Makes them part of the tree with the transaction.
    ///
    /// # Errors
    /// Those of the heap. Then the transaction must be undone.
    pub fn commit(self, heap: &mut Transaction<'_>) -> Result<()> {
        let Self { tree, outcome, level, sequence, keys: (first, last) } = self;
        // If the edit fails the transaction is undone: nothing names the files.
        if !tree.edit(heap, outcome.edit(level))? {
            return Ok(());
        }
        let sequences = Arc::clone(tree.context.sequences());
        let unnamed = Unnamed(Some(outcome));
        heap.on_commit(move |_| {
            unnamed.keep();
            tree.gaps.fill_between(&first, &last);
            sequences.show(sequence);
        });
        Ok(())
    }
}

/// Files that are named when the transaction commits. If it is undone they are removed, as soon as
/// a sync confirms that.
struct Unnamed(Option<Outcome>);

impl Unnamed {
    fn keep(mut self) {
        if let Some(outcome) = self.0.take() {
            outcome.keep();
        }
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        if let Some(outcome) = self.0.take() {
            outcome.doom();
        }
    }
}
