//! Random work on keyspaces with compressed values of all engines, against a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Change, Engine, Keyspace, Options, Snapshot, Store, ValueCompression};
use adamant_heap::MemoryDirectory;

use crate::value_compression::{Model, assert_whole, entries, record, ways};

/// A store, its expected content by keyspace, and a snapshot with that of its moment.
struct Work {
    directory: Arc<MemoryDirectory>,
    store: Store,
    random: fastrand::Rng,
    models: Vec<Model>,
    kept: Option<(Snapshot, Vec<Model>)>,
}

/// A place where a step works: a keyspace and its number, another one, a key and a value.
struct Place {
    at: usize,
    other: usize,
    keyspace: Keyspace,
    target: Keyspace,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// The keyspace with a number; its engine changes.
fn name(number: usize) -> &'static str {
    Engine::ALL[number].name()
}

fn open(directory: &Arc<MemoryDirectory>) -> Store {
    Store::open_directory(directory.clone(), Options::new()).unwrap()
}

/// Every way to write, over keyspaces that are converted to and fro meanwhile, with snapshots open
/// and changes recorded.
#[test]
fn random_work_agrees_with_a_model() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut work = Work::new(seed);
        for step in 0..600 {
            let place = work.place();
            match work.random.u8(..19) {
                step @ 0..=7 => work.write(step, place),
                step @ 8..=14 => work.write_several(step, place),
                step => work.change_keyspace(step, place),
            }
            if step % 50 == 0 {
                work.verify();
            }
        }
        assert!(replayed(&work.store) == work.models, "what was recorded of changes, seed {seed}");
    }
}

impl Work {
    fn new(seed: u64) -> Self {
        let directory = Arc::new(MemoryDirectory::new());
        let store = open(&directory);
        store.record_changes(Some(64 << 20)).unwrap();
        for engine in Engine::ALL {
            let options = adamant::KeyspaceOptions::new().engine(engine);
            store.keyspace_with(engine.name(), options).unwrap();
        }
        let random = fastrand::Rng::with_seed(seed);
        Self { directory, store, random, models: vec![Model::new(); Engine::ALL.len()], kept: None }
    }

    fn place(&mut self) -> Place {
        let random = &mut self.random;
        let (at, other) = (random.usize(..5), random.usize(..5));
        let keyspace = self.store.open_keyspace(name(at)).unwrap();
        let target = self.store.open_keyspace(name(other)).unwrap();
        let key = vec![b'a' + random.u8(..20)];
        let value = match random.u8(..6) {
            0 => Vec::new(),
            1 => record(random.u32(..99)).repeat(20),
            2 => (0..random.usize(..300)).map(|_| random.u8(..)).collect(),
            _ => record(random.u32(..999)),
        };
        Place { at, other, keyspace, target, key, value }
    }

    /// A change of one key.
    fn write(&mut self, step: u8, place: Place) {
        let Place { at, keyspace, key, value, .. } = place;
        let model = &mut self.models[at];
        match step {
            0..=3 => {
                keyspace.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            4 => {
                let had = keyspace.insert(&key, &value).unwrap();
                assert_eq!(had, model.insert(key, value).is_some());
            }
            5 => {
                let taken = keyspace.take(&key).unwrap();
                assert_eq!(taken.map(|it| it.to_vec()), model.remove(&key));
            }
            6 => {
                let expected = model.get(&key).cloned();
                let swapped = keyspace.compare_and_swap(&key, expected.as_ref(), Some(&value));
                swapped.unwrap().unwrap();
                model.insert(key, value);
            }
            _ => {
                let longer = |old: Option<&[u8]>| Some([old.unwrap_or(b""), b"more"].concat());
                keyspace.fetch_update(&key, longer).unwrap();
                model.entry(key).or_default().extend(b"more");
            }
        }
    }

    /// A change of several keys, mostly of two keyspaces.
    fn write_several(&mut self, step: u8, place: Place) {
        let Place { at, other, keyspace, target, key, value } = place;
        let models = &mut self.models;
        match step {
            8 => {
                let mut batch = self.store.batch();
                for number in 0..self.random.u32(1..1500) {
                    let key = vec![b'a' + (number % 20) as u8, number as u8];
                    batch.put(&keyspace, &key, record(number)).unwrap();
                    models[at].insert(key, record(number));
                }
                batch.delete(&target, &key).unwrap();
                batch.commit().unwrap();
                models[other].remove(&key);
            }
            9 => {
                let mut transaction = self.store.begin().unwrap();
                let found = transaction.get(&keyspace, &key).unwrap().map(|it| it.to_vec());
                assert_eq!(found.as_ref(), models[at].get(&key));
                transaction.put(&target, &key, &value).unwrap();
                let mut reserved = self.store.reserve(value.len()).unwrap();
                reserved.copy_from_slice(&value);
                transaction.put_reserved(&keyspace, "reserved", reserved).unwrap();
                transaction.commit().unwrap();
                models[other].insert(key, value.clone());
                models[at].insert(b"reserved".to_vec(), value);
            }
            10 => {
                keyspace.move_to(&key, &target, "moved").unwrap();
                if let Some(value) = models[at].remove(&key) {
                    models[other].insert(b"moved".to_vec(), value);
                }
            }
            11 => {
                let done = keyspace.swap(&key, &target, "moved").unwrap();
                let pair = (models[at].get(&key), models[other].get(&b"moved"[..]));
                let pair = pair.0.cloned().zip(pair.1.cloned());
                assert_eq!(done, pair.is_some());
                if let Some((one, two)) = pair {
                    models[at].insert(key, two);
                    models[other].insert(b"moved".to_vec(), one);
                }
            }
            12 => {
                keyspace.move_range("f".."k", &target).unwrap();
                let is_within = |key: &[u8]| (&b"f"[..]..&b"k"[..]).contains(&key);
                let (moved, left) =
                    std::mem::take(&mut models[at]).into_iter().partition(|it| is_within(&it.0));
                models[at] = left;
                models[other].extend::<Model>(moved);
            }
            13 => {
                keyspace.extend([(&key, &value), (&b"z".to_vec(), &value)]).unwrap();
                models[at].insert(key, value.clone());
                models[at].insert(b"z".to_vec(), value);
            }
            _ => {
                let removed = keyspace.retain("p".., |_, value| value.len() % 2 == 0).unwrap();
                let before = models[at].len();
                models[at].retain(|key, value| key[..] < b"p"[..] || value.len() % 2 == 0);
                assert_eq!(removed as usize, before - models[at].len());
            }
        }
    }

    /// A conversion, a snapshot, a keyspace that is cleared, or a store that is opened again.
    fn change_keyspace(&mut self, step: u8, place: Place) {
        let Place { at, other, keyspace, target, .. } = place;
        match step {
            15 => {
                let ways = ways();
                let (compression, dictionary) = &ways[self.random.usize(..ways.len())];
                let values = ValueCompression::from(*compression).with_bytes_min(10);
                self.store.compress_values(name(at), values, dictionary.as_deref()).unwrap();
            }
            16 => drop(self.store.convert_keyspace(name(at), Engine::ALL[other]).unwrap()),
            17 => match self.kept.take() {
                None => self.kept = Some((self.store.snapshot().unwrap(), self.models.clone())),
                Some((snapshot, models)) => self.verify_snapshot(&snapshot, &models),
            },
            _ if self.random.bool() => {
                keyspace.clear().unwrap();
                self.models[at].clear();
            }
            _ => {
                self.kept = None;
                drop((keyspace, target));
                self.store.clone().close().unwrap();
                self.store = open(&self.directory);
            }
        }
    }

    fn verify_snapshot(&self, snapshot: &Snapshot, models: &[Model]) {
        for (number, model) in models.iter().enumerate() {
            let keyspace = self.store.open_keyspace(name(number)).unwrap();
            let pairs = snapshot.iter(&keyspace).map(|entry| entry.unwrap());
            let found: Model = pairs.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert!(found == *model, "keyspace {number}: {} of {}", found.len(), model.len());
            let key = model.keys().next().cloned().unwrap_or_default();
            let found = snapshot.get(&keyspace, &key).unwrap();
            assert_eq!(found.as_deref(), model.get(&key).map(|it| &it[..]));
        }
    }

    fn verify(&self) {
        for (number, model) in self.models.iter().enumerate() {
            let keyspace = self.store.open_keyspace(name(number)).unwrap();
            assert!(entries(&keyspace) == *model, "keyspace {number}");
        }
        assert_whole(&self.store);
    }
}

/// The content that the feed of changes leads to.
fn replayed(store: &Store) -> Vec<Model> {
    let mut models: BTreeMap<Arc<str>, Model> = BTreeMap::new();
    let mut changes = store.changes(0).unwrap();
    while let Some(commit) = changes.try_next().unwrap() {
        for change in commit.changes {
            let name = Arc::clone(&change.keyspace().name);
            let mut of = |name: &Arc<str>, key: &[u8], value: Option<Vec<u8>>| {
                let model = models.entry(Arc::clone(name)).or_default();
                match value {
                    Some(value) => model.insert(key.to_vec(), value),
                    None => model.remove(key),
                }
            };
            match change {
                Change::Put { key, value, .. } => drop(of(&name, &key, Some(value.to_vec()))),
                Change::Removed { key, .. } => drop(of(&name, &key, None)),
                Change::Cleared { .. } => drop(models.remove(&name)),
                Change::Created { .. } => {}
                Change::Moved { key, target, target_key, .. } => {
                    let value = of(&name, &key, None);
                    of(&target.name, &target_key, value);
                }
                Change::Swapped { key, target, target_key, .. } => {
                    let (one, two) = (of(&name, &key, None), of(&target.name, &target_key, None));
                    of(&name, &key, two);
                    of(&target.name, &target_key, one);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    Engine::ALL.iter().map(|engine| models.remove(engine.name()).unwrap_or_default()).collect()
}
