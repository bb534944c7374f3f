//! Where a scenario keeps its store: as `testing/scenarios/src/place.rs`, of stores on objects.

use std::sync::Arc;

use adamant_remote::object_store::ObjectStore;
use adamant_remote::object_store::memory::InMemory;
use adamant_remote::{Keyspace, Options, Result, Store};

/// Opens the same store again and again.
pub trait Place: Sync {
    fn open_with(&self, options: Options) -> Result<Store>;

    fn open(&self) -> Store {
        self.open_with(Options::default()).expect("the store should open")
    }

    fn keyspace(&self, store: &Store, name: &str) -> Keyspace {
        store.keyspace(name).expect("the keyspace should open")
    }
}

/// Objects in memory, in tables and blocks as small as can be, so that a few entries go through all
/// of what happens to many.
pub struct Memory {
    objects: Arc<dyn ObjectStore>,
    memtable_bytes_max: u64,
}

impl Memory {
    pub fn new(memtable_bytes_max: u64) -> Self {
        Self { objects: Arc::new(InMemory::new()), memtable_bytes_max }
    }
}

impl Place for Memory {
    fn open_with(&self, options: Options) -> Result<Store> {
        let options = options.flush_ms(1).memtable_bytes_max(self.memtable_bytes_max);
        Store::open_objects(Arc::clone(&self.objects), "a/store", options)
    }
}

/// All entries of a keyspace.
pub fn entries(keyspace: &Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |entry: Result<(adamant_remote::Slice, adamant_remote::Slice)>| {
        let (key, value) = entry.expect("an entry should be readable");
        (key.to_vec(), value.to_vec())
    };
    keyspace.iter().map(owned).collect()
}

/// Fails unless all keyspaces can be read, with the same entries from both ends.
pub fn assert_whole(store: &Store) {
    for keyspace in store.keyspaces().expect("the catalogue should be readable") {
        let keyspace = store.open_keyspace(&keyspace.name).expect("it is in the catalogue");
        let keys = |entry: Result<(adamant_remote::Slice, _)>| entry.unwrap().0;
        let up: Vec<_> = keyspace.iter().map(keys).collect();
        let down: Vec<_> = keyspace.iter().rev().map(keys).collect();
        assert!(up.is_sorted() && up.iter().eq(down.iter().rev()), "{}", keyspace.name());
    }
}
