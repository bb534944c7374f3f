//! Removals of ranges.

use std::collections::BTreeMap;
use std::ops::Bound;

use adamant::{Durability, KEY_BYTES_MAX, Options};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Mostly short keys; one in so many has a length that is special for bounds.
fn key(random: &mut Rng, special_of: u16) -> Vec<u8> {
    if random.u16(..special_of) > 0 {
        return format!("{:03}", random.u16(..700)).into_bytes();
    }
    match random.u8(..5) {
        0 => vec![0],
        4 => Vec::new(),
        1 => vec![0xff; KEY_BYTES_MAX],
        2 => [&vec![b'4'; KEY_BYTES_MAX - 1][..], &[random.u8(..)]].concat(),
        _ => vec![0xff; random.usize(1..4)],
    }
}

fn bound(random: &mut Rng) -> Bound<Vec<u8>> {
    match random.u8(..8) {
        0 => Bound::Unbounded,
        1..4 => Bound::Included(key(random, 5)),
        _ => Bound::Excluded(key(random, 5)),
    }
}

/// Ranges with all kinds of bounds leave the content of the model, also after reopening; snapshots
/// are not affected.
pub fn ranges(place: &dyn Place) {
    let mut random = Rng::with_seed(7);
    let (mut store, mut model) = (place.open(), Map::new());
    let mut keyspace = place.keyspace(&store, "main").with_durability(Durability::Buffered);
    for round in 0..40_u8 {
        let mut batch = store.batch();
        for _ in 0..random.usize(..200) {
            let (key, bytes) =
                (key(&mut random, 150), if random.u8(..30) == 0 { 6_000 } else { 9 });
            batch.put(&keyspace, &key, vec![round; bytes]).unwrap();
            model.insert(key, vec![round; bytes]);
        }
        batch.commit().unwrap();
        let (before, snapshot) = (entries(&keyspace), store.snapshot().unwrap());
        let range = (bound(&mut random), bound(&mut random));
        keyspace.delete_range(range.clone()).unwrap();
        let lower_is_met = |key: &Vec<u8>| match &range.0 {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower,
            Bound::Excluded(lower) => key > lower,
        };
        let upper_is_met = |key: &Vec<u8>| match &range.1 {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
        };
        model.retain(|key, _| !(lower_is_met(key) && upper_is_met(key)));
        assert!(entries(&keyspace).into_iter().eq(model.clone()), "round {round}");
        assert_eq!(keyspace.len().unwrap(), model.len() as u64);
        // Removed entries are skipped, whatever their number.
        let key = |entry: Option<(adamant::Slice, _)>| entry.map(|(key, _)| key.to_vec());
        let ends = (key(keyspace.first().unwrap()), key(keyspace.last().unwrap()));
        let expected = (model.keys().next().cloned(), model.keys().next_back().cloned());
        assert_eq!(ends, expected, "round {round}");
        let seen: Vec<_> = snapshot.iter(&keyspace).map(Result::unwrap).collect();
        assert!(
            seen.iter()
                .map(|(key, value)| (&key[..], &value[..]))
                .eq(before.iter().map(|(key, value)| (&key[..], &value[..]))),
            "the snapshot of round {round}"
        );
        drop(snapshot);
        if round % 10 == 9 {
            assert_whole(&store);
            store.close().unwrap();
            store = place.open_with(Options::default()).unwrap();
            keyspace = place.keyspace(&store, "main").with_durability(Durability::Buffered);
            assert!(entries(&keyspace).into_iter().eq(model.clone()), "reopened in {round}");
        }
    }
    keyspace.delete_range(..).unwrap();
    assert!(keyspace.is_empty().unwrap() && keyspace.first().unwrap().is_none());
    keyspace.delete_range("b".."a").unwrap();
    assert_whole(&store);
}

/// Transactions that read within a removed range conflict, even if no key that they read was
/// changed individually; others do not.
pub fn ranges_conflict(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for number in 0..600 {
        keyspace.put(format!("{number:03}"), "v").unwrap();
    }
    let outcome = |read: &dyn Fn(&mut adamant::Transaction), removed: &str| {
        for key in ["100", "150", "199"] {
            keyspace.put(key, "v").unwrap();
        }
        let mut transaction = store.begin().unwrap();
        read(&mut transaction);
        transaction.put(&keyspace, "written", "1").unwrap();
        let (start, end) = removed.split_once(' ').unwrap();
        keyspace.delete_range(start..end).unwrap();
        transaction.commit()
    };
    let get = |tx: &mut adamant::Transaction| {
        tx.get(&keyspace, "150").unwrap();
    };
    let scan = |tx: &mut adamant::Transaction| {
        assert!(tx.range(&keyspace, "120".."160").count() > 0);
    };
    let elsewhere = |tx: &mut adamant::Transaction| {
        tx.get(&keyspace, "250").unwrap();
        assert!(tx.range(&keyspace, "300".."310").count() > 0);
    };
    assert!(outcome(&get, "100 200").unwrap_err().is_conflict());
    assert!(outcome(&scan, "100 200").unwrap_err().is_conflict());
    outcome(&elsewhere, "100 200").unwrap();
    outcome(&get, "151 200").unwrap();
    assert_eq!(keyspace.get("written").unwrap(), Some("1".into()));
    assert_whole(&store);
}
