//! What all handles of an open store share.
//!
//! Purpose: SlateDB is asynchronous, callers are not: they wait here. What a commit waits for is decided
//! here too, once.
//! Invariants: no call that commits returns before SlateDB says that the commit is in the objects; SlateDB
//! itself says yes before, also to a writer whose place another one has taken.
//! The catalogue in memory is that of the objects: only this handle changes it, as long as it is the writer. A
//! handle that does not know what became of a change is of no use any more: what it knows may be wrong.
//! Thread safety: whoever writes to keyspaces holds the catalogue to read until SlateDB has put the commit
//! in order, whoever drops one holds it alone: so nothing comes into a keyspace after its end.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use slatedb::{Db, DbReader, DbTransaction, WriteBatch, WriteHandle};
use tokio::runtime::Runtime;

use crate::error::{Error, Result};

/// What SlateDB returns.
pub(crate) type SlateResult<T> = std::result::Result<T, slatedb::Error>;

/// The threads that SlateDB's own work and the input and output of all calls run on.
const WORKER_COUNT: usize = 2;

/// A keyspace as its handles share it.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) id: u32,
    pub(crate) name: String,
    /// The engine that it had where it was copied from, or none.
    pub(crate) engine: String,
    pub(crate) is_dropped: AtomicBool,
}

impl KeyspaceState {
    pub(crate) fn new(id: u32, name: &str, engine: &str) -> Arc<Self> {
        let (name, engine) = (name.to_owned(), engine.to_owned());
        Arc::new(Self { id, name, engine, is_dropped: AtomicBool::new(false) })
    }

    /// Fails if it was dropped.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_dropped.load(Ordering::Acquire) {
            return Err(Error::KeyspaceDropped { name: self.name.clone() });
        }
        Ok(())
    }
}

/// Who reads and writes.
pub(crate) enum Database {
    Writer(Db),
    Reader(Box<DbReader>),
}

/// The keyspaces that there are.
#[derive(Default)]
pub(crate) struct Catalogue {
    pub(crate) keyspaces: BTreeMap<String, Arc<KeyspaceState>>,
    pub(crate) next_id: u32,
}

/// An open store.
pub(crate) struct Shared {
    pub(crate) url: String,
    pub(crate) database: Database,
    /// Empty of a reader, who looks at the objects.
    pub(crate) catalogue: RwLock<Catalogue>,
    is_closed: AtomicBool,
    /// Whether SlateDB has said that another writer is there: it says so for ever.
    is_fenced: AtomicBool,
    /// Whether it is not known of some change whether it took place.
    is_doubtful: AtomicBool,
    /// How long a call waits for the objects.
    wait_max: Duration,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

impl Shared {
    pub(crate) fn new(
        url: String,
        database: Database,
        catalogue: Catalogue,
        wait_max: Duration,
        runtime: Runtime,
    ) -> Arc<Self> {
        Arc::new(Self {
            url,
            database,
            catalogue: RwLock::new(catalogue),
            is_closed: AtomicBool::new(false),
            is_fenced: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
            wait_max,
            runtime: Some(runtime),
        })
    }

    /// The threads for a store.
    pub(crate) fn runtime() -> Result<Runtime> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKER_COUNT)
            .thread_name("adamant-remote")
            .enable_all()
            .build()
            .map_err(|error| Error::Unavailable { what: format!("no threads: {error}") })
    }

    /// Waits for what SlateDB does.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = SlateResult<T>>) -> Result<T> {
        let done = self.block(async { work.await.map_err(Error::of_slate(&self.url)) });
        if let Err(error) = &done
            && error.is_fenced()
        {
            self.is_fenced.store(true, Ordering::Release);
        }
        done
    }

    /// Waits for what SlateDB does to change something.
    pub(crate) fn wait_for_change<T>(
        &self,
        work: impl Future<Output = SlateResult<T>>,
    ) -> Result<T> {
        let done = self.wait(work);
        if matches!(done, Err(Error::Unavailable { .. } | Error::Damaged { .. })) {
            self.is_doubtful.store(true, Ordering::Release);
        }
        done
    }

    /// Waits, as long as a call may.
    pub(crate) fn block<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        wait(self.runtime.as_ref(), self.wait_max, work)
    }

    /// Leaves work to the threads of the store.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            // Nobody waits for it: what it has not done when the store is closed is done later.
            drop(runtime.spawn(work));
        }
    }

    /// Fails if the store was closed, or is another writer's: what is known of it here is old.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::Closed);
        }
        if self.is_fenced.load(Ordering::Acquire) {
            return Err(Error::Fenced { url: self.url.clone() });
        }
        if self.is_doubtful.load(Ordering::Acquire) {
            let what =
                format!("{}: of an earlier change it is not known whether it is there", self.url);
            return Err(Error::Unavailable { what });
        }
        Ok(())
    }

    /// The writer.
    pub(crate) fn writer(&self, what: &'static str) -> Result<&Db> {
        self.check_open()?;
        match &self.database {
            Database::Writer(db) => Ok(db),
            Database::Reader(_) => Err(Error::ReadOnly { what }),
        }
    }

    /// Commits changes of keyspaces that must be there, and waits until they are in the objects.
    pub(crate) fn write<'k>(
        &self,
        batch: WriteBatch,
        keyspaces: impl Iterator<Item = &'k Arc<KeyspaceState>>,
    ) -> Result<()> {
        let db = self.writer("a commit")?;
        self.commit(async { db.write(batch).await.map(Some) }, keyspaces)
    }

    /// Commits a transaction, and waits until it and what it has read are in the objects.
    pub(crate) fn commit_transaction<'k>(
        &self,
        transaction: DbTransaction,
        keyspaces: impl Iterator<Item = &'k Arc<KeyspaceState>>,
    ) -> Result<()> {
        self.commit(transaction.commit(), keyspaces)
    }

    fn commit<'k>(
        &self,
        work: impl Future<Output = SlateResult<Option<WriteHandle>>>,
        mut keyspaces: impl Iterator<Item = &'k Arc<KeyspaceState>>,
    ) -> Result<()> {
        self.check_open()?;
        let catalogue = self.catalogue.read();
        keyspaces.try_for_each(|keyspace| keyspace.check())?;
        let handle = self.wait_for_change(work)?;
        drop(catalogue);
        match handle {
            Some(handle) => self.await_durable(&handle),
            None => self.sync(),
        }
    }

    /// Waits until a commit is in the objects. The one place where a commit becomes a promise.
    pub(crate) fn await_durable(&self, handle: &WriteHandle) -> Result<()> {
        self.wait_for_change(handle.await_durable())
    }

    /// Makes durable whatever has been committed.
    pub(crate) fn sync(&self) -> Result<()> {
        let db = self.writer("sync")?;
        self.wait_for_change(db.flush())
    }

    /// Closes.
    ///
    /// # Errors
    /// It was closed before; what SlateDB met when it wrote the rest.
    pub(crate) fn close(&self) -> Result<()> {
        if self.is_closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        match &self.database {
            Database::Writer(db) => self.wait(db.close()),
            Database::Reader(reader) => self.wait(reader.close()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // All commits that returned are in the objects; what else there is to do the next opening does.
        // Waiting here would be an error where the last handle is dropped on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits for work on this thread, with the threads of a store beside it: also on one that belongs to
/// another runtime, where tokio's own way to wait would panic. SlateDB itself tries for ever to reach objects
/// that it cannot reach; here that has an end. And it panics over manifests that are not as it wrote them, which
/// have no checksum: here that is damage.
pub(crate) fn wait<T>(
    runtime: Option<&Runtime>,
    wait_max: Duration,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let _entered = runtime.map(Runtime::enter);
    let waiting = async {
        let late = |_| Error::Unavailable { what: format!("no answer within {wait_max:?}") };
        tokio::time::timeout(wait_max, work).await.map_err(late).flatten()
    };
    // What is left of the work is not looked at again.
    catch_unwind(AssertUnwindSafe(|| pollster::block_on(waiting)))
        .unwrap_or_else(|panic| Err(Error::of_panic(panic.as_ref())))
}
