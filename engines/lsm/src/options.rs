//! Options of trees: sizes and thresholds. None of them is part of the format.

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::level_compression::LevelCompression;
use crate::table::BLOCK_BYTES;

/// Options of the log-structured merge trees of a store. They may change with every opening.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of keys and values at which a memtable is flushed to a table.
    pub memtable_bytes_max: u64,
    /// Bytes at which a table ends and the next one begins.
    pub table_bytes_max: u64,
    /// Bytes of a data block before compression: 64 to 8 MiB. An entry that is larger has a block
    /// of its own.
    pub block_bytes: usize,
    /// Bits of the Bloom filter per key, 30 at most: with 10, 1 of 100 absent keys passes; with 0
    /// there is no filter.
    pub filter_bits_per_key: u8,
    /// Whether data blocks have a hash index, which speeds up point reads of short values.
    pub hash_index: bool,
    /// How data blocks are compressed, level by level, and values in blob files.
    pub compression: LevelCompression,
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
    /// Whether data blocks and values of blob files stay in the block cache after they were read.
    /// Indexes and filters do in any case.
    pub caches_data: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memtable_bytes_max: 64 << 20,
            table_bytes_max: 64 << 20,
            block_bytes: 4 << 10,
            filter_bits_per_key: 10,
            hash_index: false,
            compression: Compression::Lz4.into(),
            level0_tables_max: 12,
            base_bytes_min: 256 << 20,
            level_ratio: 10,
            blob_bytes_min: Some(4 << 10),
            blob_file_bytes_max: 256 << 20,
            blob_stale_percent_max: 30,
            caches_data: true,
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

/// Bits of a filter per key beyond which it only grows.
const FILTER_BITS_MAX: u8 = 30;

impl Options {
    /// Verifies what can be wrong with them.
    ///
    /// ```
    /// let mut options = adamant_lsm::Options::default();
    /// options.check()?;
    /// options.block_bytes = 0;
    /// assert!(options.check().is_err());
    /// # Ok::<(), adamant_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidOption` for the first option whose value this build cannot use.
    pub fn check(&self) -> Result<()> {
        TreeOptions::of(self).check()
    }
}

/// Options of one tree, in place of those that all trees of its store have. `None`: as these.
///
/// ```
/// use adamant_lsm::{Options, TreeOptions};
///
/// let mut own = TreeOptions::default();
/// own.block_bytes = Some(16 << 10);
/// let options = own.over(&Options::default());
/// assert_eq!((options.block_bytes, options.filter_bits_per_key), (16 << 10, 10));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeOptions {
    /// [`Options::compression`].
    pub compression: Option<LevelCompression>,
    /// [`Options::block_bytes`].
    pub block_bytes: Option<u32>,
    /// [`Options::filter_bits_per_key`].
    pub filter_bits_per_key: Option<u8>,
    /// [`Options::hash_index`].
    pub hash_index: Option<bool>,
    /// [`Options::blob_bytes_min`].
    pub blob_bytes_min: Option<Option<u32>>,
    /// [`Options::caches_data`].
    pub caches_data: Option<bool>,
}

impl TreeOptions {
    /// Those of a store, each as the tree's own.
    fn of(options: &Options) -> Self {
        Self {
            compression: Some(options.compression),
            // What has no 32 bits is too much in any case.
            block_bytes: Some(u32::try_from(options.block_bytes).unwrap_or(u32::MAX)),
            filter_bits_per_key: Some(options.filter_bits_per_key),
            hash_index: Some(options.hash_index),
            blob_bytes_min: Some(options.blob_bytes_min),
            caches_data: Some(options.caches_data),
        }
    }

    /// The options of the tree in a store with these.
    pub fn over(&self, options: &Options) -> Options {
        Options {
            compression: self.compression.unwrap_or(options.compression),
            block_bytes: self.block_bytes.map_or(options.block_bytes, |bytes| bytes as usize),
            filter_bits_per_key: self.filter_bits_per_key.unwrap_or(options.filter_bits_per_key),
            hash_index: self.hash_index.unwrap_or(options.hash_index),
            blob_bytes_min: self.blob_bytes_min.unwrap_or(options.blob_bytes_min),
            caches_data: self.caches_data.unwrap_or(options.caches_data),
            ..options.clone()
        }
    }

    /// These, and of `others` what is not set here.
    #[must_use]
    pub fn or(&self, others: &Self) -> Self {
        Self {
            compression: self.compression.or(others.compression),
            block_bytes: self.block_bytes.or(others.block_bytes),
            filter_bits_per_key: self.filter_bits_per_key.or(others.filter_bits_per_key),
            hash_index: self.hash_index.or(others.hash_index),
            blob_bytes_min: self.blob_bytes_min.or(others.blob_bytes_min),
            caches_data: self.caches_data.or(others.caches_data),
        }
    }

    /// As [`Options::check`], of those that are set.
    ///
    /// # Errors
    /// As [`Options::check`].
    pub fn check(&self) -> Result<()> {
        let invalid = |option, expected: String, found: String| {
            Err(Error::InvalidOption { option, expected, found })
        };
        let compressions = self.compression.iter().flat_map(LevelCompression::levels);
        for compression in compressions {
            if let Some(expected) = compression.refusal() {
                return invalid("compression", expected.into(), compression.to_string());
            }
        }
        let (min, max) = BLOCK_BYTES;
        match self.block_bytes {
            Some(bytes) if !(min..=max).contains(&(bytes as usize)) => {
                let expected = format!("{min} to {max} bytes");
                return invalid("block_bytes", expected, bytes.to_string());
            }
            _ => {}
        }
        match self.filter_bits_per_key {
            Some(bits) if bits > FILTER_BITS_MAX => {
                let expected = format!("at most {FILTER_BITS_MAX} bits");
                invalid("filter_bits_per_key", expected, bits.to_string())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(own: TreeOptions) -> String {
        let (of_tree, of_store) = (own.check(), own.over(&Options::default()).check());
        let error = of_tree.expect_err("refused").to_string();
        assert_eq!(of_store.expect_err("refused").to_string(), error);
        error
    }

    #[test]
    fn values_that_cannot_be_are_refused_and_said() {
        let none = TreeOptions::default();
        none.check().unwrap();
        for bytes in [0, 63, (8 << 20) + 1, u32::MAX] {
            let error = refusal(TreeOptions { block_bytes: Some(bytes), ..none });
            let expected = format!("block_bytes: expected 64 to 8388608 bytes, found {bytes}");
            assert!(error.ends_with(&expected), "{error}");
        }
        for bits in [31, 255] {
            let error = refusal(TreeOptions { filter_bits_per_key: Some(bits), ..none });
            assert!(error.ends_with(&format!("at most 30 bits, found {bits}")), "{error}");
        }
        for level in [0, 23, 255] {
            let compression = [Compression::None, Compression::Zstd(level)].into();
            let error = refusal(TreeOptions { compression: Some(compression), ..none });
            assert!(error.ends_with(&format!("found zstd:{level}")), "{error}");
        }
        let zstd = TreeOptions { compression: Some(Compression::zstd().into()), ..none };
        assert_eq!(zstd.check().is_ok(), Compression::zstd().is_built());
        let huge = Options { block_bytes: usize::MAX, ..Options::default() };
        assert!(huge.check().is_err());
    }
}
