//! Zero-copy scans: ranges passed to a closure as borrowed bytes, and the closure's limits.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use adamant::{Durability, Error, Iter, Keyspace, Slice};
use fastrand::Rng;

use crate::place::{Place, assert_whole};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys that tie in their first bytes in every way: long common prefixes, keys that are prefixes of
/// others, bytes of zero where another key ends, and the empty key.
fn some_key(random: &mut Rng) -> Vec<u8> {
    let mut key = match random.u8(0..4) {
        0 => b"a start that all of these share, and which is long/".to_vec(),
        1 => vec![0; random.usize(0..12)],
        2 => vec![random.u8(b'a'..b'c'); 9],
        _ => Vec::new(),
    };
    key.extend((0..random.usize(0..5)).map(|_| random.u8(0..4)));
    key
}

fn filled(keyspace: &Keyspace, store: &adamant::Store, random: &mut Rng, count: u32) -> Model {
    let mut model = Model::new();
    let mut batch = store.batch();
    for number in 0..count {
        let key = some_key(random);
        let len = if random.u8(0..40) == 0 { 5_000 } else { random.usize(0..60) };
        let value = vec![number as u8; len];
        batch.put(keyspace, &key, &value).unwrap();
        model.insert(key, value);
    }
    batch.commit().unwrap();
    model
}

/// Passes up to `limit` entries as borrowed bytes.
fn lent(iterator: &mut Iter, forward: bool, limit: usize) -> Pairs {
    let mut pairs = Pairs::new();
    if limit == 0 {
        return pairs;
    }
    let show = |key: &[u8], value: &[u8]| {
        pairs.push((key.to_vec(), value.to_vec()));
        if pairs.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let flow = if forward { iterator.lend(show) } else { iterator.lend_back(show) };
    assert_eq!(flow.unwrap().is_some(), pairs.len() == limit);
    pairs
}

/// Ranges equal those of a map, from either end, mixed with steps of the iterator.
pub fn lends_what_a_map_holds(place: &dyn Place) {
    let seed = 21;
    let mut random = Rng::with_seed(seed);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    assert!(keyspace.iter().lend(|_, _| ControlFlow::Break(())).unwrap().is_none());
    let model = filled(&keyspace, &store, &mut random, 3_000);
    let bounds =
        |key: Vec<u8>| [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded];
    for round in 0..60 {
        for lower in bounds(some_key(&mut random)) {
            for upper in bounds(some_key(&mut random)) {
                let range = (lower.clone(), upper);
                let inside = |key: &Vec<u8>| std::ops::RangeBounds::contains(&range, key);
                let mut expected: Pairs = model
                    .iter()
                    .filter(|(key, _)| inside(key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let mut iterator = keyspace.range(range.clone());
                let mut low = Pairs::new();
                let mut high = Pairs::new();
                // Some by steps, some borrowed, from both ends, until all were seen.
                while low.len() + high.len() < expected.len() {
                    let limit = random.usize(1..400);
                    match random.u8(0..4) {
                        0 => low.extend(lent(&mut iterator, true, limit)),
                        1 => high.extend(lent(&mut iterator, false, limit)),
                        2 => low.extend(iterator.by_ref().take(limit % 8).map(owned)),
                        _ => high.extend(iterator.by_ref().rev().take(limit % 8).map(owned)),
                    }
                }
                assert!(iterator.next().is_none() && lent(&mut iterator, false, 1).is_empty());
                low.extend(high.into_iter().rev());
                assert!(low == expected, "seed {seed}, round {round}, range {range:?}");
                expected.reverse();
                let backward = lent(&mut keyspace.range(range.clone()), false, usize::MAX);
                assert!(backward == expected, "seed {seed}, round {round}, range {range:?}");
            }
        }
    }
}

fn owned(entry: adamant::Result<(Slice, Slice)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.unwrap();
    (key.to_vec(), value.to_vec())
}

/// Commits between the holds of the lock are visible from then on: each borrowed entry belongs to
/// the state of its time, and keys stay in order.
pub fn commits_between_are_seen_from_there_on(place: &dyn Place) {
    let seed = 22;
    let mut random = Rng::with_seed(seed);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    for forward in [true, false] {
        let mut model = filled(&keyspace, &store, &mut random, 2_000);
        for entry in keyspace.iter() {
            let (key, value) = owned(entry);
            model.insert(key, value);
        }
        let mut iterator = keyspace.iter();
        let mut last: Option<Vec<u8>> = None;
        loop {
            let limit = random.usize(1..500);
            let pairs = lent(&mut iterator, forward, limit);
            let left = (Bound::Unbounded, Bound::Unbounded);
            let left = match (&last, forward) {
                (None, _) => left,
                (Some(key), true) => (Bound::Excluded(key.clone()), Bound::Unbounded),
                (Some(key), false) => (Bound::Unbounded, Bound::Excluded(key.clone())),
            };
            let left = model.range(left).map(|(key, value)| (key.clone(), value.clone()));
            let expected: Pairs =
                if forward { left.take(limit).collect() } else { left.rev().take(limit).collect() };
            assert!(pairs == expected, "seed {seed}, forward {forward}, after {last:?}");
            if pairs.len() < limit {
                break;
            }
            last = pairs.last().map(|pair| pair.0.clone());
            for _ in 0..200 {
                let key = some_key(&mut random);
                if random.bool() {
                    keyspace.remove(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = vec![random.u8(..); random.usize(0..80)];
                    keyspace.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
        }
    }
    assert_whole(&store);
}

/// Borrowed bytes do not change while the closure reads them, though other threads delete,
/// overwrite and reuse the heap as fast as they can.
pub fn bytes_stay_while_they_are_lent(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    let write = |number: u32, round: u8| {
        let value = vec![round; 40 + usize::from(round % 5) * 30];
        keyspace.insert(number.to_le_bytes(), value).unwrap();
    };
    (0..600).for_each(|number| write(number, 0));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for forward in [true, false] {
            let (keyspace, is_done) = (&keyspace, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    let mut count = 0;
                    let mut last: Option<Vec<u8>> = None;
                    let look = |key: &[u8], value: &[u8]| {
                        let (key_before, value_before) = (key.to_vec(), value.to_vec());
                        assert!(value.iter().all(|byte| *byte == value[0]), "a torn value");
                        if count % 50 == 0 {
                            std::thread::yield_now();
                        }
                        assert!(key_before == key && value_before == value, "lent bytes changed");
                        if let Some(last) = &last {
                            assert!((last.as_slice() < key) == forward, "out of order");
                        }
                        last = Some(key_before);
                        count += 1;
                        ControlFlow::<()>::Continue(())
                    };
                    let mut iterator = keyspace.iter();
                    let flow = if forward { iterator.lend(look) } else { iterator.lend_back(look) };
                    assert!(flow.unwrap().is_none());
                    // Even numbers are overwritten, never removed.
                    assert!((300..=600).contains(&count), "{count} entries");
                }
            });
        }
        let mut random = Rng::with_seed(23);
        for round in 1..=120_u8 {
            for _ in 0..100 {
                let number = random.u32(0..600);
                if number % 2 == 1 && random.bool() {
                    keyspace.remove(number.to_le_bytes()).unwrap();
                } else {
                    write(number, round);
                }
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_whole(&store);
}

/// The closure must not use the store that it borrows from, may fail, and may panic.
pub fn closures_that_write_fail_or_panic(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let other = adamant::Store::in_memory().unwrap();
    let elsewhere = other.keyspace("elsewhere").unwrap();
    for number in 0..1_000_u32 {
        keyspace.insert(number.to_le_bytes(), [7; 30]).unwrap();
    }
    let mut iterator = keyspace.iter();
    assert!(iterator.next().is_some());
    let mut count = 0;
    let flow = iterator.lend(|key, value| {
        assert!(matches!(keyspace.insert(key, "new"), Err(Error::Reentrant)));
        assert!(matches!(keyspace.get(key), Err(Error::Reentrant)));
        assert!(matches!(keyspace.iter().next(), Some(Err(Error::Reentrant))));
        let nested = keyspace.iter().lend(|_, _| ControlFlow::<()>::Continue(()));
        assert!(matches!(nested, Err(Error::Reentrant)));
        assert!(matches!(store.batch().commit(), Ok(()) | Err(Error::Reentrant)));
        elsewhere.insert(key, value).unwrap();
        count += 1;
        if count == 500 {
            ControlFlow::Break("the closure's own error")
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(flow.unwrap(), Some("the closure's own error"));
    assert_eq!(elsewhere.len().unwrap(), 500);
    assert_eq!(iterator.count(), 499);

    for after in [0, 300] {
        let mut iterator = keyspace.iter();
        let mut count = 0;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            iterator.lend_back(|_, _| {
                assert!(count < after, "as closures may");
                count += 1;
                ControlFlow::<()>::Continue(())
            })
        }));
        assert!(caught.is_err());
        assert!(iterator.next().is_none() && iterator.next_back().is_none());
    }
    keyspace.insert("after", "a panic").unwrap();
    assert_eq!(keyspace.len().unwrap(), 1_001);

    let mut iterator = keyspace.iter();
    assert_eq!(lent(&mut iterator, true, 3).len(), 3);
    assert!(store.drop_keyspace("main").unwrap());
    let flow = iterator.lend(|_, _| ControlFlow::<()>::Continue(()));
    assert!(matches!(flow, Err(Error::KeyspaceDropped { .. })));
    assert!(iterator.next().is_none());
    assert_whole(&store);
}
