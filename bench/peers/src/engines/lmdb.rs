//! LMDB through heed: a B+ tree that is copied on write, in a memory map.
//!
//! Set up as its documentation advises: a map larger than the data will ever be; `MDB_NOSYNC` where
//! the system may write later, with `MDB_WRITEMAP`, which it calls faster.

use std::ops::Bound;
use std::path::Path;

use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use crate::engines::space_of;
use crate::peer::{Facts, Kind, Peer, Survives};

/// Bytes of the map: address space only.
pub(crate) const MAP_BYTES: usize = 64 << 30;

/// An environment with one database.
pub struct LmdbEngine {
    env: Env,
    database: Database<Bytes, Bytes>,
}

impl Peer for LmdbEngine {
    const FACTS: Facts = Facts {
        version_of: ("heed", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss("the default: fdatasync in every commit")),
        buffered: Some(Survives::Kill(
            "`MDB_NOSYNC` and `MDB_WRITEMAP`: the map is the system's; power loss may leave no \
             readable file at all",
        )),
        deferred: Some(Survives::Kill("as buffered: more than is asked")),
        settings: "heed, with LMDB 0.9.70; map of 64 GiB; read transactions in thread-local slots",
    };
}

impl Engine for LmdbEngine {
    const NAME: &'static str = "lmdb";
    const DURABILITIES: &'static [Durability] = &[Durability::Sync, Durability::Buffered];
    const IS_PERSISTENT: bool = true;
    type Value = Vec<u8>;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(126);
        if setup.durability != Durability::Sync {
            // SAFETY: without syncs a file may be unreadable after power loss, and a stray write
            // may damage it; the benchmark keeps neither past its end.
            unsafe { options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP) };
        }
        // SAFETY: nobody else changes the file, and it is opened once at a time in a process.
        let env = unsafe { options.open(directory)? };
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, database })
    }

    fn close(self) -> Result<()> {
        self.sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        self.database.put(&mut transaction, key, value)?;
        Ok(transaction.commit()?)
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in entries {
            self.database.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for key in keys {
            self.database.delete(&mut transaction, key)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let transaction = self.env.read_txn()?;
        Ok(self.database.get(&transaction, key)?.map(<[u8]>::to_vec))
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let transaction = self.env.read_txn()?;
        Ok(self.database.get(&transaction, key)?.map(read).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let transaction = self.env.read_txn()?;
        let mut count = 0;
        let mut show = |entry: heed::Result<(&[u8], &[u8])>| -> Result<()> {
            let (key, value) = entry?;
            visit(key, value);
            count += 1;
            Ok(())
        };
        match (direction, from) {
            (Direction::Ascending, None) => {
                self.database.iter(&transaction)?.take(limit).try_for_each(&mut show)?;
            }
            (Direction::Ascending, Some(key)) => {
                let range = self
                    .database
                    .range(&transaction, &(Bound::Included(&key[..]), Bound::Unbounded))?;
                range.take(limit).try_for_each(&mut show)?;
            }
            (Direction::Descending, None) => {
                self.database.rev_iter(&transaction)?.take(limit).try_for_each(&mut show)?;
            }
            (Direction::Descending, Some(key)) => {
                let range = self
                    .database
                    .rev_range(&transaction, &(Bound::Unbounded, Bound::Included(&key[..])))?;
                range.take(limit).try_for_each(&mut show)?;
            }
        }
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        let transaction = self.env.read_txn()?;
        Ok(self.database.len(&transaction)?)
    }

    fn sync(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|_| false)
    }
}
