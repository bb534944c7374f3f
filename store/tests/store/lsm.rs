//! Keyspaces of the engine `lsm` in a store: their files, and the store's promises for every
//! engine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use adamant::{
    Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, LsmStats, Options, Slice, Store,
};
use adamant_sim::{Call, Hooked, SimDirectory, SimDisk};

use crate::device_bytes;

fn small() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level0_tables_max = 4;
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

/// A load used to leave a pool of several memtables behind, as large as half of its tables.
#[test]
#[cfg_attr(windows, ignore = "files have no holes there")]
fn at_rest_the_room_of_memtables_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut options = LsmOptions::default();
    options.memtable_bytes_max = 1 << 20;
    let options = Options::new().durability(Durability::Buffered).lsm(options);
    let store = Store::open_with(&path, options).unwrap();
    let data = keyspace(&store, "data");
    let taken = || device_bytes(path.join("pool"));
    for round in 0..2_u8 {
        // One commit goes to one memtable, and needs room for all of it.
        let mut batch = store.batch();
        for number in 0..1_600_u32 {
            batch.put(&data, format!("{number:05}"), vec![round; 10_000]).unwrap();
        }
        batch.commit().unwrap();
        let start = Instant::now();
        while taken() > 6 << 20 {
            assert!(start.elapsed() < Duration::from_secs(120), "{} bytes", taken());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(data.iter().count(), 1_600);
        assert_eq!(data.get("00007").unwrap().unwrap(), vec![round; 10_000][..]);
    }
    store.close().unwrap();
}

/// During writes, level 0 is merged by many tables at once. If the rest stayed there, every read
/// would search it until the next write.
#[test]
fn at_rest_few_tables_are_left_on_level_0() {
    let directory = tempfile::tempdir().unwrap();
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.level0_tables_max = 40;
    let options = Options::new().durability(Durability::Buffered).lsm(lsm);
    let store = Store::open_with(directory.path().join("store"), options).unwrap();
    let data = keyspace(&store, "data");
    let wait_until = |is_so: &dyn Fn(&LsmStats) -> bool| {
        let start = Instant::now();
        loop {
            let stats = data.lsm().unwrap().stats().unwrap();
            if is_so(&stats) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "{stats:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for round in 1..=16_u32 {
        for number in 0..1_000_u32 {
            data.put(format!("{:05}", round * 600 + number), vec![7; 70]).unwrap();
        }
        wait_until(&|stats| stats.flushes >= u64::from(round));
    }
    // A merge is counted just after its tables are there.
    wait_until(&|stats| stats.levels[0].tables < 14 && stats.compactions > 0);
    assert_eq!(data.len().unwrap(), 16 * 600 + 400);
    store.close().unwrap();
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
    // Files that are just being merged or read go a moment later.
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
                batch.put(keyspace, key.to_le_bytes(), round.to_le_bytes()).unwrap();
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
    // Behind, before, and over existing entries.
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

/// Inserts and removals pre-read before they take the writer lock: changes in between count,
/// whether they are still in a memtable, or were flushed, or merged.
#[test]
fn who_writes_is_told_what_was_there_whoever_came_between() {
    const THREADS: u64 = 4;
    let directory = tempfile::tempdir().unwrap();
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 2 << 10;
    lsm.table_bytes_max = 4 << 10;
    lsm.base_bytes_min = 8 << 10;
    lsm.level0_tables_max = 1;
    let options = Options::new().durability(Durability::Deferred).lsm(lsm);
    let store = Store::open_with(directory.path().join("store"), options).unwrap();
    let data = keyspace(&store, "data");
    // How often a key was inserted, less how often it was removed.
    let counts: Vec<AtomicI64> = (0..12).map(|_| AtomicI64::new(0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (data, counts) = (&data, &counts);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..1_500 {
                    let number = random.usize(..counts.len());
                    let key = format!("key {number:02}");
                    let change = match random.u8(..4) {
                        0 => -i64::from(data.remove(&key).unwrap()),
                        1 => -i64::from(data.take(&key).unwrap().is_some()),
                        _ => i64::from(!data.insert(&key, [7; 60]).unwrap()),
                    };
                    counts[number].fetch_add(change, Ordering::Relaxed);
                }
            });
        }
    });
    for (number, count) in counts.iter().enumerate() {
        let is_there = data.contains(format!("key {number:02}")).unwrap();
        assert_eq!(count.load(Ordering::Relaxed), i64::from(is_there), "key {number}");
    }
    assert!(data.lsm().unwrap().stats().unwrap().flushes > 20, "memtables came and went");
}

/// The search for the highest key covers tables of any level and passes tombstones.
#[test]
fn a_range_without_an_end_takes_all_above_its_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    let long = vec![0xff; 65_535];
    for number in 0..3_000 {
        data.put(format!("{number:05}"), [1; 100]).unwrap();
    }
    data.compact().unwrap();
    for number in 2_000..3_000 {
        data.delete(format!("{number:05}")).unwrap();
    }
    data.delete_range("01500"..).unwrap();
    assert_eq!(data.last().unwrap().unwrap().0, *"01499");
    data.put("01700", "new").unwrap();
    data.put(&long, "the highest of all").unwrap();
    data.delete_range("01600"..).unwrap();
    assert_eq!(data.last().unwrap().unwrap().0, *"01499");
    assert!(!data.contains(&long).unwrap());
    data.delete_range("9"..).unwrap();
    data.compact().unwrap();
    assert_eq!(data.len().unwrap(), 1_500);
    data.delete_range(..).unwrap();
    assert!(data.is_empty().unwrap());
    assert!(store.check().unwrap().is_clean());
}

/// A table that cannot be read and may hold the highest key: an error, and nothing is removed.
#[test]
fn a_range_whose_end_cannot_be_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    for number in 0..2_000 {
        data.put(format!("{number:05}"), [1; 100]).unwrap();
    }
    data.compact().unwrap();
    store.close().unwrap();
    for file in std::fs::read_dir(path.join("tables")).unwrap() {
        let file = std::fs::OpenOptions::new().write(true).open(file.unwrap().path()).unwrap();
        file.set_len(100).unwrap();
    }
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    let refused = data.delete_range("00500"..).map(drop);
    assert!(refused.is_err_and(|error| error.is_damaged()));
    // A removal without that search works, and a later change finds the writer lock free.
    data.delete_range("00000".."00500").unwrap();
    assert_eq!(data.lsm().unwrap().stats().unwrap().memtables[0].entries, 1);
    data.put("k", "v").unwrap();
    assert_eq!(data.get("k").unwrap(), Some("v".into()));
}

/// Fills a keyspace with values, one in three in a blob file; returns its contents.
fn fill_with_blobs(data: &Keyspace) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut model = BTreeMap::new();
    for number in 0..600_u32 {
        let len = if number % 3 == 0 { 1_500 } else { 20 };
        model.insert(format!("{number:05}").into_bytes(), vec![number as u8; len]);
    }
    data.load_sorted(&model).unwrap();
    data.compact().unwrap();
    model
}

#[test]
fn keys_and_entries_come_without_blob_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let model = fill_with_blobs(&keyspace(&store, "data"));
    store.close().unwrap();
    // Without the files none can be read.
    let blobs: Vec<_> =
        std::fs::read_dir(path.join("blobs")).unwrap().map(Result::unwrap).collect();
    assert!(!blobs.is_empty());
    blobs.iter().for_each(|blob| std::fs::remove_file(blob.path()).unwrap());

    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    let snapshot = store.snapshot().unwrap();
    let mut transaction = store.begin().unwrap();
    let all: Vec<Slice> = model.keys().map(|key| Slice::from(&key[..])).collect();
    assert!(data.iter().keys().map(Result::unwrap).eq(all.iter().cloned()));
    assert!(data.iter().keys().rev().map(Result::unwrap).eq(all.iter().rev().cloned()));
    assert!(snapshot.iter(&data).keys().map(Result::unwrap).eq(all.iter().cloned()));
    assert!(transaction.iter(&data).keys().map(Result::unwrap).eq(all.iter().cloned()));
    assert_eq!((data.len().unwrap(), snapshot.len(&data).unwrap()), (600, 600));
    assert!(!data.is_empty().unwrap() && !snapshot.is_empty(&data).unwrap());
    assert!(data.contains("00003").unwrap() && transaction.contains(&data, "00003").unwrap());

    let entries: Vec<_> = data.iter().entries().map(Result::unwrap).collect();
    for (entry, (key, value)) in entries.iter().zip(&model) {
        assert_eq!(entry.key()[..], key[..]);
        match entry.value() {
            Ok(found) => assert_eq!(found[..], value[..]),
            Err(error) => {
                let text = error.to_string();
                assert!(value.len() > 1_000 && error.is_damaged(), "{text}");
                assert!(text.contains("data") && text.contains("blobs"), "{text}");
            }
        }
    }
    assert!(data.iter().any(|pair| pair.is_err()), "pairs have their values");
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_blob_that_is_damaged_is_named_when_its_value_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let model = fill_with_blobs(&keyspace(&store, "data"));
    store.close().unwrap();
    let blob = std::fs::read_dir(path.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&blob).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&blob, bytes).unwrap();

    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    let mut wrong = Vec::new();
    for (entry, (key, value)) in data.iter().entries().zip(&model) {
        let entry = entry.unwrap();
        assert_eq!(entry.key()[..], key[..]);
        match entry.value() {
            Ok(found) => assert_eq!(found[..], value[..]),
            Err(error) => wrong.push(error),
        }
    }
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    let text = wrong[0].to_string();
    let name = blob.file_name().unwrap().to_str().unwrap();
    assert!(wrong[0].is_damaged(), "{text}");
    assert!(text.contains("data") && text.contains(name) && text.contains("at byte"), "{text}");
}

/// If a failing device is taken for damage, an intact store is repaired.
#[test]
fn a_check_tells_what_could_not_be_read_from_damage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    fill_with_blobs(&keyspace(&store, "data"));
    store.close().unwrap();
    let blob = std::fs::read_dir(path.join("blobs")).unwrap().next().unwrap().unwrap().path();
    let aside = directory.path().join("aside");
    std::fs::rename(&blob, &aside).unwrap();
    let check = || Store::open_read_only(&path).unwrap().check().unwrap();
    let report = check();
    assert!(!report.is_clean() && !report.is_unread(), "it is missing: {:?}", report.findings);
    // It can be opened, but the system cannot read it.
    std::fs::create_dir(&blob).unwrap();
    let report = check();
    assert!(report.is_unread(), "{:?}", report.findings);
    assert!(report.findings[0].what.contains("os error"), "{:?}", report.findings);
    std::fs::remove_dir(&blob).unwrap();
    std::fs::rename(&aside, &blob).unwrap();
    let report = check();
    assert!(report.is_clean() && !report.is_unread(), "{:?}", report.findings);
}

/// Files of a compacted store are numbered from the beginning: an entry that released a file of the
/// earlier store would have removed one of the new.
#[test]
fn entries_that_outlive_their_store_take_no_file_of_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    fill_with_blobs(&data);
    let entries: Vec<_> = data.iter().entries().map(Result::unwrap).collect();
    data.clear().unwrap();
    let model = fill_with_blobs(&data);
    drop(data);
    store.close().unwrap();
    adamant::compact(&path).unwrap();
    drop(entries);
    let store = Store::open_with(&path, small()).unwrap();
    assert_holds(&keyspace(&store, "data"), &model);
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
}

/// An earlier handle used to keep its old tree, and all of its files, as long as it lived.
#[test]
fn a_handle_keeps_no_files_of_what_was_cleared_or_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, small()).unwrap();
    let data = keyspace(&store, "data");
    for is_dropped in [false, true] {
        fill_with_blobs(&data);
        data.compact().unwrap();
        assert!(files(&path) > 1, "{} files", files(&path));
        let snapshot = store.snapshot().unwrap();
        let first = data.first().unwrap().unwrap();
        if is_dropped {
            assert!(store.drop_keyspace("data").unwrap());
        } else {
            data.clear().unwrap();
        }
        assert_eq!(snapshot.get(&data, &first.0).unwrap(), Some(first.1), "a snapshot sees it");
        drop(snapshot);
        assert_eq!(files(&path), 0, "dropped: {is_dropped}");
    }
    assert!(data.get("key").is_err(), "it was dropped");
}

/// Such a handle went on to delete as if by the engine that it was opened with: in a keyspace that
/// had become one of the engine `lsm`, nothing of a range without an end.
#[test]
fn a_handle_from_before_a_conversion_deletes_ranges() {
    for (before, after) in [(Engine::Bplus, Engine::Lsm), (Engine::Lsm, Engine::Btree)] {
        let store = Store::in_memory().unwrap();
        let options = KeyspaceOptions::new().engine(before);
        let handle = store.keyspace_with("main", options).unwrap();
        handle.extend((0..2_000).map(|number| (format!("{number:04}"), "v"))).unwrap();
        assert!(store.convert_keyspace("main", after).unwrap());
        handle.delete_range("1500"..).unwrap();
        assert_eq!((handle.len().unwrap(), handle.engine()), (1_500, before));
        assert_eq!(handle.retain("0100".."1500", |_, _| false).unwrap(), 1_400);
        assert_eq!(handle.pop_last().unwrap().map(|(key, _)| key), Some("0099".into()));
    }
}

/// Removed entries that no merge would need go when no commits come.
#[test]
fn an_idle_store_frees_what_was_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let options = small().durability(Durability::Deferred);
    let store = Store::open_with(directory.path().join("store"), options).unwrap();
    let data = keyspace(&store, "data");
    let write = |keys: std::ops::Range<u32>, is_there: bool| {
        let mut batch = store.batch();
        for key in keys {
            match is_there {
                true => batch.put(&data, key.swap_bytes().to_le_bytes(), [7; 100]).unwrap(),
                false => batch.delete(&data, key.swap_bytes().to_le_bytes()).unwrap(),
            }
        }
        batch.commit().unwrap();
    };
    write(0..20_000, true);
    data.compact().unwrap();
    write(0..4_000, false);
    // What fills the memtable, so that the tombstones come into a table.
    write(20_000..20_700, true);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let levels = data.lsm().unwrap().levels().unwrap();
        let tables = levels.iter().flatten();
        let (entries, tombstones) = tables.fold((0, 0), |(entries, tombstones), table| {
            (entries + table.entries, tombstones + table.tombstones)
        });
        if entries >= 16_000 && tombstones == 0 && entries < 17_000 {
            break;
        }
        assert!(Instant::now() < deadline, "{entries} entries, {tombstones} tombstones");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The memtable that a compaction by hand has flushed leaves no space behind.
#[test]
#[cfg_attr(windows, ignore = "files have no holes there")]
fn an_idle_store_gives_back_what_a_compaction_has_freed() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Deferred);
    let store = Store::open_with(directory.path().join("store"), options).unwrap();
    let data = keyspace(&store, "data");
    data.extend((0..20_000_u32).map(|number| (number.to_le_bytes(), [7; 1_000]))).unwrap();
    for number in 0..20_000_u32 {
        data.put(number.to_le_bytes(), [8; 1_000]).unwrap();
    }
    let pool = directory.path().join("store/pool");
    let pool_bytes = || device_bytes(&pool);
    assert!(pool_bytes() > 16 << 20, "{}", pool_bytes());
    data.compact().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while pool_bytes() > 8 << 20 {
        assert!(Instant::now() < deadline, "{} bytes", pool_bytes());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The log is longer while memtables are; when these are gone, that is space for others.
#[test]
#[cfg_attr(windows, ignore = "under Wine the log is never that far behind")]
fn a_log_beyond_its_limit_gives_way_on_a_full_disk() {
    const LIMIT: u64 = 16 << 20;
    let disk = SimDisk::new(1).without_history();
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 12 << 20;
    let options = Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(LIMIT);
    // The log gets that long only if flushes are slower than the puts beside them.
    let slowly = |call, path: &Path| {
        let is_table = path.parent().is_some_and(|parent| parent.ends_with("tables"));
        if call == Call::Write && is_table {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    };
    let directory = Hooked::new(SimDirectory::root(&disk), slowly).within();
    let store = Store::open_directory(Arc::new(directory), options).unwrap();
    let (data, tree) = (keyspace(&store, "data"), store.keyspace("tree").unwrap());
    let log_bytes = || store.stats().unwrap().heap.journal.log_allocated_bytes;
    let (mut random, mut most) = (fastrand::Rng::with_seed(1), 0);
    let noise: Vec<u8> = (0..1 << 20).map(|_| random.u8(..)).collect();
    let mut value = |bytes| &noise[random.usize(..noise.len() - bytes)..][..bytes];
    for number in 0..30_000_u32 {
        data.put(number.wrapping_mul(0x9E37_79B9).to_le_bytes(), value(1_000)).unwrap();
        most = most.max(log_bytes());
    }
    assert!(most > LIMIT + (2 << 20) && most <= 3 * LIMIT, "{most}");
    drop(data);
    store.drop_keyspace("data").unwrap();
    store.sync().unwrap();
    disk.set_space_bytes(Some(disk.space_used_bytes() + (8 << 20)));
    let full = (0_u32..).find_map(|at| tree.put(at.to_le_bytes(), value(3_000)).err());
    assert!(full.as_ref().is_some_and(|error| error.is_out_of_space()), "{full:?}");
    assert!(log_bytes() <= LIMIT, "{} are kept", log_bytes());
    assert!(store.check().unwrap().is_clean());
}
