//! Serializable transactions, and atomic changes of single keys.

use std::collections::BTreeMap;

use adamant::{Durability, Error, Slice, Store, TransactionIter};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn pairs(iterator: TransactionIter<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    iterator.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Reads of all kinds see own writes over earlier content, from both ends; no other reader sees
/// them before the commit.
pub fn see_own_writes(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut random = Rng::with_seed(3);
    let key = |random: &mut Rng| match random.u16(..400) {
        0 => Vec::new(),
        number => format!("{number:03}").into_bytes(),
    };
    let mut map = Map::new();
    for _ in 0..200 {
        let key = key(&mut random);
        keyspace.insert(&key, "before").unwrap();
        map.insert(key, b"before".to_vec());
    }
    let before = map.clone();
    let mut tx = store.begin().unwrap();
    for round in 0..150 {
        let (one, other) = (key(&mut random), key(&mut random));
        if random.bool() {
            tx.put(&keyspace, &one, [round]).unwrap();
            map.insert(one.clone(), vec![round]);
        } else {
            assert_eq!(tx.take(&keyspace, &one).unwrap().map(|v| v.to_vec()), map.remove(&one));
        }
        assert_eq!(tx.contains(&keyspace, &other).unwrap(), map.contains_key(&other));
        let (low, high) = (one.clone().min(other.clone()), one.max(other));
        let expected = || map.range(low.clone()..high.clone());
        assert!(
            pairs(tx.range(&keyspace, &low..&high))
                .iter()
                .map(|(key, value)| (key, value))
                .eq(expected())
        );
        let mut both = tx.range(&keyspace, &low..&high);
        let mut expected = expected();
        loop {
            let (found, wanted) = match random.bool() {
                true => (both.next(), expected.next()),
                false => (both.next_back(), expected.next_back()),
            };
            let found = found.map(|entry| entry.unwrap().0.to_vec());
            assert_eq!(found.as_ref(), wanted.map(|(key, _)| key));
            if found.is_none() {
                break;
            }
        }
    }
    assert!(pairs(tx.prefix(&keyspace, "1")).len() > 10);
    let first = tx.first(&keyspace).unwrap().map(|(key, _)| key.to_vec());
    assert_eq!(first.as_ref(), map.keys().next());
    let last = tx.last(&keyspace).unwrap().map(|(key, _)| key.to_vec());
    assert_eq!(last.as_ref(), map.keys().next_back());
    assert!(entries(&keyspace).into_iter().eq(before), "nothing is visible yet");
    tx.commit().unwrap();
    assert!(entries(&keyspace).into_iter().eq(map));
    drop(keyspace);
    store.close().unwrap();
    assert_whole(&place.open());
}

/// Two transactions that each read what the other writes: one of them fails.
pub fn write_skew_is_refused(place: &dyn Place) {
    let store = place.open();
    let doctors = place.keyspace(&store, "on call");
    doctors.insert("ada", "yes").unwrap();
    doctors.insert("bob", "yes").unwrap();
    let mut one = store.begin().unwrap();
    let mut other = store.begin().unwrap();
    for (tx, name, colleague) in [(&mut one, "ada", "bob"), (&mut other, "bob", "ada")] {
        assert_eq!(tx.get(&doctors, colleague).unwrap(), Some("yes".into()));
        tx.put(&doctors, name, "no").unwrap();
    }
    one.commit().unwrap();
    let error = other.commit().unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(doctors.get("bob").unwrap(), Some("yes".into()));
}

/// Accounts over keyspaces of several engines, with transfers by threads: nothing is lost, and each
/// of the threads finishes.
pub fn of_threads_are_run_again(place: &dyn Place) {
    let store = place.open();
    let all = ["left", "right"].map(|name| place.keyspace(&store, name));
    for keyspace in &all {
        for account in 0..4_u8 {
            keyspace.insert([account], 100_i64.to_le_bytes()).unwrap();
        }
    }
    let balance = |value: Option<Slice>| i64::from_le_bytes(value.unwrap()[..].try_into().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, all) = (&store, &all);
            scope.spawn(move || {
                let mut random = Rng::with_seed(thread);
                for _ in 0..100 {
                    let from = (random.usize(..2), random.u8(..4));
                    let to = (random.usize(..2), random.u8(..4));
                    let amount = random.i64(1..60);
                    store
                        .transaction(|tx| {
                            tx.durability(Durability::Deferred);
                            let source = balance(tx.get(&all[from.0], [from.1])?);
                            let target = balance(tx.get(&all[to.0], [to.1])?);
                            if source < amount || from == to {
                                return Ok(());
                            }
                            tx.put(&all[from.0], [from.1], (source - amount).to_le_bytes())?;
                            tx.put(&all[to.0], [to.1], (target + amount).to_le_bytes())
                        })
                        .unwrap();
                }
            });
        }
    });
    let sum = |keyspace: &adamant::Keyspace| -> i64 {
        keyspace.iter().map(|entry| balance(Some(entry.unwrap().1))).sum()
    };
    assert_eq!(all.iter().map(sum).sum::<i64>(), 800);
    let failed = store.transaction(|tx| {
        tx.put(&all[0], [9], "")?;
        Err::<(), _>(Error::KeyTooLong { bytes: 0, bytes_max: 0 })
    });
    assert!(matches!(failed, Err(Error::KeyTooLong { .. })));
    assert!(!all[0].contains([9]).unwrap());
    assert_whole(&store);
}

/// Refusals, and a keyspace that is dropped meanwhile.
pub fn refuse_what_cannot_be(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let elsewhere = Store::in_memory().unwrap();
    let other = elsewhere.keyspace("main").unwrap();
    let mut tx = store.begin().unwrap();
    assert!(matches!(tx.get(&other, "k"), Err(Error::OtherStore { .. })));
    assert!(matches!(tx.put(&other, "k", ""), Err(Error::OtherStore { .. })));
    let long = vec![1; 70_000];
    assert!(matches!(tx.put(&keyspace, &long, ""), Err(Error::KeyTooLong { .. })));
    assert!(matches!(tx.delete(&keyspace, &long), Err(Error::KeyTooLong { .. })));
    assert_eq!(tx.get(&keyspace, &long).unwrap(), None, "only writes refuse it");
    assert!(!tx.contains(&keyspace, &long).unwrap());
    tx.put(&keyspace, "k", vec![7; 10_000]).unwrap();
    assert!(store.drop_keyspace("main").unwrap());
    assert!(matches!(tx.commit(), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(store.keyspaces().unwrap(), []);
    let tx = store.begin().unwrap();
    store.clone().close().unwrap();
    tx.commit().unwrap();
    assert!(matches!(store.begin(), Err(Error::Closed)));
}

/// Counters and locks on single keys, by several threads.
pub fn single_keys_as_one(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let add = |value: Option<&[u8]>| {
                        let count = value.map_or(0, |v| u32::from_le_bytes(v.try_into().unwrap()));
                        Some((count + 1).to_le_bytes())
                    };
                    keyspace.fetch_update("count", add).unwrap();
                }
            });
        }
    });
    assert_eq!(keyspace.get("count").unwrap(), Some(400_u32.to_le_bytes().into()));
    let won = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|number| {
            let keyspace = &keyspace;
            scope.spawn(move || keyspace.insert_unique("leader", [number]).unwrap())
        });
        threads.map(|thread| thread.join().unwrap()).iter().filter(|won| **won).count()
    });
    assert_eq!(won, 1);
    let large = vec![5; 20_000];
    assert_eq!(keyspace.compare_and_swap("k", None::<&[u8]>, Some(&large)).unwrap(), Ok(()));
    let found = keyspace.compare_and_swap("k", Some("x"), None::<&[u8]>).unwrap();
    assert_eq!(found, Err(Some(large.clone().into())));
    assert_eq!(keyspace.compare_and_swap("k", Some(&large), Some("small")).unwrap(), Ok(()));
    assert_eq!(keyspace.update_fetch("k", |_| None::<&[u8]>).unwrap(), None);
    assert!(!keyspace.contains("k").unwrap());
    assert_whole(&store);
}
