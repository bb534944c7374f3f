//! Reads of a tree: they merge memtables and tables.
//!
//! Purpose: lookups, pre-reads, counts, scans and estimates, each of the current version.
//! Thread safety: any thread, under the heap's lock where a heap is taken.

use std::ops::{Bound, ControlFlow};

use adamant_heap::access::Read;
use adamant_slice::Slice;

use super::Lsm;
use crate::error::Result;
use crate::memtable::CopyLimits;
use crate::read::estimate::{RangeEstimate, estimate};
use crate::read::lookup::{Glance, MemtableLookup, look};
use crate::read::scan::{Count, TableScan, scan};

impl Lsm {
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

    /// Approximate number of entries: versions of a key that were not merged yet count one by one.
    pub fn entries_about(&self) -> u64 {
        let tree_version = self.current.load();
        let memtables: u64 = tree_version.memtables().map(|memtable| memtable.entries()).sum();
        let tables = tree_version.levels.iter().flatten();
        let live = tables.map(|file| file.meta.entries.saturating_sub(2 * file.meta.tombstones));
        memtables + live.sum::<u64>()
    }

    /// Number of gaps, the empty ranges that scans skip.
    pub fn gaps(&self) -> usize {
        self.gaps.len()
    }
}
