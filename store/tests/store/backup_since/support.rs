//! Random work over two engines, and its model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};

pub(super) type Models = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// Keyspaces, and the engines of the same names.
pub(super) const NAMES: [&str; 2] = ["bplus", "lsm"];
const KEYS: u32 = 3000;

pub(super) fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level0_tables_max = 3;
    lsm.blob_bytes_min = Some(1000);
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20)
}

pub(super) fn keyspaces(store: &Store) -> [Keyspace; 2] {
    NAMES.map(|name| {
        let options = KeyspaceOptions::new().engine(name.parse::<Engine>().unwrap());
        store.keyspace_with(name, options).unwrap()
    })
}

/// A store, and what it holds.
pub(super) struct Work {
    path: PathBuf,
    options: Options,
    store: Option<Store>,
    pub(super) models: Models,
    random: fastrand::Rng,
}

impl Work {
    pub(super) fn new(path: &Path, seed: u64) -> Self {
        Self::over(path, seed, Models::default())
    }

    /// The store at a path, which holds what a model says. Memtables and tables are merged beside
    /// the work if the seed is even.
    pub(super) fn over(path: &Path, seed: u64, models: Models) -> Self {
        let options = options().background(seed.is_multiple_of(2));
        let store = Store::open_with(path, options.clone()).unwrap();
        keyspaces(&store);
        let random = fastrand::Rng::with_seed(seed);
        Self { path: path.into(), options, store: Some(store), models, random }
    }

    pub(super) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(super) fn into_store(mut self) -> Store {
        self.store.take().unwrap()
    }

    pub(super) fn reopen(&mut self) {
        self.store.take().unwrap().close().unwrap();
        self.store = Some(Store::open_with(&self.path, self.options.clone()).unwrap());
    }

    pub(super) fn put(&mut self, name: &str, key: &str, value: &str) {
        self.store().open_keyspace(name).unwrap().put(key, value).unwrap();
        let index = NAMES.iter().position(|known| *known == name).unwrap();
        self.models[index].insert(key.into(), value.into());
    }

    /// One batch over both keyspaces; or, rarely, some care of the store.
    pub(super) fn step(&mut self) {
        let store = self.store.as_ref().unwrap();
        let keyspaces = keyspaces(store);
        match self.random.u32(..40) {
            0 => drop(store.shrink().unwrap()),
            1 => keyspaces[self.random.usize(..2)].compact().unwrap(),
            2 => {
                let which = self.random.usize(..2);
                let from = format!("{:05}", self.random.u32(..KEYS)).into_bytes();
                let to = format!("{:05}", self.random.u32(..KEYS)).into_bytes();
                keyspaces[which].delete_range(&from[..]..&to[..]).unwrap();
                self.models[which].retain(|key, _| *key < from || *key >= to);
            }
            _ => {
                let mut batch = store.batch();
                for _ in 0..self.random.u32(1..60) {
                    let which = self.random.usize(..2);
                    let key = format!("{:05}", self.random.u32(..KEYS)).into_bytes();
                    if self.random.u32(..5) == 0 {
                        batch.delete(&keyspaces[which], &key).unwrap();
                        self.models[which].remove(&key);
                        continue;
                    }
                    let bytes_max = if self.random.u32(..20) == 0 { 9000 } else { 300 };
                    let bytes = self.random.usize(..bytes_max);
                    let value = vec![self.random.u8(..); bytes];
                    batch.put(&keyspaces[which], &key, value.clone()).unwrap();
                    self.models[which].insert(key, value);
                }
                batch.commit().unwrap();
            }
        }
    }
}

/// Opens a backup for reading.
pub(super) fn read(path: &Path) -> Store {
    Store::open_with(path, options().read_only(true)).unwrap()
}

/// Panics unless a store holds exactly what its models say.
pub(super) fn show(store: &Store, models: &Models) {
    for (name, model) in NAMES.into_iter().zip(models) {
        let keyspace = store.open_keyspace(name).unwrap();
        let mut expected = model.iter();
        for entry in keyspace.iter() {
            let (key, value) = entry.unwrap();
            let (expected_key, expected_value) = expected.next().expect("no more entries");
            assert!(key == expected_key[..] && value == expected_value[..], "{name}");
        }
        assert!(expected.next().is_none(), "{name}");
    }
}

/// Bytes of all files below a path.
pub(super) fn bytes_of(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            found if found.is_dir() => bytes_of(&entry.path()),
            _ if entry.file_name() == "lock" => 0,
            found => found.len(),
        })
        .sum()
}
