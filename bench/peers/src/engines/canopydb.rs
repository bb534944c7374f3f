//! canopydb: a B+ tree that is copied on write, with a write-ahead log. Built with the feature
//! `canopydb`.
//!
//! Set up as its documentation advises: a page cache that holds all the data, exclusive write
//! transactions, no log where a checkpoint from time to time is enough.

use std::path::Path;

use ::canopydb::{Bytes, Database, DbOptions, EnvOptions, ReadTransaction, Tree};
use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, space_of, visit_some};
use crate::peer::{Facts, Kind, Peer, Survives};

const TREE: &[u8] = b"bench";

/// A database with one tree.
pub struct CanopydbEngine {
    database: Database,
    durability: Durability,
}

impl CanopydbEngine {
    /// Commits what `task` does to the tree.
    fn write(&self, task: impl FnOnce(&mut Tree<'_>) -> Result<()>) -> Result<()> {
        let transaction = self.database.begin_write()?;
        task(&mut transaction.get_or_create_tree(TREE)?)?;
        // Not `Database::sync` after the commit, which could serve many at once: version 0.2.5
        // returns from it while the sync of another thread, of the same entries, is still under
        // way.
        transaction.commit_with(self.durability == Durability::Sync)?;
        Ok(())
    }

    fn read<T>(&self, task: impl FnOnce(&Tree<'_>) -> Result<T>) -> Result<T> {
        let transaction: ReadTransaction = self.database.begin_read()?;
        task(&transaction.get_tree(TREE)?.ok_or("canopydb: the tree is gone")?)
    }
}

impl Peer for CanopydbEngine {
    const FACTS: Facts = Facts {
        version_of: ("canopydb", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss(
            "`commit_with(true)`: fdatasync of the log in every commit",
        )),
        buffered: Some(Survives::Kill("the default: the log is handed to the system")),
        deferred: Some(Survives::Nothing("`use_wal: false`, until a checkpoint")),
        settings: "page_cache_size 1 GiB; log of at most as many bytes as Adamant's; otherwise \
                   defaults",
    };
}

impl Engine for CanopydbEngine {
    const NAME: &'static str = "canopydb";
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Bytes;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let mut env = EnvOptions::new(directory);
        env.page_cache_size = usize::try_from(CACHE_BYTES)?;
        env.max_wal_size = setup.log_bytes_max;
        let mut options = DbOptions::new();
        options.use_wal = setup.durability != Durability::Deferred;
        let database = Database::with_options(env, options)?;
        let engine = Self { database, durability: setup.durability };
        engine.write(|_| Ok(()))?;
        Ok(engine)
    }

    fn close(self) -> Result<()> {
        Ok(self.database.checkpoint()?)
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        self.write(|tree| Ok(tree.insert(key, value)?))
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        self.write(|tree| entries.iter().try_for_each(|(key, value)| Ok(tree.insert(key, value)?)))
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        self.write(|tree| keys.iter().try_for_each(|key| Ok(tree.delete(key).map(|_| ())?)))
    }

    fn get(&self, key: &Key) -> Result<Option<Bytes>> {
        self.read(|tree| Ok(tree.get(key)?))
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        // Its values share the memory of a page: there is no copy to save.
        Ok(self.get(key)?.map(|value| read(&value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        self.read(|tree| {
            let range = match (direction, from) {
                (_, None) => tree.iter()?,
                (Direction::Ascending, Some(key)) => tree.range(&key[..]..)?,
                (Direction::Descending, Some(key)) => tree.range(..=&key[..])?,
            };
            visit_some(range, direction, limit, |entry| {
                let (key, value) = entry?;
                visit(&key, &value);
                Ok(())
            })
        })
    }

    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        // Its iterator gives owned entries.
        self.scan(None, Direction::Ascending, u64::MAX, visit)
    }

    fn count(&self) -> Result<u64> {
        self.read(|tree| Ok(tree.len()))
    }

    fn sync(&self) -> Result<()> {
        match self.durability {
            // Without a log, a checkpoint is what lasts.
            Durability::Deferred => Ok(self.database.checkpoint()?),
            Durability::Buffered | Durability::Sync => Ok(self.database.sync()?),
        }
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        let is_log = |path: &Path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"WAL-"))
        };
        space_of(directory, &is_log)
    }
}
