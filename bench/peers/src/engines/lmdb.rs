//! LMDB through heed: a B+ tree that is copied on write, in a memory map.
//!
//! Set up as its documentation advises: a map larger than the data will ever be; `MDB_NOSYNC` where
//! the system may write later, with `MDB_WRITEMAP`, which it calls faster.

use std::ops::Bound;
use std::path::Path;

use adamant_bench::harness::engine::{
    Changes, Chooses, Direction, Durability, Engine, Setup, Space,
};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;
use heed::types::Bytes;
use heed::{CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, RwTxn};

use crate::engines::space_of;
use crate::peer::{Facts, Kind, Peer, Survives};

/// Bytes of the map: address space only.
pub(crate) const MAP_BYTES: usize = 64 << 30;

/// An environment with one database.
pub struct LmdbEngine {
    env: Env,
    database: Database<Bytes, Bytes>,
}

/// Commits that survive the death of the process.
const BUFFERED: EnvFlags = EnvFlags::NO_SYNC.union(EnvFlags::WRITE_MAP);

impl LmdbEngine {
    /// Without read-ahead, which its documentation advises where data are larger than memory.
    ///
    /// # Errors
    /// The engine's.
    pub fn open_large(directory: &Path, _memory_bytes: u64) -> Result<Self> {
        Self::open_with(directory, BUFFERED | EnvFlags::NO_READ_AHEAD)
    }

    fn open_with(directory: &Path, flags: EnvFlags) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(126);
        // SAFETY: without syncs a file may be unreadable after power loss, and a stray write may
        // damage it; the benchmark keeps neither past its end.
        unsafe { options.flags(flags) };
        // SAFETY: nobody else changes the file, and it is opened once at a time in a process.
        let env = unsafe { options.open(directory)? };
        let mut transaction = env.write_txn()?;
        let database = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Self { env, database })
    }
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
        let is_sync = setup.durability == Durability::Sync;
        Self::open_with(directory, if is_sync { EnvFlags::empty() } else { BUFFERED })
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

    const HAS_TRANSACTIONS: bool = true;

    fn transaction(&self, work: &mut dyn FnMut(&mut dyn Changes) -> Result<()>) -> Result<()> {
        let mut changes = Running { transaction: self.env.write_txn()?, database: self.database };
        work(&mut changes)?;
        Ok(changes.transaction.commit()?)
    }

    fn extract(&self, is_handed_out: bool, takes: &mut Chooses<'_>) -> Result<u64> {
        let mut transaction = self.env.write_txn()?;
        let mut entries = self.database.iter_mut(&mut transaction)?;
        let (mut removed, mut handed_out) = (0, Vec::new());
        while let Some((key, value)) = entries.next().transpose()? {
            if takes(key, value) {
                if is_handed_out {
                    handed_out.push((key.to_vec(), value.to_vec()));
                }
                // SAFETY: `key` and `value` are not used any more.
                unsafe { entries.del_current()? };
                removed += 1;
            }
        }
        drop(entries);
        transaction.commit()?;
        Ok(removed)
    }

    fn compact(directory: &Path, setup: Setup) -> Result<()> {
        let engine = Self::open(directory, setup)?;
        let (data, compacted) = (directory.join("data.mdb"), directory.join("compacted.mdb"));
        engine.env.copy_to_path(&compacted, CompactionOption::Enabled)?;
        engine.close()?;
        Ok(std::fs::rename(compacted, data)?)
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|_| false)
    }
}

/// A transaction that has begun.
struct Running<'e> {
    transaction: RwTxn<'e>,
    database: Database<Bytes, Bytes>,
}

impl Changes for Running<'_> {
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()> {
        Ok(self.database.put(&mut self.transaction, key, value)?)
    }

    fn pop(&mut self, direction: Direction, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
        // One cursor's walk to the end, which is then where the entry is removed.
        match direction {
            Direction::Ascending => {
                let mut entries = self.database.iter_mut(&mut self.transaction)?;
                let Some((key, value)) = entries.next().transpose()? else { return Ok(false) };
                read(key, value);
                // SAFETY: `key` and `value` are not used any more.
                Ok(unsafe { entries.del_current()? })
            }
            Direction::Descending => {
                let mut entries = self.database.rev_iter_mut(&mut self.transaction)?;
                let Some((key, value)) = entries.next().transpose()? else { return Ok(false) };
                read(key, value);
                // SAFETY: as above.
                Ok(unsafe { entries.del_current()? })
            }
        }
    }
}
