//! The interface of benchmarked engines.
//!
//! Purpose: the narrow trait that all workloads use, so that every engine does the same.
//! Invariants: all writes of an open engine wait for the durability it was opened with.
//! Thread safety: any number of threads may read and write an engine at once.

use std::path::Path;

use crate::harness::error::Result;
use crate::harness::key::Key;

/// The durability that a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives power loss.
    Sync,
    /// Survives the death of the process.
    Buffered,
    /// May be lost with the process.
    Deferred,
}

impl Durability {
    /// The name in row names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Buffered => "buffered",
            Self::Deferred => "deferred",
        }
    }
}

/// Options of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The durability that writes wait for.
    pub durability: Durability,
    /// Maximum bytes of log files, if an engine has such an option.
    pub log_bytes_max: u64,
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From low keys to high ones.
    Ascending,
    /// From high keys to low ones.
    Descending,
}

/// Bytes of a closed engine on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Files with data.
    pub data_bytes: u64,
    /// Log files, kept for reuse or still needed.
    pub log_bytes: u64,
}

/// An ordered map of byte strings under measurement.
pub trait Engine: Send + Sync + Sized {
    /// Name in reports, and of the engine in the arguments of child processes.
    const NAME: &'static str;

    /// The durabilities that it supports, strongest first.
    const DURABILITIES: &'static [Durability];

    /// Whether its contents survive reopening.
    const IS_PERSISTENT: bool;

    /// Whether it keeps what was written: a measurement without an engine does not, and is not
    /// verified.
    const KEEPS_CONTENTS: bool = true;

    /// An owned value.
    type Value: AsRef<[u8]>;

    /// Opens the engine in a directory of its own; creates it if there is nothing.
    ///
    /// # Errors
    /// The engine's, as everywhere in this trait.
    fn open(directory: &Path, setup: Setup) -> Result<Self>;

    /// Waits until everything is in its final place, and closes.
    ///
    /// # Errors
    /// The engine's.
    fn close(self) -> Result<()>;

    /// Closes and opens; does nothing for an engine in memory.
    ///
    /// # Errors
    /// The engine's.
    fn reopen(self, directory: &Path, setup: Setup) -> Result<Self> {
        self.close()?;
        Self::open(directory, setup)
    }

    /// Sets one value.
    ///
    /// # Errors
    /// The engine's.
    fn put(&self, key: &Key, value: &[u8]) -> Result<()>;

    /// Sets many values as one commit.
    ///
    /// # Errors
    /// The engine's.
    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()>;

    /// Removes many keys as one commit.
    ///
    /// # Errors
    /// The engine's.
    fn remove_batch(&self, keys: &[Key]) -> Result<()>;

    /// The value of a key, owned by the caller.
    ///
    /// # Errors
    /// The engine's.
    fn get(&self, key: &Key) -> Result<Option<Self::Value>>;

    /// Passes the value of a key to `read` without copying it; false when there is none.
    ///
    /// # Errors
    /// The engine's.
    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Passes up to `limit` entries in order to `visit` in the cheapest way that the engine has,
    /// starting at `from` (or at the end where the direction begins), and returns their number.
    ///
    /// # Errors
    /// The engine's.
    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64>;

    /// Passes all entries in order to `visit` as keys and values that the caller owns, and returns
    /// their number: copies, if the engine returns borrowed ones.
    ///
    /// # Errors
    /// The engine's.
    fn scan_owned(&self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64> {
        self.scan(None, Direction::Ascending, u64::MAX, &mut |key, value| {
            let (key, value) = (key.to_vec(), value.to_vec());
            visit(&key, &value);
        })
    }

    /// Number of entries.
    ///
    /// # Errors
    /// The engine's.
    fn count(&self) -> Result<u64>;

    /// Makes everything survive power loss.
    ///
    /// # Errors
    /// The engine's.
    fn sync(&self) -> Result<()>;

    /// Whether it has transactions that see their own writes, and with them the next three calls.
    const HAS_TRANSACTIONS: bool = false;

    /// Runs `work` as one transaction, and commits.
    ///
    /// # Errors
    /// Those of `work` and of the engine.
    fn transaction(&self, work: &mut dyn FnMut(&mut dyn Changes) -> Result<()>) -> Result<()> {
        let _ = work;
        Err(format!("{} has no transactions here", Self::NAME).into())
    }

    /// Removes in one transaction all entries that `takes` returns true for, and returns their
    /// number; `is_handed_out`: with a copy of each, by the call that the engine has for that.
    ///
    /// # Errors
    /// The engine's.
    fn extract(&self, is_handed_out: bool, takes: &mut Chooses<'_>) -> Result<u64> {
        let _ = (is_handed_out, takes);
        Err(format!("{} has no transactions here", Self::NAME).into())
    }

    /// Makes the files of a closed engine as small as its contents, by the call that it has for
    /// that.
    ///
    /// # Errors
    /// The engine's.
    fn compact(directory: &Path, setup: Setup) -> Result<()> {
        let _ = (directory, setup);
        Err(format!("{} is not compacted here", Self::NAME).into())
    }

    /// Bytes appended to its log since it was opened, if it has one and reports them.
    ///
    /// # Errors
    /// The engine's.
    fn log_bytes_appended(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Bytes of a closed engine on the disk, or `None` for one in memory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn space(directory: &Path) -> Result<Option<Space>>;
}

/// Whether an entry is chosen, by its key and value.
pub type Chooses<'a> = dyn FnMut(&[u8], &[u8]) -> bool + 'a;

/// A transaction under measurement.
pub trait Changes {
    /// Sets one value.
    ///
    /// # Errors
    /// The engine's.
    fn put(&mut self, key: &Key, value: &[u8]) -> Result<()>;

    /// Removes the entry at the end where the direction begins and passes it to `read`; false when
    /// there is none.
    ///
    /// # Errors
    /// The engine's.
    fn pop(&mut self, direction: Direction, read: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool>;
}

/// Options of a log-structured merge tree, the same for all engines.
#[derive(Clone, Copy, Debug)]
pub struct LsmSetup {
    /// Bytes of cached blocks.
    pub cache_bytes: u64,
    /// Bytes at which a memtable, or a table, ends and the next one begins.
    pub memtable_bytes: u64,
}

/// Entries in the order of their keys.
pub type SortedEntries<'e> = dyn Iterator<Item = (Key, &'e [u8])> + 'e;

/// An engine that is a log-structured merge tree, or has one. Its writes survive the death of the
/// process; blocks are compressed by LZ4, those of the newest tables by the engine's default.
pub trait LsmEngine: Engine {
    /// Opens it in a directory of its own; creates it if there is nothing.
    ///
    /// # Errors
    /// The engine's, as everywhere in this trait.
    fn open_lsm(directory: &Path, setup: LsmSetup) -> Result<Self>;

    /// Merges everything to one ordered run.
    ///
    /// # Errors
    /// The engine's.
    fn compact(&self) -> Result<()>;

    /// Brings entries in, in the order of their keys, by the engine's way around its memtable.
    /// `beside`: a free path on the same file system.
    ///
    /// # Errors
    /// The engine's.
    fn ingest(&self, beside: &Path, entries: &mut SortedEntries<'_>) -> Result<()>;

    /// Bytes written since it was opened, by purpose, as far as the engine counts them.
    ///
    /// # Errors
    /// The engine's.
    fn written_by(&self) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }
}
