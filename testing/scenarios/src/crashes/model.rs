//! The model of a store: its expected content after each commit, and the comparison.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Durability, Engine, Result, Store};
use adamant_sim::{Choice, Promise, SimDisk};

use crate::crashes::setup::Setup;

/// The entries of one keyspace.
pub type Map = BTreeMap<Arc<[u8]>, Arc<[u8]>>;

/// All keyspaces of a store, by name. Clones share unchanged parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// By name.
    pub keyspaces: BTreeMap<String, Arc<Map>>,
}

impl Content {
    /// The content of a store.
    ///
    /// # Panics
    /// If it cannot be read, or is inconsistent.
    pub fn of(store: &Store) -> Content {
        let mut keyspaces = BTreeMap::new();
        for info in store.keyspaces().unwrap() {
            let keyspace = store.open_keyspace(&info.name).unwrap();
            let entry = |(key, value): (adamant::Slice, adamant::Slice)| {
                (Arc::from(key.as_ref()), Arc::from(value.as_ref()))
            };
            let found: Vec<_> = keyspace.iter().map(|found| entry(found.unwrap())).collect();
            assert!(found.is_sorted_by(|one, other| one.0 < other.0), "keys in order, once each");
            // The engine lsm gives only an approximate count, unless it is asked to count.
            let len = keyspace.len().unwrap();
            assert_eq!(found.len() as u64, len, "entries of {:?}", info.name);
            assert!(info.engine == Engine::Lsm || info.entries == len, "of {:?}", info.name);
            keyspaces.insert(info.name, Arc::new(found.into_iter().collect()));
        }
        Content { keyspaces }
    }

    /// The content of a store, as it reports it.
    ///
    /// # Errors
    /// If any of it cannot be read.
    pub fn read(store: &Store) -> Result<Content> {
        let mut content = Content::default();
        for info in store.keyspaces()? {
            let keyspace = store.open_keyspace(&info.name)?;
            let entries = keyspace.iter().map(|entry| {
                entry.map(|(key, value)| (Arc::from(key.as_ref()), Arc::from(value.as_ref())))
            });
            let map: Map = entries.collect::<Result<_>>()?;
            content.keyspaces.insert(info.name, Arc::new(map));
        }
        Ok(content)
    }

    /// The keyspace with a name, for changes.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn map(&mut self, name: &str) -> &mut Map {
        Arc::make_mut(self.keyspaces.get_mut(name).expect("the keyspace exists"))
    }

    /// Compares a store with this; also looks some entries up by key.
    ///
    /// # Panics
    /// Unless the store has exactly this content.
    pub fn verify(&self, store: &Store) {
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

/// Opens the store of the usual setup on a disk.
///
/// # Errors
/// As [`Store::open_directory`].
pub fn open(disk: &SimDisk) -> Result<Store> {
    Setup::default().open(disk)
}

/// Checks a store, including for leaks.
///
/// # Panics
/// If there is a finding.
pub fn assert_clean(store: &Store) {
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
    // Nothing is left of keyspaces that were dropped under a snapshot.
    let known = store.keyspaces().unwrap();
    assert!(report.keyspaces.iter().map(|check| &check.name).eq(known.iter().map(|k| &k.name)));
}

/// As [`verify_of`], with the usual setup.
///
/// # Panics
/// As [`verify_of`].
pub fn verify(disk: &SimDisk, models: &[Content], promise: Promise) -> (Store, Content) {
    verify_of(Setup::default(), disk, models, promise)
}

/// Recovers a disk. Returns the store and its content.
///
/// # Panics
/// Unless that is one of the promised commits, complete, in a store without a fault or a leak.
pub fn verify_of(
    setup: Setup,
    disk: &SimDisk,
    models: &[Content],
    promise: Promise,
) -> (Store, Content) {
    let store = setup.open(disk).unwrap_or_else(|error| panic!("recovery failed: {error:?}"));
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

/// Verifies that the recovered state is durable, and so is the next commit on it.
///
/// # Panics
/// If they are not.
pub fn verify_going_on(setup: Setup, disk: &SimDisk, store: Store, content: &Content) {
    let point = disk.operation_count();
    let keyspace = store.keyspace("new").unwrap().with_durability(Durability::Sync);
    keyspace.insert("key", "value").unwrap();
    let durable = disk.operation_count();
    drop((keyspace, store));
    let mut after = content.clone();
    after.keyspaces.insert("new".into(), Arc::default());
    after.map("new").insert((*b"key").into(), (*b"value").into());
    let exactly = Promise::exactly(0);
    let recovered = disk.crash(point, &mut Choice::None);
    drop(verify_of(setup, &recovered, std::slice::from_ref(content), exactly));
    drop(verify_of(setup, &disk.crash(durable, &mut Choice::None), &[after], exactly));
}
