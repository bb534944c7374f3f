//! Places: the location of a scenario's store, and the engine of its keyspaces.

use std::path::PathBuf;
use std::sync::Arc;

use adamant::{
    Engine, Flushing, Keyspace, KeyspaceOptions, LsmOptions, Options, Result, Store,
    ValueCompression,
};
use adamant_medium::memory::MemoryDirectory;

/// Opens the same store repeatedly, from any thread.
pub trait Place: Sync {
    /// Opens the store, creating it the first time.
    ///
    /// # Errors
    /// Those of `Store::open_with`.
    fn open_with(&self, options: Options) -> Result<Store>;

    /// Opens the store with default options.
    ///
    /// # Panics
    /// If it cannot be opened.
    fn open(&self) -> Store {
        self.open_with(Options::default()).expect("the store should open")
    }

    /// A keyspace with the tested engine.
    ///
    /// # Panics
    /// If it cannot be opened or created.
    fn keyspace(&self, store: &Store, name: &str) -> Keyspace {
        let options = KeyspaceOptions::new().engine(self.engine());
        let options = self.values().into_iter().fold(options, KeyspaceOptions::value_compression);
        store.keyspace_with(name, options).expect("the keyspace should open")
    }

    /// The tested engine.
    fn engine(&self) -> Engine {
        Engine::default()
    }

    /// The compression of values.
    fn values(&self) -> Option<ValueCompression> {
        None
    }
}

/// A directory in memory.
#[derive(Debug)]
pub struct Memory {
    directory: MemoryDirectory,
}

impl Memory {
    /// An empty one.
    #[expect(clippy::new_without_default, reason = "an empty place is made on purpose")]
    pub fn new() -> Self {
        Self { directory: MemoryDirectory::new() }
    }
}

impl Place for Memory {
    fn open_with(&self, options: Options) -> Result<Store> {
        Store::open_directory(Arc::new(self.directory.clone()), options)
    }
}

/// A directory of the file system.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
}

impl Disk {
    /// The store at this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Place for Disk {
    fn open_with(&self, options: Options) -> Result<Store> {
        Store::open_with(&self.path, options)
    }
}

/// A place whose files are memory, and written as such.
#[derive(Debug)]
pub struct Mapped<P>(pub P);

impl<P: Place> Place for Mapped<P> {
    fn open_with(&self, options: Options) -> Result<Store> {
        self.0.open_with(options.flushing(Flushing::Volatile))
    }

    fn engine(&self) -> Engine {
        self.0.engine()
    }
}

/// A place whose keyspaces have a given engine.
#[derive(Debug)]
pub struct Kept<P>(pub P, pub Engine);

impl<P: Place> Place for Kept<P> {
    fn open_with(&self, options: Options) -> Result<Store> {
        self.0.open_with(options)
    }

    fn engine(&self) -> Engine {
        self.1
    }
}

/// A place whose keyspaces have a given engine, which is a tree, and compressed values.
#[derive(Debug)]
pub struct Packed<P>(pub P, pub Engine, pub ValueCompression);

impl<P: Place> Place for Packed<P> {
    fn open_with(&self, options: Options) -> Result<Store> {
        self.0.open_with(options)
    }

    fn engine(&self) -> Engine {
        self.1
    }

    fn values(&self) -> Option<ValueCompression> {
        Some(self.2)
    }
}

/// A place whose keyspaces are log-structured merge trees with the smallest of memtables, tables
/// and levels, so that a few entries exercise all of their background work.
#[derive(Debug)]
pub struct Tiny<P>(pub P);

impl<P: Place> Place for Tiny<P> {
    fn open_with(&self, options: Options) -> Result<Store> {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = 2 << 10;
        lsm.table_bytes_max = 2 << 10;
        lsm.block_bytes = 512;
        lsm.base_bytes_min = 8 << 10;
        lsm.level0_tables_max = 4;
        lsm.level_ratio = 3;
        lsm.blob_bytes_min = Some(100);
        lsm.blob_file_bytes_max = 4 << 10;
        self.0.open_with(options.lsm(lsm).cache_bytes_max(16 << 10).open_files_max(4))
    }

    fn engine(&self) -> Engine {
        Engine::Lsm
    }
}

/// All entries of a keyspace.
///
/// # Panics
/// If one of them cannot be read.
pub fn entries(keyspace: &Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    keyspace
        .iter()
        .map(|entry| {
            let (key, value) = entry.expect("an entry should be readable");
            (key.to_vec(), value.to_vec())
        })
        .collect()
}

/// Fails if a check of the store has findings.
///
/// # Panics
/// If there are findings.
pub fn assert_whole(store: &Store) {
    let report = store.check().expect("the check should run");
    assert!(report.is_clean(), "a check found {:#?}", report.findings);
}
