//! The store handle, [`Store`].

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adamant_heap::{Recovery, events};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use tracing::info;

use crate::batch::builder::Batch;
use crate::common::shared::Shared;
use crate::error::Result;
use crate::keyspace::snapshot::Snapshot;
use crate::options::Options;
use crate::reserved::ReservedValue;
use crate::store::open;
use crate::transaction::handle::Transaction;

/// A store of named keyspaces, in a directory of its own.
///
/// A handle: clones are the same store and may be used from any thread. The store is closed by
/// [`Store::close`], or when its last handle, keyspace, batch and iterator is dropped. While it is
/// open no other process can open it; only stores opened by [`Store::open_read_only`] share their
/// directory with each other.
///
/// ```
/// use adamant::Store;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
/// let store = Store::open(&path)?;
/// store.keyspace("settings")?.put("colour", "green")?;
/// store.close()?;
///
/// let store = Store::open(&path)?;
/// assert_eq!(store.keyspace("settings")?.get("colour")?, Some("green".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
    recovery: Recovery,
    path: Option<Arc<Path>>,
}

impl Store {
    /// Opens the store at a path, creating it if there is nothing. After a crash this recovers all
    /// commits; the work is bounded by the log, not by the data.
    ///
    /// # Errors
    /// [`Error::NotAStore`](crate::Error::NotAStore) if the path holds something else,
    /// [`Error::Locked`](crate::Error::Locked) if the store is open elsewhere, and the heap's
    /// errors for a store that is damaged or too new.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// Opens the store at a path with options.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// use adamant::{Options, Store};
    ///
    /// // Not to be made where it is thought to be.
    /// let error = Store::open_with(&path, Options::new().create(false)).unwrap_err();
    /// assert!(matches!(error, adamant::Error::Missing { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Missing`](crate::Error::Missing) if there is no store and the
    /// options do not create one.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let directory = open::directory_at(path.as_ref(), &options)?;
        let (directory, options) = open::shown(path.as_ref(), directory, options)?;
        Self::open_directory(directory, options)
    }

    /// Opens a store for reading only. Any number of processes may have it open this way at once,
    /// but none for writing: the second to open gets [`Error::Locked`](crate::Error::Locked), which
    /// names the first. After a crash the log is replayed in memory. No file is changed or created,
    /// not even its time, so this works on read-only files, directories and media; the only
    /// exception is the file `lock`, if it is missing because the other files were copied without
    /// it.
    ///
    /// Everything that reads works: keyspaces, iterators, snapshots, `check`, figures, a backup.
    /// Writes are errors, see [`Error::is_read_only`](crate::Error::is_read_only). An increment is
    /// opened by this as well, with all that it is the difference from: see
    /// [`Store::backup_since`].
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// let store = Store::open(&path)?;
    /// store.keyspace("settings")?.put("colour", "green")?;
    /// store.close()?;
    ///
    /// let (one, other) = (Store::open_read_only(&path)?, Store::open_read_only(&path)?);
    /// assert_eq!(one.keyspace("settings")?.get("colour")?, Some("green".into()));
    /// let error = other.keyspace("settings")?.put("colour", "blue").unwrap_err();
    /// assert!(error.is_read_only());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is no store;
    /// [`Error::MissingLink`](crate::Error::MissingLink) or
    /// [`Error::WrongLink`](crate::Error::WrongLink) for a backup that an increment needs;
    /// otherwise as [`Store::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::new().read_only(true))
    }

    /// Opens a store for reading while another process may write it. Any number of processes may
    /// have it open so, at any time; none keeps another waiting, and the one that writes may end,
    /// be killed and begin again. What is read is the store after one commit, of all keyspaces: the
    /// last one that this process could find when the store was opened. Open it again to see later
    /// ones.
    ///
    /// The writer keeps each page and file that it would overwrite or remove as long as such a
    /// reader may ask for it, up to [`Options::reader_bytes_max`] bytes of pages, and as many of
    /// files; beyond that the oldest reader gets errors, never anything else. The directory must be
    /// writable, and by the same user: a file in its folder `readers` says who reads. Pages are in
    /// memory of the process that reads ([`ImageKind::Filled`](crate::ImageKind)); beside other
    /// readers only, use [`Store::open_read_only`].
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// let writer = Store::open(&path)?;
    /// let towns = writer.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    ///
    /// // In another process:
    /// let reader = Store::open_beside(&path)?;
    /// towns.put("Bern", "0")?;
    /// assert_eq!(reader.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is no store; otherwise as
    /// [`Store::open`], except for [`Error::Locked`](crate::Error::Locked).
    pub fn open_beside(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::new().beside_writer(true))
    }

    /// Opens a new store in memory, for tests; it is gone with its last handle.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// No memory could be reserved.
    pub fn in_memory() -> Result<Self> {
        Self::open_directory(Arc::new(MemoryDirectory::new()), Options::default())
    }

    /// Opens the store in a directory of any storage backend. The simulator of `testing/sim` uses
    /// this in place of a file system; programs use [`Store::open`].
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open_directory(directory: Arc<dyn Directory>, options: Options) -> Result<Self> {
        let is_memory = (directory.as_ref() as &dyn Any).is::<MemoryDirectory>();
        let path: Arc<Path> = directory.path().into();
        let (directory, options) = open::plain_of(directory, &options)?;
        let (heap, recovery) = open::heap_in(directory, &options)?;
        let lsm_trees = open::lsm_trees_in(Arc::clone(heap.directory()), &options);
        let shared = Arc::new(Shared::new(Arc::new(heap), lsm_trees, &options)?);
        shared.workers().start()?;
        info!(
            target: events::STORE,
            path = %path.display(),
            was_closed = recovery.was_closed,
            recovered_records = recovery.records,
            sequence = recovery.last_sequence,
            "opened"
        );
        Ok(Self { shared, recovery, path: (!is_memory).then_some(path) })
    }

    /// Allocates a value of this length in place, in the block where a commit will leave it: for
    /// large values that are computed, or that arrive in parts from a socket or a file. In a tree,
    /// such a value of more than 4,096 bytes becomes that of a key by a pointer, and readers borrow
    /// it from there; the only copy is the log record. A shorter value, or one for the engine
    /// `lsm`, is copied by the commit. The bytes are arbitrary until they are written.
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let files = store.keyspace("files")?;
    /// let (mut source, bytes) = (std::io::repeat(7), 100_000);
    /// let mut value = store.reserve(bytes)?;
    /// source.read_exact(&mut value)?;
    /// files.put_reserved("sevens", value)?;
    /// assert_eq!(files.get("sevens")?, Some(vec![7; bytes].into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ValueTooLong`](crate::Error::ValueTooLong) above 4 GiB - 1; the store is closed or
    /// poisoned; there is no space.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedValue> {
        ReservedValue::new(self.shared.heap()?, bytes)
    }

    /// An empty batch: changes to any keyspaces of this store that become one commit.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let (users, by_mail) = (store.keyspace("users")?, store.keyspace("users by mail")?);
    /// let mut batch = store.batch();
    /// batch.put(&users, "7", "Ada Lovelace")?;
    /// batch.put(&by_mail, "ada@example.org", "7")?;
    /// batch.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn batch(&self) -> Batch {
        Batch::new(Arc::clone(&self.shared))
    }

    /// Begins a serializable transaction. O(1).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// let mut transaction = store.begin()?;
    /// if !transaction.contains(&towns, "Bern")? {
    ///     transaction.put(&towns, "Bern", "134,000")?;
    /// }
    /// transaction.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(&self.shared, false)
    }

    /// A snapshot: all keyspaces as they are now; later commits do not change it. O(1).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// let before = store.snapshot()?;
    /// towns.put("Bern", "134,000")?;
    /// assert!(before.is_empty(&towns)?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::open(&self.shared)
    }

    /// Like [`Store::snapshot`], but of durable data only: flushes what the snapshot sees, unless
    /// it is durable already; the flush is shared with commits. Reads through it see nothing that
    /// can be lost.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let orders = store.keyspace("orders")?.with_durability(adamant::Durability::Buffered);
    /// orders.put("4711", "three apples")?;
    /// // What is told to others from here cannot be lost any more.
    /// let durable = store.snapshot_durable()?;
    /// assert_eq!(durable.get(&orders, "4711")?, Some("three apples".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::snapshot`] and [`Store::sync`].
    pub fn snapshot_durable(&self) -> Result<Snapshot> {
        let snapshot = self.snapshot()?;
        // Everything that it sees was appended to the log before.
        self.sync()?;
        Ok(snapshot)
    }

    /// The recovery that opening this store did: whether it had been closed, and what was replayed
    /// from the log if not.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// store.close()?;
    /// assert!(adamant::Store::open(&path)?.recovery().was_closed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The path that it was opened at, also after it was closed; `None` for a store in memory.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::Store;
    ///
    /// assert_eq!(Store::open(&path)?.path(), Some(&*path));
    /// assert_eq!(Store::in_memory()?.path(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Checkpoints all commits into the pool file and closes the store, so that the next open has
    /// nothing to recover. This releases files, the lock, threads and memory even if other handles
    /// remain; those get [`Error::Closed`](crate::Error::Closed) from then on. Only borrowed values
    /// stay, as copies; and while a [`ReservedValue`] is left, so do all of the memory and the
    /// lock. Dropping the last handle does the same, but cannot report a failure.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// let towns = store.keyspace("towns")?;
    /// store.close()?;
    /// assert!(matches!(towns.get("Bern"), Err(adamant::Error::Closed)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed) if another handle closed it, or what kept the last
    /// bytes from the device: then the next open recovers.
    pub fn close(self) -> Result<()> {
        self.shared.close()?;
        info!(target: events::STORE, "closed");
        Ok(())
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
