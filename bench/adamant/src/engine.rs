//! What a benchmark asks of an engine.
//!
//! Purpose: the narrow trait through which all workloads work, so that every engine does the same.
//! Invariants: all writes of an open engine wait for the durability it was opened with.
//! Thread safety: any number of threads may read and write an engine at once.

use std::path::Path;

use crate::error::Result;
use crate::key::Key;

/// What a write waits for.
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
    /// As in the names of rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Buffered => "buffered",
            Self::Deferred => "deferred",
        }
    }
}

/// How an engine is opened.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// What writes wait for.
    pub durability: Durability,
    /// Bytes that log files may take, where an engine has such an option.
    pub log_bytes_max: u64,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From low keys to high ones.
    Ascending,
    /// From high keys to low ones.
    Descending,
}

/// Bytes that a closed engine takes on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What holds the data.
    pub data_bytes: u64,
    /// Log files, kept for use again or still needed.
    pub log_bytes: u64,
}

/// An ordered map of byte strings under measurement.
pub trait Engine: Send + Sync + Sized {
    /// Name in reports, and of the engine in the arguments of child processes.
    const NAME: &'static str;

    /// What its writes can wait for, strongest first.
    const DURABILITIES: &'static [Durability];

    /// Whether its contents are there when it is opened again.
    const IS_PERSISTENT: bool;

    /// Whether it holds what was written: a measurement without an engine does not, and is not
    /// checked.
    const KEEPS_CONTENTS: bool = true;

    /// An owned value.
    type Value: AsRef<[u8]>;

    /// Opens the engine in a directory of its own, creating it if there is nothing.
    ///
    /// # Errors
    /// The engine's, as everywhere in this trait.
    fn open(directory: &Path, setup: Setup) -> Result<Self>;

    /// Waits until everything is where it will be opened from, and closes.
    ///
    /// # Errors
    /// The engine's.
    fn close(self) -> Result<()>;

    /// Closes and opens; an engine in memory stays as it is.
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

    /// Shows the value of a key to `read` without copying it; false when there is none.
    ///
    /// # Errors
    /// The engine's.
    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Shows up to `limit` entries in order in the cheapest way the engine has, starting at `from` (or at the end where the direction
    /// begins), and returns their number.
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

    /// Shows all entries in order as keys and values that the caller owns, and returns their number:
    /// copies, where the engine lends.
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

    /// Bytes appended to its log since it was opened, if it has one and says so.
    ///
    /// # Errors
    /// The engine's.
    fn log_bytes_appended(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// What a closed engine takes on the disk, or `None` for one in memory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn space(directory: &Path) -> Result<Option<Space>>;
}

/// How a log-structured merge tree is opened, alike for all engines.
#[derive(Clone, Copy, Debug)]
pub struct LsmSetup {
    /// Bytes of blocks that are kept in memory.
    pub cache_bytes: u64,
    /// Bytes of a memtable, and of a table, from which on the next one is begun.
    pub memtable_bytes: u64,
}

/// An engine that is a log-structured merge tree, or has one. Its writes survive the death of the
/// process; blocks are compressed by LZ4, those of the newest tables as is the engine's default.
pub trait LsmEngine: Engine {
    /// Opens it in a directory of its own, creating it if there is nothing.
    ///
    /// # Errors
    /// The engine's, as everywhere in this trait.
    fn open_lsm(directory: &Path, setup: LsmSetup) -> Result<Self>;

    /// Merges everything to one ordered run.
    ///
    /// # Errors
    /// The engine's.
    fn compact(&self) -> Result<()>;

    /// Bytes written since it was opened, by what they were written for, as far as the engine counts them.
    ///
    /// # Errors
    /// The engine's.
    fn written_by(&self) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }
}
