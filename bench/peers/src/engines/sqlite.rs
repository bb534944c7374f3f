//! SQLite through rusqlite: a B-tree with a log of pages. Built with the feature `sqlite`.
//!
//! Set up as its documentation advises for a map of small entries: one table `WITHOUT ROWID`, a
//! write-ahead log, statements that are prepared once, one connection that writes and one for each
//! thread that reads, a cache and a memory map for all the data.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;
use rusqlite::{Connection, Params};
use thread_local::ThreadLocal;

use crate::engines::{CACHE_BYTES, is_log_file, space_of};
use crate::peer::{Facts, Kind, Peer, Survives};

const CREATE: &str = "CREATE TABLE IF NOT EXISTS bench \
                      (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID";
const PUT: &str = "INSERT OR REPLACE INTO bench VALUES (?1, ?2)";
const REMOVE: &str = "DELETE FROM bench WHERE key = ?1";
const GET: &str = "SELECT value FROM bench WHERE key = ?1";
const COUNT: &str = "SELECT count(*) FROM bench";

/// Bytes of a page, the default.
const PAGE_BYTES: u64 = 4096;

/// A database with one table.
pub struct SqliteEngine {
    path: PathBuf,
    writer: Mutex<Connection>,
    readers: ThreadLocal<Connection>,
    synchronous: &'static str,
}

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    // Below zero: KiB, not pages.
    connection.pragma_update(None, "cache_size", -i64::try_from(CACHE_BYTES >> 10)?)?;
    connection.pragma_update(None, "mmap_size", i64::try_from(CACHE_BYTES)?)?;
    Ok(connection)
}

impl SqliteEngine {
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> Result<&Connection> {
        self.readers.get_or_try(|| connect(&self.path))
    }

    /// Executes a statement with each of these, in one transaction.
    fn execute_all<P: Params>(&self, statement: &str, all: impl Iterator<Item = P>) -> Result<()> {
        let mut writer = self.writer();
        let transaction = writer.transaction()?;
        let mut prepared = transaction.prepare_cached(statement)?;
        for parameters in all {
            prepared.execute(parameters)?;
        }
        drop(prepared);
        Ok(transaction.commit()?)
    }
}

impl Peer for SqliteEngine {
    const FACTS: Facts = Facts {
        version_of: ("rusqlite", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss(
            "`synchronous = FULL`: fdatasync of the log in every commit",
        )),
        buffered: Some(Survives::Kill(
            "`synchronous = NORMAL`: the log is handed to the system, and synced before pages are \
             copied from it",
        )),
        deferred: Some(Survives::Kill(
            "`synchronous = OFF`: no syncs at all; more than is asked, and power loss may damage \
             the file",
        )),
        settings: "rusqlite, with SQLite 3.54.1; table WITHOUT ROWID, journal_mode WAL of as many \
                   bytes as Adamant's log, cache_size and mmap_size 1 GiB",
    };
}

impl Engine for SqliteEngine {
    const NAME: &'static str = "sqlite";
    const DURABILITIES: &'static [Durability] =
        &[Durability::Sync, Durability::Buffered, Durability::Deferred];
    const IS_PERSISTENT: bool = true;
    type Value = Vec<u8>;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join("bench.db");
        let synchronous = match setup.durability {
            Durability::Sync => "FULL",
            Durability::Buffered => "NORMAL",
            Durability::Deferred => "OFF",
        };
        let writer = connect(&path)?;
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "synchronous", synchronous)?;
        let log_pages = i64::try_from(setup.log_bytes_max / PAGE_BYTES)?;
        writer.pragma_update(None, "wal_autocheckpoint", log_pages)?;
        writer.execute(CREATE, [])?;
        Ok(Self { path, writer: Mutex::new(writer), readers: ThreadLocal::new(), synchronous })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        self.writer().prepare_cached(PUT)?.execute((&key[..], value))?;
        Ok(())
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        self.execute_all(PUT, entries.iter().map(|(key, value)| (&key[..], *value)))
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        self.execute_all(REMOVE, keys.iter().map(|key| (&key[..],)))
    }

    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let mut owned = None;
        self.get_with(key, &mut |value| owned = Some(value.to_vec()))?;
        Ok(owned)
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut get = self.reader()?.prepare_cached(GET)?;
        let mut rows = get.query([&key[..]])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        read(row.get_ref(0)?.as_blob()?);
        Ok(true)
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let text = match (direction, from) {
            (Direction::Ascending, None) => "SELECT * FROM bench ORDER BY key",
            (Direction::Ascending, Some(_)) => "SELECT * FROM bench WHERE key >= ?1 ORDER BY key",
            (Direction::Descending, None) => "SELECT * FROM bench ORDER BY key DESC",
            (Direction::Descending, Some(_)) => {
                "SELECT * FROM bench WHERE key <= ?1 ORDER BY key DESC"
            }
        };
        let mut scan = self.reader()?.prepare_cached(text)?;
        let mut rows = scan.query(rusqlite::params_from_iter(from.map(|key| &key[..])))?;
        let mut count = 0;
        while count < limit {
            let Some(row) = rows.next()? else { break };
            visit(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
            count += 1;
        }
        Ok(count)
    }

    fn count(&self) -> Result<u64> {
        let count: i64 = self.reader()?.query_row(COUNT, [], |row| row.get(0))?;
        Ok(u64::try_from(count)?)
    }

    fn sync(&self) -> Result<()> {
        let writer = self.writer();
        writer.pragma_update(None, "synchronous", "FULL")?;
        // A commit, even of what is there already, so that there is something to copy and to sync:
        // earlier copies may have been made without.
        writer.pragma_update(None, "user_version", 1)?;
        let is_busy = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        writer.pragma_update(None, "synchronous", self.synchronous)?;
        if is_busy { Err("sqlite: a reader kept the log from being copied".into()) } else { Ok(()) }
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|path| is_log_file(path, "db-wal"))
    }
}
