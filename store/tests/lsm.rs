//! Keyspaces of the engine `lsm` in a store: their files, and what the store promises of every engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};

fn small() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level_ratio = 4;
    lsm.blob_bytes_min = Some(1000);
    Options::new().durability(Durability::Buffered).lsm(lsm).cache_bytes_max(64 << 10)
}

fn keyspace(store: &Store, name: &str) -> Keyspace {
    store.keyspace_with(name, KeyspaceOptions::new().engine(Engine::Lsm)).unwrap()
}

fn files(path: &Path) -> usize {
    let count = |name| std::fs::read_dir(path.join(name)).map_or(0, Iterator::count);
    count("tables") + count("blobs")
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let len = if random.u8(0..20) == 0 { random.usize(1000..3000) } else { random.usize(0..200) };
    vec![random.u8(..); len]
}

fn assert_holds(keyspace: &Keyspace, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let mut expected = model.iter();
    for entry in keyspace.iter() {
        let (key, value) = entry.unwrap();
        let (expected_key, expected_value) = expected.next().expect("no more than the model");
        assert!(key == expected_key[..] && value == expected_value[..]);
    }
    assert!(expected.next().is_none());
}

#[test]
fn what_is_larger_than_memtables_comes_back_and_its_files_go_with_it() {
    let seed = 21;
    let mut random = fastrand::Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut model = BTreeMap::new();
    for round in 0..4 {
        let store = Store::open_with(&path, small()).unwrap();
        let data = keyspace(&store, "data");
        assert_holds(&data, &model);
        let before = store.snapshot().unwrap();
        let then = model.clone();
        for _ in 0..4_000 {
            let key = format!("{:05}", random.u32(0..6_000)).into_bytes();
            if random.u8(0..4) == 0 {
                assert_eq!(data.remove(&key).unwrap(), model.remove(&key).is_some());
            } else {
                let value = value(&mut random);
                data.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        assert_holds(&data, &model);
        let mut seen = then.iter();
        for entry in before.iter(&data) {
            let (key, value) = entry.unwrap();
            let expected = seen.next().unwrap();
            assert!(key == expected.0[..] && value == expected.1[..], "round {round}");
        }
        assert!(seen.next().is_none() && files(&path) > 3);
        drop(before);
        if round == 2 {
            data.compact().unwrap();
        }
        assert_holds(&data, &model);
        let report = store.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        if round % 2 == 0 {
            store.close().unwrap();
        }
    }
    let store = Store::open_with(&path, small()).unwrap();
    store.backup(directory.path().join("copy")).unwrap();
    assert!(store.drop_keyspace("data").unwrap());
    // What is being merged or read just then goes a moment later.
    let begun = std::time::Instant::now();
    while files(&path) > 0 && begun.elapsed().as_secs() < 30 {
        std::thread::yield_now();
    }
    assert_eq!(files(&path), 0);
    assert!(store.check().unwrap().is_clean());
    let copy = Store::open_with(directory.path().join("copy"), small()).unwrap();
    assert_holds(&keyspace(&copy, "data"), &model);
    assert!(copy.check().unwrap().is_clean());
}

#[test]
fn a_commit_over_all_engines_is_seen_whole_or_not_at_all() {
    let store = Store::open_directory(
        std::sync::Arc::new(adamant_medium::memory::MemoryDirectory::new()),
        small(),
    )
    .unwrap();
    let of_engine = |engine: Engine| {
        store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
    };
    let all: Vec<Keyspace> = Engine::ALL.into_iter().map(of_engine).collect();
    let write = |round: u32| {
        let mut batch = store.batch();
        for keyspace in &all {
            for key in 0..1_000_u32 {
                batch.insert(keyspace, key.to_le_bytes(), round.to_le_bytes()).unwrap();
            }
        }
        batch.commit().unwrap();
    };
    write(0);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (store, all, is_done) = (&store, &all, &is_done);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let mut looks = 0;
                while !is_done.load(Ordering::Relaxed) || looks < 20 {
                    let snapshot = store.snapshot().unwrap();
                    let key = random.u32(0..1_000).to_le_bytes();
                    let seen = all.iter().map(|keyspace| snapshot.get(keyspace, key).unwrap());
                    let seen: Vec<_> = seen.collect();
                    assert!(seen.iter().all(|value| *value == seen[0]), "{seen:?}");
                    looks += 1;
                }
            });
        }
        for round in 1..25 {
            write(round);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn large_loads_go_straight_to_tables_and_are_seen_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    let before = store.snapshot().unwrap();
    let pair = |number: u32| (format!("{number:08}"), vec![number as u8; 300]);
    let loaded = data.load_sorted((10_000..20_000).map(pair)).unwrap();
    assert_eq!((loaded.entries, loaded.replaced), (10_000, 0));
    let log_bytes = store.stats().unwrap().heap.journal.log_appended_bytes;
    assert_eq!(before.iter(&data).count(), 0);
    let among = store.snapshot().unwrap();
    // Behind, before, and over what is there.
    assert_eq!(data.load_sorted((20_000..30_000).map(pair)).unwrap().replaced, 0);
    assert_eq!(data.load_sorted((0..10_000).map(pair)).unwrap().replaced, 0);
    assert_eq!(data.load_sorted((5_000..15_000).map(pair)).unwrap().replaced, 10_000);
    assert_eq!(data.extend((25_000..35_000).rev().map(pair)).unwrap().replaced, 5_000);
    assert_eq!(among.iter(&data).count(), 10_000);
    let model: BTreeMap<_, _> =
        (0..35_000).map(pair).map(|(key, value)| (key.into_bytes(), value)).collect();
    assert_holds(&data, &model);
    assert!(log_bytes < 64 << 10, "the log of the first load has {log_bytes} bytes");
    data.put("00000007", "new").unwrap();
    assert_eq!(data.get("00000007").unwrap(), Some("new".into()));
    drop((before, among, data));
    store.close().unwrap();
    let store = Store::open_with(&path, small()).unwrap();
    assert_eq!(keyspace(&store, "data").len().unwrap(), 35_000);
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

#[test]
fn stores_without_it_have_none_of_its_directories() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    store.keyspace("main").unwrap().put("a", "b").unwrap();
    store.close().unwrap();
    assert!(!path.join("tables").exists() && !path.join("blobs").exists());
}
