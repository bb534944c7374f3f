//! Options of trees: sizes and thresholds. None of them is part of the format.

use crate::block::Compression;

/// Options of the log-structured merge trees of a store. They may change with every opening.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of keys and values at which a memtable is flushed to a table.
    pub memtable_bytes_max: u64,
    /// Bytes at which a table ends and the next one begins.
    pub table_bytes_max: u64,
    /// Bytes of a data block before compression.
    pub block_bytes: usize,
    /// Bits of the Bloom filter per key: with 10, 1 of 100 absent keys passes.
    pub filter_bits_per_key: u8,
    /// Whether data blocks have a hash index, which speeds up point reads of short values.
    pub hash_index: bool,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Number of levels, from the newest on, that are never compressed: they are rewritten soon.
    pub plain_levels: u32,
    /// Number of level 0 tables at which they are merged with the level below: a read may have to
    /// search each.
    pub level0_tables_max: usize,
    /// Minimum bytes of the first level below level 0. Level 0 is merged at twice as many bytes,
    /// however few tables it has.
    pub base_bytes_min: u64,
    /// Maximum size ratio of a level to the level before it.
    pub level_ratio: u64,
    /// Minimum bytes of a value that is stored in a blob file; `None`: only values that no table
    /// can hold.
    pub blob_bytes_min: Option<u32>,
    /// Bytes at which a blob file ends and the next one begins.
    pub blob_file_bytes_max: u64,
    /// Percentage of stale bytes of a blob file above which its live values are moved.
    pub blob_stale_percent_max: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memtable_bytes_max: 64 << 20,
            table_bytes_max: 64 << 20,
            block_bytes: 4 << 10,
            filter_bits_per_key: 10,
            hash_index: false,
            compression: Compression::Lz4,
            plain_levels: 0,
            level0_tables_max: 12,
            base_bytes_min: 256 << 20,
            level_ratio: 10,
            blob_bytes_min: Some(4 << 10),
            blob_file_bytes_max: 256 << 20,
            blob_stale_percent_max: 30,
        }
    }
}

/// Bytes of level 0, in units of the base's minimum. A merge of level 0 rewrites the base: larger
/// merges write less per byte, but take more space twice until then.
const LEVEL0_BASES: u64 = 2;

impl Options {
    /// The fill of level 0 with `tables` tables of `bytes` bytes: it is merged at 1.
    pub(crate) fn level0_share(&self, tables: usize, bytes: u64) -> f64 {
        let by_count = tables as f64 / self.level0_tables_max.max(1) as f64;
        by_count.max(bytes as f64 / self.base_bytes_min.saturating_mul(LEVEL0_BASES).max(1) as f64)
    }
}
