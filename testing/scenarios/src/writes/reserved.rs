//! Values in reserved room, written in place.

use adamant::{Error, Store};

use crate::place::{Place, assert_whole};

/// Sizes of values: inline, at the border, with blocks of their own.
const SIZES: [usize; 6] = [0, 20, 4096, 4097, 100_000, 3_000_000];

/// A value of that size.
fn bytes(size: usize, seed: u8) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8 ^ seed).collect()
}

/// Each set by its own call, in place of an earlier value, which snapshots still see.
pub fn values_of_all_sizes(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for (seed, size) in (0..).zip(SIZES.into_iter().chain(SIZES.into_iter().rev())) {
        let before = keyspace.get("key").unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut room = store.reserve(size).unwrap();
        assert_eq!(room.len(), size);
        room.copy_from_slice(&bytes(size, seed));
        keyspace.put_reserved("key", room).unwrap();
        assert!(keyspace.get("key").unwrap().unwrap() == bytes(size, seed));
        assert_eq!(keyspace.len().unwrap(), 1);
        assert!(snapshot.get(&keyspace, "key").unwrap() == before);
    }
    assert_whole(&store);
    let room = store.reserve(5000).unwrap();
    let refused = keyspace.put_reserved([0; 65_536], room);
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })));
    assert!(matches!(store.reserve(1 << 32), Err(Error::ValueTooLong { .. })));
    drop(keyspace);
    store.close().unwrap();
    let store = place.open();
    assert!(place.keyspace(&store, "main").get("key").unwrap().unwrap() == bytes(0, 11));
    assert_whole(&store);
}

/// A transaction sees its own, through all calls, and undoes them.
pub fn own_writes(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("b", "old").unwrap();
    let reserved = |size, seed| {
        let mut room = store.reserve(size).unwrap();
        room.copy_from_slice(&bytes(size, seed));
        room
    };
    let mut transaction = store.begin().unwrap();
    transaction.put_reserved(&keyspace, "a", reserved(5_000, 1)).unwrap();
    transaction.put(&keyspace, "b", "new").unwrap();
    transaction.set_savepoint();
    transaction.put_reserved(&keyspace, "b", reserved(6_000, 2)).unwrap();
    transaction.put(&keyspace, "a", "short").unwrap();
    transaction.delete(&keyspace, "a").unwrap();
    assert!(transaction.get(&keyspace, "b").unwrap().unwrap() == bytes(6_000, 2));
    assert!(transaction.undo_savepoint());
    transaction.put_reserved(&keyspace, "c", reserved(7_000, 3)).unwrap();
    transaction.put_reserved(&keyspace, "d", reserved(8_000, 4)).unwrap();
    transaction.delete(&keyspace, "d").unwrap();
    assert!(transaction.contains(&keyspace, "c").unwrap());
    assert!(!transaction.contains(&keyspace, "d").unwrap());
    let expected = [("a", bytes(5_000, 1)), ("b", b"new".to_vec()), ("c", bytes(7_000, 3))];
    let found = transaction.iter(&keyspace).map(Result::unwrap);
    let found: Vec<_> = found.collect();
    transaction.commit().unwrap();
    let after: Vec<_> = keyspace.iter().map(Result::unwrap).collect();
    for entries in [found, after] {
        assert_eq!(entries.len(), expected.len());
        for ((key, value), (expected_key, expected_value)) in entries.iter().zip(&expected) {
            assert!(key == expected_key && value == expected_value, "{key:?}");
        }
    }
    assert_whole(&store);
}

/// Room that is given back leaves nothing, before and after a transaction took it.
pub fn what_is_dropped_was_never_there(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let blocks = |store: &Store| store.heap().unwrap().occupancy().unwrap().allocated_bytes();
    keyspace.insert("key", "value").unwrap();
    let before = blocks(&store);
    for number in 0..20_usize {
        let mut room = store.reserve(number * 9_999).unwrap();
        room.fill(1);
        if number % 2 == 0 {
            let mut transaction = store.begin().unwrap();
            transaction.put_reserved(&keyspace, "key", room).unwrap();
        }
    }
    assert_eq!(blocks(&store), before);
    assert_eq!(keyspace.get("key").unwrap(), Some("value".into()));
    assert_whole(&store);
}

/// In one transaction, beside others, so many that readers run in between.
pub fn many_at_once(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let other = place.keyspace(&store, "other");
    let size = |number: u32| [10, 5_000, 70_000][number as usize % 3];
    for round in 0..2_u8 {
        store
            .transaction(|transaction| {
                for number in 0..1_500_u32 {
                    let mut room = store.reserve(size(number))?;
                    room.copy_from_slice(&bytes(size(number), number as u8 ^ round));
                    transaction.put_reserved(&keyspace, number.to_string(), room)?;
                    transaction.put(&other, number.to_string(), "other")?;
                    transaction.put(&keyspace, format!("{number}-"), [round])?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!((keyspace.len().unwrap(), other.len().unwrap()), (3_000, 1_500));
        for number in 0..1_500_u32 {
            let found = keyspace.get(number.to_string()).unwrap().unwrap();
            assert!(found == bytes(size(number), number as u8 ^ round), "{number}");
        }
    }
    assert_whole(&store);
}

/// It is refused, and nothing changes.
pub fn of_another_store(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    if keyspace.engine() == adamant::Engine::Lsm || place.values().is_some() {
        // They copy the value, wherever it is.
        return;
    }
    let other = Store::in_memory().unwrap();
    keyspace.insert("key", "value").unwrap();
    let room = other.reserve(10_000).unwrap();
    assert!(keyspace.put_reserved("key", room).is_err());
    let mut transaction = store.begin().unwrap();
    transaction.put(&keyspace, "another", "value").unwrap();
    transaction.put_reserved(&keyspace, "key", other.reserve(10_000).unwrap()).unwrap();
    assert!(transaction.commit().is_err());
    assert_eq!(keyspace.len().unwrap(), 1);
    assert_eq!(keyspace.get("key").unwrap(), Some("value".into()));
    keyspace.insert("key", "new").unwrap();
    assert_whole(&store);
    assert_whole(&other);
}
