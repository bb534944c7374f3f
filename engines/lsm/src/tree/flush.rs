//! Flushes of a tree: full memtables are frozen, and written to tables.
//!
//! Invariants: the oldest frozen memtable is flushed first. A memtable stays until the commit that
//! names its tables.
//! Thread safety: one flush at a time, on any thread, beside a compaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant_heap::{Durability, Heap};

use super::Lsm;
use crate::compact::flush;
use crate::error::{Error, Result};
use crate::version::edit::Edit;

/// Maximum part of a memtable's size that its range tombstones may take.
const MEMTABLE_RANGES_PART: u64 = 4;

/// Removed entries that scans stepped over before a memtable is flushed and its tombstones are
/// merged; and the same when the store is idle.
const STEPPED_MAX: u64 = 100_000;
const STEPPED_REST: u64 = 1_000;

impl Lsm {
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

    /// Whether the active memtable is to be flushed when the store is idle, because scans have
    /// stepped over removed entries.
    pub fn wants_flush_at_rest(&self) -> bool {
        self.gaps.stepped() >= STEPPED_REST
    }

    /// Bytes of memory that memtables take, beside their buffers on the heap.
    pub fn index_bytes(&self) -> u64 {
        self.current.load().memtables().map(|memtable| memtable.index_bytes()).sum()
    }

    /// Bytes that [`keep_log`](adamant_heap::Write::keep_log) must keep for the memtables, which
    /// can be flushed one after the other.
    pub fn log_bytes_kept(&self) -> u64 {
        let tree_version = self.current.load();
        let bytes = tree_version.memtables().map(|memtable| memtable.bytes_written_at_most());
        bytes.max().unwrap_or(0)
    }

    /// Whether a memtable could not be flushed for lack of room, and still waits. Then values are
    /// refused, so that memtables hold no more than the reserved room can take; removals are not.
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire) && !self.current.load().frozen.is_empty()
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
                let is_done = self.commit(heap, outcome, edit, || true)?;
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
}
