//! sled 0.34: a Bw-tree over a log. Built with the feature `sled`.
//!
//! Set up as its documentation advises: a large cache, `flush` for what must last, and its flushes
//! every 500 ms otherwise.

use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ::sled::{Batch, Config, Db, IVec, Tree};
use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;

use crate::engines::{CACHE_BYTES, space_of, visit_some};
use crate::peer::{Facts, Kind, Peer, Survives};

/// Longest wait for the lock of a file that was closed.
const LOCK_TIME_MAX: Duration = Duration::from_secs(5);
/// Time between two tries.
const LOCK_STEP: Duration = Duration::from_millis(1);

/// A database with one tree.
pub struct SledEngine {
    database: Db,
    tree: Tree,
    syncs: bool,
}

impl SledEngine {
    fn finish(&self) -> Result<()> {
        if self.syncs {
            self.tree.flush()?;
        }
        Ok(())
    }
}

impl Peer for SledEngine {
    const FACTS: Facts = Facts {
        version_of: ("sled", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss("`flush` after every write, said to fsync")),
        buffered: None,
        deferred: Some(Survives::Nothing("flushed every 500 ms, the default")),
        settings: "cache_capacity 1 GiB; otherwise defaults",
    };
}

impl Engine for SledEngine {
    const NAME: &'static str = "sled";
    const DURABILITIES: &'static [Durability] = &[Durability::Sync, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = IVec;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let config = Config::new().path(directory).cache_capacity(CACHE_BYTES);
        let start = Instant::now();
        let database = loop {
            match config.open() {
                // A thread in the background may hold the file for a moment after its last user.
                Err(::sled::Error::Io(error))
                    if error.kind() == ErrorKind::Other && start.elapsed() < LOCK_TIME_MAX =>
                {
                    thread::sleep(LOCK_STEP);
                }
                opened => break opened?,
            }
        };
        let tree = database.open_tree("bench")?;
        Ok(Self { database, tree, syncs: setup.durability != Durability::Deferred })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        self.tree.insert(&key[..], value)?;
        self.finish()
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let mut batch = Batch::default();
        for (key, value) in entries {
            batch.insert(&key[..], *value);
        }
        self.tree.apply_batch(batch)?;
        self.finish()
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let mut batch = Batch::default();
        for key in keys {
            batch.remove(&key[..]);
        }
        self.tree.apply_batch(batch)?;
        self.finish()
    }

    fn get(&self, key: &Key) -> Result<Option<IVec>> {
        Ok(self.tree.get(key)?)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.tree.get(key)?.map(|value| read(&value)).is_some())
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let range = match (direction, from) {
            (_, None) => self.tree.iter(),
            (Direction::Ascending, Some(key)) => self.tree.range(&key[..]..),
            (Direction::Descending, Some(key)) => self.tree.range(..=&key[..]),
        };
        visit_some(range, direction, limit, |entry| {
            let (key, value) = entry?;
            visit(&key, &value);
            Ok(())
        })
    }

    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        // Its iterator gives owned entries.
        self.scan(None, Direction::Ascending, u64::MAX, visit)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.tree.len() as u64)
    }

    fn sync(&self) -> Result<()> {
        self.tree.flush()?;
        self.database.flush()?;
        Ok(())
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|_| false)
    }
}
