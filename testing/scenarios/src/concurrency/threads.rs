//! Many reading threads beside writing ones.

use std::sync::atomic::{AtomicBool, Ordering};

use adamant::Durability;

use crate::place::{Place, assert_whole};

/// A reader never sees a torn value, and a scan never misses a key that stays.
pub fn readers_see_whole_entries_beside_a_writer(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    for number in 0..200_u32 {
        keyspace.insert(number.to_le_bytes(), [0; 64]).unwrap();
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (keyspace, is_done) = (&keyspace, &is_done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                while !is_done.load(Ordering::Relaxed) {
                    let key = random.u32(0..200).to_le_bytes();
                    let value = keyspace.get(key).unwrap().expect("no key is ever removed");
                    assert!(value.iter().all(|byte| *byte == value[0]), "a torn value: {value:?}");
                    if random.u8(..) == 0 {
                        assert_eq!(keyspace.iter().count(), 200);
                    }
                }
            });
        }
        for round in 1..60_u8 {
            let mut batch = store.batch();
            batch.durability(Durability::Deferred);
            for number in 0..200_u32 {
                batch.put(&keyspace, number.to_le_bytes(), [round; 64]).unwrap();
            }
            batch.commit().unwrap();
            for number in 0..50_u32 {
                keyspace.insert(number.to_le_bytes(), vec![round; 64 + round as usize]).unwrap();
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_whole(&store);
}

/// Writers of several threads whose commits wait for the device share its syncs and lose nothing.
pub fn writers_of_several_threads(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let keyspace = &keyspace;
            scope.spawn(move || {
                for number in 0..50_u8 {
                    keyspace.insert([thread, number], [number]).unwrap();
                }
            });
        }
    });
    store.close().unwrap();
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    assert_eq!(keyspace.len().unwrap(), 200);
    assert_whole(&store);
}

/// Keyspaces created, dropped and used by several threads at once.
pub fn keyspaces_come_and_go_beside_readers(place: &dyn Place) {
    let store = place.open();
    std::thread::scope(|scope| {
        for seed in 0..4_u64 {
            let store = &store;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for number in 0..60_u32 {
                    let name = format!("{}", random.u8(0..3));
                    if random.u8(0..4) == 0 {
                        store.drop_keyspace(&name).unwrap();
                        continue;
                    }
                    let keyspace = place.keyspace(store, &name);
                    let keyspace = keyspace.with_durability(Durability::Deferred);
                    let outcome = keyspace
                        .insert(number.to_le_bytes(), "v")
                        .and_then(|_| keyspace.get(number.to_le_bytes()));
                    match outcome {
                        Ok(_) | Err(adamant::Error::KeyspaceDropped { .. }) => {}
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            });
        }
    });
    assert_whole(&store);
}
