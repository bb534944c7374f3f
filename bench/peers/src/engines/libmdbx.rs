//! libmdbx: a B+ tree that is copied on write, in a memory map, after LMDB. Built with the feature
//! `libmdbx`.
//!
//! Set up as LMDB is, and as its documentation advises: a map larger than the data will ever be;
//! `MDBX_UTTERLY_NOSYNC`, its name for `MDB_NOSYNC`, where the system may write later, with
//! `MDBX_WRITEMAP`; read transactions that are reset and renewed instead of begun; entries that are
//! read in order by many in one call, where it has such a call.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::{ptr, slice};

use adamant_bench::harness::engine::{Direction, Durability, Engine, Setup, Space};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::key::Key;
use signet_libmdbx::ffi::{
    MDBX_NEXT, MDBX_RESULT_TRUE, MDBX_txn, MDBX_val, mdbx_cursor_get_batch, mdbx_cursor_txn,
    mdbx_txn_renew, mdbx_txn_reset,
};
use signet_libmdbx::tx::aliases::{RoCursorUnsync, RoTxUnsync};
use signet_libmdbx::{
    Database, DatabaseFlags, Environment, Geometry, MdbxError, Mode, SyncMode, WriteFlags,
};
use thread_local::ThreadLocal;

use crate::engines::lmdb::MAP_BYTES;
use crate::engines::space_of;
use crate::peer::{Facts, Kind, Peer, Survives};

/// An entry as the map has it.
type Entry<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Entries that one call reads at the most, and at the least.
const BATCH_ENTRIES: usize = 64;
const BATCH_ENTRIES_MIN: usize = 2;

/// An environment with one database.
pub struct LibmdbxEngine {
    env: Environment,
    database: Database,
    readers: ThreadLocal<RefCell<Reader>>,
}

/// A read transaction that keeps its place in the table of readers while it has no snapshot.
struct Reader {
    transaction: RoTxUnsync,
    raw: *mut MDBX_txn,
}

// SAFETY: the package lets such transactions go from thread to thread (it opens the environment
// with `MDBX_NOSTICKYTHREADS`), and `raw` is the transaction that stands beside it.
unsafe impl Send for Reader {}

impl Reader {
    fn begin(env: &Environment, database: Database) -> Result<Self> {
        let transaction = env.begin_ro_unsync()?;
        let cursor = transaction.cursor(database)?;
        // SAFETY: the cursor is open, and of this transaction.
        let raw = unsafe { mdbx_cursor_txn(cursor.cursor()) };
        drop(cursor);
        Ok(Self { transaction, raw })
    }

    /// Does `task` with the newest snapshot. Exclusive, so that nothing that was read outlives it.
    fn with_snapshot<T>(&mut self, task: impl FnOnce(&RoTxUnsync) -> Result<T>) -> Result<T> {
        // SAFETY: `raw` is alive as long as `transaction`, and nothing read from it is borrowed.
        check(unsafe { mdbx_txn_renew(self.raw) })?;
        let done = task(&self.transaction);
        // SAFETY: as above; what `done` holds is owned, as no lifetime leads out of `task`.
        check(unsafe { mdbx_txn_reset(self.raw) })?;
        done
    }
}

fn check(code: i32) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(MdbxError::from_err_code(code).into()) }
}

fn visit_forward(
    cursor: &mut RoCursorUnsync<'_>,
    from: Option<&Key>,
    limit: u64,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<u64> {
    let first: Option<((), ())> = match from {
        None => cursor.first()?,
        Some(key) => cursor.set_range(key)?,
    };
    let mut has_more = first.is_some();
    let mut pairs = [MDBX_val { iov_base: ptr::null_mut(), iov_len: 0 }; 2 * BATCH_ENTRIES];
    let mut count = 0;
    while has_more && count < limit {
        let wanted = usize::try_from(limit - count).unwrap_or(usize::MAX);
        let room = 2 * wanted.clamp(BATCH_ENTRIES_MIN, BATCH_ENTRIES);
        let (cursor, mut found) = (cursor.cursor(), 0);
        // SAFETY: the cursor is open, and `pairs` has at least so much room. Despite its name, the
        // operation begins with the entry at which the cursor stands.
        let code = unsafe {
            mdbx_cursor_get_batch(cursor, &raw mut found, pairs.as_mut_ptr(), room, MDBX_NEXT)
        };
        has_more = code != MDBX_RESULT_TRUE;
        if has_more {
            check(code)?;
        }
        for pair in pairs[..found].chunks_exact(2).take(wanted) {
            visit(bytes_of(&pair[0]), bytes_of(&pair[1]));
            count += 1;
        }
    }
    Ok(count)
}

/// What a cursor has found; its snapshot must still be there.
fn bytes_of(found: &MDBX_val) -> &[u8] {
    // SAFETY: libmdbx gave the place and the length, of what it maps for the whole snapshot.
    unsafe { slice::from_raw_parts(found.iov_base.cast(), found.iov_len) }
}

fn visit_backward(
    cursor: &mut RoCursorUnsync<'_>,
    from: Option<&Key>,
    limit: u64,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<u64> {
    let mut entry: Option<Entry<'_>> = match from {
        None => cursor.last()?,
        Some(from) => match cursor.set_range(from)? {
            None => cursor.last()?,
            Some((key, _)) if key > Cow::Borrowed(&from[..]) => cursor.prev()?,
            exact => exact,
        },
    };
    let mut count = 0;
    while let Some((key, value)) = entry.take().filter(|_| count < limit) {
        visit(&key, &value);
        count += 1;
        entry = cursor.prev()?;
    }
    Ok(count)
}

impl LibmdbxEngine {
    fn read<T>(&self, task: impl FnOnce(&RoTxUnsync) -> Result<T>) -> Result<T> {
        let begin = || Reader::begin(&self.env, self.database).map(RefCell::new);
        self.readers.get_or_try(begin)?.borrow_mut().with_snapshot(task)
    }
}

impl Peer for LibmdbxEngine {
    const FACTS: Facts = Facts {
        version_of: ("signet-libmdbx", ""),
        kind: Kind::Tree,
        sync: Some(Survives::PowerLoss(
            "`MDBX_SYNC_DURABLE`, the default: fdatasync in every commit",
        )),
        buffered: Some(Survives::Kill(
            "`MDBX_UTTERLY_NOSYNC` and `MDBX_WRITEMAP`: the map is the system's; power loss may \
             leave no readable file at all",
        )),
        deferred: Some(Survives::Kill("as buffered: more than is asked")),
        settings: "signet-libmdbx, with libmdbx 0.13.7; map of 64 GiB; a read transaction for each \
                   thread, reset and renewed; scans by `mdbx_cursor_get_batch`",
    };
}

impl Engine for LibmdbxEngine {
    const NAME: &'static str = "libmdbx";
    const DURABILITIES: &'static [Durability] = &[Durability::Sync, Durability::Buffered];
    const IS_PERSISTENT: bool = true;
    type Value = Vec<u8>;

    fn open(directory: &Path, setup: Setup) -> Result<Self> {
        let mut builder = Environment::builder();
        builder.set_geometry(Geometry { size: Some(0..MAP_BYTES), ..Geometry::default() });
        if setup.durability != Durability::Sync {
            builder.set_flags(Mode::ReadWrite { sync_mode: SyncMode::UtterlyNoSync }.into());
            builder.write_map();
        }
        let env = builder.open(directory)?;
        let transaction = env.begin_rw_unsync()?;
        let database = transaction.create_db(None, DatabaseFlags::empty())?;
        transaction.commit()?;
        Ok(Self { env, database, readers: ThreadLocal::new() })
    }

    fn close(self) -> Result<()> {
        self.sync()
    }

    fn put(&self, key: &Key, value: &[u8]) -> Result<()> {
        self.put_batch(&[(*key, value)])
    }

    fn put_batch(&self, entries: &[(Key, &[u8])]) -> Result<()> {
        let transaction = self.env.begin_rw_unsync()?;
        for (key, value) in entries {
            transaction.put(self.database, key, value, WriteFlags::UPSERT)?;
        }
        Ok(transaction.commit()?)
    }

    fn remove_batch(&self, keys: &[Key]) -> Result<()> {
        let transaction = self.env.begin_rw_unsync()?;
        for key in keys {
            transaction.del(self.database, key, None)?;
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.read(|transaction| Ok(transaction.get(self.database.dbi(), key)?))
    }

    fn get_with(&self, key: &Key, read: &mut dyn FnMut(&[u8])) -> Result<bool> {
        self.read(|transaction| {
            let value: Option<Cow<'_, [u8]>> = transaction.get(self.database.dbi(), key)?;
            Ok(value.map(|value| read(&value)).is_some())
        })
    }

    fn scan(
        &self,
        from: Option<&Key>,
        direction: Direction,
        limit: u64,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        self.read(|transaction| {
            let mut cursor = transaction.cursor(self.database)?;
            match direction {
                Direction::Ascending => visit_forward(&mut cursor, from, limit, visit),
                Direction::Descending => visit_backward(&mut cursor, from, limit, visit),
            }
        })
    }

    fn count(&self) -> Result<u64> {
        self.read(|transaction| Ok(transaction.db_stat(&self.database)?.entries() as u64))
    }

    fn sync(&self) -> Result<()> {
        self.env.sync(true)?;
        Ok(())
    }

    fn space(directory: &Path) -> Result<Option<Space>> {
        space_of(directory, &|_| false)
    }
}
