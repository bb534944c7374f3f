//! Validation of transactions: by the keys and gaps that they read, not by what they write; their
//! savepoints; and iterators over a keyspace that changes its engine meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use adamant::{Durability, Engine, Options, Slice};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

/// A conflict names the keyspace, and the snapshots of both transactions are closed.
pub fn a_conflict_says_where(place: &dyn Place) {
    let store = place.open();
    let doctors = place.keyspace(&store, "on call");
    let mut tx = store.begin().unwrap();
    assert_eq!(tx.get(&doctors, "bob").unwrap(), None);
    tx.put(&doctors, "ada", "no").unwrap();
    doctors.insert("bob", "yes").unwrap();
    let error = tx.commit().unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("on call"), "{error}");
    assert_eq!(store.stats().unwrap().snapshots.open, 0);
}

/// Iterators of a transaction and of a snapshot, from both ends in turns until these meet, with own
/// writes between, while other threads write, drop snapshots and convert the keyspace: against a
/// map.
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
                tx.put(&keyspace, long_key(added), "own").unwrap();
                map.insert(long_key(added), b"own".to_vec());
                tx.delete(&keyspace, long_key(removed)).unwrap();
                map.remove(&long_key(removed));
            }
            let (low, high) = (long_key(random.u32(0..150)), long_key(random.u32(150..200)));
            let bounds = (Bound::Excluded(low), Bound::Included(high));
            let part = map.range(bounds.clone()).map(|(key, value)| (key.clone(), value.clone()));
            let part: BTreeMap<_, _> = part.collect();
            let entries = tx.range(&keyspace, bounds);
            assert!(meet(entries, &part, &mut random), "seed {seed}: a transaction");
        }
        drop((tx, snapshot));
        assert_eq!(store.stats().unwrap().snapshots, adamant::SnapshotStats::default());
    }
}

/// One of fifty has the maximum length of a key.
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

/// A key that is added to a range that was read, or removed from it, conflicts; but not beyond the
/// part that was read.
pub fn phantoms_are_refused(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for key in ["b", "d", "f"] {
        keyspace.insert(key, "").unwrap();
    }
    let change = |read: &dyn Fn(&mut adamant::Transaction), change: &dyn Fn()| {
        let mut tx = store.begin().unwrap();
        read(&mut tx);
        tx.put(&keyspace, "z", "").unwrap();
        change();
        tx.commit()
    };
    let count = |tx: &mut adamant::Transaction| {
        assert!(tx.range(&keyspace, "a".."g").count() > 1);
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

/// A transaction that only reads, or only writes, never conflicts.
pub fn those_that_cannot_conflict(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "1").unwrap();
    let mut reader = store.begin().unwrap();
    let mut writer = store.begin().unwrap();
    assert_eq!(reader.get(&keyspace, "k").unwrap(), Some("1".into()));
    writer.put(&keyspace, "k", "2").unwrap();
    writer.delete(&keyspace, "other").unwrap();
    keyspace.insert("k", "3").unwrap();
    assert_eq!(reader.get(&keyspace, "k").unwrap(), Some("1".into()));
    assert_eq!(reader.iter(&keyspace).count(), 1);
    writer.commit().unwrap();
    reader.commit().unwrap();
    assert_eq!(keyspace.get("k").unwrap(), Some("2".into()));
    // Nor does one that wrote a key itself before it read it.
    let mut tx = store.begin().unwrap();
    tx.put(&keyspace, "k", "4").unwrap();
    assert_eq!(tx.get(&keyspace, "k").unwrap(), Some("4".into()));
    keyspace.insert("k", "5").unwrap();
    tx.commit().unwrap();
    assert_eq!(keyspace.get("k").unwrap(), Some("4".into()));
}

/// A savepoint that fails is undone alone; nested ones, too.
pub fn savepoints(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut tx = store.begin().unwrap();
    tx.put(&keyspace, "a", "1").unwrap();
    let failed = tx.savepoint(|tx| {
        tx.put(&keyspace, "a", "2").unwrap();
        tx.put(&keyspace, "b", "2").unwrap();
        let inner = tx.savepoint(|tx| {
            tx.delete(&keyspace, "a").unwrap();
            tx.put(&keyspace, "c", "3").unwrap();
            Err::<(), _>("inner")
        });
        assert_eq!(inner, Err("inner"));
        assert_eq!(tx.get(&keyspace, "a").unwrap(), Some("2".into()));
        tx.savepoint(|tx| tx.put(&keyspace, "d", "4")).unwrap();
        assert_eq!(tx.iter(&keyspace).count(), 3);
        Err::<(), _>("outer")
    });
    assert_eq!(failed, Err("outer"));
    tx.savepoint(|tx| tx.put(&keyspace, "e", "5")).unwrap();
    // The same without closures; a savepoint within a closure ends with it.
    assert!(!tx.undo_savepoint() && !tx.keep_savepoint());
    tx.set_savepoint();
    tx.put(&keyspace, "e", "of a part that is undone").unwrap();
    tx.set_savepoint();
    tx.put(&keyspace, "y", "of a part within it").unwrap();
    assert!(tx.keep_savepoint());
    let inner = tx.savepoint(|tx| {
        assert!(!tx.undo_savepoint(), "that of the closure is its own to end");
        tx.set_savepoint();
        tx.put(&keyspace, "z", "").map_err(|error| error.to_string())?;
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
