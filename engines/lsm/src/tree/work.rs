//! Counters of the background work of a tree, for its figures.
//!
//! Invariants: counted when the edit that names the files was made.
//! Thread safety: any thread.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::level_compression::LEVELS;

/// What was written since the tree was opened.
#[derive(Debug, Default)]
pub(crate) struct WorkCounters {
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

impl WorkCounters {
    pub(super) fn note_flush(&self, tables: u64, blobs: u64) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed_bytes.fetch_add(tables + blobs, Ordering::Relaxed);
        self.written[0].fetch_add(tables, Ordering::Relaxed);
        self.blobs_written.fetch_add(blobs, Ordering::Relaxed);
    }

    pub(super) fn note_compaction(&self, target: usize, tables: u64, blobs: u64) {
        self.compactions.fetch_add(1, Ordering::Relaxed);
        self.compacted_bytes.fetch_add(tables + blobs, Ordering::Relaxed);
        self.written[target].fetch_add(tables, Ordering::Relaxed);
        self.blobs_moved.fetch_add(blobs, Ordering::Relaxed);
    }
}
