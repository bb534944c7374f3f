//! How trees behave: sizes and thresholds. None of it is part of the format.

use crate::block::Compression;

/// How the log-structured merge trees of a store behave. Other values at the next opening are fine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of keys and values in a memtable from which on it is written to a table.
    pub memtable_bytes_max: u64,
    /// Bytes of a table from which on the next one is begun.
    pub table_bytes_max: u64,
    /// Bytes of a data block before compression.
    pub block_bytes: usize,
    /// Bits of Bloom filter a key: 10 let 1 of 100 absent keys pass.
    pub filter_bits_per_key: u8,
    /// Whether data blocks have a hash index: for single reads of short values.
    pub hash_index: bool,
    /// How data blocks are compressed.
    pub compression: Compression,
    /// Levels from the newest on that are never compressed: they are soon written again.
    pub plain_levels: u32,
    /// Tables of level 0 from which on they are merged with the level below: a read may have to look at
    /// each.
    pub level0_tables_max: usize,
    /// Bytes of the first level below level 0, at least. Twice as many are merged on level 0 however few
    /// tables they are.
    pub base_bytes_min: u64,
    /// How many times larger than the one before it a level may be.
    pub level_ratio: u64,
    /// Bytes of a value from which on it is kept in a blob file; `None`: only what no table can hold.
    pub blob_bytes_min: Option<u32>,
    /// Bytes of a blob file from which on the next one is begun.
    pub blob_file_bytes_max: u64,
    /// Percent of a blob file's bytes that may be stale before what is left of it is moved.
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

/// Bytes of level 0, in what the base has at least. Merging it writes the base anew: the more at once, the
/// less is written for each byte; and the more space is taken twice until then.
const LEVEL0_BASES: u64 = 2;

impl Options {
    /// How much of what level 0 may be so many tables of so many bytes are: from 1 on they are merged.
    pub(crate) fn level0_share(&self, tables: usize, bytes: u64) -> f64 {
        let by_count = tables as f64 / self.level0_tables_max.max(1) as f64;
        by_count.max(bytes as f64 / self.base_bytes_min.saturating_mul(LEVEL0_BASES).max(1) as f64)
    }
}
