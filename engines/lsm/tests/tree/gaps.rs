//! Gaps beside a writer: scans from both ends add and skip gaps, while values are put into them,
//! transactions are undone and versions change.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Error, NEWEST};
use adamant_slice::Slice;

use crate::store::{Model, Store, small_options};

const KEYS: u32 = 600;
const MILLISECONDS: u64 = 400;

fn key(number: u32) -> Vec<u8> {
    if number == 0 { Vec::new() } else { format!("{number:04}").into_bytes() }
}

/// A commit, or an undone transaction, of a few changes, mostly removals.
fn change(store: &Store, model: &mut Model, random: &mut fastrand::Rng, is_undone: bool) {
    let result = store.heap.transaction(Durability::Buffered, |transaction| {
        for _ in 0..random.usize(1..4) {
            let start = random.u32(0..KEYS);
            let end = (start + random.u32(1..120)).min(KEYS);
            match random.u8(0..12) {
                0..6 => {
                    let (key, value) = (key(start), random.u64(..).to_le_bytes());
                    store.tree.write(transaction, [(&key[..], Some(&value[..]))])?;
                    model.insert(key, value.to_vec());
                }
                6 => {
                    let keys: Vec<_> = (start..end).step_by(3).map(key).collect();
                    let pairs = keys.iter().map(|key| (&key[..], Some(&key[..])));
                    store.tree.write(transaction, pairs)?;
                    model.extend(keys.iter().map(|key| (key.clone(), key.clone())));
                }
                7..9 => {
                    let keys: Vec<_> = (start..end).map(key).collect();
                    store.tree.write(transaction, keys.iter().map(|key| (&key[..], None)))?;
                    model.retain(|at, _| *at < key(start) || *at >= key(end));
                }
                9 => {
                    store.tree.remove_range(transaction, &key(start), &key(end))?;
                    model.retain(|at, _| *at < key(start) || *at >= key(end));
                }
                10 => {
                    // A part that is undone.
                    let undone = transaction.savepoint(|inner| {
                        store.tree.remove_range(inner, &key(start), &key(end))?;
                        store.tree.write(inner, [(&key(start)[..], Some(&b"undone"[..]))])?;
                        Err::<(), _>(Error::RangeEmpty)
                    });
                    assert!(matches!(undone, Err(Error::RangeEmpty)));
                }
                _ => {
                    let forward = random.bool();
                    let first = store.first(transaction, forward, NEWEST)?;
                    let mut keys = model.iter();
                    let expected = if forward { keys.next() } else { keys.next_back() };
                    let first = first.as_ref().map(|(key, value)| (key, value));
                    assert_eq!(first, expected, "within a transaction");
                }
            }
        }
        if is_undone { Err(Error::RangeEmpty) } else { Ok(()) }
    });
    assert!(matches!(result, Ok(()) | Err(Error::RangeEmpty)), "{result:?}");
}

/// Loads values straight to tables, where memtables have none.
fn load(store: &Store, model: &mut Model, random: &mut fastrand::Rng) {
    let start = random.u32(0..KEYS - 2);
    let keys = (start..(start + random.u32(1..30)).min(KEYS)).map(key);
    let pairs: Vec<_> = keys.map(|key| (Slice::new(&key), Slice::new(b"loaded"))).collect();
    if store.load(Durability::Buffered, &pairs).unwrap() {
        let pairs = pairs.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
        model.extend(pairs);
    }
}

/// Compares a range at the newest sequence number with what was committed then.
fn read(
    store: &Store,
    models: &RwLock<Vec<(u64, Arc<Model>)>>,
    is_over: &AtomicBool,
    random: &mut fastrand::Rng,
) {
    let (one, other) = (random.u32(0..KEYS), random.u32(0..KEYS));
    let (low, high) = (key(one.min(other)), key(one.max(other)));
    let lower = match random.u8(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(low),
        _ => Bound::Excluded(low),
    };
    let upper = match random.u8(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(high),
        // With the same key as below there would be no range.
        _ => Bound::Excluded([&high[..], b"x"].concat()),
    };
    let forward = random.bool();
    let entries_max = random.usize(1..80);
    // The writer reports a commit after it was made: the newest one is read before.
    let (scan, sequence) = {
        let view = store.heap.view().unwrap();
        let sequence = store.context.sequences().visible();
        let bounds = (lower.as_ref().map(|key| &key[..]), upper.as_ref().map(|key| &key[..]));
        let limits = adamant_lsm::CopyLimits { entries_max, bytes_max: 4_000, with_values: true };
        (store.tree.scan(&view, bounds, forward, sequence, limits).unwrap(), sequence)
    };
    if random.u8(0..4) == 0 {
        std::thread::yield_now();
    }
    let mut found = Vec::new();
    let rest = scan.finish(entries_max, |key, value| {
        value
            .with(key, |value| {
                found.push((key.to_vec(), value.to_vec()));
                std::ops::ControlFlow::Continue(())
            })
            .unwrap()
    });
    let rest = rest.unwrap();
    let model = loop {
        let models = models.read().unwrap();
        let newest = models.last().expect("there is always one");
        if newest.0 >= sequence {
            let at = models.partition_point(|(of, _)| *of <= sequence);
            match at.checked_sub(1) {
                Some(at) => break Arc::clone(&models[at].1),
                None => return,
            }
        }
        drop(models);
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        std::thread::yield_now();
    };
    let within = model.range((lower, upper)).map(|(key, value)| (key.clone(), value.clone()));
    let mut expected: Vec<_> = within.collect();
    if !forward {
        expected.reverse();
    }
    if let Some(Bound::Excluded(rest)) = rest {
        expected.retain(|(key, _)| if forward { **key <= *rest } else { **key >= *rest });
    }
    assert!(found == expected, "at {sequence}, {forward}: {} {}", found.len(), expected.len());
}

fn run(seed: u64, time: Duration) -> (u64, u64) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    options.memtable_bytes_max = 30_000;
    let store = Store::open(&directory, options).unwrap();
    let models = RwLock::new(vec![(0, Arc::new(Model::new()))]);
    let (is_over, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut commits = 0;
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (store, models, is_over, reads) = (&store, &models, &is_over, &reads);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed << 8 | reader);
                while !is_over.load(Ordering::Relaxed) {
                    read(store, models, is_over, &mut random);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writer = scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut model = Model::new();
            let end = Instant::now() + time;
            while Instant::now() < end {
                let is_undone = random.u8(0..5) == 0;
                let mut next = model.clone();
                match random.u8(0..20) {
                    0 => load(&store, &mut next, &mut random),
                    _ => change(&store, &mut next, &mut random, is_undone),
                }
                // Readers use no older sequence number than that of the previous commit.
                commits += 1;
                let sequences = store.context.sequences();
                let before = models.read().unwrap().last().unwrap().0;
                if sequences.visible() > before {
                    model = next;
                    let mut models = models.write().unwrap();
                    models.push((sequences.visible(), Arc::new(model.clone())));
                    let len = models.len();
                    models.drain(..len.saturating_sub(200));
                }
                let oldest = models.read().unwrap()[0].0;
                let seen = || Ok(oldest);
                match random.u16(0..800) {
                    0..8 => store.tree.rotate(&store.heap).unwrap(),
                    8..16 => {
                        store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
                    }
                    16..24 => {
                        store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap();
                    }
                    24 => store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap(),
                    _ => {}
                }
            }
        });
        let result = writer.join();
        is_over.store(true, Ordering::Relaxed);
        result.unwrap();
    });
    (commits, reads.into_inner())
}

#[test]
fn what_is_put_into_a_gap_is_seen_beside_scans_that_note_it() {
    for seed in [1, 2] {
        let (commits, reads) = run(seed, Duration::from_millis(MILLISECONDS));
        println!("seed {seed}: {commits} commits, {reads} scans");
        assert!(commits > 20 && reads > 20, "seed {seed}: {commits} commits, {reads} scans");
    }
}

#[test]
#[ignore = "runs for minutes"]
fn for_long() {
    let seconds = std::env::var("ADAMANT_SECONDS").map_or(60, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut all) = (std::process::id().into(), (0, 0));
    while Instant::now() < end {
        let (commits, reads) = run(seed, Duration::from_secs(2));
        all = (all.0 + commits, all.1 + reads);
        seed += 1;
    }
    println!("seeds to {seed}: {all:?} commits and scans");
}
