//! What a store should hold after each commit, and whether it does.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Engine, LsmOptions, Options, Result, Store};
use adamant_sim::{Promise, SimDirectory, SimDisk};

/// The entries of one keyspace.
pub(crate) type Map = BTreeMap<Arc<[u8]>, Arc<[u8]>>;

/// All keyspaces of a store, by name. Clones share what does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) keyspaces: BTreeMap<String, Arc<Map>>,
}

impl Content {
    /// All that a store holds.
    pub(crate) fn of(store: &Store) -> Content {
        let mut keyspaces = BTreeMap::new();
        for info in store.keyspaces().unwrap() {
            let keyspace = store.open_keyspace(&info.name).unwrap();
            let entry = |(key, value): (adamant::Slice, adamant::Slice)| {
                (Arc::from(key.as_ref()), Arc::from(value.as_ref()))
            };
            let found: Vec<_> = keyspace.iter().map(|found| entry(found.unwrap())).collect();
            assert!(found.is_sorted_by(|one, other| one.0 < other.0), "keys in order, once each");
            // The engine lsm tells only about how many there are, unless it is asked to count them.
            let len = keyspace.len().unwrap();
            assert_eq!(found.len() as u64, len, "entries of {:?}", info.name);
            assert!(info.engine == Engine::Lsm || info.entries == len, "of {:?}", info.name);
            keyspaces.insert(info.name, Arc::new(found.into_iter().collect()));
        }
        Content { keyspaces }
    }

    /// The keyspace, which must be there, to change it.
    pub(crate) fn map(&mut self, name: &str) -> &mut Map {
        Arc::make_mut(self.keyspaces.get_mut(name).expect("the keyspace exists"))
    }

    /// Panics unless the store holds exactly this; looks some entries up by key, too.
    pub(crate) fn verify(&self, store: &Store) {
        assert!(Content::of(store) == *self, "the store holds something else than the model");
        for (name, map) in &self.keyspaces {
            let keyspace = store.open_keyspace(name).unwrap();
            for (key, value) in map.iter().step_by(map.len() / 16 + 1) {
                let is_equal = keyspace.get_with(key, |found| found == value.as_ref()).unwrap();
                assert_eq!(is_equal, Some(true), "value of {key:?} in {name:?}");
            }
        }
    }

    fn describe(&self) -> String {
        let sizes = self.keyspaces.iter().map(|(name, map)| format!("{name}: {}", map.len()));
        sizes.collect::<Vec<_>>().join(", ")
    }
}

/// Opens the store on a disk, everything within the calls, with the smallest log there can be, and
/// memtables and tables so small that a few commits fill them.
pub(crate) fn open(disk: &SimDisk) -> Result<Store> {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 1 << 10;
    lsm.table_bytes_max = 2 << 10;
    lsm.base_bytes_min = 4 << 10;
    lsm.blob_bytes_min = Some(60);
    let options = Options::new()
        .log_bytes_max(4 << 20)
        .deferred_bytes_max(64 << 10)
        .lsm(lsm)
        .background(false);
    Store::open_directory(Arc::new(SimDirectory::root(disk)), options)
}

/// Panics unless a check of the store finds nothing wrong, leaks included.
pub(crate) fn assert_clean(store: &Store) {
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
    // Of keyspaces that went under a snapshot nothing is left.
    let known = store.keyspaces().unwrap();
    assert!(report.keyspaces.iter().map(|check| &check.name).eq(known.iter().map(|k| &k.name)));
}

/// Recovers what is on a disk, and panics unless it is one of the promised commits, whole, in a
/// store without a fault or a leak. Returns the store and its content.
pub(crate) fn judge(disk: &SimDisk, models: &[Content], promise: Promise) -> (Store, Content) {
    let store = open(disk).unwrap_or_else(|error| panic!("recovery failed: {error:?}"));
    let found = Content::of(&store);
    let most = (promise.most as usize).min(models.len() - 1);
    let promised = &models[promise.least as usize..=most];
    if !promised.contains(&found) {
        let equal = models.iter().rposition(|model| *model == found);
        panic!("recovered commit {equal:?} ({}), {promise:?}", found.describe());
    }
    assert_clean(&store);
    (store, found)
}
