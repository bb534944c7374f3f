//! The store handle, [`Store`].

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adamant_heap::{CheckReport as HeapCheckReport, Occupancy, Recovery, Shrunk, events};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use tracing::info;

use crate::batch::builder::Batch;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;
use crate::layout::KIND_PLAIN;
use crate::limits::check_plain;
use crate::options::Options;
use crate::reserved::ReservedValue;
use crate::store::inspect::{self, CheckReport, KeyspaceInfo, Stats};
use crate::store::open;
use crate::store::sync_point::SyncPoint;
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
    /// [`Error::NotAStore`] if the path holds something else, [`Error::Locked`] if the store is
    /// open elsewhere, and the heap's errors for a store that is damaged or too new.
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
    /// As [`Store::open`]; [`Error::Missing`] if there is no store and the options do not create
    /// one.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let directory = open::directory_at(path.as_ref(), &options)?;
        let (directory, options) = open::shown(path.as_ref(), directory, options)?;
        Self::open_directory(directory, options)
    }

    /// Opens a store for reading only. Any number of processes may have it open this way at once,
    /// but none for writing: the second to open gets [`Error::Locked`], which names the first.
    /// After a crash the log is replayed in memory. No file is changed or created, not even its
    /// time, so this works on read-only files, directories and media; the only exception is the
    /// file `lock`, if it is missing because the other files were copied without it.
    ///
    /// Everything that reads works: keyspaces, iterators, snapshots, `check`, figures, a backup.
    /// Writes are errors, see [`Error::is_read_only`]. An increment is opened by this as well, with
    /// all that it is the difference from: see [`Store::backup_since`].
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
    /// [`Error::Missing`] if there is no store; [`Error::MissingLink`] or [`Error::WrongLink`] for
    /// a backup that an increment needs; otherwise as [`Store::open`].
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
    /// [`Error::Missing`] if there is no store; otherwise as [`Store::open`], except for
    /// [`Error::Locked`].
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

    /// Opens the keyspace with this name, or creates it if there is none.
    ///
    /// A name is 1 to 255 bytes of UTF-8, any characters. Creating a keyspace is a commit of its
    /// own.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(store.keyspace("towns")?.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, the store is closed or has no space; [`Error::WrongKind`] if
    /// its entries expire, see [`Store::expiring`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, KeyspaceOptions::new())
    }

    /// Like [`Store::keyspace`], with options. Those of the engine `lsm` that differ from the ones
    /// that the keyspace has are recorded with it, in one commit; the others stay.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let log = store.keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// assert_eq!(log.engine(), Engine::Lsm);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::keyspace`]; [`Error::WrongEngine`] if the keyspace uses another engine than the
    /// requested one, or options that only another engine has are set;
    /// [`Error::Lsm`] for an option with a value that it cannot have.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        loop {
            if let Some(state) = self.shared.open_keyspace(name)? {
                return self.keyspace_of(state, options);
            }
            // If another thread creates it just now, the next round finds it.
            let (engine, own) = options.of_new(name)?;
            if let Some(state) = self.shared.create_keyspace(name, (engine, KIND_PLAIN), &own)? {
                return Ok(Keyspace::new(&self.shared, state));
            }
        }
    }

    fn keyspace_of(&self, state: Arc<KeyspaceState>, options: KeyspaceOptions) -> Result<Keyspace> {
        check_plain(&state.name, state.kind)?;
        options.give(&self.shared, &state)?;
        Ok(Keyspace::new(&self.shared, state))
    }

    /// Creates a keyspace.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.create_keyspace("towns")?;
    /// assert!(store.create_keyspace("towns").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyspaceExists`] if there is one with this name; otherwise as [`Store::keyspace`].
    pub fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        self.create_keyspace_with(name, KeyspaceOptions::new())
    }

    /// Creates a keyspace, with options.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let log = store.create_keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// assert_eq!(log.engine(), Engine::Lsm);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::create_keyspace`].
    pub fn create_keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let (engine, own) = options.of_new(name)?;
        match self.shared.create_keyspace(name, (engine, KIND_PLAIN), &own)? {
            Some(state) => Ok(Keyspace::new(&self.shared, state)),
            None => Err(Error::KeyspaceExists { name: name.into() }),
        }
    }

    /// Opens an existing keyspace.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// assert!(store.open_keyspace("towns").is_err());
    /// store.create_keyspace("towns")?;
    /// assert!(store.open_keyspace("towns")?.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; otherwise as
    /// [`Store::keyspace`].
    pub fn open_keyspace(&self, name: &str) -> Result<Keyspace> {
        match self.shared.open_keyspace(name)? {
            Some(state) => self.keyspace_of(state, KeyspaceOptions::new()),
            None => Err(Error::UnknownKeyspace { name: name.into() }),
        }
    }

    /// Opens an existing keyspace of any kind, to read its stored bytes: a value in an expiring
    /// keyspace begins with its deadline, see `docs/format/expiring.md`. Only a keyspace of the
    /// kind [`KeyspaceKind::Plain`](crate::KeyspaceKind::Plain) can be written through this handle.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.expiring("sessions")?.put("42", "ada", None)?;
    /// assert!(store.open_keyspace("sessions").is_err());
    /// let stored = store.open_stored("sessions")?;
    /// assert_eq!(stored.get("42")?, Some("\0\0\0\0\0\0\0\0ada".into()));
    /// assert!(stored.put("43", "bob").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open_keyspace`], except for the kind.
    pub fn open_stored(&self, name: &str) -> Result<Keyspace> {
        match self.shared.open_keyspace(name)? {
            Some(state) => Ok(Keyspace::lent(&self.shared, state)),
            None => Err(Error::UnknownKeyspace { name: name.into() }),
        }
    }

    /// All keyspaces, by name. O(keyspaces).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let found = store.keyspaces()?;
    /// assert_eq!((&found[0].name[..], found[0].entries), ("towns", 1));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or its catalogue damaged.
    pub fn keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        inspect::keyspaces(&self.shared)
    }

    /// Drops a keyspace and frees all it held, in one commit; false if there is none with this
    /// name. From then on its handles return [`Error::KeyspaceDropped`]. An expiring keyspace is
    /// dropped with its deadlines. O(entries).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// assert!(store.drop_keyspace("towns")?);
    /// assert!(towns.get("Bern").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, or the store is closed; [`Error::WrongKind`] for a keyspace
    /// of deadlines.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.shared.drop_keyspace(name, None)
    }

    /// Renames a keyspace, in one commit. Its entries stay in place, also for open snapshots. Its
    /// handles stay valid and go on returning the name that they were opened by. An expiring
    /// keyspace is renamed with its deadlines. O(log keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let inbox = store.keyspace("inbox")?;
    /// inbox.put("1", "hello")?;
    /// store.rename_keyspace("inbox", "archive")?;
    /// assert_eq!(store.open_keyspace("archive")?.get("1")?, Some("hello".into()));
    /// assert_eq!(inbox.len()?, 1);
    /// assert!(store.open_keyspace("inbox").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; [`Error::KeyspaceExists`] if the
    /// new name, or the one for its deadlines, is taken, even by the keyspace itself;
    /// [`Error::WrongKind`] for a keyspace of deadlines; a name is empty or too long, or the store
    /// is closed.
    pub fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<()> {
        self.shared.rename_keyspace(name, new_name)
    }

    /// Exchanges the names of two keyspaces, of any engines, in one commit: from then on opening
    /// either name gives the other's entries. As with [`Store::rename_keyspace`], handles stay with
    /// the keyspace that they were opened for, and deadlines go with their entries. O(log
    /// keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// store.keyspace("prices")?.put("tea", "3")?;
    /// store.keyspace("prices of tomorrow")?.put("tea", "4")?;
    /// store.swap_keyspaces("prices", "prices of tomorrow")?;
    /// assert_eq!(store.open_keyspace("prices")?.get("tea")?, Some("4".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is no keyspace with one of the names; a name is empty or
    /// too long, or the store is closed; as [`Store::rename_keyspace`]. Then nothing was changed.
    pub fn swap_keyspaces(&self, name: &str, other_name: &str) -> Result<()> {
        self.shared.exchange_keyspaces(name, other_name, None)
    }

    /// Converts a keyspace to another engine, in one commit; false if it uses that engine already.
    /// Values stay compressed as they are ([`Store::compress_values`]), except that `lsm` gets them
    /// plain and compresses them in its own way.
    /// Its handles stay valid. Deadlines of expiring entries stay in the default engine. Entries
    /// stay in their blocks: the commit writes, and needs space for, only the nodes of the new
    /// tree. Readers and writers wait meanwhile. O(n log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Engine;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// assert!(store.convert_keyspace("towns", Engine::Critbit)?);
    /// assert_eq!(store.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; [`Error::WrongKind`] for a
    /// keyspace of deadlines; the name is empty or too long, the store is closed, or there is no
    /// space: then nothing was changed.
    pub fn convert_keyspace(&self, name: &str, engine: Engine) -> Result<bool> {
        let converted = self.shared.convert_keyspace(name, engine)?;
        self.shared.workers().start()?;
        Ok(converted)
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
    /// [`Error::ValueTooLong`] above 4 GiB - 1; the store is closed or poisoned; there is no space.
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

    /// Makes everything committed so far durable, whatever the durability of its commits.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Durability;
    ///
    /// let visits = store.keyspace("visits")?.with_durability(Durability::Deferred);
    /// for visitor in ["ada", "bob"] {
    ///     visits.put(visitor, "")?;
    /// }
    /// store.sync()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed or poisoned, or the device fails, which poisons it.
    pub fn sync(&self) -> Result<()> {
        Ok(self.shared.heap()?.sync()?)
    }

    /// A point to wait for later, on any thread, that covers everything committed so far. For
    /// callers that commit with [`Durability::Buffered`](crate::Durability::Buffered), go on
    /// committing, and acknowledge when the device has the data.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Durability;
    ///
    /// let orders = store.keyspace("orders")?.with_durability(Durability::Buffered);
    /// orders.put("1", "apples")?;
    /// let first = store.sync_point()?;
    /// orders.put("2", "pears")?;
    /// std::thread::spawn(move || first.wait()).join().unwrap()?;
    /// println!("order 1 will be there whatever happens");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn sync_point(&self) -> Result<SyncPoint> {
        SyncPoint::new(&self.shared)
    }

    /// Fails if every commit from now on will fail: the store is closed, poisoned, or open for
    /// reading only. It checks known state and writes nothing, which suits monitoring. Whether
    /// there is space for a commit is known only when it is made.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// assert!(store.check_writable().is_ok());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]; an error for which [`Error::is_poisoned`] or [`Error::is_read_only`]
    /// holds.
    pub fn check_writable(&self) -> Result<()> {
        Ok(self.shared.heap()?.check_writable()?)
    }

    /// The use of each page of the heap. O(pages).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let occupancy = store.occupancy()?;
    /// println!("{occupancy:?}");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn occupancy(&self) -> Result<Occupancy> {
        Ok(self.shared.heap()?.occupancy()?)
    }

    /// Verifies checksums and allocator structures of the heap, not the keyspaces: a part of
    /// [`Store::check`]. Commits wait for parts of it, some 100 us each. O(pool).
    ///
    /// # Errors
    /// The storage backend failed, or the store is closed; damage is in the report.
    pub fn check_heap(&self) -> Result<HeapCheckReport> {
        Ok(self.shared.heap()?.check()?)
    }

    /// Gives free space of the heap back to the file system: the pool file is cut behind its last
    /// used page, and free chunks of 256 KiB within it become holes. Of the log files, the smallest
    /// prepared ones stay. Readers and writers wait while it runs. O(pages).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// let files = store.keyspace("files")?;
    /// files.put("large", vec![7; 4 << 20])?;
    /// files.delete("large")?;
    /// store.shrink()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed or poisoned, the storage backend failed, or a page of the allocator is
    /// damaged.
    pub fn shrink(&self) -> Result<Shrunk> {
        Ok(self.shared.heap()?.shrink_keeping(|| self.shared.workers().log_bytes_kept())?)
    }

    /// Figures of the store. O(keyspaces).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// let stats = store.stats()?;
    /// assert_eq!((stats.keyspaces, stats.entries), (1, 1));
    /// println!("99 % of the commits took at most {:?}", stats.commits.synced.percentile(99.0));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or its catalogue damaged.
    pub fn stats(&self) -> Result<Stats> {
        inspect::stats(&self.shared)
    }

    /// Verifies every checksum of the pool and every rule of the structures in it, and lists all
    /// that is wrong. Other threads go on meanwhile: a writer waits for part of a millisecond, and
    /// in a keyspace of the engine `lsm` until its memtables are checked; reads do not wait.
    /// Totals, such as the number of blocks in use, can be verified only if no commit came
    /// meanwhile; if one did, a snapshot verifies each keyspace's count of entries. O(bytes of the
    /// pool).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.keyspace("towns")?.put("Bern", "134,000")?;
    /// let report = store.check()?;
    /// assert!(report.is_clean(), "{:?}", report.findings);
    /// assert_eq!(report.keyspaces[0].entries, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or the check could not run; what it finds is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        inspect::check(&self.shared)
    }

    /// Checkpoints all commits into the pool file and closes the store, so that the next open has
    /// nothing to recover. This releases files, the lock, threads and memory even if other handles
    /// remain; those get [`Error::Closed`] from then on. Only borrowed values stay, as copies; and
    /// while a [`ReservedValue`] is left, so do all of the memory and the lock. Dropping the last
    /// handle does the same, but cannot report a failure.
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
    /// [`Error::Closed`] if another handle closed it, or what kept the last bytes from the device:
    /// then the next open recovers.
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
