//! The store: what is opened, and what everything else comes from.

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
/// A handle: clones are the same store, to be used from any thread. The store is closed by
/// [`Store::close`], or when its last handle, keyspace, batch and iterator is dropped. While it is
/// open no other process can open it, but for [`Store::open_read_only`] beside others of its kind.
///
/// ```
/// use adamant::Store;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
/// let store = Store::open(&path)?;
/// store.keyspace("settings")?.insert("colour", "green")?;
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
}

impl Store {
    /// Opens the store at a path, creating it if there is nothing. After a crash this recovers
    /// what was committed: work bounded by the log, not by the data.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if the path holds something else, [`Error::Locked`] if the store is
    /// open elsewhere, and what the heap says of a store that is damaged or too new.
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
    /// As [`Store::open`]; [`Error::Missing`] if there is nothing and nothing is to be created.
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let directory = open::directory_at(path.as_ref(), &options)?;
        Self::open_directory(directory, options)
    }

    /// Opens a store for reading only. Any number of processes may have it open so
    /// at once, but none for writing: who comes second gets [`Error::Locked`], which names who was
    /// first. After a crash the log is replayed in memory. No file is changed, nor made, not even its
    /// time, so it works on files and directories that may not be written, and on media that cannot be;
    /// but for the file `lock`, if there is none because somebody copied the others.
    ///
    /// Everything that reads works: keyspaces, iterators, snapshots, `check`, figures, a backup. What
    /// writes is an error, see [`Error::is_read_only`].
    ///
    /// ```
    /// use adamant::Store;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// let store = Store::open(&path)?;
    /// store.keyspace("settings")?.insert("colour", "green")?;
    /// store.close()?;
    ///
    /// let (one, other) = (Store::open_read_only(&path)?, Store::open_read_only(&path)?);
    /// assert_eq!(one.keyspace("settings")?.get("colour")?, Some("green".into()));
    /// let error = other.keyspace("settings")?.insert("colour", "blue").unwrap_err();
    /// assert!(error.is_read_only());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Missing`] if there is nothing; else as [`Store::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::new().read_only(true))
    }

    /// A store in memory, gone with its last handle: for tests.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// store.keyspace("towns")?.insert("Bern", "134,000")?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// No memory could be reserved.
    pub fn in_memory() -> Result<Self> {
        Self::open_directory(Arc::new(MemoryDirectory::new()), Options::default())
    }

    /// Opens the store in a directory of any medium. This is how the simulator of `testing/sim`
    /// stands in for a file system; programs use [`Store::open`].
    ///
    /// # Errors
    /// As [`Store::open_with`].
    pub fn open_directory(directory: Arc<dyn Directory>, options: Options) -> Result<Self> {
        let path = directory.path().to_path_buf();
        let (heap, recovery) = open::heap_in(directory, &options)?;
        let lsm_trees = open::lsm_trees_in(Arc::clone(heap.directory()), &options);
        let shared = Arc::new(Shared::new(heap, lsm_trees, &options)?);
        shared.workers().start()?;
        info!(
            target: events::STORE,
            path = %path.display(),
            was_closed = recovery.was_closed,
            recovered_records = recovery.records,
            sequence = recovery.last_sequence,
            "opened"
        );
        Ok(Self { shared, recovery })
    }

    /// The keyspace of that name, created if there is none.
    ///
    /// A name is 1 to 255 bytes of UTF-8, any characters. Creating one is a commit of its own.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.insert("Bern", "134,000")?;
    /// assert_eq!(store.keyspace("towns")?.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The name is empty or too long, the store is closed or has no space; [`Error::WrongKind`] if
    /// its entries end, see [`Store::expiring`].
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, KeyspaceOptions::new())
    }

    /// As [`Store::keyspace`], with options.
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
    /// As [`Store::keyspace`]; [`Error::WrongEngine`] if it is kept by another engine than the one
    /// asked for.
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        loop {
            if let Some(state) = self.shared.open_keyspace(name)? {
                return self.keyspace_of(state, options);
            }
            // Another thread may create it just now: then it is there in the next round.
            let engine = options.engine.unwrap_or_default();
            if let Some(state) = self.shared.create_keyspace(name, engine, KIND_PLAIN)? {
                return Ok(Keyspace::new(&self.shared, state));
            }
        }
    }

    fn keyspace_of(&self, state: Arc<KeyspaceState>, options: KeyspaceOptions) -> Result<Keyspace> {
        check_plain(&state.name, state.kind)?;
        options.check(&state)?;
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
    /// [`Error::KeyspaceExists`] if there is one of that name; else as [`Store::keyspace`].
    pub fn create_keyspace(&self, name: &str) -> Result<Keyspace> {
        self.create_keyspace_with(name, KeyspaceOptions::new())
    }

    /// Creates a keyspace with options.
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
        let engine = options.engine.unwrap_or_default();
        match self.shared.create_keyspace(name, engine, KIND_PLAIN)? {
            Some(state) => Ok(Keyspace::new(&self.shared, state)),
            None => Err(Error::KeyspaceExists { name: name.into() }),
        }
    }

    /// Opens a keyspace that exists.
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
    /// [`Error::UnknownKeyspace`] if there is none of that name; else as [`Store::keyspace`].
    pub fn open_keyspace(&self, name: &str) -> Result<Keyspace> {
        match self.shared.open_keyspace(name)? {
            Some(state) => self.keyspace_of(state, KeyspaceOptions::new()),
            None => Err(Error::UnknownKeyspace { name: name.into() }),
        }
    }

    /// Opens a keyspace that exists, of any kind, to look at what is stored: a value of one whose
    /// entries end begins with its deadline, see `docs/format/expiring.md`. Only one of the kind
    /// [`KeyspaceKind::Plain`](crate::KeyspaceKind::Plain) can be written by it.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.expiring("sessions")?.insert("42", "ada", None)?;
    /// assert!(store.open_keyspace("sessions").is_err());
    /// let stored = store.open_stored("sessions")?;
    /// assert_eq!(stored.get("42")?, Some("\0\0\0\0\0\0\0\0ada".into()));
    /// assert!(stored.insert("43", "bob").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::open_keyspace`], but for the kind.
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
    /// store.keyspace("towns")?.insert("Bern", "134,000")?;
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

    /// Drops a keyspace and frees all it held, in one commit; false if there is none of that
    /// name. Handles to it get [`Error::KeyspaceDropped`] from then on. One whose entries end is
    /// dropped with their deadlines. O(entries).
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
    /// The name is empty or too long, or the store is closed; [`Error::WrongKind`] for deadlines by
    /// themselves.
    pub fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.shared.drop_keyspace(name, None)
    }

    /// Gives a keyspace another name, in one commit. What it holds stays where it is, also for open
    /// snapshots. Handles to it stay good and go on giving the name that they were opened by. One
    /// whose entries end is renamed with their deadlines. O(log keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let inbox = store.keyspace("inbox")?;
    /// inbox.insert("1", "hello")?;
    /// store.rename_keyspace("inbox", "archive")?;
    /// assert_eq!(store.open_keyspace("archive")?.get("1")?, Some("hello".into()));
    /// assert_eq!(inbox.len()?, 1);
    /// assert!(store.open_keyspace("inbox").is_err());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none of that name, [`Error::KeyspaceExists`] if there is
    /// one of the new name, be it the same, or one that the deadlines would have;
    /// [`Error::WrongKind`] for deadlines by themselves; a name is empty or too long, or the store
    /// is closed.
    pub fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<()> {
        self.shared.rename_keyspace(name, new_name)
    }

    /// Lets two keyspaces exchange their names, in one commit: whoever opens one of them from then on
    /// gets what the other one holds, of whatever engine. As with [`Store::rename_keyspace`], handles stay with
    /// what they were opened for, and deadlines go with their entries. O(log keyspaces).
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// store.keyspace("prices")?.insert("tea", "3")?;
    /// store.keyspace("prices of tomorrow")?.insert("tea", "4")?;
    /// store.swap_keyspaces("prices", "prices of tomorrow")?;
    /// assert_eq!(store.open_keyspace("prices")?.get("tea")?, Some("4".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none of one of the names; a name is empty or too long, or the
    /// store is closed; as [`Store::rename_keyspace`]. Then nothing was changed.
    pub fn swap_keyspaces(&self, name: &str, other_name: &str) -> Result<()> {
        self.shared.exchange_keyspaces(name, other_name, None)
    }

    /// Makes a keyspace one of another engine, in one commit; false if it is one already. Handles
    /// to it stay good. Deadlines of entries stay with the default engine. Entries stay in their
    /// blocks: what the commit writes, and what space is needed for, are the nodes of the new tree.
    /// Readers and writers wait meanwhile. O(n log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Engine;
    ///
    /// store.keyspace("towns")?.insert("Bern", "134,000")?;
    /// assert!(store.convert_keyspace("towns", Engine::Critbit)?);
    /// assert_eq!(store.keyspace("towns")?.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none of that name; [`Error::WrongKind`] for deadlines
    /// by themselves; the name is empty or too long, the store is closed, or there is no space:
    /// then nothing was changed.
    pub fn convert_keyspace(&self, name: &str, engine: Engine) -> Result<bool> {
        let converted = self.shared.convert_keyspace(name, engine)?;
        self.shared.workers().start()?;
        Ok(converted)
    }

    /// Room for a value of so many bytes, in the place where a commit will leave it: for large values that come
    /// in pieces, from a socket or a file, or are computed. In a tree such a value of more than 4,096 bytes
    /// becomes that of a key by a pointer, and readers are lent it from there: the only copy is the record of
    /// the log. A shorter one, or one for the engine `lsm`, is copied by the commit. The bytes are whatever
    /// was there before, until they are written.
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let files = store.keyspace("files")?;
    /// let (mut source, bytes) = (std::io::repeat(7), 100_000);
    /// let mut value = store.reserve(bytes)?;
    /// source.read_exact(&mut value)?;
    /// files.insert_reserved("sevens", value)?;
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
    /// batch.insert(&users, "7", "Ada Lovelace")?;
    /// batch.insert(&by_mail, "ada@example.org", "7")?;
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
    ///     transaction.insert(&towns, "Bern", "134,000")?;
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

    /// All keyspaces as they are now, whatever is committed from now on. O(1).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// let before = store.snapshot()?;
    /// towns.insert("Bern", "134,000")?;
    /// assert!(before.is_empty(&towns)?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::open(&self.shared)
    }

    /// As [`Store::snapshot`], of what survives power loss: makes durable what it sees, if that is not
    /// yet, by a flush that it shares with commits. Reads through it see nothing that can be lost.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let orders = store.keyspace("orders")?.with_durability(adamant::Durability::Buffered);
    /// orders.insert("4711", "three apples")?;
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
        // All that it sees was appended before.
        self.sync()?;
        Ok(snapshot)
    }

    /// What opening this store found and did: whether it had been closed, and what was brought
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

    /// Makes everything committed so far survive power loss, whatever its commit waited for.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// use adamant::Durability;
    ///
    /// let visits = store.keyspace("visits")?.with_durability(Durability::Deferred);
    /// for visitor in ["ada", "bob"] {
    ///     visits.insert(visitor, "")?;
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

    /// All that is committed by now, to be waited for later, on any thread: for those who commit with
    /// [`Durability::Buffered`](crate::Durability::Buffered) and tell others of it when the device has it, while they make further commits.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Durability;
    ///
    /// let orders = store.keyspace("orders")?.with_durability(Durability::Buffered);
    /// orders.insert("1", "apples")?;
    /// let first = store.sync_point()?;
    /// orders.insert("2", "pears")?;
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

    /// Fails if each commit from now on will: the store is closed, poisoned, or opened for reading only. A look
    /// at what is known, which writes nothing, for those who watch a store; whether there is space for a
    /// commit is known when it is made.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// assert!(store.check_writable().is_ok());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]; one of which [`Error::is_poisoned`] or [`Error::is_read_only`] holds.
    pub fn check_writable(&self) -> Result<()> {
        Ok(self.shared.heap()?.check_writable()?)
    }

    /// What each page of the heap below is used for. O(pages).
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

    /// Verifies checksums and allocator structures of the heap below, not the keyspaces: a part of
    /// [`Store::check`]. Commits wait for parts of it, some 100 us each. O(pool).
    ///
    /// # Errors
    /// The medium failed, or the store is closed; damage is in the report.
    pub fn check_heap(&self) -> Result<HeapCheckReport> {
        Ok(self.shared.heap()?.check()?)
    }

    /// Gives free space of the heap below back to the file system: the pool file ends with what is
    /// used, and whole free chunks of 256 KiB within it become holes; of the log the smallest files
    /// stay that are ready. Readers and writers wait while it runs. O(pages).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let store = adamant::Store::open(&path)?;
    /// let files = store.keyspace("files")?;
    /// files.insert("large", vec![7; 4 << 20])?;
    /// files.remove("large")?;
    /// store.shrink()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed or poisoned, the medium failed, or a page of the allocator is damaged.
    pub fn shrink(&self) -> Result<Shrunk> {
        Ok(self.shared.heap()?.shrink_keeping(|| self.shared.workers().log_bytes_kept())?)
    }

    /// Figures of the store. O(keyspaces).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// let towns = store.keyspace("towns")?;
    /// towns.insert("Bern", "134,000")?;
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
    /// that is wrong. Others go on meanwhile: a writer waits for a part of a millisecond, and in a
    /// keyspace of the engine `lsm` until its memtables are looked at; reads wait for none. What is
    /// of the whole, such as how many blocks are in use, can be judged only if nobody writes
    /// meanwhile; that a keyspace counts its entries right is judged by a snapshot then.
    /// O(bytes of the pool).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    ///
    /// store.keyspace("towns")?.insert("Bern", "134,000")?;
    /// let report = store.check()?;
    /// assert!(report.is_clean(), "{:?}", report.findings);
    /// assert_eq!(report.keyspaces[0].entries, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The store is closed, or the check could not be made; what it finds is in the report.
    pub fn check(&self) -> Result<CheckReport> {
        inspect::check(&self.shared)
    }

    /// Brings all commits to the pool file and lets the store go, so that the next open has
    /// nothing to recover. Files, the lock, threads and memory are given back, whoever still has
    /// handles; only values that are lent stay, as copies, and all of the memory, and the lock,
    /// while a [`ReservedValue`] is left. Other handles get [`Error::Closed`] from then on.
    /// Dropping the last handle does the same, but cannot tell of a failure.
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
    /// [`Error::Closed`] if another handle closed it, or what kept the last bytes from the
    /// device: then the next open recovers.
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
