//! Readers beside a writer, a flush and a compaction thread: each sequence number is seen as a
//! whole, as long as a reader uses it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Error, Sequences};

use crate::store::{Model, Store, small_options};

const SECONDS: u64 = 3;
/// Frozen memtables, and tables of level 0, at which the writer waits, as a store's does. Without
/// that the number of files would depend on the machine.
const FROZEN_MAX: usize = 3;
const LEVEL0_MAX: u64 = 40;

/// Sequence numbers that readers use, with the number of readers.
type Pins = Mutex<BTreeMap<u64, u32>>;

/// A pinned sequence number, and the content at it.
struct Moment<'p> {
    sequence: u64,
    model: Option<Model>,
    pins: &'p Pins,
    sequences: Arc<Sequences>,
}

impl<'p> Moment<'p> {
    fn now(store: &Store, pins: &'p Pins, model: Option<Model>) -> Self {
        // The changes of a commit become visible one by one, under the heap's exclusive lock:
        // without the shared lock, a sequence number may be half of a commit.
        let _view = store.heap.view().unwrap();
        let mut pinned = pins.lock().unwrap();
        let sequence = store.context.sequences().visible();
        *pinned.entry(sequence).or_default() += 1;
        let sequences = Arc::clone(store.context.sequences());
        hold(&sequences, &pinned);
        Self { sequence, model, pins, sequences }
    }
}

fn hold(sequences: &Sequences, pinned: &BTreeMap<u64, u32>) {
    sequences.hold(pinned.keys().copied());
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        let mut pinned = self.pins.lock().unwrap();
        let count = pinned.get_mut(&self.sequence).expect("pinned");
        *count -= 1;
        if *count == 0 {
            pinned.remove(&self.sequence);
            hold(&self.sequences, &pinned);
        }
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("k{number:03}").into_bytes()
}

fn scan(store: &Store, forward: bool, sequence: u64) -> Model {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let found = store.scan(all, forward, sequence, 40).unwrap();
    let count = found.len();
    let model: Model = found.into_iter().collect();
    assert_eq!(model.len(), count, "a key came twice");
    model
}

/// Commits until the time is up; every commit writes the same to `a` and `b`, which are far apart.
fn write<'p>(
    store: &Store,
    pins: &'p Pins,
    moments: &Mutex<Vec<Arc<Moment<'p>>>>,
    (is_over, commits): (&AtomicBool, &AtomicU64),
) -> Model {
    let mut random = fastrand::Rng::with_seed(17);
    let mut model = Model::new();
    while !is_over.load(Ordering::Relaxed) {
        let commit = commits.fetch_add(1, Ordering::Relaxed);
        let stamp = commit.swap_bytes().to_le_bytes();
        store
            .heap
            .transaction(Durability::Buffered, |tx| {
                for key in [&b"a"[..], b"z"] {
                    store.tree.write(tx, [(key, Some(&stamp[..]))])?;
                    model.insert(key.to_vec(), stamp.to_vec());
                }
                for _ in 0..random.usize(1..6) {
                    let key = key(random.u32(0..400));
                    match random.u8(0..20) {
                        0 => {
                            let end = [&key[..2], b"9"].concat().max([&key[..], b"x"].concat());
                            store.tree.remove_range(tx, &key, &end)?;
                            model.retain(|found, _| *found < key || *found >= end);
                        }
                        1..5 => {
                            store.tree.write(tx, [(&key[..], None)])?;
                            model.remove(&key);
                        }
                        _ => {
                            let value = vec![commit as u8; random.usize(0..90)];
                            store.tree.write(tx, [(&key[..], Some(&value[..]))])?;
                            model.insert(key, value);
                        }
                    }
                }
                Ok::<(), Error>(())
            })
            .unwrap();
        if commit.is_multiple_of(50) {
            let moment = Arc::new(Moment::now(store, pins, Some(model.clone())));
            let mut moments = moments.lock().unwrap();
            if moments.len() == 4 {
                moments.remove(random.usize(0..4));
            }
            moments.push(moment);
        }
        if store.tree.is_full() {
            let must_wait = || {
                let stats = store.tree.stats();
                stats.memtables.len() > FROZEN_MAX || stats.levels[0].tables > LEVEL0_MAX
            };
            while must_wait() && !is_over.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            store.tree.rotate(&store.heap).unwrap();
        }
    }
    model
}

/// Reads the newest sequence number and older ones until the time is up.
fn read(
    store: &Store,
    pins: &Pins,
    moments: &Mutex<Vec<Arc<Moment<'_>>>>,
    is_over: &AtomicBool,
    seed: u64,
) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut newest, mut reads) = (None, 0);
    while !is_over.load(Ordering::Relaxed) {
        reads += 1;
        let now = Moment::now(store, pins, None);
        let found = scan(store, random.bool(), now.sequence);
        assert_eq!(found.get(&b"a"[..]), found.get(&b"z"[..]), "half of a commit is seen");
        let stamp = found.get(&b"a"[..]).cloned();
        assert!(newest <= stamp, "what was seen is not seen any more");
        newest = stamp;
        for _ in 0..10 {
            let key = key(random.u32(0..400));
            let value = store.get(&key, now.sequence).unwrap();
            assert_eq!(value.as_deref(), found.get(&key).map(|value| &value[..]), "{key:?}");
        }
        drop(now);
        let then = {
            let moments = moments.lock().unwrap();
            (!moments.is_empty()).then(|| Arc::clone(&moments[random.usize(0..moments.len())]))
        };
        if let Some(then) = then {
            let found = scan(store, random.bool(), then.sequence);
            assert!(then.model.as_ref() == Some(&found), "moment {}", then.sequence);
        }
    }
    reads
}

#[test]
fn each_moment_is_seen_whole_beside_all_work() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    let (pins, moments) = (Pins::default(), Mutex::new(Vec::new()));
    let (is_over, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let seen = || {
        let pinned = pins.lock().unwrap();
        let visible = store.context.sequences().visible();
        Ok(pinned.keys().next().map_or(visible, |oldest| visible.min(*oldest)))
    };
    let files = || {
        let count = |shelf| directory.subdirectory(shelf).unwrap().list().unwrap().len();
        count("tables") + count("blobs")
    };
    let mut most = (0, 0);
    let (model, reads) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&store, &pins, &moments, (&is_over, &commits)));
        let of = |seed| {
            let (store, pins, moments, is_over) = (&store, &pins, &moments, &is_over);
            scope.spawn(move || read(store, pins, moments, is_over, seed))
        };
        let readers = [of(1), of(2)];
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if !store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if !store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        let end = Instant::now() + Duration::from_secs(SECONDS);
        let is_failed = || readers.iter().any(|r| r.is_finished()) || writer.is_finished();
        while Instant::now() < end && !is_failed() {
            most = (most.0.max(files()), most.1.max(store.tree.index_bytes()));
            std::thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        let reads: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        (writer.join().unwrap(), reads)
    });
    let commits = commits.into_inner();
    println!("{commits} commits, {reads} scans, {} files and {} bytes at most", most.0, most.1);
    assert!(commits > 200 && reads > 20, "{commits} commits, {reads} scans");
    assert!(most.0 < 400 && most.1 < 1 << 20, "{most:?} files and bytes of indexes");
    moments.lock().unwrap().clear();
    assert!(pins.lock().unwrap().is_empty());
    assert!(scan(&store, true, store.context.sequences().visible()) == model);
    while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    while store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    store.context.delete_obsolete(&store.heap).unwrap();
    assert!(scan(&store, false, store.context.sequences().visible()) == model);
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.findings);
    assert_eq!(files() as u64, report.tables + report.blob_files, "nobody's files");
}
