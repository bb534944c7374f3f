//! Operands beside all other writes, compared with a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Engine, Keyspace, KeyspaceOptions, Snapshot, Store};
use adamant_medium::memory::MemoryDirectory;

use super::{small, with_joined};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// What each operator makes of a value and an operand, said once more.
fn merged(operator: &str, older: Option<&Vec<u8>>, newer: &[u8]) -> Vec<u8> {
    let Some(older) = older else { return newer.to_vec() };
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    match operator {
        "add" => word(older).wrapping_add(word(newer)).to_le_bytes().to_vec(),
        "append" => [older, newer].concat(),
        "joined" => [older, &b","[..], newer].concat(),
        other => panic!("{other}"),
    }
}

/// A store in memory that is closed and opened again.
struct User {
    directory: Arc<MemoryDirectory>,
    random: fastrand::Rng,
    operator: &'static str,
    engine: Engine,
    seed: u64,
}

impl User {
    fn open(&mut self) -> (Store, Keyspace) {
        let (options, _) = with_joined(small().background(self.random.bool()));
        let directory: Arc<MemoryDirectory> = Arc::clone(&self.directory);
        let store = Store::open_directory(directory, options).unwrap();
        let keyspace = KeyspaceOptions::new().merge_operator(self.operator);
        let has = store.keyspaces().unwrap().iter().any(|info| info.name == "kept");
        let keyspace = if has { keyspace } else { keyspace.engine(self.engine) };
        let keyspace = store.keyspace_with("kept", keyspace).unwrap();
        (store, keyspace)
    }

    fn key(&mut self) -> Vec<u8> {
        format!("key {:02}", self.random.u8(0..40)).into_bytes()
    }

    fn operand(&mut self) -> Vec<u8> {
        match self.operator {
            "add" => self.random.u64(..).to_le_bytes().to_vec(),
            _ if self.random.u8(0..12) == 0 => vec![self.random.u8(b'a'..=b'z'); 300],
            _ => vec![self.random.u8(b'a'..=b'z'); self.random.usize(1..9)],
        }
    }

    fn put(&mut self, model: &mut Model) -> (Vec<u8>, Vec<u8>) {
        let (key, value) = (self.key(), self.operand());
        model.insert(key.clone(), value.clone());
        (key, value)
    }

    fn merge(&mut self, model: &mut Model) -> (Vec<u8>, Vec<u8>) {
        let (key, operand) = (self.key(), self.operand());
        let value = merged(self.operator, model.get(&key), &operand);
        model.insert(key.clone(), value);
        (key, operand)
    }

    fn batch(&mut self, store: &Store, keyspace: &Keyspace, model: &mut Model) {
        let mut batch = store.batch();
        let count = if self.random.u8(0..20) == 0 { 3_000 } else { self.random.usize(1..30) };
        for _ in 0..count {
            match self.random.u8(0..10) {
                0..2 => {
                    let (key, value) = self.put(model);
                    batch.put(keyspace, key, value).unwrap();
                }
                2..4 => {
                    let key = self.key();
                    model.remove(&key);
                    batch.delete(keyspace, key).unwrap();
                }
                4 => {
                    let (key, new_key) = (self.key(), self.key());
                    if key != new_key
                        && let Some(value) = model.remove(&key)
                    {
                        model.insert(new_key.clone(), value);
                    }
                    batch.rename(keyspace, key, new_key).unwrap();
                }
                _ => {
                    let (key, operand) = self.merge(model);
                    batch.merge(keyspace, key, operand).unwrap();
                }
            }
        }
        batch.commit().unwrap();
    }

    fn transaction(&mut self, store: &Store, keyspace: &Keyspace, model: &mut Model) {
        let mut transaction = store.begin().unwrap();
        let mut own = model.clone();
        for _ in 0..self.random.usize(1..20) {
            match self.random.u8(0..12) {
                0..2 => {
                    let (key, value) = self.put(&mut own);
                    transaction.put(keyspace, key, value).unwrap();
                }
                2 => {
                    let key = self.key();
                    let is_there = transaction.remove(keyspace, &key).unwrap();
                    assert_eq!(own.remove(&key).is_some(), is_there, "seed {}", self.seed);
                }
                3 => {
                    let saved = own.clone();
                    transaction.set_savepoint();
                    let (key, operand) = self.merge(&mut own);
                    transaction.merge(keyspace, key, operand).unwrap();
                    assert!(transaction.undo_savepoint());
                    own = saved;
                }
                4 => {
                    let popped = transaction.pop_first(keyspace).unwrap();
                    let popped = popped.map(|(key, value)| (key.to_vec(), value.to_vec()));
                    assert_eq!(own.pop_first(), popped, "seed {}", self.seed);
                }
                _ => {
                    let (key, operand) = self.merge(&mut own);
                    transaction.merge(keyspace, key, operand).unwrap();
                }
            }
            let key = self.key();
            let seen = transaction.get(keyspace, &key).unwrap();
            assert_eq!(seen.as_deref(), own.get(&key).map(|value| &value[..]), "own writes");
            let keys = [self.key(), self.key()];
            let seen = transaction.multi_get(keyspace, &keys).unwrap();
            let expected = keys.each_ref().map(|key| own.get(key).map(|value| value[..].into()));
            assert_eq!(seen, expected, "seed {}", self.seed);
            assert_eq!(transaction.contains(keyspace, &key).unwrap(), own.contains_key(&key));
        }
        let seen = transaction.iter(keyspace).map(|entry| entry.map(pair));
        let seen: Vec<_> = seen.collect::<adamant::Result<_>>().unwrap();
        assert!(seen.iter().eq(pairs(&own).iter()), "seed {}: all own entries", self.seed);
        let back: Vec<_> =
            transaction.iter(keyspace).rev().map(|entry| pair(entry.unwrap())).collect();
        assert!(back.iter().rev().eq(seen.iter()), "seed {}: the other way", self.seed);
        assert_eq!(transaction.len(keyspace).unwrap(), own.len() as u64);
        if self.random.bool() {
            transaction.commit().unwrap();
            *model = own;
        }
    }

    fn step(&mut self, store: &Store, keyspace: &Keyspace, model: &mut Model) {
        match self.random.u8(0..40) {
            0..3 => {
                let (key, value) = self.put(model);
                keyspace.put(key, value).unwrap();
            }
            3 => {
                let key = self.key();
                keyspace.delete(&key).unwrap();
                model.remove(&key);
            }
            4..8 => self.batch(store, keyspace, model),
            8..14 => self.transaction(store, keyspace, model),
            14 => {
                let (one, other) = (self.key(), self.key());
                let (lower, upper) = (one.clone().min(other.clone()), one.max(other));
                keyspace.delete_range(lower.clone()..upper.clone()).unwrap();
                model.retain(|key, _| *key < lower || *key >= upper);
            }
            15 => keyspace.compact().unwrap(),
            16 => {
                let key = self.key();
                let taken = keyspace.take(&key).unwrap().map(|value| value.to_vec());
                assert_eq!(model.remove(&key), taken, "seed {}", self.seed);
            }
            17 if self.random.u8(0..4) == 0 => {
                let engine = [Engine::Lsm, Engine::Bplus][self.random.usize(0..2)];
                store.convert_keyspace("kept", engine).unwrap();
            }
            18 if self.random.u8(0..4) == 0 => {
                keyspace.clear().unwrap();
                model.clear();
            }
            _ => {
                let (key, operand) = self.merge(model);
                keyspace.merge(key, operand).unwrap();
            }
        }
    }
}

fn pair((key, value): (adamant::Slice, adamant::Slice)) -> (Vec<u8>, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

fn pairs(model: &Model) -> Vec<(Vec<u8>, Vec<u8>)> {
    model.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn compare(keyspace: &Keyspace, model: &Model, of: &str) {
    let found: Vec<_> = keyspace.iter().map(|entry| pair(entry.unwrap())).collect();
    assert!(found == pairs(model), "{of}: {found:?}, expected {model:?}");
    let mut back: Vec<_> = keyspace.iter().rev().map(|entry| pair(entry.unwrap())).collect();
    back.reverse();
    assert!(back == found, "{of}: the other way");
    let keys: Vec<_> = keyspace.iter().keys().map(|key| key.unwrap().to_vec()).collect();
    assert!(keys.iter().eq(model.keys()), "{of}: keys");
    assert_eq!(keyspace.len().unwrap(), model.len() as u64, "{of}");
    let got = keyspace.multi_get(model.keys()).unwrap();
    let got: Vec<_> = got.into_iter().map(|value| value.map(|value| value.to_vec())).collect();
    assert!(got.iter().map(Option::as_ref).eq(model.values().map(Some)), "{of}: values");
    assert!(model.keys().all(|key| keyspace.contains(key).unwrap()), "{of}");
}

fn compare_at(snapshot: &Snapshot, keyspace: &Keyspace, model: &Model, of: &str) {
    let found: Vec<_> = snapshot.iter(keyspace).map(|entry| pair(entry.unwrap())).collect();
    assert!(found == pairs(model), "{of}: {found:?}, expected {model:?}");
    for (key, value) in model {
        assert_eq!(snapshot.get(keyspace, key).unwrap().as_deref(), Some(&value[..]), "{of}");
    }
    assert_eq!(snapshot.len(keyspace).unwrap(), model.len() as u64, "{of}");
}

/// Random work on a keyspace of the engine with the operator.
pub(super) fn run(operator: &'static str, engine: Engine, seed: u64) {
    let random = fastrand::Rng::with_seed(seed);
    let mut user =
        User { directory: Arc::new(MemoryDirectory::new()), random, operator, engine, seed };
    let mut model = Model::new();
    let (mut store, mut keyspace) = user.open();
    let mut moments: Vec<(Snapshot, Model)> = Vec::new();
    for step in 0..400 {
        let of = format!("{operator}, {engine:?}, seed {seed}, step {step}");
        user.step(&store, &keyspace, &mut model);
        match user.random.u8(0..30) {
            0..3 if moments.len() < 5 => {
                moments.push((store.snapshot().unwrap(), model.clone()));
            }
            3 if !moments.is_empty() => {
                moments.remove(user.random.usize(..moments.len()));
            }
            4..7 => compare(&keyspace, &model, &of),
            7..9 if !moments.is_empty() => {
                let (snapshot, then) = &moments[user.random.usize(..moments.len())];
                compare_at(snapshot, &keyspace, then, &of);
            }
            9 if user.random.u8(0..3) == 0 => {
                moments.clear();
                let report = store.check().unwrap();
                assert!(report.findings.is_empty(), "{of}: {:?}", report.findings);
                drop(keyspace);
                store.close().unwrap();
                (store, keyspace) = user.open();
                compare(&keyspace, &model, &of);
            }
            _ => {}
        }
    }
    compare(&keyspace, &model, "at the end");
}
