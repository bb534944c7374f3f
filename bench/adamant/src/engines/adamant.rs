//! The adapter of Adamant: one keyspace of a store.

use std::ops::ControlFlow;
use std::path::Path;

use ::adamant::{
    Compression, EncryptionKey, Engine as Kind, ImageKind, Keyspace, KeyspaceOptions, LsmOptions,
    Options, Slice, Store, Transaction,
};

use crate::harness::engine::{
    Changes, Chooses, Direction, Durability, Engine, LsmEngine, LsmSetup, Setup, SortedEntries,
    Space,
};
use crate::harness::error::Result;
use crate::harness::key::Key;
use crate::harness::measure::disk_bytes;

/// A store with one keyspace, as it is by default, with a filled image, encrypted, or with
/// compressed values.
pub struct Adamant<const KIND: u8> {
    store: Store,
    keyspace: Keyspace,
}

const DEFAULT: u8 = 0;
const FILLED: u8 = 1;
const ENCRYPTED: u8 = 2;
const LZ4: u8 = 3;
const ZSTD: u8 = 4;
const ENCRYPTED_LZ4: u8 = 5;
const ENCRYPTED_ZSTD: u8 = 6;

/// The store as it is by default.
pub type AdamantEngine = Adamant<DEFAULT>;
/// The store with a filled image.
pub type FilledEngine = Adamant<FILLED>;
/// The store with encrypted files.
pub type EncryptedEngine = Adamant<ENCRYPTED>;
/// The store with values by LZ4.
pub type Lz4Engine = Adamant<LZ4>;
/// The store with values by zstd.
pub type ZstdEngine = Adamant<ZSTD>;
/// The store with values by LZ4, and encrypted files.
pub type EncryptedLz4Engine = Adamant<ENCRYPTED_LZ4>;
/// The store with values by zstd, and encrypted files.
pub type EncryptedZstdEngine = Adamant<ENCRYPTED_ZSTD>;

impl<const KIND: u8> Adamant<KIND> {
    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Its keyspace.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }
}

impl<const KIND: u8> Engine for Adamant<KIND> {
    const NAME: &'static str = match KIND {
        FILLED => "filled",
        ENCRYPTED => "encrypted",
        LZ4 => "lz4",
        ZSTD => "zstd",
        ENCRYPTED_LZ4 => "lz4, encrypted",
        ENCRYPTED_ZSTD => "zstd, encrypted",
        _ => "adamant",
    };
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Slice;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let durability = match setup.durability {
            Durability::Sync => ::adamant::Durability::Sync,
            Durability::Buffered => ::adamant::Durability::Buffered,
            Durability::Deferred => ::adamant::Durability::Deferred,
        };
        let mut options =
            Options::default().durability(durability).log_bytes_max(setup.log_bytes_max);
        match KIND {
            FILLED => options = options.image(ImageKind::Filled),
            ENCRYPTED | ENCRYPTED_LZ4 | ENCRYPTED_ZSTD => {
                options = options.encryption_key(EncryptionKey::from_bytes(&[5; 32]));
            }
            _ => {}
        }
        let store = Store::open_with(directory, options)?;
        let options = KeyspaceOptions::new();
        let options = match KIND {
            LZ4 | ENCRYPTED_LZ4 => options.value_compression(Compression::Lz4),
            ZSTD | ENCRYPTED_ZSTD => options.value_compression(Compression::zstd()),
            _ => options,
        };
        let keyspace = store.keyspace_with("bench", options)?;
        Ok(Self { store, keyspace })
    }

    fn close(self) -> Result<()> {
        drop(self.keyspace);
        Ok(self.store.close()?)
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.keyspace.put(key, value)?)
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = self.store.batch();
        for (key, value) in entries {
            batch.put(&self.keyspace, key, value)?;
        }
        Ok(batch.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut batch = self.store.batch();
        for key in keys {
            batch.delete(&self.keyspace, key)?;
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Slice>> {
        Ok(self.keyspace.get(key)?)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.keyspace.get_with(key, |value| read(value))?.is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let mut count = 0;
        let show = |key: &[u8], value: &[u8]| {
            visit(key, value);
            count += 1;
            if count >= limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let flow = match (direction, from) {
            (Direction::Ascending, Some(key)) => self.keyspace.range(key..).lend(show),
            (Direction::Ascending, None) => self.keyspace.iter().lend(show),
            (Direction::Descending, Some(key)) => self.keyspace.range(..=key).lend_back(show),
            (Direction::Descending, None) => self.keyspace.iter().lend_back(show),
        };
        flow?;
        Ok(count)
    }

    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        let mut count = 0;
        for entry in self.keyspace.iter() {
            let (key, value) = entry?;
            visit(&key, &value);
            count += 1;
        }
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.keyspace.len()?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    const HAS_TRANSACTIONS: bool = true;

    fn transaction(&self, work: &mut dyn FnMut(&mut dyn Changes) -> Result<()>) -> Result<()> {
        let mut changes = Running { transaction: self.store.begin()?, keyspace: &self.keyspace };
        work(&mut changes)?;
        Ok(changes.transaction.commit()?)
    }

    fn extract(&self, is_handed_out: bool, takes: &mut Chooses<'_>) -> Result<u64> {
        if is_handed_out {
            return Ok(self.keyspace.extract_if(.., takes)?.len() as u64);
        }
        Ok(self.keyspace.retain(.., |key, value| !takes(key, value))?)
    }

    fn compact(directory: &Path, setup: Setup) -> Result<()> {
        let engine = Self::open(directory, setup)?;
        engine.store.compact()?;
        engine.close()
    }

    fn log_bytes_appended(&self) -> Result<Option<u64>> {
        Ok(Some(self.store.stats()?.heap.journal.log_appended_bytes))
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        let log_bytes = disk_bytes(&directory.join("log"))?;
        let data_bytes = disk_bytes(directory)? - log_bytes;
        Ok(Some(Space { data_bytes, log_bytes }))
    }
}

/// A transaction that has begun.
struct Running<'a> {
    transaction: Transaction,
    keyspace: &'a Keyspace,
}

impl Changes for Running<'_> {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.transaction.put(self.keyspace, key, value)?)
    }

    fn pop(&mut self, direction: Direction, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
        let popped = match direction {
            Direction::Ascending => self.transaction.pop_first(self.keyspace)?,
            Direction::Descending => self.transaction.pop_last(self.keyspace)?,
        };
        Ok(popped.map(|(key, value)| read(&key, &value)).is_some())
    }
}

/// Bytes of the first level below level 0, in memtables: the default.
const BASE_MEMTABLES: u64 = 4;

impl LsmEngine for AdamantEngine {
    fn open_lsm(directory: &Path, setup: LsmSetup) -> Result<Self> {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = setup.memtable_bytes;
        lsm.table_bytes_max = setup.memtable_bytes;
        lsm.base_bytes_min = BASE_MEMTABLES * setup.memtable_bytes;
        let options = Options::default()
            .durability(::adamant::Durability::Buffered)
            .cache_bytes_max(setup.cache_bytes)
            .lsm(lsm);
        let store = Store::open_with(directory, options)?;
        let keyspace = store.keyspace_with("bench", KeyspaceOptions::new().engine(Kind::Lsm))?;
        Ok(Self { store, keyspace })
    }

    fn compact(&self) -> Result<()> {
        Ok(self.keyspace.compact()?)
    }

    fn ingest(&self, _beside: &Path, entries: &mut SortedEntries<'_>) -> Result<()> {
        self.keyspace.load_sorted(entries)?;
        Ok(())
    }

    fn written_by(&self) -> Result<Vec<(String, u64)>> {
        let journal = self.store.stats()?.heap.journal;
        let mut written = vec![
            ("log".to_owned(), journal.log_appended_bytes),
            ("pool".to_owned(), journal.pool_written_bytes),
        ];
        let stats = self.keyspace.lsm()?.stats()?;
        let levels = stats.levels.iter().enumerate();
        written.extend(levels.map(|(level, of)| (format!("level{level}"), of.written_bytes)));
        written.push(("blobs".to_owned(), stats.blobs.written_bytes));
        written.push(("blobs_moved".to_owned(), stats.blobs.moved_bytes));
        Ok(written)
    }
}
