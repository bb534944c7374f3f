//! Figures of one keyspace.
//!
//! Purpose: what an operator asks of a keyspace: its size on the medium, what it is used for, and
//! how well the block cache serves it.
//! Invariants: counts are kept by each thread for itself, so they cost reads some twenty
//! instructions.
//! Thread safety: any thread.

use std::ops::Bound;

use adamant_lsm::LsmStats;

use crate::engine::map::Map;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

/// Figures of a keyspace: [`Keyspace::stats`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Entries; of the engine `lsm` an estimate, since versions that are not merged yet count one
    /// by one.
    pub entries: u64,
    /// Bytes of blocks of the pool. Of a tree an estimate: entries and nodes, by a sample. Of the
    /// engine `lsm` keys and values in memtables.
    pub heap_bytes: u64,
    /// Bytes of tables of the engine `lsm`.
    pub table_bytes: u64,
    /// Bytes of its blob files.
    pub blob_bytes: u64,
    /// Keys that were looked up since the store was opened, found or not, also by snapshots and
    /// transactions.
    pub lookups: u64,
    /// Entries that iterators and other scans have read since then; they read ahead.
    pub scanned: u64,
    /// Keys that commits have written, removed or moved since then, or were asked to; a whole range
    /// that the engine `lsm` deletes at once, or a keyspace that is cleared, is not counted.
    pub writes: u64,
    /// The composition of an LSM tree: levels, memtables, blob files, hits and misses of the block
    /// cache. `None` for the other engines. Its counts begin anew when the keyspace is cleared.
    pub lsm: Option<LsmStats>,
}

impl KeyspaceStats {
    /// Bytes on the medium: of the pool, of tables and of blob files.
    pub fn bytes(&self) -> u64 {
        self.heap_bytes + self.table_bytes + self.blob_bytes
    }
}

impl Keyspace {
    /// Figures of the keyspace: its size, and what was done to it since the store was opened.
    ///
    /// O(log^2 n) for `bplus`, O(log n) for the other trees, of which a sample tells their bytes,
    /// as by [`Keyspace::estimate`]; O(tables) for `lsm`. Reads no file.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// towns.get("Bern")?;
    /// towns.contains("Rome")?;
    /// let stats = towns.stats()?;
    /// assert_eq!((stats.entries, stats.lookups, stats.writes), (1, 2, 1));
    /// assert!(stats.bytes() > 0 && stats.lsm.is_none());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn stats(&self) -> Result<KeyspaceStats> {
        let [lookups, scanned, writes] = self.state.counts().sums();
        let view = self.shared.long_view()?;
        let map = self.state.map(&view, self.shared.catalogue())?;
        let counted = KeyspaceStats { lookups, scanned, writes, ..KeyspaceStats::default() };
        match map.as_ref() {
            Map::Tree(tree) => {
                let all = tree.tree().estimate(&view, (Bound::Unbounded, Bound::Unbounded))?;
                Ok(KeyspaceStats { entries: all.entries, heap_bytes: all.block_bytes, ..counted })
            }
            Map::Lsm(lsm) => {
                drop(view);
                let stats = lsm.tree.stats();
                Ok(KeyspaceStats {
                    entries: lsm.tree.entries_about(),
                    heap_bytes: stats.memtables.iter().map(|memtable| memtable.bytes).sum(),
                    table_bytes: stats.levels.iter().map(|level| level.bytes).sum(),
                    blob_bytes: stats.blobs.bytes,
                    lsm: Some(stats),
                    ..counted
                })
            }
        }
    }
}
