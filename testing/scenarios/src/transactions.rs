//! Serializable transactions, and single keys that are read and changed as one.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use adamant::{Durability, Engine, Error, Options, Slice, Store, TransactionIter};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn pairs(iterator: TransactionIter<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    iterator.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Reads of all kinds see own writes over what was there, from both ends; nobody else sees them
/// before the commit.
pub fn see_own_writes(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut random = Rng::with_seed(3);
    let key = |random: &mut Rng| format!("{:03}", random.u16(..400)).into_bytes();
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
            tx.insert(&keyspace, &one, [round]).unwrap();
            map.insert(one.clone(), vec![round]);
        } else {
            assert_eq!(tx.take(&keyspace, &one).unwrap().map(|v| v.to_vec()), map.remove(&one));
        }
        assert_eq!(tx.contains(&keyspace, &other).unwrap(), map.contains_key(&other));
        let (low, high) = (one.clone().min(other.clone()), one.max(other));
        let expected = || map.range(low.clone()..high.clone());
        assert!(
            pairs(tx.range(&keyspace, &low..&high).unwrap())
                .iter()
                .map(|(key, value)| (key, value))
                .eq(expected())
        );
        let mut both = tx.range(&keyspace, &low..&high).unwrap();
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
    assert!(pairs(tx.prefix(&keyspace, "1").unwrap()).len() > 10);
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

/// Iterators of a transaction and of a snapshot, from both ends in turns until these meet, with own
/// writes between, while others write, drop snapshots and convert the keyspace: against a map.
pub fn ends_that_meet(place: &dyn Place) {
    let seed = 17;
    let mut random = Rng::with_seed(seed);
    for engine in Engine::ALL {
        let store = place.open_with(Options::new().durability(Durability::Deferred)).unwrap();
        let keyspace = place.keyspace(&store, engine.name());
        let mut map = BTreeMap::new();
        for number in (0..200_u32).filter(|_| random.bool()).collect::<Vec<_>>() {
            keyspace.insert(long_key(number), number.to_le_bytes()).unwrap();
            map.insert(long_key(number), number.to_le_bytes().to_vec());
        }
        let snapshot = store.snapshot().unwrap();
        let mut tx = store.begin().unwrap();
        for number in 0..300 {
            let other = (number % 20 == 0).then(|| store.snapshot().unwrap());
            keyspace.insert(long_key(random.u32(0..200)), "later").unwrap();
            keyspace.remove(long_key(random.u32(0..200))).unwrap();
            drop(other);
        }
        store.convert_keyspace(engine.name(), engine).unwrap();
        assert!(meet(snapshot.iter(&keyspace), &map, &mut random), "seed {seed}: a snapshot");
        for _ in 0..20 {
            for _ in 0..random.u8(0..20) {
                let (added, removed) = (random.u32(0..200), random.u32(0..200));
                tx.insert(&keyspace, long_key(added), "own").unwrap();
                map.insert(long_key(added), b"own".to_vec());
                tx.remove(&keyspace, long_key(removed)).unwrap();
                map.remove(&long_key(removed));
            }
            let (low, high) = (long_key(random.u32(0..150)), long_key(random.u32(150..200)));
            let bounds = (Bound::Excluded(low), Bound::Included(high));
            let part = map.range(bounds.clone()).map(|(key, value)| (key.clone(), value.clone()));
            let part: BTreeMap<_, _> = part.collect();
            let entries = tx.range(&keyspace, bounds).unwrap();
            assert!(meet(entries, &part, &mut random), "seed {seed}: a transaction");
        }
        drop((tx, snapshot));
        assert_eq!(store.stats().unwrap().snapshots, adamant::SnapshotStats::default());
    }
}

/// One of fifty is as long as a key can be.
fn long_key(number: u32) -> Vec<u8> {
    let mut key = format!("key {number:03}").into_bytes();
    if number.is_multiple_of(50) {
        key.resize(adamant::KEY_BYTES_MAX, b'x');
    }
    key
}

/// Whether an iterator has these entries, taken from both ends.
fn meet(
    mut entries: impl DoubleEndedIterator<Item = adamant::Result<(Slice, Slice)>>,
    map: &BTreeMap<Vec<u8>, Vec<u8>>,
    random: &mut Rng,
) -> bool {
    let mut expected: VecDeque<_> = map.iter().collect();
    let low_of_five = random.u8(0..6);
    loop {
        let (found, wanted) = if random.u8(0..5) < low_of_five {
            (entries.next(), expected.pop_front())
        } else {
            (entries.next_back(), expected.pop_back())
        };
        match (found.map(Result::unwrap), wanted) {
            (None, None) => return entries.next().is_none() && entries.next_back().is_none(),
            (Some((key, value)), Some((k, v))) if key[..] == k[..] && value[..] == v[..] => {}
            _ => return false,
        }
    }
}

/// Two that each read what the other one writes: one of them fails.
pub fn write_skew_is_refused(place: &dyn Place) {
    let store = place.open();
    let doctors = place.keyspace(&store, "on call");
    doctors.insert("ada", "yes").unwrap();
    doctors.insert("bob", "yes").unwrap();
    let mut one = store.begin().unwrap();
    let mut other = store.begin().unwrap();
    for (tx, name, colleague) in [(&mut one, "ada", "bob"), (&mut other, "bob", "ada")] {
        assert_eq!(tx.get(&doctors, colleague).unwrap(), Some("yes".into()));
        tx.insert(&doctors, name, "no").unwrap();
    }
    one.commit().unwrap();
    let error = other.commit().unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("on call"), "{error}");
    assert_eq!(doctors.get("bob").unwrap(), Some("yes".into()));
    assert_eq!(store.stats().unwrap().snapshots.open, 0);
}

/// A key that comes into a range that was read, or goes from it; but not what lies beyond the part
/// of it that was looked at.
pub fn phantoms_are_refused(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for key in ["b", "d", "f"] {
        keyspace.insert(key, "").unwrap();
    }
    let change = |read: &dyn Fn(&mut adamant::Transaction), change: &dyn Fn()| {
        let mut tx = store.begin().unwrap();
        read(&mut tx);
        tx.insert(&keyspace, "z", "").unwrap();
        change();
        tx.commit()
    };
    let count = |tx: &mut adamant::Transaction| {
        assert!(tx.range(&keyspace, "a".."g").unwrap().count() > 1);
    };
    let conflicts = |outcome: adamant::Result<()>| outcome.is_err_and(|error| error.is_conflict());
    assert!(conflicts(change(&count, &|| assert!(!keyspace.insert("c", "").unwrap()))));
    assert!(conflicts(change(&count, &|| assert!(keyspace.remove("c").unwrap()))));
    assert!(conflicts(change(&count, &|| assert!(keyspace.insert("d", "new").unwrap()))));
    assert!(!conflicts(change(&count, &|| assert!(!keyspace.insert("h", "").unwrap()))));
    let first = |tx: &mut adamant::Transaction| {
        assert_eq!(tx.first(&keyspace).unwrap().unwrap().0, *"b");
    };
    assert!(!conflicts(change(&first, &|| assert!(keyspace.remove("d").unwrap()))));
    assert!(conflicts(change(&first, &|| assert!(!keyspace.insert("a", "").unwrap()))));
    let absent = |tx: &mut adamant::Transaction| {
        assert_eq!(tx.get(&keyspace, "x").unwrap(), None);
    };
    assert!(conflicts(change(&absent, &|| assert!(!keyspace.insert("x", "").unwrap()))));
    assert!(conflicts(change(&count, &|| _ = keyspace.rename("b", "y").unwrap())));
    assert_whole(&store);
}

/// What only reads, or only writes, never conflicts.
pub fn those_that_cannot_conflict(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "1").unwrap();
    let mut reader = store.begin().unwrap();
    let mut writer = store.begin().unwrap();
    assert_eq!(reader.get(&keyspace, "k").unwrap(), Some("1".into()));
    writer.insert(&keyspace, "k", "2").unwrap();
    writer.remove(&keyspace, "other").unwrap();
    keyspace.insert("k", "3").unwrap();
    assert_eq!(reader.get(&keyspace, "k").unwrap(), Some("1".into()));
    assert_eq!(reader.iter(&keyspace).unwrap().count(), 1);
    writer.commit().unwrap();
    reader.commit().unwrap();
    assert_eq!(keyspace.get("k").unwrap(), Some("2".into()));
    // Nor does what a transaction wrote itself before it read it.
    let mut tx = store.begin().unwrap();
    tx.insert(&keyspace, "k", "4").unwrap();
    assert_eq!(tx.get(&keyspace, "k").unwrap(), Some("4".into()));
    keyspace.insert("k", "5").unwrap();
    tx.commit().unwrap();
    assert_eq!(keyspace.get("k").unwrap(), Some("4".into()));
}

/// A part that fails is undone, alone; one within it too.
pub fn savepoints(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut tx = store.begin().unwrap();
    tx.insert(&keyspace, "a", "1").unwrap();
    let failed = tx.savepoint(|tx| {
        tx.insert(&keyspace, "a", "2").unwrap();
        tx.insert(&keyspace, "b", "2").unwrap();
        let inner = tx.savepoint(|tx| {
            tx.remove(&keyspace, "a").unwrap();
            tx.insert(&keyspace, "c", "3").unwrap();
            Err::<(), _>("inner")
        });
        assert_eq!(inner, Err("inner"));
        assert_eq!(tx.get(&keyspace, "a").unwrap(), Some("2".into()));
        tx.savepoint(|tx| tx.insert(&keyspace, "d", "4")).unwrap();
        assert_eq!(tx.iter(&keyspace).unwrap().count(), 3);
        Err::<(), _>("outer")
    });
    assert_eq!(failed, Err("outer"));
    tx.savepoint(|tx| tx.insert(&keyspace, "e", "5")).unwrap();
    // The same without closures; one within a closure ends with that.
    assert!(!tx.undo_savepoint() && !tx.keep_savepoint());
    tx.set_savepoint();
    tx.insert(&keyspace, "e", "of a part that is undone").unwrap();
    tx.set_savepoint();
    tx.insert(&keyspace, "y", "of a part within it").unwrap();
    assert!(tx.keep_savepoint());
    let inner = tx.savepoint(|tx| {
        assert!(!tx.undo_savepoint(), "that of the closure is its own to end");
        tx.set_savepoint();
        tx.insert(&keyspace, "z", "").map_err(|error| error.to_string())?;
        Err::<(), _>("undone".to_string())
    });
    assert!(inner.is_err() && tx.get(&keyspace, "z").unwrap().is_none());
    assert!(tx.undo_savepoint() && !tx.undo_savepoint());
    assert_eq!(tx.get(&keyspace, "e").unwrap(), Some("5".into()));
    assert_eq!(tx.get(&keyspace, "y").unwrap(), None);
    tx.commit().unwrap();
    let expected = [("a", "1"), ("e", "5")].map(|(k, v)| (k.into(), v.into()));
    assert_eq!(entries(&keyspace), expected);
}

/// Accounts over keyspaces of several engines, moved between by threads: nothing is lost, and each of
/// the threads gets to its end.
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
                            tx.insert(&all[from.0], [from.1], (source - amount).to_le_bytes())?;
                            tx.insert(&all[to.0], [to.1], (target + amount).to_le_bytes())
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
        tx.insert(&all[0], [9], "")?;
        Err::<(), _>(Error::KeyEmpty)
    });
    assert!(matches!(failed, Err(Error::KeyEmpty)));
    assert!(!all[0].contains([9]).unwrap());
    assert_whole(&store);
}

/// What is refused, and what becomes of a keyspace that is dropped meanwhile.
pub fn refuse_what_cannot_be(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let elsewhere = Store::in_memory().unwrap();
    let other = elsewhere.keyspace("main").unwrap();
    let mut tx = store.begin().unwrap();
    assert!(matches!(tx.get(&other, "k"), Err(Error::OtherStore { .. })));
    assert!(matches!(tx.insert(&other, "k", ""), Err(Error::OtherStore { .. })));
    assert!(matches!(tx.insert(&keyspace, "", ""), Err(Error::KeyEmpty)));
    assert!(matches!(tx.get(&keyspace, vec![1; 70_000]), Err(Error::KeyTooLong { .. })));
    tx.insert(&keyspace, "k", vec![7; 10_000]).unwrap();
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
