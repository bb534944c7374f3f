//! fjall 3: an LSM tree.
//!
//! Set up as its documentation advises: a block cache that holds all the data where it fits into
//! memory, else defaults (LZ4, bloom filters, leveled compaction, as many workers as processors).

use std::path::Path;
use std::sync::Arc;

use ::fjall::compaction::Leveled;
use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};
use adamant_bench::harness::engine::{
    Direction, Durability, Engine, LsmEngine, LsmSetup, Setup, SortedEntries, Space,
};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, is_log_file, space_of, visit_some};
use crate::peer::{Facts, Kind, Peer, Survives};

/// A database with one keyspace.
pub struct Fjall3Engine {
    database: Database,
    keyspace: Keyspace,
    durability: Durability,
}

impl Fjall3Engine {
    /// A batch that waits for what the engine was opened for.
    fn batch(&self) -> ::fjall::OwnedWriteBatch {
        let mode = match self.durability {
            Durability::Sync => Some(PersistMode::SyncData),
            Durability::Buffered => Some(PersistMode::Buffer),
            Durability::Deferred => None,
        };
        self.database.batch().durability(mode)
    }
}

impl Peer for Fjall3Engine {
    const FACTS: Facts = Facts {
        version_of: ("fjall", "3."),
        kind: Kind::Lsm,
        sync: Some(Survives::PowerLoss(
            "write, then `persist(SyncData)`: fdatasync of the journal",
        )),
        buffered: Some(Survives::Kill("the default: the journal is handed to the system")),
        deferred: Some(Survives::Nothing(
            "batches with `durability(None)`: the journal stays in a buffer of the process",
        )),
        settings: "cache_size 1 GiB; LZ4, bloom filters and leveled compaction as by default",
    };
}

impl Engine for Fjall3Engine {
    const NAME: &'static str = "fjall";
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Slice;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let database = Database::builder(directory).cache_size(CACHE_BYTES).open()?;
        let keyspace = database.keyspace("bench", KeyspaceCreateOptions::default)?;
        Ok(Self { database, keyspace, durability: setup.durability })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        match self.durability {
            Durability::Deferred => return self.put_batch(&[(*key, value)]),
            Durability::Buffered | Durability::Sync => self.keyspace.insert(&key[..], value)?,
        }
        if self.durability == Durability::Sync {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = self.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, &key[..], *value);
        }
        Ok(batch.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut batch = self.batch();
        for key in keys {
            batch.remove(&self.keyspace, &key[..]);
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Slice>> {
        Ok(self.keyspace.get(key)?)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // Its values share the memory of a block: there is no copy to save.
        Ok(self.keyspace.get(key)?.map(|value| read(&value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let range = match (direction, from) {
            (_, None) => self.keyspace.iter(),
            (Direction::Ascending, Some(key)) => self.keyspace.range(&key[..]..),
            (Direction::Descending, Some(key)) => self.keyspace.range(..=&key[..]),
        };
        visit_some(range, direction, limit, |entry| {
            let (key, value) = entry.into_inner()?;
            visit(&key, &value);
            Ok(())
        })
    }

    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        // Its iterator gives owned entries.
        self.scan(None, Direction::Ascending, u64::MAX, visit)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.keyspace.len()? as u64)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|path| is_log_file(path, "jnl"))
    }
}

impl LsmEngine for Fjall3Engine {
    fn open_lsm(directory: &Path, setup: LsmSetup) -> Result<Self> {
        let database = Database::builder(directory).cache_size(setup.cache_bytes).open()?;
        let sized = || {
            let strategy = Leveled::default().with_table_target_size(setup.memtable_bytes);
            KeyspaceCreateOptions::default()
                .max_memtable_size(setup.memtable_bytes)
                .compaction_strategy(Arc::new(strategy))
        };
        let keyspace = database.keyspace("bench", sized)?;
        Ok(Self { database, keyspace, durability: Durability::Buffered })
    }

    fn ingest(&self, _beside: &Path, entries: &mut SortedEntries<'_>) -> Result<()> {
        let mut ingestion = self.keyspace.start_ingestion()?;
        for (key, value) in entries {
            ingestion.write(&key[..], value)?;
        }
        Ok(ingestion.finish()?)
    }

    fn compact(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        Ok(self.keyspace.major_compact()?)
    }
}
