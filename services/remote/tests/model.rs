//! Random work against a `BTreeMap`, and moments that stay.

#![allow(unreachable_pub, reason = "what it has in common with others is public there")]

use std::collections::BTreeMap;

use adamant_remote::{Keyspace, Snapshot, Store};
use fastrand::Rng;

#[path = "common/place.rs"]
mod place;

use place::{Memory, Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
const NAMES: [&str; 3] = ["first", "second", "third"];

/// Single changes, batches, transactions, removed ranges, dropped keyspaces, snapshots and
/// reopening, with closing and without.
fn random_work(seed: u64, steps: u32, memtable_bytes_max: u64) {
    let mut random = Rng::with_seed(seed);
    let place = Memory::new(memtable_bytes_max);
    let mut models: [Map; 3] = Default::default();
    let mut step = 0;
    while step < steps {
        let store = place.open();
        let mut keyspaces = NAMES.map(|name| place.keyspace(&store, name));
        compare(&keyspaces, &models, &format!("seed {seed}, step {step}, after opening"));
        let mut kept: Option<(Snapshot, [Keyspace; 3], [Map; 3])> = None;
        for _ in 0..random.u32(1..150) {
            step += 1;
            let context = format!("seed {seed}, step {step}");
            match random.u8(0..20) {
                0 => kept = Some((store.snapshot().unwrap(), keyspaces.clone(), models.clone())),
                1 => {
                    let at = random.usize(0..3);
                    assert!(store.drop_keyspace(NAMES[at]).unwrap(), "{context}");
                    keyspaces[at] = place.keyspace(&store, NAMES[at]);
                    models[at].clear();
                }
                2..5 => batch(&store, &keyspaces, &mut models, &mut random),
                5..8 => transaction(&store, &keyspaces, &mut models, &mut random),
                _ => single(&keyspaces, &mut models, &mut random, &context),
            }
        }
        if let Some((snapshot, keyspaces, models)) = kept {
            for (keyspace, model) in keyspaces.iter().zip(models) {
                let found = snapshot.iter(keyspace).map(|entry| entry.unwrap());
                let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
                assert!(found.eq(model), "seed {seed}, step {step}: a snapshot");
            }
        }
        compare(&keyspaces, &models, &format!("seed {seed}, step {step}, before closing"));
        assert_whole(&store);
        if random.bool() {
            store.close().unwrap();
        }
    }
}

fn single(keyspaces: &[Keyspace; 3], models: &mut [Map; 3], random: &mut Rng, context: &str) {
    let at = random.usize(0..3);
    let (keyspace, model) = (&keyspaces[at], &mut models[at]);
    let key = some_key(random);
    match random.u8(0..8) {
        0..3 => {
            let value = some_value(random);
            let replaced = keyspace.insert(&key, &value).unwrap();
            assert_eq!(replaced, model.insert(key, value).is_some(), "{context}");
        }
        3 => {
            let removed = keyspace.remove(&key).unwrap();
            assert_eq!(removed, model.remove(&key).is_some(), "{context}");
        }
        4 => {
            let value = some_value(random);
            keyspace.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        5 => {
            keyspace.delete(&key).unwrap();
            model.remove(&key);
        }
        6 => {
            let end = [&key[..], b"~"].concat();
            keyspace.delete_range(&key..&end).unwrap();
            model.retain(|known, _| *known < key || *known >= end);
        }
        _ => {
            let other = some_key(random);
            let (low, high) = (key.clone().min(other.clone()), key.max(other));
            let found = keyspace.range(&low..&high).map(|entry| entry.unwrap().0.to_vec());
            let expected = model.range(low.clone()..high.clone()).map(|(key, _)| key.clone());
            assert!(found.eq(expected), "{context}");
            let found = keyspace.range(&low..&high).next_back().map(|entry| entry.unwrap().0);
            let expected = model.range(low..high).next_back();
            assert!(found.as_deref() == expected.map(|(key, _)| &key[..]), "{context}");
        }
    }
}

fn batch(store: &Store, keyspaces: &[Keyspace; 3], models: &mut [Map; 3], random: &mut Rng) {
    let mut batch = store.batch();
    for _ in 0..random.u32(0..100) {
        let (at, key) = (random.usize(0..3), some_key(random));
        if random.u8(0..3) == 0 {
            batch.delete(&keyspaces[at], &key).unwrap();
            models[at].remove(&key);
        } else {
            let value = some_value(random);
            batch.put(&keyspaces[at], &key, &value).unwrap();
            models[at].insert(key, value);
        }
    }
    batch.commit().unwrap();
}

/// Reads through a transaction what the model has, and writes both; half of them are not committed.
fn transaction(store: &Store, keyspaces: &[Keyspace; 3], models: &mut [Map; 3], random: &mut Rng) {
    let mut made = models.clone();
    let mut tx = store.begin().unwrap();
    for _ in 0..random.u32(0..12) {
        let (at, key) = (random.usize(0..3), some_key(random));
        let found = tx.get(&keyspaces[at], &key).unwrap();
        assert!(found.as_deref() == made[at].get(&key).map(Vec::as_slice));
        let value = some_value(random);
        tx.put(&keyspaces[at], &key, &value).unwrap();
        made[at].insert(key, value);
        let first = tx.first(&keyspaces[at]).unwrap().map(|(key, _)| key.to_vec());
        assert_eq!(first.as_ref(), made[at].keys().next());
    }
    if random.bool() {
        tx.commit().unwrap();
        *models = made;
    }
}

fn compare(keyspaces: &[Keyspace; 3], models: &[Map; 3], context: &str) {
    for (keyspace, model) in keyspaces.iter().zip(models) {
        let expected = model.iter().map(|(key, value)| (key.clone(), value.clone()));
        assert!(entries(keyspace).into_iter().eq(expected), "{context}");
    }
}

/// Few enough that most are met again; some share long starts.
fn some_key(random: &mut Rng) -> Vec<u8> {
    let number = random.u32(0..400);
    match number % 3 {
        0 if number == 0 => Vec::new(),
        0 => number.to_le_bytes().to_vec(),
        1 => format!("key {number:05}").into_bytes(),
        _ => format!("{}{number}", "long start of a key ".repeat(4)).into_bytes(),
    }
}

fn some_value(random: &mut Rng) -> Vec<u8> {
    let bytes = match random.u8(0..100) {
        0..70 => random.usize(0..40),
        70..98 => random.usize(0..800),
        _ => random.usize(0..50_000),
    };
    let mut value = vec![0; bytes];
    random.fill(&mut value);
    value
}

#[test]
fn in_large_tables() {
    (0..3).for_each(|seed| random_work(seed, 250, 64 << 20));
}

#[test]
fn in_small_tables() {
    (100..103).for_each(|seed| random_work(seed, 250, 16 << 10));
}
