//! Trees most of which was removed, by ranges and key by key, against ordered maps, one for each
//! sequence number that is read; and the memory that remains in use.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory, Transaction};
use adamant_lsm::{Error, NEWEST};
use adamant_slice::Slice;

use crate::store::{Model, Store, small_options};

const KEYS: u32 = 700;

fn key(number: u32) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// Writes or removes consecutive keys, or removes a range.
fn change(store: &Store, model: &mut Model, random: &mut fastrand::Rng) {
    let before = model.clone();
    let is_undone = random.u8(0..6) == 0;
    let result = store.heap.transaction(Durability::Buffered, |transaction| {
        for _ in 0..random.usize(1..4) {
            let start = random.u32(0..KEYS);
            let end = (start + random.u32(1..150)).min(KEYS);
            let keys: Vec<_> = (start..end).map(key).collect();
            match random.u8(0..10) {
                0..3 => {
                    let pairs = keys.iter().map(|key| (&key[..], Some(&key[..])));
                    store.tree.write(transaction, pairs)?;
                    model.extend(keys.iter().map(|key| (key.clone(), key.clone())));
                }
                3..5 => {
                    let value = [random.u8(..)];
                    store.tree.write(transaction, [(&keys[0][..], Some(&value[..]))])?;
                    model.insert(keys[0].clone(), value.to_vec());
                }
                5..7 => {
                    store.tree.remove_range(transaction, &key(start), &key(end))?;
                    model.retain(|at, _| *at < key(start) || *at >= key(end));
                }
                _ => {
                    store.tree.write(transaction, keys.iter().map(|key| (&key[..], None)))?;
                    model.retain(|at, _| *at < key(start) || *at >= key(end));
                }
            }
            let first = store.first(transaction, random.bool(), NEWEST)?;
            assert!(first.is_none_or(|(key, value)| model.get(&key) == Some(&value)));
        }
        if is_undone { Err(Error::RangeEmpty) } else { Ok(()) }
    });
    match result {
        Err(Error::RangeEmpty) if is_undone => *model = before,
        other => other.unwrap(),
    }
}

fn compare(store: &Store, model: &Model, sequence: u64, random: &mut fastrand::Rng, of: &str) {
    let start = key(random.u32(0..KEYS));
    let (lower, upper) = match random.u8(0..3) {
        0 => (Bound::Unbounded, Bound::Unbounded),
        1 => (Bound::Excluded(start), Bound::Unbounded),
        _ => (Bound::Unbounded, Bound::Included(start)),
    };
    let forward = random.bool();
    let slices = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| Slice::new(key));
    let range = (slices(&lower), slices(&upper));
    let found = store.scan(range, forward, sequence, random.usize(1..200)).unwrap();
    let expected = model.range((lower, upper)).map(|(key, value)| (key.clone(), value.clone()));
    let mut expected: Vec<_> = expected.collect();
    if !forward {
        expected.reverse();
    }
    assert!(found == expected, "{of}, forward {forward}: {} {}", found.len(), expected.len());
    for _ in 0..3 {
        let key = key(random.u32(0..KEYS));
        let found = store.get(&key, sequence).unwrap();
        assert_eq!(found.as_deref(), model.get(&key).map(|value| &value[..]), "{of}");
    }
}

fn run(seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    options.memtable_bytes_max = 20_000;
    let mut store = Store::open(&directory, options.clone()).unwrap();
    let (mut model, mut moments) = (Model::new(), Vec::<(u64, Model)>::new());
    for step in 0..150 {
        let of = format!("seed {seed}, step {step}");
        change(&store, &mut model, &mut random);
        let sequences = Arc::clone(store.context.sequences());
        let oldest = moments.first().map_or(sequences.visible(), |(sequence, _)| *sequence);
        let seen = || Ok(oldest);
        match random.u8(0..24) {
            0..2 => store.tree.rotate(&store.heap).unwrap(),
            2..4 => {
                store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            4..6 => {
                store.tree.compact_once(&store.heap, &seen, &|_| Ok(())).unwrap();
            }
            6 => store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap(),
            7..12 if moments.len() < 5 => moments.push((sequences.visible(), model.clone())),
            12..15 if !moments.is_empty() => drop(moments.remove(random.usize(0..moments.len()))),
            15 => {
                moments.clear();
                store.heap.close().unwrap();
                drop(store);
                store = Store::open(&directory, options.clone()).unwrap();
            }
            _ => {}
        }
        let sequences = store.context.sequences();
        sequences.hold(moments.iter().map(|(sequence, _)| *sequence));
        compare(&store, &model, sequences.visible(), &mut random, &of);
        assert_eq!(store.tree.count().finish().unwrap(), model.len() as u64, "{of}");
        for (sequence, then) in &moments {
            compare(&store, then, *sequence, &mut random, &format!("{of}, at {sequence}"));
        }
    }
    let report = store.check();
    assert!(report.is_clean(), "seed {seed}: {:#?}", report.findings);
}

#[test]
fn what_is_removed_stays_away_at_each_moment() {
    for seed in 0..12 {
        run(seed);
    }
}

fn first_of(store: &Store) -> Option<Vec<u8>> {
    let view = store.heap.view().unwrap();
    let first = store.first(&view, true, store.context.sequences().visible()).unwrap();
    first.map(|(key, _)| key)
}

/// Overlapping ranges were all kept, and for each of their fragments all numbers: memory grew with
/// the square of their count.
#[test]
fn ranges_that_lie_over_one_another_take_the_memory_of_what_somebody_tells_apart() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    options.memtable_bytes_max = 64 << 20;
    let store = Store::open(&directory, options).unwrap();
    let sequences = store.context.sequences();
    let number = |number: u32| number.swap_bytes().to_le_bytes();
    let mut held = Vec::new();
    for step in 0..20_000_u32 {
        store
            .heap
            .transaction(Durability::Buffered, |tx| {
                store.tree.write(tx, [(&number(step)[..], Some(&b"event"[..]))])?;
                match step.checked_sub(100).filter(|step| *step > 0) {
                    Some(end) => store.tree.remove_range(tx, &[0], &number(end)),
                    None => Ok(()),
                }
            })
            .unwrap();
        if step.is_multiple_of(5_000) {
            held.push(sequences.visible());
            sequences.hold(held.iter().copied());
        }
    }
    assert!(store.tree.index_bytes() < 4 << 20, "some 100 bytes for each entry");
    let kept = sequences.kept_bytes();
    assert!((100..4_000).contains(&kept), "{kept} bytes for what four snapshots see");
    let before = store.tree.stepped();
    assert_eq!(first_of(&store).as_deref(), Some(&number(19_899)[..]));
    assert!(store.tree.stepped() - before < 200, "it was passed by");
    sequences.hold(std::iter::empty());
    assert_eq!(sequences.kept_bytes(), 0);
}

/// A queue: scans stepped over its removed entries again and again.
#[test]
fn a_queue_finds_its_ends_without_stepping_over_what_was_taken_out() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    options.memtable_bytes_max = 64 << 20;
    let store = Store::open(&directory, options).unwrap();
    let number = |number: u32| number.swap_bytes().to_le_bytes();
    for forward in [true, false] {
        let at = |step: u32| number(if forward { step } else { u32::MAX - step });
        let write = |key: &[u8], value: Option<&[u8]>| {
            let result = store
                .heap
                .transaction(Durability::Buffered, |tx| store.tree.write(tx, [(key, value)]));
            result.unwrap();
        };
        (0..1_000).for_each(|step| write(&at(step), Some(b"item")));
        let before = store.tree.stepped();
        for step in 1_000..6_000 {
            write(&at(step), Some(b"item"));
            let view = store.heap.view().unwrap();
            let sequence = store.context.sequences().visible();
            let (key, _) = store.first(&view, forward, sequence).unwrap().unwrap();
            assert_eq!(key, at(step - 1_000));
            drop(view);
            write(&key, None);
        }
        let stepped = store.tree.stepped() - before;
        assert!(stepped < 33 * 5_000, "{stepped} steps for 5,000 that were taken out");
        store.tree.rotate(&store.heap).unwrap();
        let seen = || Ok(store.context.sequences().visible());
        store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
        let all = [0; 4];
        let done = store
            .heap
            .transaction(Durability::Buffered, |tx| store.tree.remove_range(tx, &all, &[0xff; 5]));
        done.unwrap();
    }
}

/// A scan steps over so many removed entries at once, and leaves a gap: adjacent gaps become one.
#[test]
fn gaps_side_by_side_become_one() {
    const ENTRIES: u32 = 20_000;
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    options.memtable_bytes_max = 64 << 20;
    let store = Store::open(&directory, options).unwrap();
    let keys: Vec<_> = (0..ENTRIES).map(|at| at.swap_bytes().to_le_bytes()).collect();
    for value in [Some(&b"item"[..]), None] {
        let changes = keys.iter().map(|key| (&key[..], value));
        let written =
            store.heap.transaction(Durability::Buffered, |tx| store.tree.write(tx, changes));
        written.unwrap();
    }
    for forward in [true, false, true] {
        for _ in 0..3 {
            let view = store.heap.view().unwrap();
            let sequence = store.context.sequences().visible();
            assert!(store.first(&view, forward, sequence).unwrap().is_none());
        }
        assert!(store.tree.gaps() <= 2, "{} gaps", store.tree.gaps());
    }
    assert!(store.tree.stepped() <= u64::from(ENTRIES), "each is stepped over once");
}

/// After opening no gap is known, and a range tombstone tells scans what to pass over in tables,
/// though newer values lie between.
#[test]
fn a_scan_passes_over_what_a_range_tombstone_covers_in_tables() {
    const ENTRIES: u32 = 20_000;
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut options = small_options();
    (options.memtable_bytes_max, options.table_bytes_max) = (64 << 20, 64 << 20);
    let store = Store::open(&directory, options.clone()).unwrap();
    let number = |number: u32| number.swap_bytes().to_le_bytes();
    let keys: Vec<_> = (0..ENTRIES).map(number).collect();
    let flush = || {
        let seen = || Ok(store.context.sequences().visible());
        store.tree.rotate(&store.heap).unwrap();
        while store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap() {}
    };
    let commit = |work: &dyn Fn(&mut Transaction<'_>) -> Result<(), Error>| {
        store.heap.transaction(Durability::Buffered, work).unwrap();
        flush();
    };
    let newer = [50, 9_000, 19_950];
    commit(&|tx| store.tree.write(tx, keys.iter().map(|key| (&key[..], Some(&b"item"[..])))));
    commit(&|tx| store.tree.remove_range(tx, &number(10), &number(ENTRIES - 10)));
    commit(&|tx| store.tree.write(tx, newer.map(|at| (&keys[at][..], Some(&b"new"[..])))));
    store.heap.close().unwrap();
    drop(store);

    let store = Store::open(&directory, options).unwrap();
    let left = (0..10).chain(newer).chain(ENTRIES as usize - 10..ENTRIES as usize);
    let left: Vec<_> = left.map(|at| keys[at].to_vec()).collect();
    for forward in [true, false] {
        let all = (Bound::Unbounded, Bound::Unbounded);
        let found = store.scan(all, forward, NEWEST, 100).unwrap();
        let mut found: Vec<_> = found.into_iter().map(|(key, _)| key).collect();
        if !forward {
            found.reverse();
        }
        assert_eq!(found, left, "forward {forward}");
    }
    let stepped = store.tree.stepped();
    assert!(stepped < 200, "{stepped} steps");
    let report = store.check();
    assert!(report.is_clean(), "{:#?}", report.findings);
}
