//! Random work against a `BTreeMap`.

use std::collections::BTreeMap;

use adamant::{Durability, Keyspace, Moved, Options, Store};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
const NAMES: [&str; 3] = ["first", "second", "third"];

/// Random single operations, batches over several keyspaces, dropped keyspaces, and reopenings; the
/// store is compared with the model and checks itself whenever it is opened.
///
/// # Panics
/// When the store and the model differ; the message has the seed.
pub fn random_work(place: &dyn Place, seed: u64, steps: u32) {
    let mut random = Rng::with_seed(seed);
    let mut models: [Map; 3] = Default::default();
    let mut step = 0;
    while step < steps {
        let options = Options::new()
            .log_bytes_max(4 << 20)
            .background(random.bool())
            .durability(some_durability(&mut random));
        let store = place.open_with(options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let keyspaces = NAMES.map(|name| place.keyspace(&store, name));
        for (keyspace, model) in keyspaces.iter().zip(&models) {
            compare(keyspace, model, &format!("seed {seed}, step {step}, after opening"));
        }
        let mut session = Session { store, keyspaces, seed };
        for _ in 0..random.u32(1..400) {
            step += 1;
            session.step(place, &mut random, &mut models, step);
        }
        assert_whole(&session.store);
        for (keyspace, model) in session.keyspaces.iter().zip(&models) {
            compare(keyspace, model, &format!("seed {seed}, step {step}, before closing"));
        }
        if random.bool() {
            session.store.close().unwrap();
        }
    }
}

/// The store between two openings.
struct Session {
    store: Store,
    keyspaces: [Keyspace; 3],
    seed: u64,
}

impl Session {
    fn step(&mut self, place: &dyn Place, random: &mut Rng, models: &mut [Map; 3], step: u32) {
        let at = random.usize(0..3);
        let (keyspace, model) = (&self.keyspaces[at], &mut models[at]);
        let context = format!("seed {}, step {step}", self.seed);
        let key = some_key(random);
        match random.u8(0..100) {
            0..35 => {
                let value = some_value(random);
                let replaced = keyspace.insert(&key, &value).unwrap();
                assert_eq!(replaced, model.insert(key, value).is_some(), "{context}");
            }
            35..50 => {
                let removed = keyspace.remove(&key).unwrap();
                assert_eq!(removed, model.remove(&key).is_some(), "{context}");
            }
            50..55 => {
                let taken = keyspace.take(&key).unwrap().map(|value| value.to_vec());
                assert!(taken == model.remove(&key), "{context}");
            }
            55..70 => {
                let found = keyspace.get(&key).unwrap();
                assert!(found.as_deref() == model.get(&key).map(Vec::as_slice), "{context}");
                assert_eq!(keyspace.len().unwrap(), model.len() as u64, "{context}");
            }
            70..80 => {
                let other = some_key(random);
                let (low, high) = (key.clone().min(other.clone()), key.max(other));
                let found = keyspace.range(&low..&high).map(|entry| entry.unwrap().0.to_vec());
                let expected = model.range(low.clone()..high.clone()).map(|(key, _)| key.clone());
                assert!(found.eq(expected), "{context}");
                let found = keyspace.range(&low..&high).next_back().map(|entry| entry.unwrap().0);
                let expected = model.range(low..high).next_back();
                assert!(found.as_deref() == expected.map(|(key, _)| &key[..]), "{context}");
            }
            80..90 => self.moves(random, models, &context),
            90..92 => load(random, keyspace, model, &context),
            92..99 => self.batch(random, models),
            _ => {
                assert!(self.store.drop_keyspace(NAMES[at]).unwrap(), "{context}");
                self.keyspaces[at] = place.keyspace(&self.store, NAMES[at]);
                model.clear();
            }
        }
    }

    fn moves(&self, random: &mut Rng, models: &mut [Map; 3], context: &str) {
        let (from, to) = (random.usize(0..3), random.usize(0..3));
        let (key, new_key) = (some_key(random), some_key(random));
        let (source, target) = (&self.keyspaces[from], &self.keyspaces[to]);
        match random.u8(0..8) {
            0..5 => {
                let moved = source.move_to(&key, target, &new_key).unwrap();
                assert_eq!(moved, move_in(models, (from, &key), (to, &new_key)), "{context}");
            }
            5 | 6 => {
                let swapped = source.swap(&key, target, &new_key).unwrap();
                assert_eq!(swapped, swap_in(models, (from, &key), (to, &new_key)), "{context}");
            }
            _ => {
                let (low, high) = (key.clone().min(new_key.clone()), key.max(new_key));
                let keys: Vec<_> = match from == to {
                    true => Vec::new(),
                    false => models[from].range(low.clone()..high.clone()).collect(),
                };
                let keys: Vec<_> = keys.into_iter().map(|(key, _)| key.clone()).take(40).collect();
                let end = if keys.len() == 40 { keys[39].clone() } else { high };
                let moved = source.move_range(low..end.clone(), target).unwrap().moved;
                let moves = keys.iter().filter(|key| **key < end);
                let expected = moves.map(|key| move_in(models, (from, key), (to, key))).count();
                assert_eq!(moved, expected as u64, "{context}");
            }
        }
    }

    fn batch(&self, random: &mut Rng, models: &mut [Map; 3]) {
        let mut batch = self.store.batch();
        batch.durability(some_durability(random));
        let moves = random.bool();
        for _ in 0..random.u32(0..200) {
            let at = random.usize(0..3);
            let key = some_key(random);
            if moves && random.u8(0..4) == 0 {
                let (to, new_key) = (random.usize(0..3), some_key(random));
                let (source, target) = (&self.keyspaces[at], &self.keyspaces[to]);
                if random.bool() {
                    batch.move_to(source, &key, target, &new_key).unwrap();
                    move_in(models, (at, &key), (to, &new_key));
                } else {
                    batch.swap(source, &key, target, &new_key).unwrap();
                    swap_in(models, (at, &key), (to, &new_key));
                }
            } else if random.u8(0..3) == 0 {
                batch.delete(&self.keyspaces[at], &key).unwrap();
                models[at].remove(&key);
            } else {
                let value = some_value(random);
                batch.put(&self.keyspaces[at], &key, &value).unwrap();
                models[at].insert(key, value);
            }
        }
        batch.commit().unwrap();
    }
}

/// Consecutive entries, or random ones in any order.
fn load(random: &mut Rng, keyspace: &Keyspace, model: &mut Map, context: &str) {
    let count = random.usize(0..400);
    let loaded = if random.bool() {
        let start = some_key(random);
        let key = |number: usize| [&start[..], format!("{number:04}").as_bytes()].concat();
        let pairs: Vec<_> = (0..count).map(|number| (key(number), some_value(random))).collect();
        let loaded = keyspace.load_sorted(pairs.iter().map(|(key, value)| (key, value)));
        model.extend(pairs);
        loaded
    } else {
        let pairs: Vec<_> = (0..count).map(|_| (some_key(random), some_value(random))).collect();
        let loaded = keyspace.extend(pairs.iter().map(|(key, value)| (key, value)));
        model.extend(pairs);
        loaded
    };
    assert_eq!(loaded.unwrap().entries, count as u64, "{context}");
}

/// Moves a value between models, or within one.
fn move_in(models: &mut [Map; 3], from: (usize, &[u8]), to: (usize, &[u8])) -> Moved {
    let Some(value) = models[from.0].remove(from.1) else { return Moved::Absent };
    match models[to.0].insert(to.1.to_vec(), value) {
        None => Moved::Placed,
        Some(_) => Moved::Replaced,
    }
}

/// Swaps two values of models, or of one; returns whether both are there.
fn swap_in(models: &mut [Map; 3], one: (usize, &[u8]), other: (usize, &[u8])) -> bool {
    let get = |at: (usize, &[u8])| models[at.0].get(at.1).cloned();
    let (Some(left), Some(right)) = (get(one), get(other)) else { return false };
    models[one.0].insert(one.1.to_vec(), right);
    models[other.0].insert(other.1.to_vec(), left);
    true
}

fn compare(keyspace: &Keyspace, model: &Map, context: &str) {
    assert_eq!(keyspace.len().unwrap(), model.len() as u64, "{context}");
    let expected = model.iter().map(|(key, value)| (key.clone(), value.clone()));
    assert!(entries(keyspace).into_iter().eq(expected), "{context}");
}

fn some_durability(random: &mut Rng) -> Durability {
    match random.u8(0..8) {
        0 => Durability::Sync,
        1..4 => Durability::Buffered,
        _ => Durability::Deferred,
    }
}

/// So few that most are used again; some share long prefixes, one is empty.
fn some_key(random: &mut Rng) -> Vec<u8> {
    let number = random.u32(0..1_500);
    match number % 4 {
        // More often than one in 1,500.
        3 if number < 40 => Vec::new(),
        0 => number.to_le_bytes().to_vec(),
        1 => format!("key {number:05}").into_bytes(),
        2 => format!("{}{number}", "long start of a key ".repeat(4)).into_bytes(),
        _ => vec![number as u8; 1 + number as usize % 9],
    }
}

fn some_value(random: &mut Rng) -> Vec<u8> {
    let bytes = match random.u8(0..100) {
        0..60 => random.usize(0..40),
        60..90 => random.usize(0..800),
        90..99 => random.usize(0..9_000),
        _ => random.usize(0..150_000),
    };
    let mut value = vec![0; bytes];
    random.fill(&mut value);
    value
}
