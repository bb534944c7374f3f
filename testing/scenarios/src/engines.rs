//! Engines: storage, counts and reclaimed space.

use adamant::{Engine, Error, KeyspaceOptions, Slice};

use crate::place::{Place, assert_whole, entries};

/// Entries are counted, by keyspace and all together.
pub fn count_entries(place: &dyn Place) {
    let store = place.open();
    place.keyspace(&store, "towns").insert("Bern", "1").unwrap();
    place.keyspace(&store, "a").insert("k", "v").unwrap();
    place.keyspace(&store, "a").insert("l", "v").unwrap();
    let listed: Vec<(String, u64)> =
        store.keyspaces().unwrap().into_iter().map(|info| (info.name, info.entries)).collect();
    assert_eq!(listed, [("a".into(), 2), ("towns".into(), 1)]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.keyspaces, stats.entries), (2, 3));
}

/// Dropping a keyspace reclaims its space: repeated filling and dropping does not grow the store.
pub fn dropping_frees_all(place: &dyn Place) {
    let store = place.open();
    let mut pages = Vec::new();
    for _ in 0..6 {
        let keyspace = place.keyspace(&store, "main");
        let mut batch = store.batch();
        for number in 0..3_000 {
            let bytes = if number % 100 == 0 { 9_000 } else { 100 };
            batch.put(&keyspace, format!("{number}"), vec![1; bytes]).unwrap();
        }
        batch.commit().unwrap();
        pages.push(store.stats().unwrap().heap.pool_bytes);
        store.drop_keyspace("main").unwrap();
        assert_whole(&store);
    }
    assert_eq!(pages[1], pages[5], "bytes of the pool after each round: {pages:?}");
}

/// A keyspace keeps the engine that it was created with, and opening it with another one is
/// refused.
pub fn engines_are_kept(place: &dyn Place) {
    let engine = place.engine();
    {
        let store = place.open();
        let keyspace = place.keyspace(&store, "main");
        assert_eq!(keyspace.engine(), engine);
        keyspace.insert("k", "v").unwrap();
    }
    let store = place.open();
    for other in Engine::ALL {
        let opened = store.keyspace_with("main", KeyspaceOptions::new().engine(other));
        if other == engine {
            assert_eq!(opened.unwrap().get("k").unwrap(), Some(Slice::from("v")));
            continue;
        }
        let error = opened.unwrap_err();
        assert!(
            matches!(&error, Error::WrongEngine { name, expected, found }
                if name == "main" && *expected == other.name() && *found == engine.name()),
            "{error:?}"
        );
        assert!(error.to_string().contains(engine.name()), "{error}");
    }
    let keyspace = store.open_keyspace("main").unwrap();
    assert_eq!(keyspace.engine(), engine);
    match keyspace.lsm() {
        Ok(lsm) => assert!(engine == Engine::Lsm && lsm.stats().is_ok()),
        Err(Error::WrongEngine { name, expected, found }) => {
            assert_eq!((&*name, expected, found), ("main", "lsm", engine.name()));
        }
        Err(error) => panic!("{error}"),
    }
    assert_eq!(store.keyspaces().unwrap()[0].engine, engine);
    assert!(matches!("heap".parse::<Engine>(), Err(Error::EngineName { .. })));
    assert_eq!(engine.name().parse::<Engine>().unwrap(), engine);
    assert_whole(&store);
}

/// From each engine to each other one: all entries stay, earlier handles and iterators continue,
/// and nothing is left of the old tree.
pub fn converting_keeps_all(place: &dyn Place) {
    let store = place.open();
    let old = place.keyspace(&store, "main");
    let expected: Vec<_> = (0..3_000_u32)
        .map(|number| {
            let bytes = if number % 500 == 0 { 9_000 } else { 20 };
            (format!("{:05}", number * 7).into_bytes(), vec![number as u8; bytes])
        })
        .collect();
    let mut batch = store.batch();
    for (key, value) in &expected {
        batch.put(&old, key, value).unwrap();
    }
    batch.commit().unwrap();
    for engine in Engine::ALL.into_iter().chain([place.engine()]) {
        let before = store.open_keyspace("main").unwrap();
        let mut iterator = before.iter();
        assert_eq!(*iterator.next().unwrap().unwrap().0, *expected[0].0);
        assert_eq!(store.convert_keyspace("main", engine).unwrap(), before.engine() != engine);
        assert!(!store.convert_keyspace("main", engine).unwrap());
        let after = store.open_keyspace("main").unwrap();
        assert_eq!(after.engine(), engine);
        assert_eq!(entries(&after), expected);
        assert_eq!(entries(&old), expected);
        assert_eq!(iterator.count(), expected.len() - 1);
        // Both handles are the same keyspace, also in one batch.
        let mut batch = store.batch();
        batch.put(&old, "0", "1").unwrap();
        batch.put(&after, "0", "2").unwrap();
        batch.commit().unwrap();
        assert_eq!(before.take("0").unwrap(), Some(Slice::from("2")));
        assert_eq!(old.len().unwrap(), expected.len() as u64);
        assert_whole(&store);
    }
    assert!(matches!(
        store.convert_keyspace("none", Engine::Critbit),
        Err(Error::UnknownKeyspace { .. })
    ));
    drop((old, store));
    assert_eq!(entries(&place.keyspace(&place.open(), "main")), expected);
}
