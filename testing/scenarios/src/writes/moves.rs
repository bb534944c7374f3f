//! Moves of values: to other keys, other keyspaces, other engines.

use adamant::{Compression, Engine, Error, Keyspace, KeyspaceOptions, Moved, Slice, Store};

use crate::place::{Place, assert_whole, entries};

/// Sizes of values: inline, at the border, with blocks of their own.
const SIZES: [usize; 6] = [0, 20, 4096, 4097, 100_000, 300_000];

/// A keyspace of each engine, and three whose values are compressed in different ways.
fn of_each_engine(store: &Store) -> Vec<Keyspace> {
    let with_values = |name: &str, compression: Compression| {
        let options = KeyspaceOptions::new().value_compression(compression);
        if let Ok(keyspace) = store.open_keyspace(name) {
            return keyspace;
        }
        store.create_keyspace_with(name, options).unwrap()
    };
    let packed = [with_values("lz4", Compression::Lz4), with_values("zstd", Compression::Zstd(1))];
    let dictionary = with_values("dictionary", Compression::Zstd(2));
    let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * n / 7) as u8).collect();
    store.compress_values("dictionary", Compression::Zstd(2), Some(&bytes)).unwrap();

    let of = |engine: Engine| {
        let options = KeyspaceOptions::new().engine(engine);
        store.keyspace_with(engine.name(), options).unwrap()
    };
    Engine::ALL.into_iter().map(of).chain(packed).chain([dictionary]).collect()
}

/// A rename replaces any existing value, and says so; an absent key is not moved.
pub fn renames(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for size in SIZES {
        let value = vec![size as u8; size];
        keyspace.insert("old", &value).unwrap();
        assert_eq!(keyspace.rename("old", "new").unwrap(), Moved::Placed);
        assert_eq!(keyspace.rename("old", "new").unwrap(), Moved::Absent);
        assert_eq!(keyspace.rename("new", "new").unwrap(), Moved::Placed);
        assert!(keyspace.get("new").unwrap().unwrap() == value);
        keyspace.insert("other", "loser").unwrap();
        assert_eq!(keyspace.rename("new", "other").unwrap(), Moved::Replaced);
        assert_eq!(keyspace.len().unwrap(), 1);
        assert!(keyspace.take("other").unwrap().unwrap() == value);
        assert_whole(&store);
    }
    // The empty key is one like any other.
    keyspace.insert("a", "value").unwrap();
    assert_eq!(keyspace.rename("a", "").unwrap(), Moved::Placed);
    assert_eq!(keyspace.first().unwrap(), Some(("".into(), "value".into())));
    assert_eq!(keyspace.rename("", "a").unwrap(), Moved::Placed);
    let long = vec![0; 65_536];
    assert!(matches!(keyspace.rename("a", &long), Err(Error::KeyTooLong { .. })));
}

/// From keyspace to keyspace, over all engines and back, also by handles from before a conversion.
pub fn between_keyspaces(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let others = of_each_engine(&store);
    for size in SIZES {
        let value = vec![7; size];
        keyspace.insert("k", &value).unwrap();
        let mut at = (&keyspace, String::from("k"));
        for (number, other) in others.iter().chain([&keyspace]).enumerate() {
            // Under its own key, and under another.
            for key in [at.1.clone(), format!("{number}")] {
                assert_eq!(at.0.move_to(&at.1, other, &key).unwrap(), Moved::Placed);
                assert!(other.get(&key).unwrap().unwrap() == value);
                at = (other, key);
            }
            let all = others.iter().chain([&keyspace]).map(|one| one.len().unwrap());
            assert_eq!(all.sum::<u64>(), 1, "the value is in one place");
        }
        assert!(keyspace.take(at.1).unwrap().unwrap() == value);
    }
    let target = if place.engine() == Engine::Critbit { Engine::Bplus } else { Engine::Critbit };
    keyspace.insert("k", "v").unwrap();
    assert!(store.convert_keyspace("main", target).unwrap());
    let converted = store.open_keyspace("main").unwrap();
    assert_eq!(keyspace.move_to("k", &converted, "l").unwrap(), Moved::Placed);
    assert_eq!(converted.get("l").unwrap(), Some(Slice::from("v")));
    store.drop_keyspace("main").unwrap();
    assert!(matches!(keyspace.rename("l", "m"), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(others[0].move_to("l", &keyspace, "m"), Err(Error::KeyspaceDropped { .. })));
    assert_whole(&store);
}

/// Both values change their keys, or none does.
pub fn swaps(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let others = of_each_engine(&store);
    for (left, right) in SIZES.into_iter().flat_map(|left| SIZES.map(|right| (left, right))) {
        let (left, right) = (vec![1; left], vec![2; right]);
        let other = &others[left.len() % others.len()];
        keyspace.insert("a", &left).unwrap();
        keyspace.insert("b", &right).unwrap();
        assert!(keyspace.swap("a", &keyspace, "b").unwrap());
        assert!(keyspace.get("a").unwrap().unwrap() == right);
        assert!(!keyspace.swap("a", other, "c").unwrap());
        assert!(!other.swap("c", &keyspace, "a").unwrap());
        other.insert("c", "other").unwrap();
        assert!(keyspace.swap("b", other, "c").unwrap());
        assert!(other.take("c").unwrap().unwrap() == left);
        assert_eq!(keyspace.get("b").unwrap(), Some(Slice::from("other")));
    }
    assert_eq!(keyspace.len().unwrap(), 2);
    assert_whole(&store);
}

/// Ranges move to each engine and back, over several commits; they replace existing entries.
pub fn ranges(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut batch = store.batch();
    for number in 0..2_000 {
        let bytes = if number % 100 == 0 { 9_000 } else { 10 };
        batch.put(&keyspace, format!("{number:05}"), vec![number as u8; bytes]).unwrap();
    }
    batch.commit().unwrap();
    let whole = entries(&keyspace);
    for other in of_each_engine(&store) {
        other.insert("00700", "loser").unwrap();
        let moved = keyspace.move_range("00500".."01500", &other).unwrap();
        assert_eq!((moved.moved, moved.replaced), (1_000, 1));
        assert_eq!(entries(&other), whole[500..1_500]);
        assert_eq!(keyspace.len().unwrap(), 1_000);
        assert_eq!(keyspace.move_range("00500".."01500", &other).unwrap().moved, 0);
        assert_eq!(other.move_range("b".."a", &keyspace).unwrap().moved, 0);
        assert_eq!(other.move_range(.., &other).unwrap().moved, 0);
        assert_eq!(other.move_range(.., &keyspace).unwrap().moved, 1_000);
        assert!(other.is_empty().unwrap());
        assert_eq!(entries(&keyspace), whole);
    }
    assert_whole(&store);
}

/// Moves of a batch take effect in order, all of them or none.
pub fn in_batches(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let other = &of_each_engine(&store)[1];
    let large = vec![3; 50_000];
    keyspace.insert("today", &large).unwrap();
    let mut batch = store.batch();
    batch.put(&keyspace, "b", "1").unwrap();
    batch.put(&keyspace, "b", "2").unwrap();
    batch.rename(&keyspace, "b", "a").unwrap();
    batch.put(&keyspace, "b", "3").unwrap();
    batch.rename(&keyspace, "today", "yesterday").unwrap();
    batch.put(&keyspace, "today", "4").unwrap();
    batch.swap(&keyspace, "a", &keyspace, "b").unwrap();
    batch.move_to(&keyspace, "yesterday", other, "archive").unwrap();
    batch.rename(&keyspace, "never there", "b").unwrap();
    batch.swap(&keyspace, "b", other, "never there").unwrap();
    let long = [0; 65_536];
    assert!(matches!(batch.rename(&keyspace, long, "b"), Err(Error::KeyTooLong { .. })));
    let refused = batch.swap(&keyspace, &b"b"[..], other, &long[..]);
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })));
    assert_eq!(batch.len(), 10);
    batch.commit().unwrap();
    let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(entries(&keyspace), [pair("a", "3"), pair("b", "2"), pair("today", "4")]);
    assert!(entries(other) == [(b"archive".to_vec(), large.clone())]);
    // A keyspace of it is dropped before the commit: nothing has moved.
    let goes = place.keyspace(&store, "goes");
    let mut batch = store.batch();
    batch.rename(&keyspace, "a", "z").unwrap();
    batch.move_to(&keyspace, "b", &goes, "b").unwrap();
    store.drop_keyspace("goes").unwrap();
    assert!(matches!(batch.commit(), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(entries(&keyspace), [pair("a", "3"), pair("b", "2"), pair("today", "4")]);
    assert_whole(&store);
}

/// A value moves within its store only.
pub fn other_stores_are_refused(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let foreign = Store::in_memory().unwrap().keyspace("main").unwrap();
    keyspace.insert("k", "v").unwrap();
    foreign.insert("k", "v").unwrap();
    let error = keyspace.move_to("k", &foreign, "k").unwrap_err();
    assert!(matches!(&error, Error::OtherStore { name } if name == "main"), "{error:?}");
    assert!(error.to_string().contains("another store"), "{error}");
    assert!(matches!(foreign.swap("k", &keyspace, "k"), Err(Error::OtherStore { .. })));
    assert!(matches!(keyspace.move_range(.., &foreign), Err(Error::OtherStore { .. })));
    let mut batch = store.batch();
    let refused = batch.move_to(&keyspace, "k", &foreign, "k");
    assert!(matches!(refused, Err(Error::OtherStore { .. })));
    assert!(batch.is_empty());
    assert_eq!((keyspace.len().unwrap(), foreign.len().unwrap()), (1, 1));
}

/// A reader of a large value keeps it, whatever happens to its key.
pub fn lent_values_stay(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let others = of_each_engine(&store);
    let bytes = vec![9; 100_000];
    keyspace.insert("k", &bytes).unwrap();
    let held = keyspace.get("k").unwrap().unwrap();
    assert_eq!(keyspace.rename("k", "l").unwrap(), Moved::Placed);
    let again = keyspace.get("l").unwrap().unwrap();
    if place.engine() != Engine::Lsm && place.values().is_none() {
        // The others copy.
        assert_eq!(held.as_ptr(), again.as_ptr(), "the value has not moved in memory");
    }
    keyspace.move_to("l", &others[2], "m").unwrap();
    others[2].insert("n", vec![1; 100_000]).unwrap();
    others[2].swap("m", &others[2], "n").unwrap();
    assert!(held == bytes && others[2].get("n").unwrap().unwrap() == bytes);
    assert!(others[2].remove("n").unwrap());
    for number in 0..20_u8 {
        keyspace.insert([number], vec![number; 100_000]).unwrap();
    }
    assert!(held == bytes && again == bytes, "what is lent is not used again");
    drop((held, again));
    assert_whole(&store);
}

/// Moved values are there after reopening, and only in their new place.
pub fn are_there_after_reopening(place: &dyn Place) {
    let value = |number: usize| vec![number as u8; SIZES[number % SIZES.len()]];
    {
        let store = place.open();
        let keyspace = place.keyspace(&store, "main");
        for number in 0..64 {
            keyspace.insert(format!("{number:02}"), value(number)).unwrap();
        }
        let others = of_each_engine(&store);
        for number in 0..64 {
            let key = format!("{number:02}");
            keyspace.move_to(&key, &others[number % others.len()], key.repeat(2)).unwrap();
        }
        if place.engine() == Engine::Btree {
            store.close().unwrap();
        }
    }
    let store = place.open();
    assert!(place.keyspace(&store, "main").is_empty().unwrap());
    let others = of_each_engine(&store);
    for (at, other) in others.iter().enumerate() {
        assert_eq!(other.len().unwrap(), 64 / others.len() as u64);
        for number in (at..64).step_by(others.len()) {
            let found = other.get(format!("{number:02}").repeat(2)).unwrap().unwrap();
            assert!(found == value(number), "{number}");
        }
    }
    assert_whole(&store);
}
