//! Figures of keyspaces: counts of what was done, bytes, the use of the block cache, estimates of
//! ranges against a model, and what an estimate reads.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Barrier;
use std::thread;

use adamant::{
    Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, RangeEstimate, Store,
};

const ENGINES: [Engine; 5] = Engine::ALL;

/// Memtables and tables of some thousand entries, and blocks of some 30.
fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 256 << 10;
    lsm.table_bytes_max = 512 << 10;
    lsm.base_bytes_min = 1 << 20;
    Options::new().durability(Durability::Buffered).lsm(lsm)
}

fn made(store: &Store, engine: Engine) -> Keyspace {
    store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
}

fn counts(keyspace: &Keyspace) -> (u64, u64, u64) {
    let stats = keyspace.stats().unwrap();
    (stats.lookups, stats.scanned, stats.writes)
}

#[test]
fn reads_and_writes_are_counted_wherever_they_come_from() {
    let store = Store::in_memory().unwrap();
    for engine in ENGINES {
        let data = made(&store, engine);
        assert_eq!(counts(&data), (0, 0, 0));
        data.put("a", "1").unwrap();
        data.put("b", "2").unwrap();
        data.delete("b").unwrap();
        assert_eq!(counts(&data), (0, 0, 3), "{engine}");
        data.get("a").unwrap();
        data.contains("b").unwrap();
        data.get_with("a", <[u8]>::len).unwrap();
        data.multi_get(["a", "b", "c"]).unwrap();
        assert_eq!(counts(&data), (6, 0, 3), "{engine}");
        let snapshot = store.snapshot().unwrap();
        snapshot.get(&data, "a").unwrap();
        snapshot.multi_get(&data, ["a", "b"]).unwrap();
        assert_eq!(counts(&data).0, 9);
        drop(snapshot);
        let mut batch = store.batch();
        for number in 0..10 {
            batch.put(&data, format!("c{number}"), "3").unwrap();
        }
        batch.commit().unwrap();
        assert_eq!(counts(&data).2, 13);
        let before = counts(&data).1;
        assert_eq!(data.iter().count(), 11);
        assert_eq!(counts(&data).1, before + 11);
        let mut transaction = store.begin().unwrap();
        transaction.get(&data, "a").unwrap();
        transaction.put(&data, "d", "4").unwrap();
        transaction.commit().unwrap();
        assert_eq!((counts(&data).0, counts(&data).2), (10, 14), "{engine}");
        // A conflict writes nothing.
        let mut transaction = store.begin().unwrap();
        transaction.get(&data, "a").unwrap();
        data.put("a", "5").unwrap();
        transaction.put(&data, "d", "6").unwrap();
        assert!(transaction.commit().unwrap_err().is_conflict());
        assert_eq!(counts(&data).2, 15, "{engine}");
        // Large enough for chunks.
        let mut batch = store.batch();
        for number in 0..20_000_u32 {
            batch.put(&data, number.to_le_bytes(), "7").unwrap();
        }
        batch.commit().unwrap();
        assert_eq!(counts(&data).2, 20_015, "{engine}");
        data.extend((0..1_000_u32).map(|it| (it.to_le_bytes(), "8"))).unwrap();
        assert_eq!(counts(&data).2, 21_015, "{engine}");
        let handle = store.keyspace(engine.name()).unwrap();
        assert_eq!(counts(&handle), counts(&data), "all handles show the same");
    }
}

/// No count is lost between threads, of which there are more than a counter has slots.
#[test]
fn counts_of_many_threads_add_up() {
    const THREADS: u64 = 24;
    const GETS: u64 = 500;
    let store = Store::in_memory().unwrap();
    let data = made(&store, Engine::Bplus);
    data.put("key", "value").unwrap();
    let all_run = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                all_run.wait();
                (0..GETS).for_each(|_| _ = data.get("key").unwrap());
            });
        }
    });
    assert_eq!(counts(&data), (THREADS * GETS, 0, 1));
}

#[test]
fn bytes_are_those_that_the_medium_gives() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(directory.path().join("store"), options()).unwrap();
    for engine in ENGINES {
        let data = made(&store, engine);
        let used = || store.stats().unwrap().heap.used_bytes;
        let before = used();
        for number in 0..8_000_u32 {
            // One in five has a block of its own.
            let bytes = if number % 5 == 0 { 5_000 } else { 80 };
            data.put(format!("{:08x}", number.wrapping_mul(0x9E37_79B9)), vec![7; bytes]).unwrap();
        }
        let stats = data.stats().unwrap();
        assert_eq!(stats.entries, 8_000);
        if engine != Engine::Lsm {
            let taken = (used() - before) as f64;
            let factor = stats.heap_bytes as f64 / taken;
            println!("{engine}: {} bytes, of {taken} in use", stats.heap_bytes);
            assert!((0.6..1.3).contains(&factor), "{engine}: {stats:?}, {taken}");
            assert_eq!((stats.table_bytes, stats.blob_bytes), (0, 0));
            continue;
        }
        data.compact().unwrap();
        let stats = data.stats().unwrap();
        let lsm = stats.lsm.clone().expect("an LSM tree");
        let files = |name: &str| {
            let all = directory.path().join("store").join(name).read_dir().unwrap();
            all.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>()
        };
        let on_disk = (files("tables"), files("blobs"));
        assert_eq!((stats.table_bytes, stats.blob_bytes), on_disk);
        assert!(stats.blob_bytes > 0 && lsm.levels.iter().any(|level| level.tables > 0));
        assert_eq!(stats.bytes(), stats.heap_bytes + stats.table_bytes + stats.blob_bytes);
    }
}

type Model = BTreeMap<Vec<u8>, usize>;

/// Keys of several shapes: evenly spread, and most of them in a small part.
fn fill(data: &Keyspace, is_skewed: bool, random: &mut fastrand::Rng, model: &mut Model) {
    for _ in 0..30_000 {
        let number = match is_skewed && random.u32(..10) > 0 {
            true => 40_000_000 + random.u32(..200_000),
            false => random.u32(..100_000_000),
        };
        let (key, bytes) = (format!("{number:09}").into_bytes(), 20 + number as usize / 1_000_000);
        let value: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
        data.put(&key, value).unwrap();
        model.insert(key, bytes);
    }
}

#[test]
fn estimates_are_near_the_truth() {
    let seed = 23;
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for (engine, is_skewed) in
        [Engine::Bplus, Engine::Lsm].into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        let store = Store::open_directory(
            std::sync::Arc::new(adamant_heap::MemoryDirectory::new()),
            // Else the estimates are those of what compactions have left to do.
            options().background(false),
        )
        .unwrap();
        let data = made(&store, engine);
        let mut model = Model::new();
        fill(&data, is_skewed, &mut random, &mut model);
        // As it comes, with memtables and overlapping tables; then all in one level.
        for is_compact in [false, true] {
            if is_compact {
                data.compact().unwrap();
            }
            let (mut sum, mut worst) = (0.0, 0.0_f64);
            let keys: Vec<_> = model.keys().cloned().collect();
            for _ in 0..200 {
                let entries = 1_000 << random.u32(..5);
                let first = random.usize(..keys.len() - entries);
                let (low, high) = (&keys[first][..], &keys[first + entries][..]);
                let found = data.estimate(low..high).unwrap();
                let within = (Bound::Included(low.to_vec()), Bound::Excluded(high.to_vec()));
                let all = model.range(within);
                let bytes: usize = all.map(|(key, value)| key.len() + value).sum();
                let error = found.entries.abs_diff(entries as u64) as f64 / entries as f64;
                (sum, worst) = (sum + error, worst.max(error));
                let factor = found.bytes as f64 / bytes as f64;
                // Entries of tables have heads beside keys and values.
                assert!((0.5..1.9).contains(&factor), "{engine}: {bytes} bytes, {found:?}");
            }
            let mean = sum / 200.0;
            println!("{engine}, {is_skewed}, {is_compact}: error {mean:.3}, at most {worst:.3}");
            assert!(mean < 0.2 && worst < 0.7, "{engine}: {mean}, {worst}");
        }
        let len = data.len().unwrap();
        let all = data.estimate(..).unwrap();
        assert!(all.entries.abs_diff(len) <= len / 50, "{engine}: {all:?} of {len}");
        assert_eq!(data.estimate("x".."y").unwrap().entries, 0);
        let none = RangeEstimate::default();
        assert_eq!(data.estimate("9".."1").map(|it| it.entries).unwrap(), none.entries);
    }
}

/// An estimate reads parts of indexes, two of each table at most, and no data block; hits and
/// misses of the block cache say so.
#[test]
fn an_estimate_reads_no_data_block() {
    // Nothing is cached or pinned, so that every block that is read is a miss.
    let options = options().cache_bytes_max(0).pinned_bytes_max(0);
    let directory = std::sync::Arc::new(adamant_heap::MemoryDirectory::new());
    let store = Store::open_directory(directory, options).unwrap();
    let data = made(&store, Engine::Lsm);
    fill(&data, false, &mut fastrand::Rng::with_seed(29), &mut Model::new());
    data.compact().unwrap();
    let lsm = || data.stats().unwrap().lsm.unwrap();
    let tables: u64 = lsm().levels.iter().map(|level| level.tables).sum();
    assert!(tables >= 3, "{tables}");
    for (low, high) in [("01", "09"), ("011", "0110"), ("0", "1"), ("05", "06")] {
        let before = lsm().cache_misses;
        data.estimate(low..high).unwrap();
        let read = lsm().cache_misses - before;
        assert!(read <= 2, "{read} blocks, where the ends lie in two tables");
    }
    let before = lsm().cache_misses;
    data.get("050000000").unwrap();
    assert!((1..=3).contains(&(lsm().cache_misses - before)), "filter, index and data");
}

/// With the option, what is read of one keyspace does not stay in the cache, and what is read of
/// another does.
#[test]
fn data_that_is_not_cached_leaves_the_cache_to_others() {
    let store = Store::open_directory(
        std::sync::Arc::new(adamant_heap::MemoryDirectory::new()),
        options().cache_bytes_max(64 << 10),
    )
    .unwrap();
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let hot = store.keyspace_with("hot", lsm).unwrap();
    let cold = store.keyspace_with("cold", lsm.caches_data(false)).unwrap();
    let key = |number: u32| format!("{number:09}");
    for data in [&hot, &cold] {
        data.extend((0..20_000).map(|it| (key(it), [7; 100]))).unwrap();
        data.compact().unwrap();
    }
    let misses = |data: &Keyspace| data.stats().unwrap().lsm.unwrap().cache_misses;
    let hits = |data: &Keyspace| data.stats().unwrap().lsm.unwrap().cache_hits;
    // Some blocks of the hot one, more than once.
    let read_hot = || (0..40).for_each(|it| assert!(hot.get(key(it * 5)).unwrap().is_some()));
    (0..3).for_each(|_| read_hot());
    let before = (misses(&hot), hits(&hot));
    let mut random = fastrand::Rng::with_seed(31);
    for _ in 0..3_000 {
        let number = random.u32(..20_000);
        assert!(cold.get(key(number)).unwrap().is_some());
    }
    // Each of them reads its data block anew.
    assert!(misses(&cold) >= 3_000 && hits(&cold) < misses(&cold), "{}", misses(&cold));
    read_hot();
    assert_eq!(misses(&hot), before.0, "they are still there");
    assert!(hits(&hot) > before.1);
    // It is the same keyspace with another option: what is read from now on stays.
    store.keyspace_with("cold", lsm.caches_data(true)).unwrap();
    cold.get(key(7)).unwrap();
    let before = misses(&cold);
    cold.get(key(7)).unwrap();
    assert_eq!(misses(&cold), before);
}

#[test]
fn the_path_is_the_one_that_it_was_opened_at() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let clone = store.clone();
    assert_eq!(store.path(), Some(&*path));
    store.close().unwrap();
    assert_eq!(clone.path(), Some(&*path), "also when it is closed");
    drop(clone);
    assert_eq!(Store::open_read_only(&path).unwrap().path(), Some(&*path));
    assert_eq!(Store::open_beside(&path).unwrap().path(), Some(&*path));
    assert_eq!(Store::in_memory().unwrap().path(), None);
}
