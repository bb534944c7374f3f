//! The state that all handles of an open store share.
//!
//! Purpose: SlateDB is asynchronous, callers are not: they wait here. The point that a commit waits
//! for is defined here, too, once.
//! Invariants: no call that commits returns before SlateDB reports that the commit is in the
//! objects; SlateDB's own calls return earlier, also to a writer that another one has fenced. The
//! catalogue in memory equals that of the objects: only this handle changes it, as long as it is
//! the writer. A handle that does not know the outcome of a change is unusable: its catalogue may
//! be wrong.
//! Thread safety: a writer to keyspaces holds the catalogue's lock shared until SlateDB has ordered
//! the commit, and a drop holds it exclusively: so no entry enters a keyspace after its end.

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

/// The result of SlateDB's calls.
pub(crate) type SlateResult<T> = std::result::Result<T, slatedb::Error>;

/// The threads that run SlateDB's own work and the input and output of all calls.
const WORKER_COUNT: usize = 2;

/// The state that the handles of a keyspace share.
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

/// The writer or a reader.
pub(crate) enum Database {
    Writer(Db),
    Reader(Box<DbReader>),
}

/// The existing keyspaces.
#[derive(Default)]
pub(crate) struct Catalogue {
    pub(crate) keyspaces: BTreeMap<String, Arc<KeyspaceState>>,
    pub(crate) next_id: u32,
}

/// An open store.
pub(crate) struct Shared {
    pub(crate) url: String,
    pub(crate) database: Database,
    /// Empty for a reader, which reads it from the objects.
    pub(crate) catalogue: RwLock<Catalogue>,
    is_closed: AtomicBool,
    /// Whether SlateDB has reported another writer: it stays so.
    is_fenced: AtomicBool,
    /// Whether the outcome of a change is unknown.
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

    /// Waits for an operation of SlateDB.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = SlateResult<T>>) -> Result<T> {
        let done = self.block(async { work.await.map_err(Error::of_slate(&self.url)) });
        if let Err(error) = &done
            && error.is_fenced()
        {
            self.is_fenced.store(true, Ordering::Release);
        }
        done
    }

    /// Waits for an operation of SlateDB that changes something.
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

    /// Waits, up to the time limit of a call.
    pub(crate) fn block<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        wait(self.runtime.as_ref(), self.wait_max, work)
    }

    /// Leaves work to the threads of the store.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            // It is detached: work that is not done when the store is closed is done later.
            drop(runtime.spawn(work));
        }
    }

    /// Fails if the store was closed, or another writer has it: the state here is stale.
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

    /// Commits changes of keyspaces that must exist, and waits until they are in the objects.
    pub(crate) fn write<'k>(
        &self,
        batch: WriteBatch,
        keyspaces: impl Iterator<Item = &'k Arc<KeyspaceState>>,
    ) -> Result<()> {
        let db = self.writer("a commit")?;
        self.commit(async { db.write(batch).await.map(Some) }, keyspaces)
    }

    /// Commits a transaction, and waits until it and everything that it has read are in the
    /// objects.
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

    /// Waits until a commit is in the objects. This is the one place where a commit becomes a
    /// promise.
    pub(crate) fn await_durable(&self, handle: &WriteHandle) -> Result<()> {
        self.wait_for_change(handle.await_durable())
    }

    /// Makes everything durable that has been committed.
    pub(crate) fn sync(&self) -> Result<()> {
        let db = self.writer("sync")?;
        self.wait_for_change(db.flush())
    }

    /// Closes.
    ///
    /// # Errors
    /// It was closed before; the failure of SlateDB to write the rest.
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
        // All commits that returned are in the objects; the next opening does any other work.
        // Waiting here would be an error where the last handle is dropped on a thread of another
        // runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits for work on this thread, with the threads of a store beside it: also on one that belongs
/// to another runtime, where tokio's own wait would panic. SlateDB itself retries for ever to reach
/// unreachable objects; here that has a limit. And it panics over manifests that it did not write
/// so, which have no checksum: here that is damage.
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
    // The rest of the work is not used again.
    catch_unwind(AssertUnwindSafe(|| pollster::block_on(waiting)))
        .unwrap_or_else(|panic| Err(Error::of_panic(panic.as_ref())))
}
