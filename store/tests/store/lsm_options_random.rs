//! Random work on keyspaces whose options change: dropped, made anew, renamed, exchanged, cleared
//! and converted while snapshots of them are open, in stores of tiny caches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use adamant::{
    Compression, Durability, Engine, Keyspace, KeyspaceOptions, LevelCompression, LsmOptions,
    Options, Snapshot, Store,
};
use adamant_medium::memory::MemoryDirectory;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn one(random: &mut fastrand::Rng) -> Compression {
    let all = [Compression::None, Compression::Lz4, Compression::zstd(), Compression::Zstd(12)];
    let built: Vec<_> = all.into_iter().filter(|compression| compression.is_built()).collect();
    built[random.usize(..built.len())]
}

/// Options of the engine `lsm`, at least one of them.
fn own(random: &mut fastrand::Rng) -> KeyspaceOptions {
    let levels = LevelCompression::from([one(random), one(random)]).bottommost(one(random));
    let mut options = KeyspaceOptions::new().engine(Engine::Lsm).compression(levels);
    if random.bool() {
        options = options.block_bytes([64, 500, 8 << 20][random.usize(..3)]);
    }
    if random.bool() {
        options = options.filter_bits_per_key([0, 1, 30][random.usize(..3)]);
    }
    if random.bool() {
        options = options.hash_index(random.bool());
    }
    if random.bool() {
        options = options.blob_bytes_min([None, Some(0), Some(100)][random.usize(..3)]);
    }
    options
}

/// Options of a store: small files, and caches that nothing fits into.
fn of_store(random: &mut fastrand::Rng) -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 8 << 10;
    lsm.table_bytes_max = 16 << 10;
    lsm.base_bytes_min = 32 << 10;
    lsm.level0_tables_max = 3;
    lsm.level_ratio = 3;
    lsm.compression = one(random).into();
    lsm.block_bytes = [64, 4096, 8 << 20][random.usize(..3)];
    lsm.blob_bytes_min = [None, Some(0), Some(1000)][random.usize(..3)];
    let mut options = Options::new().durability(Durability::Buffered).lsm(lsm);
    options = options.cache_bytes_max([0, 1, 10_000, 1 << 30][random.usize(..4)]);
    options = options.pinned_bytes_max([0, 1, 10_000][random.usize(..3)]);
    options = options.open_files_max([0, 1, 100][random.usize(..3)]);
    options.background(random.u8(..4) > 0)
}

/// A keyspace and what it holds.
#[derive(Clone)]
struct Held {
    name: String,
    keyspace: Keyspace,
    model: Model,
}

struct User {
    directory: Arc<MemoryDirectory>,
    random: fastrand::Rng,
    store: Option<Store>,
    held: Vec<Held>,
    /// Snapshots, and all keyspaces at their moments.
    moments: Vec<(Snapshot, Vec<Held>)>,
    names: u32,
}

fn assert_same(found: impl Iterator<Item = (Vec<u8>, Vec<u8>)>, model: &Model, at: &str) {
    let mut expected = model.iter();
    for (key, value) in found {
        let (expected_key, expected_value) = expected.next().expect("no more than the model");
        assert!(key == *expected_key && value == *expected_value, "{at}: {key:?}");
    }
    assert!(expected.next().is_none(), "{at}: entries are missing");
}

impl User {
    fn store(&self) -> &Store {
        self.store.as_ref().expect("it is open")
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        // Names come back, as those of dropped keyspaces.
        format!("data {}", self.names % 5)
    }

    fn make(&mut self) {
        let name = self.new_name();
        if self.held.iter().any(|held| held.name == name) {
            return;
        }
        let options = own(&mut self.random);
        let keyspace = self.store().create_keyspace_with(&name, options).unwrap();
        self.held.push(Held { name, keyspace, model: Model::new() });
    }

    fn write(&mut self, at: usize) {
        for _ in 0..self.random.usize(1..250) {
            let held = &mut self.held[at];
            let key = format!("{:0>4}", self.random.u32(..3_000)).into_bytes();
            if self.random.u8(..5) == 0 {
                assert_eq!(held.keyspace.remove(&key).unwrap(), held.model.remove(&key).is_some());
                continue;
            }
            let bytes = [0, 1, 30, 120, 1_500][self.random.usize(..5)];
            let value = vec![self.random.u8(b'a'..b'd'); bytes];
            held.keyspace.put(&key, &value).unwrap();
            held.model.insert(key, value);
        }
    }

    fn reopen(&mut self) {
        self.moments.clear();
        let options = of_store(&mut self.random);
        if let Some(store) = self.store.take() {
            store.close().unwrap();
        }
        let directory: Arc<MemoryDirectory> = Arc::clone(&self.directory);
        self.store = Some(Store::open_directory(directory, options).unwrap());
        for at in 0..self.held.len() {
            let name = &self.held[at].name;
            self.held[at].keyspace = self.store().open_keyspace(name).unwrap();
        }
    }

    fn step(&mut self) {
        let (choice, count) = (self.random.u8(..40), self.held.len());
        if count == 0 {
            return self.make();
        }
        let at = self.random.usize(..count);
        let name = self.held[at].name.clone();
        match choice {
            0..3 if count < 4 => self.make(),
            3 => {
                assert!(self.store().drop_keyspace(&name).unwrap());
                self.held.swap_remove(at);
            }
            4 | 5 => {
                let new_name = self.new_name();
                let is_free = self.held.iter().all(|held| held.name != new_name);
                assert_eq!(self.store().rename_keyspace(&name, &new_name).is_ok(), is_free);
                if is_free {
                    self.held[at].name = new_name;
                }
            }
            6 if count > 1 => {
                let other = (at + 1) % count;
                self.store().swap_keyspaces(&name, &self.held[other].name).unwrap();
                self.held[at].name = std::mem::replace(&mut self.held[other].name, name);
            }
            7 | 8 => {
                let engine = [Engine::Lsm, Engine::Bplus, Engine::Btree][self.random.usize(..3)];
                self.store().convert_keyspace(&name, engine).unwrap();
            }
            9 => {
                self.held[at].keyspace.clear().unwrap();
                self.held[at].model.clear();
            }
            10 | 11 => self.held[at].keyspace.compact().unwrap(),
            12..16 => {
                let options = own(&mut self.random);
                let is_lsm = self.store().open_keyspace(&name).unwrap().engine() == Engine::Lsm;
                let given = self.store().keyspace_with(&name, options).map(drop);
                assert_eq!(given.is_ok(), is_lsm, "{given:?}");
            }
            16..19 => {
                let snapshot = self.store().snapshot().unwrap();
                self.moments.push((snapshot, self.held.clone()));
            }
            19..21 if !self.moments.is_empty() => {
                let moment = self.random.usize(..self.moments.len());
                self.moments.swap_remove(moment);
            }
            21 => self.reopen(),
            _ => self.write(at),
        }
    }

    fn assert_holds(&self) {
        let vecs = |(key, value): (adamant::Slice, adamant::Slice)| (key.to_vec(), value.to_vec());
        for Held { name, keyspace, model } in &self.held {
            assert_same(keyspace.iter().map(|entry| vecs(entry.unwrap())), model, name);
        }
        for (snapshot, held) in &self.moments {
            for Held { name, keyspace, model } in held {
                let found = snapshot.iter(keyspace).map(|entry| vecs(entry.unwrap()));
                assert_same(found, model, &format!("a snapshot of {name}"));
                if let Some((key, value)) = model.iter().nth(model.len() / 2) {
                    assert_eq!(snapshot.get(keyspace, key).unwrap().unwrap(), value[..]);
                }
            }
        }
    }
}

#[test]
fn snapshots_see_keyspaces_as_they_were_whatever_becomes_of_them_and_their_options() {
    for seed in 0..4 {
        let directory = Arc::new(MemoryDirectory::new());
        let random = fastrand::Rng::with_seed(seed);
        let (held, moments) = (Vec::new(), Vec::new());
        let mut user = User { directory, random, store: None, held, moments, names: 0 };
        user.reopen();
        for step in 0..150 {
            user.step();
            if step % 8 == 0 {
                user.assert_holds();
            }
        }
        user.assert_holds();
        let report = user.store().check().unwrap();
        assert!(report.is_clean(), "{:?}", report.findings);
        user.reopen();
        user.assert_holds();
    }
}

/// Loads one range of keys after the other, each behind the one before.
fn load_until(data: &Keyspace, goes_on: &dyn Fn() -> bool) {
    for round in 0.. {
        let pairs = (0..4_000).map(|number| (format!("l {round:04} {number:04}"), [7; 300]));
        assert_eq!(data.load_sorted(pairs).unwrap().replaced, 0);
        assert_eq!(data.prefix(format!("l {round:04}")).count(), 4_000);
        if !goes_on() {
            break;
        }
        data.range("l".."m").count();
    }
}

/// Writers, readers and loads beside changes of options, merges of all tables and conversions.
#[test]
fn options_change_while_others_read_and_write() {
    const WRITERS: u32 = 2;
    let directory = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(9);
    let store = Store::open_with(directory.path(), of_store(&mut random).background(true)).unwrap();
    let data = store.keyspace_with("data", own(&mut random)).unwrap();
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    // The number of the last round that each writer has written in full.
    let written: Vec<_> = (0..WRITERS).map(|_| AtomicU32::new(0)).collect();
    let key = |writer: u32, number: u32| format!("{writer} {number:03}");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (data, written) = (&data, &written[writer as usize]);
            scope.spawn(move || {
                for round in 1.. {
                    for number in 0..200 {
                        data.put(key(writer, number), round.to_string().repeat(20)).unwrap();
                    }
                    written.store(round, Ordering::Release);
                    if !goes_on() {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(1);
            while goes_on() {
                let writer = random.u32(..WRITERS);
                let least = written[writer as usize].load(Ordering::Acquire);
                let found = data.get(key(writer, random.u32(..200))).unwrap();
                let most = written[writer as usize].load(Ordering::Acquire) + 1;
                let is_one = |value: &[u8]| {
                    (least..=most).any(|round| value == round.to_string().repeat(20).as_bytes())
                };
                assert!(found.is_none_or(|value| is_one(&value)), "rounds {least} to {most}");
            }
        });
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(2);
            while goes_on() {
                match random.u8(..10) {
                    0 => drop(store.convert_keyspace("data", Engine::Bplus).unwrap()),
                    1 | 2 => drop(store.convert_keyspace("data", Engine::Lsm).unwrap()),
                    // It may be of another engine just now.
                    3..8 => drop(store.keyspace_with("data", own(&mut random))),
                    _ => data.compact().unwrap(),
                }
            }
        });
        scope.spawn(|| load_until(&data, &goes_on));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_500) {
            std::thread::sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for writer in 0..WRITERS {
        let last = written[writer as usize].load(Ordering::Acquire).to_string().repeat(20);
        for number in 0..200 {
            assert_eq!(data.get(key(writer, number)).unwrap().unwrap(), last.as_bytes());
        }
    }
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
}

/// Values larger than the cache and the bound of memory, in every engine.
#[test]
fn what_is_larger_than_every_bound_is_read_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let value = |number: u8| vec![number; 3 << 20];
    for (round, bytes_max) in [0, 1, 1 << 20, 32 << 20].into_iter().enumerate() {
        let options = Options::new().memory_bytes_max(bytes_max).cache_bytes_max(1 << 10);
        let store = Store::open_with(directory.path(), options).unwrap();
        for engine in [Engine::Bplus, Engine::Btree, Engine::Lsm] {
            let options = KeyspaceOptions::new().engine(engine);
            let data = store.keyspace_with(engine.name(), options).unwrap();
            let data = data.with_durability(Durability::Deferred);
            let before = round as u8 * 4;
            (before..before + 4).for_each(|number| data.put([number], value(number)).unwrap());
            for number in 0..before + 4 {
                assert!(data.get([number]).unwrap().unwrap() == value(number)[..]);
            }
            data.compact().unwrap();
            assert_eq!(data.len().unwrap(), u64::from(before) + 4);
        }
        store.close().unwrap();
    }
}

/// A load that ends early by what its iterator does: whole chunks before it are there.
#[test]
fn loads_that_end_by_their_iterators_leave_a_store_that_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let data = store.keyspace_with("data", KeyspaceOptions::new().engine(Engine::Lsm)).unwrap();
    let pair = |number: u32| (format!("{number:05}"), vec![number as u8; 1_000]);
    let twice = (0..3_000).map(|number| pair(number.min(2_500)));
    let refused = data.load_sorted(twice);
    assert!(matches!(refused, Err(adamant::Error::NotAscending { position: 2_501 })));
    assert_eq!(data.len().unwrap(), 2_501, "those before it");
    let tables = || data.lsm().unwrap().levels().unwrap().iter().map(Vec::len).sum::<usize>();
    let before = tables();
    let panicking = (5_000..9_000).map(|number| {
        assert!(number < 8_000, "as asked");
        pair(number)
    });
    let load = std::panic::AssertUnwindSafe(|| data.load_sorted(panicking).map(drop));
    assert!(std::panic::catch_unwind(load).is_err());
    assert_eq!((data.len().unwrap(), tables()), (2_501, before));
    let long = (5_000..9_000_u32).map(|number| {
        let key = format!("{number:05}").repeat(if number < 8_000 { 1 } else { 20_000 });
        (key, [7; 1_000])
    });
    assert!(matches!(data.load_sorted(long), Err(adamant::Error::KeyTooLong { .. })));
    let loaded = data.load_sorted((5_000..9_000).map(pair)).unwrap();
    assert_eq!((loaded.entries, data.len().unwrap()), (4_000, 6_501));
    let files = std::fs::read_dir(directory.path().join("tables")).unwrap();
    let is_new = |name: std::ffi::OsString| name.to_string_lossy().ends_with(".new");
    assert!(!files.map(|entry| entry.unwrap().file_name()).any(is_new));
    assert!(store.check().unwrap().is_clean());
}
