//! Compressed values of trees: their space, their options, conversions, copies.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use adamant::{
    Compression, Engine, Error, Keyspace, KeyspaceOptions, Options, Store, ValueCompression,
};
use adamant_heap::MemoryDirectory;

/// Text of some hundred bytes, as records are.
pub(crate) fn record(number: u32) -> Vec<u8> {
    let version = |minor: u32| {
        format!("{{\"version\": \"1.{minor}.{}\", \"yanked\": false}}", number % (minor + 2))
    };
    let versions: Vec<String> = (0..6).map(version).collect();
    let text = format!(
        "{{\"name\": \"package-{number}\", \"license\": \"MIT OR Apache-2.0\", \"downloads\": {}, \
         \"description\": \"The package number {number} of many that do what others do, too: it \
         reads records, writes records and compares records\", \"keywords\": [\"records\", \
         \"packages\", \"keyspace {}\"], \"versions\": [{}]}}",
        number * 7919 % 100_000,
        number % 13,
        versions.join(", ")
    );
    text.into_bytes()
}

fn compressions() -> impl Iterator<Item = Compression> {
    [Compression::Lz4, Compression::zstd()].into_iter().filter(|one| one.is_built())
}

fn options(values: impl Into<ValueCompression>) -> KeyspaceOptions {
    KeyspaceOptions::new().value_compression(values)
}

pub(crate) fn assert_whole(store: &Store) {
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

#[test]
fn records_take_half_of_the_space_and_with_a_dictionary_a_third() {
    let records = || (0..20_000).map(|number| (format!("{number:05}"), record(number)));
    // Of what is free nothing is said: the blocks in use are what counts.
    let used_bytes = |store: &Store| {
        assert_whole(store);
        let found = store.occupancy().unwrap();
        let of_classes = found.classes.iter().map(|class| class.block_bytes * class.allocated);
        of_classes.sum::<u64>() + 4096 * found.extent_pages
    };
    for compression in compressions() {
        let store = Store::in_memory().unwrap();
        let all = store.keyspace("all").unwrap();
        all.load_sorted(records()).unwrap();
        let plain = used_bytes(&store);
        assert!(store.compress_values("all", compression, None).unwrap());
        let packed = used_bytes(&store);
        assert!(packed * 4 < plain * 3, "{compression}: {packed} of {plain} bytes");
        if let Compression::Zstd(_) = compression {
            let dictionary = store.train_dictionary("all", 8 << 10).unwrap();
            assert!(store.compress_values("all", compression, Some(&dictionary)).unwrap());
            assert!(!store.compress_values("all", compression, Some(&dictionary)).unwrap());
            let smallest = used_bytes(&store);
            assert!(smallest * 2 < plain, "{smallest} of {plain} bytes");
            assert!(smallest < packed, "{smallest} of {packed} bytes");
            let info = &store.keyspaces().unwrap()[0];
            assert_eq!(info.values, Some(compression.into()));
            assert_eq!(info.dictionary_bytes as usize, dictionary.len());
        }
        assert_eq!(all.get("00007").unwrap().unwrap(), record(7));
        assert!(store.compress_values("all", Compression::None, None).unwrap());
        let again = used_bytes(&store);
        assert!(again.abs_diff(plain) < plain / 50, "{again} of {plain} bytes");
        assert_eq!(store.keyspaces().unwrap()[0].values, None);
        // Loaded, and put one by one, they take the same.
        let fresh = Store::in_memory().unwrap();
        let all = fresh.keyspace_with("all", options(compression)).unwrap();
        for (key, value) in records() {
            all.put(key, value).unwrap();
        }
        fresh.compact().unwrap();
        let put = used_bytes(&fresh);
        assert!(put * 10 < packed * 11, "{compression}: {put} and {packed} bytes");
    }
}

#[test]
fn an_option_is_for_a_new_keyspace_or_for_new_values() {
    let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new().background(false));
    let store = open().unwrap();
    // To have none is no option, and an empty keyspace can get any.
    let main = store.keyspace_with("main", options(Compression::None)).unwrap();
    assert_eq!(store.keyspaces().unwrap()[0].values, None);
    main.put("before", record(1)).unwrap();
    let refused = store.keyspace_with("main", options(Compression::Lz4)).unwrap_err();
    assert!(matches!(&refused, Error::PlainValues { name } if name == "main"), "{refused}");
    main.delete("before").unwrap();
    store.keyspace_with("main", options(Compression::Lz4)).unwrap();
    main.put("by lz4", record(2)).unwrap();
    // Another threshold, another method: what is there stays.
    let longer = ValueCompression::from(Compression::Lz4).with_bytes_min(5000);
    store.keyspace_with("main", options(longer)).unwrap();
    main.put("plain", record(3)).unwrap();
    store.keyspace_with("main", options(Compression::None)).unwrap();
    main.put("plain, too", record(4)).unwrap();
    for compression in compressions() {
        store.keyspace_with("main", options(compression)).unwrap();
        main.put(format!("by {compression}"), record(5)).unwrap();
    }
    store.keyspace("main").unwrap();
    let last = compressions().last().unwrap();
    store.close().unwrap();
    let store = open().unwrap();
    let main = store.open_keyspace("main").unwrap();
    assert_eq!(store.keyspaces().unwrap()[0].values, Some(last.into()));
    for (key, number) in [("by lz4", 2), ("plain", 3), ("plain, too", 4)] {
        let number = if key == "by lz4" { 5 } else { number };
        assert_eq!(main.get(key).unwrap().unwrap(), record(number), "{key}");
    }
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm).value_compression(Compression::Lz4);
    assert!(matches!(store.keyspace_with("log", lsm), Err(Error::WrongEngine { .. })));
    let wrong = store.keyspace_with("other", options(Compression::Zstd(23))).unwrap_err();
    assert!(wrong.to_string().contains("value_compression"), "{wrong}");
    let wrong = store.compress_values("main", Compression::Lz4, Some(b"bytes")).unwrap_err();
    assert!(wrong.to_string().contains("dictionary"), "{wrong}");
    assert!(store.compress_values("none", Compression::Lz4, None).is_err());
    assert!(store.train_dictionary("main", 1024).is_err(), "too few values");
    assert_whole(&store);
}

/// Whatever becomes of a keyspace, its dictionary is freed once, with the last tree that needs it.
#[test]
fn a_dictionary_has_one_owner() {
    if !Compression::zstd().is_built() {
        return;
    }
    let store = Store::in_memory().unwrap();
    let fill = |keyspace: &Keyspace| {
        keyspace.extend((0..100).map(|number| (format!("{number}"), record(number)))).unwrap();
    };
    let empty = store.occupancy().unwrap().classes.iter().map(|it| it.allocated).sum::<u64>();
    for keeps_snapshot in [false, true] {
        let main = store.keyspace("main").unwrap();
        fill(&main);
        store.compress_values("main", Compression::zstd(), Some(&record(1))).unwrap();
        let snapshot = keeps_snapshot.then(|| store.snapshot().unwrap());
        main.clear().unwrap();
        assert_whole(&store);
        fill(&main);
        store.rename_keyspace("main", "other").unwrap();
        for engine in [Engine::Btree, Engine::Lsm, Engine::Redblack] {
            store.convert_keyspace("other", engine).unwrap();
            assert_whole(&store);
        }
        store.compress_values("other", Compression::zstd(), Some(&record(2))).unwrap();
        store.convert_keyspace("other", Engine::Lsm).unwrap();
        store.compress_values("other", Compression::zstd(), Some(&record(3))).unwrap();
        store.compress_values("other", Compression::Lz4, None).unwrap();
        store.convert_keyspace("other", Engine::Bplus).unwrap();
        if let Some(snapshot) = snapshot {
            assert_eq!(snapshot.get(&main, "7").unwrap().unwrap(), record(7));
            assert_whole(&store);
        }
        assert_eq!(main.get("7").unwrap().unwrap(), record(7));
        assert_whole(&store);
        assert!(store.drop_keyspace("other").unwrap());
        assert_whole(&store);
    }
    let left = store.occupancy().unwrap().classes.iter().map(|it| it.allocated).sum::<u64>();
    assert!(left <= empty + 4, "{left} blocks, and {empty} before");
}

/// All the ways to store values, by the number of each.
pub(crate) fn ways() -> Vec<(Compression, Option<Vec<u8>>)> {
    let mut ways = vec![(Compression::None, None), (Compression::Lz4, None)];
    if Compression::zstd().is_built() {
        ways.push((Compression::zstd(), None));
        ways.push((Compression::zstd(), Some(record(0))));
        ways.push((Compression::Zstd(1), Some([record(1), record(2)].concat())));
    }
    ways
}

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn entries(keyspace: &Keyspace) -> Model {
    keyspace.iter().map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

/// Copies of a store have what it has: by blocks, by entries, and by repair.
#[test]
fn copies_have_the_values_and_what_says_how_they_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = Store::open(path("store")).unwrap();
    for (number, (compression, dictionary)) in ways().iter().enumerate() {
        let name = format!("{number}");
        let keyspace = store.keyspace_with(&name, options(*compression)).unwrap();
        store.compress_values(&name, *compression, dictionary.as_deref()).unwrap();
        keyspace.extend((0..500).map(|number| (format!("{number:03}"), record(number)))).unwrap();
        keyspace.put("large", record(9).repeat(99)).unwrap();
    }
    let infos = store.keyspaces().unwrap();
    let expected: Vec<Model> =
        infos.iter().map(|info| entries(&store.open_keyspace(&info.name).unwrap())).collect();
    store.backup(path("backup")).unwrap();
    store.close().unwrap();
    adamant::compact(path("store")).unwrap();
    for name in ["store", "backup"] {
        let store = Store::open(path(name)).unwrap();
        assert_eq!(store.keyspaces().unwrap(), infos);
        for (info, expected) in infos.iter().zip(&expected) {
            assert!(entries(&store.open_keyspace(&info.name).unwrap()) == *expected);
        }
        assert_whole(&store);
        for info in &infos {
            assert!(store.drop_keyspace(&info.name).unwrap());
        }
        assert_whole(&store);
        assert_eq!(store.keyspaces().unwrap(), []);
    }
}

/// Closures get plain values, and what is lent for long stays.
#[test]
fn plain_values_are_lent_and_compressed_ones_decoded() {
    let store = Store::in_memory().unwrap();
    for compression in compressions() {
        let name = compression.to_string();
        let keyspace = store.keyspace_with(&name, options(compression)).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let noise: Vec<u8> = (0..9000).map(|_| random.u8(..)).collect();
        keyspace.put("noise", &noise).unwrap();
        keyspace.put("text", record(1).repeat(30)).unwrap();
        let held = keyspace.get("noise").unwrap().unwrap();
        let kept: Vec<_> = keyspace.iter().entries().map(|entry| entry.unwrap()).collect();
        keyspace.put("noise", "short").unwrap();
        keyspace.delete("text").unwrap();
        assert_eq!(held, noise);
        assert_eq!(kept[0].value().unwrap(), noise);
        assert_eq!(kept[1].value().unwrap(), record(1).repeat(30));
        let mut lent = Vec::new();
        keyspace
            .iter()
            .lend(|key, value| {
                lent.push((key.to_vec(), value.to_vec()));
                ControlFlow::<()>::Continue(())
            })
            .unwrap();
        assert_eq!(lent, [(b"noise".to_vec(), b"short".to_vec())]);
        assert_eq!(keyspace.get_with("noise", |value| value.len()).unwrap(), Some(5));
    }
}
