//! Options for opening a store.

use std::sync::Arc;

use adamant_heap::durability::Durability;
use adamant_heap::{Flushing, ImageKind};
use adamant_lsm::{CompactionFilter, MergeOperator, Options as LsmOptions};

use crate::clock::system_millis;
use crate::compaction_filters::CompactionFilters;
use crate::encryption::EncryptionKey;
use crate::error::{Error, Result};
use crate::merge_operators::MergeOperators;

/// Options for opening a store, in the builder style.
///
/// ```
/// use adamant::{Durability, Options, Store};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("app.adamant");
/// let options = Options::new().durability(Durability::Buffered).log_bytes_max(32 << 20);
/// let store = Store::open_with(&path, options)?;
/// # store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) beside_writer: bool,
    pub(crate) reader_bytes_max: u64,
    pub(crate) durability: Durability,
    pub(crate) flushing: Flushing,
    pub(crate) log_bytes_max: u64,
    pub(crate) deferred_ms_max: u64,
    pub(crate) deferred_bytes_max: u64,
    pub(crate) background: bool,
    pub(crate) sweep_expired: bool,
    pub(crate) verify_first_touch: bool,
    /// `None`: half of the process's.
    pub(crate) memory_bytes_max: Option<u64>,
    pub(crate) address_bytes_max: u64,
    /// Of a new store that takes the place of one: the number of the last commit of that.
    pub(crate) commits_before: u64,
    pub(crate) huge_bytes_max: u64,
    pub(crate) image: ImageKind,
    pub(crate) key: Option<EncryptionKey>,
    pub(crate) snapshot_bytes_max: u64,
    pub(crate) cache_bytes_max: u64,
    pub(crate) pinned_bytes_max: u64,
    pub(crate) open_files_max: usize,
    pub(crate) lsm: LsmOptions,
    pub(crate) merge_operators: MergeOperators,
    pub(crate) compaction_filters: CompactionFilters,
}

impl Options {
    /// The default options.
    pub fn new() -> Self {
        Self {
            create: true,
            read_only: false,
            beside_writer: false,
            reader_bytes_max: 1 << 30,
            durability: Durability::Sync,
            flushing: Flushing::Auto,
            log_bytes_max: 128 << 20,
            deferred_ms_max: 100,
            deferred_bytes_max: 4 << 20,
            background: true,
            sweep_expired: true,
            verify_first_touch: false,
            memory_bytes_max: None,
            address_bytes_max: u64::MAX,
            commits_before: 0,
            huge_bytes_max: 0,
            image: ImageKind::default(),
            key: default_key(),
            snapshot_bytes_max: 1 << 30,
            cache_bytes_max: 64 << 20,
            pinned_bytes_max: 64 << 20,
            open_files_max: 256,
            lsm: LsmOptions::default(),
            merge_operators: MergeOperators::default(),
            compaction_filters: CompactionFilters::default(),
        }
    }

    /// Whether nothing is written.
    pub(crate) fn only_reads(&self) -> bool {
        self.read_only || self.beside_writer
    }

    /// Whether a store is created where there is none. Default: true.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Error, Options, Store};
    ///
    /// let found = Store::open_with(&path, Options::new().create(false));
    /// assert!(matches!(found, Err(Error::Missing { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether the store is opened for reading only, as by [`Store::open_read_only`](crate::Store),
    /// whatever the other options say. Default: false.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Whether the store is opened for reading beside a process that may write it, as by
    /// [`Store::open_beside`](crate::Store::open_beside), whatever the other options say. Default:
    /// false.
    #[must_use]
    pub fn beside_writer(mut self, beside_writer: bool) -> Self {
        self.beside_writer = beside_writer;
        self
    }

    /// Bytes that a writer keeps at most for readers in other processes, of pages that it
    /// overwrites: see [`Store::open_beside`](crate::Store::open_beside). Default: 1 GiB.
    #[must_use]
    pub fn reader_bytes_max(mut self, reader_bytes_max: u64) -> Self {
        self.reader_bytes_max = reader_bytes_max;
        self
    }

    /// The durability of commits that do not set their own. Default: [`Durability::Sync`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Durability, Options, Store};
    ///
    /// // What is lost by a power cut may be computed again: nobody waits for the device.
    /// let store = Store::open_with(&path, Options::new().durability(Durability::Buffered))?;
    /// store.keyspace("cache")?.put("page", "<html>")?;
    /// store.sync()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Which directories count as memory. Files there are written by the processor's stores, cache
    /// line by cache line, with one fence a commit, instead of by system calls. [`Flushing::Auto`]:
    /// persistent memory (a file system mounted with DAX). [`Flushing::Volatile`]: tmpfs too.
    /// [`Flushing::None`]: either, without flushes. All other directories hold ordinary files.
    /// Default: [`Flushing::Auto`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// use adamant::{Flushing, Options, Store};
    ///
    /// // Files on tmpfs are memory, which survives the process and not the machine.
    /// let store = Store::open_with(&path, Options::new().flushing(Flushing::Volatile))?;
    /// # store.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn flushing(mut self, flushing: Flushing) -> Self {
        self.flushing = flushing;
        self
    }

    /// Bytes that the log files may take together. A larger log lets writers run further ahead of
    /// the pool file and makes recovery longer. A single transaction that is larger is still
    /// written whole. Memtables of the engine `lsm` come on top, with a quarter more, up to twice
    /// as much: their bytes are in the log until they are in tables. Default: 128 MiB.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Options, Store};
    ///
    /// // A small store that opens quickly after a crash.
    /// let store = Store::open_with(&path, Options::new().log_bytes_max(16 << 20))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn log_bytes_max(mut self, bytes: u64) -> Self {
        self.log_bytes_max = bytes;
        self
    }

    /// Milliseconds that a commit with [`Durability::Deferred`] stays only in memory, at most.
    /// Default: 100.
    #[must_use]
    pub fn deferred_ms_max(mut self, milliseconds: u64) -> Self {
        self.deferred_ms_max = milliseconds;
        self
    }

    /// Bytes of commits with [`Durability::Deferred`] that stay only in memory, at most. Default: 4
    /// MiB.
    #[must_use]
    pub fn deferred_bytes_max(mut self, bytes: u64) -> Self {
        self.deferred_bytes_max = bytes;
        self
    }

    /// Whether background threads make checkpoints and flush deferred commits.
    /// Without them, committing threads do both. The simulator uses this: every run makes the same
    /// calls in the same order. Default: true.
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Whether a background thread removes expired entries of the [expiring
    /// keyspaces](crate::expiring) that this process has opened, by the system's clock and some 500
    /// a commit. Without it they stay, though none is shown, until
    /// [`Expiring::remove_expired`](crate::Expiring::remove_expired) removes them. Only with
    /// [`Options::background`]. Default: true.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Deadline, Options, Store};
    ///
    /// // The program wants to know how many have expired: it removes them itself.
    /// let store = Store::open_with(&path, Options::new().sweep_expired(false))?;
    /// let sessions = store.expiring("sessions")?;
    /// sessions.put("ada", "", Some(Deadline::from_millis(1_000)))?;
    /// assert_eq!(sessions.remove_expired(1_000)?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn sweep_expired(mut self, sweep_expired: bool) -> Self {
        self.sweep_expired = sweep_expired;
        self
    }

    /// Whether each page of the pool is verified against its checksum on first touch: some
    /// microseconds a page, once. Without it, reads trust their pages, and only a check finds
    /// damage that the device did. Default: false.
    #[must_use]
    pub fn verify_first_touch(mut self, verify: bool) -> Self {
        self.verify_first_touch = verify;
        self
    }

    /// Bytes of address space that the pool reserves, which bounds its size while the store is
    /// open. Addresses are no memory; a process has about 128 TiB of them. Default: `u64::MAX`,
    /// which means 64 GiB, or sixteen times the pool's size when it is opened. A pool that outgrows
    /// these reserves as many again, up to 1 TiB, on Linux and if the addresses behind its own are
    /// still free. If they are not, or beyond a bound that was set, writes fail with an error of
    /// space ([`Error::is_out_of_space`](crate::Error::is_out_of_space)).
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// // One of thousands, which stay small.
    /// let options = adamant::Options::new().address_bytes_max(1 << 30);
    /// let store = adamant::Store::open_with(&path, options)?;
    /// assert_eq!(store.stats()?.heap.address_bytes, 1 << 30);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn address_bytes_max(mut self, bytes: u64) -> Self {
        self.address_bytes_max = bytes;
        self
    }

    /// Bytes of private memory that the pool may take. Written pages stay in such memory until the
    /// pool file has them. Beyond the bound commits wait for that, and memory is given back, the
    /// least recently written pages first. Pages that are only read are in the system's cache and
    /// do not count. A single transaction that writes more takes more until it has committed, and
    /// while it commits as much again, for its log record; some 20 MiB of that memory are kept.
    /// Does not apply to stores in memory. Set at least some tens of MiB, or commits wait often.
    /// `u64::MAX`: no bound; then a store that is written all over takes as much memory as its pool
    /// has bytes. Default: half of the memory that this process may have (the machine's, or on
    /// Linux the least limit of its control groups), which several stores of a process divide by
    /// setting this.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let options = adamant::Options::new().memory_bytes_max(256 << 20);
    /// let store = adamant::Store::open_with(&path, options)?;
    /// println!("{:?}", store.stats()?.heap);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.memory_bytes_max = Some(bytes);
        self
    }

    /// Bytes of memory for huge pages, which make reads faster that miss the processor's caches. A
    /// thread finds the parts of the pool that are in use and copies them there, a few MiB at a
    /// time, while half of [`Options::memory_bytes_max`] is free; huge pages count towards that
    /// bound. Linux only, and only with [`Options::background`]; where the system gives no huge
    /// pages nothing happens ([`MemoryStats::has_huge_pages`](crate::MemoryStats)). Default: 0,
    /// none.
    #[must_use]
    pub fn huge_bytes_max(mut self, bytes: u64) -> Self {
        self.huge_bytes_max = bytes;
        self
    }

    /// How the pages of the pool get into memory: the system maps the file, or the store reads and
    /// verifies each page when it is first asked for. The latter is for network and FUSE file
    /// systems, where a read that fails in a mapping ends the program by SIGBUS and here is an
    /// error, and for devices that are not to be trusted: no read ever returns what was not
    /// written. Pages that were read count towards [`Options::memory_bytes_max`] then, with half of
    /// the process's memory by default. Default: mapped on Linux, filled elsewhere.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// let options = adamant::Options::new().image(adamant::ImageKind::Filled);
    /// let store = adamant::Store::open_with(&path, options)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn image(mut self, image: ImageKind) -> Self {
        self.image = image;
        self
    }

    /// The key of an encrypted store. A new store is encrypted by it; one that is not encrypted is
    /// an error. All files are encrypted and authenticated (AES-256-GCM-SIV), names of keyspaces
    /// among them; sizes, times, and how often what is written are not hidden. The image of the
    /// pool is [filled](ImageKind::Filled): whatever is read from the device is verified. Default:
    /// none.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{EncryptionKey, Error, Options, Store};
    ///
    /// // Kept elsewhere: whoever has the key and the files has the data, and nobody else has.
    /// let key = EncryptionKey::random()?;
    /// let store = Store::open_with(&path, Options::new().encryption_key(key.clone()))?;
    /// store.keyspace("patients")?.put("4711", "Smith")?;
    /// store.close()?;
    ///
    /// assert!(matches!(Store::open(&path), Err(Error::KeyNeeded { .. })));
    /// let store = Store::open_with(&path, Options::new().encryption_key(key))?;
    /// assert_eq!(store.keyspace("patients")?.get("4711")?, Some("Smith".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "encryption")]
    #[must_use]
    pub fn encryption_key(mut self, key: EncryptionKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Bytes of old values that may be kept for open snapshots, all together. Beyond that the
    /// oldest snapshots expire: from then on reads through them fail with
    /// [`Error::SnapshotExpired`](crate::Error::SnapshotExpired). Default: 1 GiB.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Options, Store};
    ///
    /// let store = Store::open_with(&path, Options::new().snapshot_bytes_max(64 << 20))?;
    /// let before = store.snapshot()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes_max(mut self, bytes: u64) -> Self {
        self.snapshot_bytes_max = bytes;
        self
    }

    /// Bytes of the block cache of the engine `lsm`, which all its keyspaces share. Default: 64
    /// MiB.
    #[must_use]
    pub fn cache_bytes_max(mut self, bytes: u64) -> Self {
        self.cache_bytes_max = bytes;
        self
    }

    /// Bytes of indexes and filters of the engine `lsm` that stay in memory beside the cache, for
    /// all keyspaces together; the others come and go with the cache. They take about 2 bytes for
    /// an entry of 100. 0 pins nothing. Default: 64 MiB.
    #[must_use]
    pub fn pinned_bytes_max(mut self, bytes: u64) -> Self {
        self.pinned_bytes_max = bytes;
        self
    }

    /// Files of the engine `lsm` that may be open at once. Default: 256.
    #[must_use]
    pub fn open_files_max(mut self, files: usize) -> Self {
        self.open_files_max = files;
        self
    }

    /// Options of the engine `lsm`: sizes of memtables, tables and levels, compression, blob files.
    /// None of them is part of the format.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    ///
    /// use adamant::{LsmOptions, Options, Store};
    ///
    /// let mut lsm = LsmOptions::default();
    /// lsm.memtable_bytes_max = 16 << 20;
    /// lsm.blob_bytes_min = None;
    /// let store = Store::open_with(&path, Options::new().lsm(lsm))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lsm(mut self, options: LsmOptions) -> Self {
        self.lsm = options;
        self
    }

    /// Registers a merge operator under a name, for the keyspaces that record this name: see
    /// [`KeyspaceOptions::merge_operator`](crate::KeyspaceOptions::merge_operator). It must be the
    /// same function whenever the store is opened: keyspaces hold operands that it has not merged
    /// yet. Those of the library ([`BuiltInOperator`](crate::BuiltInOperator)) are always there.
    ///
    /// Where none is registered under the name that a keyspace records, reads of keys that need it
    /// fail, and nothing else.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use std::sync::Arc;
    ///
    /// use adamant::{KeyspaceOptions, MergeError, MergeOperator, Options, Store};
    ///
    /// /// Keeps the lowest of all bids, as texts of one length.
    /// struct Lowest;
    ///
    /// impl MergeOperator for Lowest {
    ///     fn merge(
    ///         &self,
    ///         _key: &[u8],
    ///         older: &[u8],
    ///         newer: &[u8],
    ///         merged: &mut Vec<u8>,
    ///     ) -> Result<(), MergeError> {
    ///         merged.extend_from_slice(older.min(newer));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let options = Options::new().merge_operator("lowest", Arc::new(Lowest));
    /// let store = Store::open_with(&path, options)?;
    /// let bids = KeyspaceOptions::new().merge_operator("lowest");
    /// let bids = store.keyspace_with("bids", bids)?;
    /// bids.merge("chair", "0120")?;
    /// bids.merge("chair", "0095")?;
    /// assert_eq!(bids.get("chair")?, Some("0095".into()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn merge_operator(mut self, name: &str, operator: Arc<dyn MergeOperator>) -> Self {
        self.merge_operators.register(name, operator);
        self
    }

    /// Has compactions of a keyspace of the engine `lsm` ask a filter about entries that they read,
    /// which removes or changes some of them: of that with this name when it is opened or made. It
    /// is not recorded; a store that is opened without it loses nothing.
    ///
    /// An entry that an open snapshot or transaction sees stays as it is for the time being, and
    /// nothing older is ever seen in place of one that was removed. Otherwise a change by a filter
    /// is no commit: it is in no feed of changes, and when it happens is up to the background, for
    /// old data seldom; [`Keyspace::compact`](crate::Keyspace::compact) asks about every entry.
    /// Values in blob files are left alone unless the filter says that it reads them. A keyspace
    /// with a merge operator is not filtered: operands on top of an entry would change with it.
    /// Of [expiring](crate::expiring) entries the filter sees the value without its deadline, which
    /// a changed value keeps. Of a multimap it sees [rows](crate::Multimap::pair_of), whose values
    /// are empty: it keeps or removes them, and a change keeps them.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Engine, FilterVerdict, KeyspaceOptions, Options, Store};
    ///
    /// let filter = |_key: &[u8], value: &[u8]| match value {
    ///     b"obsolete" => FilterVerdict::Remove,
    ///     _ => FilterVerdict::Keep,
    /// };
    /// let store = Store::open_with(&path, Options::new().compaction_filter("log", filter))?;
    /// let log = store.keyspace_with("log", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// log.put("1", "obsolete")?;
    /// log.put("2", "current")?;
    /// log.compact()?;
    /// assert_eq!(log.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn compaction_filter(
        mut self,
        keyspace: &str,
        filter: impl CompactionFilter + 'static,
    ) -> Self {
        self.compaction_filters.add(keyspace, Arc::new(filter));
        self
    }

    /// Whether compactions drop the entries of expiring keyspaces of the engine `lsm` whose
    /// deadlines have passed by the system's clock, as a [filter](Options::compaction_filter)
    /// would: their space comes back without
    /// [`Expiring::remove_expired`](crate::Expiring::remove_expired), which still removes the rows
    /// of their deadlines. Not to be set where handles read another clock
    /// ([`Expiring::with_clock`](crate::Expiring::with_clock)), for which these entries may not
    /// have ended. Entries in blob files stay. Default: false.
    #[must_use]
    pub fn drop_expired(mut self, drops: bool) -> Self {
        self.compaction_filters.drop_expired(drops.then(|| Arc::new(system_millis) as _));
        self
    }

    /// Like [`Options::drop_expired`], by another clock, in milliseconds since 1970: that of the
    /// handles.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// use adamant::{Deadline, Engine, KeyspaceOptions, Options, Store};
    ///
    /// let clock = || 4_000_000_000_000;
    /// let store = Store::open_with(&path, Options::new().drop_expired_by(clock))?;
    /// let options = KeyspaceOptions::new().engine(Engine::Lsm);
    /// let leases = store.expiring_with("leases", options)?.with_clock(clock);
    /// leases.put("printer", "ada", Some(Deadline::from_millis(3_999_999_999_999)))?;
    /// leases.put("scanner", "bob", Some(Deadline::from_millis(4_000_000_000_001)))?;
    /// let (entries, _) = leases.keyspaces();
    /// assert_eq!(entries.len()?, 2, "one has ended, and is there");
    /// entries.compact()?;
    /// assert_eq!(entries.len()?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn drop_expired_by(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.compaction_filters.drop_expired(Some(Arc::new(clock)));
        self
    }

    /// Fails if an option has an impossible value.
    pub(crate) fn check(&self) -> Result<()> {
        self.lsm.check().map_err(Error::of_lsm(""))?;
        self.merge_operators.check()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// The key of stores that are opened without one: none, but for the tests of everything else over
/// encrypted stores.
fn default_key() -> Option<EncryptionKey> {
    #[cfg(all(feature = "encryption", adamant_encrypted))]
    return Some(EncryptionKey::from_bytes(&[7; 32]));
    #[cfg(not(all(feature = "encryption", adamant_encrypted)))]
    None
}
