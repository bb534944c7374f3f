//! Large values that a user holds do not change, whatever becomes of the store.

use std::collections::BTreeMap;

use adamant::{Engine, KeyspaceOptions, Slice, Store};

/// Longer than any value that is copied.
const LENT_BYTES_MIN: usize = 4_200;

fn value_of(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = match random.u8(..6) {
        0 => random.usize(0..4_096),
        1 => random.usize(60_000..300_000),
        _ => random.usize(LENT_BYTES_MIN..40_000),
    };
    vec![random.u8(..); len]
}

#[test]
fn held_values_never_change_under_random_operations() {
    for (seed, engine) in (0..8).zip(Engine::ALL.iter().cycle()) {
        println!("seed {seed}, {engine}");
        let mut random = fastrand::Rng::with_seed(seed);
        let store = Store::in_memory().unwrap();
        let keyspace =
            store.keyspace_with("values", KeyspaceOptions::new().engine(*engine)).unwrap();
        let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        let mut held: Vec<(Slice, Vec<u8>)> = Vec::new();
        for _ in 0..600 {
            let key = random.u8(..24);
            match random.u8(..10) {
                0..4 => {
                    let value = value_of(&mut random);
                    keyspace.insert([key], &value).unwrap();
                    model.insert(key, value);
                }
                4 => {
                    assert_eq!(keyspace.remove([key]).unwrap(), model.remove(&key).is_some());
                }
                5..8 => {
                    let found = keyspace.get([key]).unwrap();
                    assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice));
                    held.extend(found.zip(model.get(&key).cloned()));
                }
                _ if held.is_empty() => {}
                _ => {
                    let (slice, bytes) = held.swap_remove(random.usize(..held.len()));
                    assert!(slice == bytes, "a held value changed");
                }
            }
        }
        store.drop_keyspace("values").unwrap();
        let other = store.keyspace("other").unwrap();
        for number in 0..60_u8 {
            other.insert([number], vec![0xEE; 30_000]).unwrap();
        }
        assert!(held.iter().any(|(slice, _)| slice.len() > LENT_BYTES_MIN), "something is lent");
        assert!(held.iter().all(|(slice, bytes)| slice == bytes), "a held value changed");
        drop((keyspace, other, store));
        assert!(held.iter().all(|(slice, bytes)| slice == bytes), "a held value changed");
    }
}

#[test]
fn memory_of_values_is_used_again_once_they_are_dropped() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("values").unwrap();
    keyspace.insert("key", vec![1; 500_000]).unwrap();
    let mut used = 0;
    for round in 0..200_u8 {
        let held = keyspace.get("key").unwrap().unwrap();
        keyspace.insert("key", vec![round; 500_000]).unwrap();
        assert_eq!(held.len(), 500_000);
        if round == 20 {
            used = store.stats().unwrap().heap.pool_bytes;
        }
    }
    assert_eq!(
        store.stats().unwrap().heap.pool_bytes,
        used,
        "the pool does not grow with overwrites"
    );
}

#[test]
fn a_held_value_outlives_the_store_and_lets_it_be_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let keyspace = store.keyspace("values").unwrap();
    keyspace.insert("key", vec![7; 100_000]).unwrap();
    let held = keyspace.get("key").unwrap().unwrap();
    let part = held.slice(50..90_000);
    store.close().unwrap();
    assert!(keyspace.get("key").is_err());
    drop((keyspace, held));
    let store = Store::open(&path).expect("the memory of a part is its own by now");
    assert_eq!(part, vec![7; 89_950]);
    let keyspace = store.keyspace("values").unwrap();
    assert_eq!(keyspace.get("key").unwrap().unwrap(), vec![7; 100_000]);
}
