//! Bulk loads: in order, and in any order.

use std::collections::BTreeMap;

use adamant::{Engine, Error, Keyspace, Slice, Store};

use crate::place::{Place, assert_whole, entries};

/// Fill of the nodes of the keyspace `main`, 0 to 1.
fn fill_of(store: &Store) -> f64 {
    let report = store.check().unwrap();
    report.keyspaces.iter().find(|keyspace| keyspace.name == "main").unwrap().tree.leaf_fill()
}

fn pair(number: u32) -> (Vec<u8>, Vec<u8>) {
    let bytes = if number.is_multiple_of(700) { 9_000 } else { number as usize % 60 };
    (format!("{number:08}").into_bytes(), vec![number as u8; bytes])
}

/// Into an empty keyspace, after all of it, between its entries, over them.
pub fn in_order(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut model = BTreeMap::new();
    let mut load = |keyspace: &Keyspace, numbers: &mut dyn Iterator<Item = u32>| {
        let pairs: Vec<_> = numbers.map(pair).collect();
        let loaded = keyspace.load_sorted(pairs.iter().map(|(key, value)| (key, value))).unwrap();
        let before = model.len() + pairs.len();
        assert_eq!(loaded.entries, pairs.len() as u64);
        model.extend(pairs);
        assert_eq!(loaded.replaced, (before - model.len()) as u64);
        assert!(entries(keyspace).into_iter().eq(model.clone()));
    };
    load(&keyspace, &mut (0..0));
    load(&keyspace, &mut (10_000..14_000));
    if matches!(place.engine(), Engine::Bplus | Engine::Btree) {
        let fill = fill_of(&store);
        assert!(fill >= 0.95, "nodes are {fill} full");
    }
    load(&keyspace, &mut (20_000..23_000).step_by(3));
    load(&keyspace, &mut (20_301..20_302));
    load(&keyspace, &mut (0..1_500));
    load(&keyspace, &mut (14_000..19_999));
    load(&keyspace, &mut (9_000..21_000).step_by(2));
    assert_whole(&store);
}

/// A key that does not ascend is an error with its position; earlier complete pieces are there, and
/// the old content.
pub fn what_does_not_ascend_is_refused(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("00000000", "before").unwrap();
    for (position, bad) in [(1, 1), (2, 1), (700, 20), (3_000, 7)] {
        let mut pairs: Vec<_> = (1..4_000).map(pair).collect();
        pairs[position].0 = pair(bad).0;
        let error = keyspace.load_sorted(pairs.clone()).unwrap_err();
        let found =
            matches!(&error, Error::NotAscending { position: at } if *at == position as u64);
        assert!(found, "{error:?}");
        assert!(error.to_string().contains(&position.to_string()), "{error}");
        let found = entries(&keyspace);
        assert_eq!(found[0].1, b"before");
        let loaded = found.len() - 1;
        assert!(loaded <= position && position - loaded <= 1024, "{loaded} of {position}");
        assert!(found[1..] == pairs[..loaded]);
        assert_whole(&store);
        keyspace.move_range("00000001".., &place.keyspace(&store, "aside")).unwrap();
    }
    let long = [0; 65_536];
    assert!(matches!(keyspace.load_sorted([(&long, "")]), Err(Error::KeyTooLong { .. })));
    assert!(matches!(keyspace.extend([(&long, "")]), Err(Error::KeyTooLong { .. })));
    // The empty key twice is out of order, as any key.
    let refused = keyspace.load_sorted([("", ""), ("", "")]);
    assert!(matches!(refused, Err(Error::NotAscending { position: 1 })));
}

/// Entries in any order, many of them several times: the last one wins.
pub fn in_any_order(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut random = fastrand::Rng::with_seed(5);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for count in [0, 1, 50, 5_000] {
        let pairs: Vec<_> = (0..count)
            .map(|_| (pair(random.u32(0..3_000)).0, pair(random.u32(0..3_000)).1))
            .collect();
        let loaded = keyspace.extend(pairs.clone()).unwrap();
        let before = model.len() + pairs.len();
        model.extend(pairs);
        assert_eq!((loaded.entries, loaded.replaced), (count, (before - model.len()) as u64));
        assert!(entries(&keyspace).into_iter().eq(model.clone()));
    }
    assert_whole(&store);
    drop((keyspace, store));
    let store = place.open();
    assert!(entries(&place.keyspace(&store, "main")).into_iter().eq(model));
}

/// From one keyspace into another, by an iterator that reads the store meanwhile.
pub fn from_the_same_store(place: &dyn Place) {
    let store = place.open();
    let (keyspace, other) = (place.keyspace(&store, "main"), store.keyspace("other").unwrap());
    other.extend((0..3_000).rev().map(pair)).unwrap();
    let copied = keyspace.load_sorted(other.iter().map(Result::unwrap)).unwrap();
    assert_eq!(copied.entries, 3_000);
    assert_eq!(entries(&keyspace), entries(&other));
    let backwards = other.iter().rev().map(|entry| {
        let (key, _) = entry.unwrap();
        (key.clone(), other.get(&key).unwrap().unwrap())
    });
    let replaced = keyspace.extend(backwards).unwrap();
    assert_eq!(replaced.replaced, 3_000);
    assert_eq!(entries(&keyspace), entries(&other));
    store.drop_keyspace("main").unwrap();
    assert!(matches!(keyspace.load_sorted([("k", "v")]), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(keyspace.extend([("k", "v")]), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(other.get("00000001").unwrap(), Some(Slice::from(pair(1).1)));
    assert_whole(&store);
}
