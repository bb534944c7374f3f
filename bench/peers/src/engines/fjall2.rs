//! fjall 2.11: an LSM tree.
//!
//! Set up as its documentation advises: a block cache that holds all the data where it fits into
//! memory, else defaults (LZ4, bloom filters, leveled compaction, as many workers as processors).

use std::path::Path;

use ::fjall2::{
    Config, Keyspace, PartitionCreateOptions, PartitionHandle, PersistMode, Slice, UserKey,
    UserValue,
};
use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, space_of, visit_some};
use crate::peer::{Facts, Kind, Peer, Survives};

/// A keyspace with one partition.
pub struct Fjall2Engine {
    keyspace: Keyspace,
    partition: PartitionHandle,
    durability: Durability,
}

impl Fjall2Engine {
    /// A batch that waits for what the engine was opened for.
    fn batch(&self) -> ::fjall2::Batch {
        let mode = match self.durability {
            Durability::Sync => Some(PersistMode::SyncData),
            Durability::Buffered => Some(PersistMode::Buffer),
            Durability::Deferred => None,
        };
        self.keyspace.batch().durability(mode)
    }
}

impl Peer for Fjall2Engine {
    const FACTS: Facts = Facts {
        version_of: ("fjall", "2."),
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

impl Engine for Fjall2Engine {
    const NAME: &'static str = "fjall2";
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Slice;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let keyspace = Config::new(directory).cache_size(CACHE_BYTES).open()?;
        let partition = keyspace.open_partition("bench", PartitionCreateOptions::default())?;
        Ok(Self { keyspace, partition, durability: setup.durability })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        match self.durability {
            Durability::Deferred => return self.put_batch(&[(*key, value)]),
            Durability::Buffered | Durability::Sync => self.partition.insert(&key[..], value)?,
        }
        if self.durability == Durability::Sync {
            self.keyspace.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = self.batch();
        for (key, value) in entries {
            batch.insert(&self.partition, &key[..], *value);
        }
        Ok(batch.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut batch = self.batch();
        for key in keys {
            batch.remove(&self.partition, &key[..]);
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Slice>> {
        Ok(self.partition.get(key)?)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // Its values share the memory of a block: there is no copy to save.
        Ok(self.partition.get(key)?.map(|value| read(&value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let tree = &self.partition;
        let show = |entry: ::fjall2::Result<(UserKey, UserValue)>| {
            let (key, value) = entry?;
            visit(&key, &value);
            Ok(())
        };
        match (direction, from) {
            (_, None) => visit_some(tree.iter(), direction, limit, show),
            (Direction::Ascending, Some(key)) => {
                visit_some(tree.range(&key[..]..), direction, limit, show)
            }
            (Direction::Descending, Some(key)) => {
                visit_some(tree.range(..=&key[..]), direction, limit, show)
            }
        }
    }

    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        // Its iterator gives owned entries.
        self.scan(None, Direction::Ascending, u64::MAX, visit)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.partition.len()? as u64)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.keyspace.persist(PersistMode::SyncAll)?)
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|path| path.file_name().is_some_and(|name| name == "journals"))
    }
}
