//! Estimates of a range: its entries and bytes, from memtables and the indexes of tables.
//!
//! Purpose: what a planner asks before it chooses between two ways to answer a query. No data block
//! is read; of the indexes, two parts at most of each table in which the range begins or ends.
//! Invariants: versions that are not merged yet count one by one, as in `Lsm::entries_about`.
//! Thread safety: any thread, without the heap's lock.

use std::ops::Bound;

use adamant_wire::key::{is_above, is_below};

use crate::error::Result;
use crate::level_compression::LEVELS;
use crate::version::tree_version::{TableFile, TreeVersion};

/// An estimate of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeEstimate {
    /// Entries: a tombstone takes one away.
    pub entries: u64,
    /// Bytes of keys and values before compression, and of values in blob files as they are stored.
    pub bytes: u64,
}

/// The estimate of the entries between bounds. O(log n) for each table in which one of them lies,
/// and O(tables) in any case.
pub(crate) fn estimate(
    tree_version: &TreeVersion,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
) -> Result<RangeEstimate> {
    let (mut entries, mut bytes) = (0.0, 0.0);
    for memtable in tree_version.memtables() {
        let found = memtable.estimate(bounds);
        entries += found.0;
        bytes += found.1;
    }
    for file in (0..LEVELS).flat_map(|level| tree_version.overlapping(level, bounds)) {
        let meta = &file.meta;
        let share = if is_within(file, bounds) { 1.0 } else { file.open()?.share(bounds)? };
        let blobs: u64 = meta.blob_references.iter().map(|it| it.stored_bytes).sum();
        entries += (meta.entries as f64 - 2.0 * meta.tombstones as f64) * share;
        bytes += (meta.data_bytes_plain + blobs) as f64 * share;
    }
    Ok(RangeEstimate { entries: entries.round() as u64, bytes: bytes.round() as u64 })
}

/// Whether all keys of a table lie within bounds.
fn is_within(file: &TableFile, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    is_above(&file.meta.key_min, lower) && is_below(&file.meta.key_max, upper)
}
