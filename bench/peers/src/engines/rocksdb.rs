//! RocksDB: an LSM tree. Built with the feature `rocksdb`.
//!
//! Set up as its guide "Setup Options and Basic Tuning" advises: bloom filters of 10 bits, a block
//! cache that holds all the data, background threads for every processor, LZ4, `bytes_per_sync` of
//! 1 MiB. Blocks stay at 4 KiB, the default: the guide's 16 KiB save memory and cost gets.

use std::path::Path;

use ::rocksdb::{
    BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType,
    DBPinnableSlice, IngestExternalFileOptions, Options, SstFileWriter, WriteBatch, WriteOptions,
};
use adamant_bench::harness::engine::{
    Direction, Durability, Engine, LsmEngine, LsmSetup, Setup, SortedEntries, Space,
};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, is_log_file, space_of};
use crate::peer::{Facts, Kind, Peer, Survives};

/// Bits of bloom filter for a key, as its tuning guide has them.
const FILTER_BITS: f64 = 10.0;

/// Written bytes after which a file is handed to the disk, so that its sync has little to do.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Bytes of a file that is ingested.
const INGESTED_BYTES: u64 = 64 << 20;

/// A database.
pub struct RocksDbEngine {
    database: DB,
    durability: Durability,
}

/// What it is opened with, whatever it is measured for.
fn options(cache_bytes: u64) -> Result<Options> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_lru_cache(usize::try_from(cache_bytes)?));
    table.set_bloom_filter(FILTER_BITS, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bytes_per_sync(BYTES_PER_SYNC);
    options.increase_parallelism(i32::try_from(std::thread::available_parallelism()?.get())?);
    Ok(options)
}

impl RocksDbEngine {
    fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::default();
        options.set_sync(self.durability == Durability::Sync);
        options.disable_wal(self.durability == Durability::Deferred);
        options
    }
}

impl Peer for RocksDbEngine {
    const FACTS: Facts = Facts {
        version_of: ("librocksdb-sys", ""),
        kind: Kind::Lsm,
        sync: Some(Survives::PowerLoss("`WriteOptions::sync`: fdatasync of the log, in groups")),
        buffered: Some(Survives::Kill("the default: the log is handed to the system")),
        deferred: Some(Survives::Nothing("`WriteOptions::disable_wal`, until a flush")),
        settings: "block cache 1 GiB, bloom filters of 10 bits, LZ4, parallelism of the \
                   processors, bytes_per_sync 1 MiB",
    };
}

impl Engine for RocksDbEngine {
    const NAME: &'static str = "rocksdb";
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Vec<u8>;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let options = options(CACHE_BYTES)?;
        Ok(Self { database: DB::open(&options, directory)?, durability: setup.durability })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.database.put_opt(key, value, &self.write_options())?)
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.put(key, value);
        }
        Ok(self.database.write_opt(batch, &self.write_options())?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for key in keys {
            batch.delete(key);
        }
        Ok(self.database.write_opt(batch, &self.write_options())?)
    }

    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        Ok(self.database.get(key)?)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value: Option<DBPinnableSlice<'_>> = self.database.get_pinned(key)?;
        Ok(value.map(|value| read(&value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        // The raw iterator lends its entries; the other one copies each into two boxes.
        let mut entries = self.database.raw_iterator();
        match (direction, from) {
            (Direction::Ascending, None) => entries.seek_to_first(),
            (Direction::Ascending, Some(key)) => entries.seek(key),
            (Direction::Descending, None) => entries.seek_to_last(),
            (Direction::Descending, Some(key)) => entries.seek_for_prev(key),
        }
        let mut count = 0;
        while count < limit {
            let Some((key, value)) = entries.item() else { break };
            visit(key, value);
            count += 1;
            match direction {
                Direction::Ascending => entries.next(),
                Direction::Descending => entries.prev(),
            }
        }
        entries.status()?;
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        self.scan(None, Direction::Ascending, u64::MAX, &mut |_, _| ())
    }

    fn sync(&self) -> Result<()> {
        match self.durability {
            // Without a log, tables are what lasts.
            Durability::Deferred => Ok(self.database.flush()?),
            Durability::Buffered | Durability::Sync => Ok(self.database.flush_wal(true)?),
        }
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|path| is_log_file(path, "log"))
    }
}

impl LsmEngine for RocksDbEngine {
    fn open_lsm(directory: &Path, setup: LsmSetup) -> Result<Self> {
        let mut options = options(setup.cache_bytes)?;
        let bytes = usize::try_from(setup.memtable_bytes)?;
        options.set_write_buffer_size(bytes);
        options.set_target_file_size_base(setup.memtable_bytes);
        // As large as what starts the first merges, as its guide advises: four tables of level 0.
        options.set_max_bytes_for_level_base(4 * setup.memtable_bytes);
        options.set_level_compaction_dynamic_level_bytes(true);
        Ok(Self { database: DB::open(&options, directory)?, durability: Durability::Buffered })
    }

    /// Files of its own making, as large as its tables, which it takes as they are.
    fn ingest(&self, beside: &Path, entries: &mut SortedEntries<'_>) -> Result<()> {
        let options = options(0)?;
        std::fs::create_dir(beside)?;
        let mut entries = entries.peekable();
        let mut files = Vec::new();
        while entries.peek().is_some() {
            let path = beside.join(format!("{}.sst", files.len()));
            let mut writer = SstFileWriter::create(&options);
            writer.open(&path)?;
            for (key, value) in entries.by_ref() {
                writer.put(key, value)?;
                if writer.file_size() >= INGESTED_BYTES {
                    break;
                }
            }
            writer.finish()?;
            files.push(path);
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        Ok(self.database.ingest_external_file_opts(&options, files)?)
    }

    fn compact(&self) -> Result<()> {
        self.database.flush()?;
        let mut options = CompactOptions::default();
        // What is in the last level already, too: else files that overlap nothing stay as they are.
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        self.database.compact_range_opt(None::<&[u8]>, None::<&[u8]>, &options);
        Ok(())
    }
}
