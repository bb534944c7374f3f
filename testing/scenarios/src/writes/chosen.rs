//! Removals of entries that are looked at first: pops, and choices by closures.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use adamant::{Durability, Error, Keyspace, Options, Slice, Store};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Entries of a keyspace that makes its commits chunked.
const MANY: u32 = 2_500;

fn key(number: u32) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

fn value(random: &mut Rng) -> Vec<u8> {
    let bytes = if random.u8(..40) == 0 { 6_000 } else { random.usize(..30) };
    vec![random.u8(..); bytes]
}

fn bound(random: &mut Rng) -> Bound<Vec<u8>> {
    match random.u8(..6) {
        0 | 1 => Bound::Unbounded,
        2..4 => Bound::Included(key(random.u32(..MANY))),
        _ => Bound::Excluded(key(random.u32(..MANY))),
    }
}

fn holds((lower, upper): &(Bound<Vec<u8>>, Bound<Vec<u8>>), key: &Vec<u8>) -> bool {
    let lower_is_met = match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => key >= lower,
        Bound::Excluded(lower) => key > lower,
    };
    lower_is_met
        && match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
        }
}

fn owned(entry: (Slice, Slice)) -> (Vec<u8>, Vec<u8>) {
    (entry.0.to_vec(), entry.1.to_vec())
}

/// Takes what the closure accepts out of a model.
fn take_out(
    model: &mut Map,
    takes: impl Fn(&Vec<u8>, &Vec<u8>) -> bool,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let taken: Vec<_> = model.iter().filter(|(key, value)| takes(key, value)).collect();
    let taken: Vec<_> =
        taken.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    taken.iter().for_each(|(key, _)| drop(model.remove(key)));
    taken
}

/// A random removal, by a call of its own or in a transaction; the results are those of the model.
fn remove(store: &Store, keyspace: &Keyspace, model: &mut Map, random: &mut Rng) {
    let range = (bound(random), bound(random));
    let (rest, of) = (random.u8(..4), random.u8(1..5));
    let takes = |key: &[u8], value: &[u8]| (key[4] ^ value.len() as u8) % of == rest;
    let within = |key: &Vec<u8>, value: &Vec<u8>| holds(&range, key) && takes(key, value);
    let is_alone = random.bool();
    match random.u8(..7) {
        0 => {
            let popped = match is_alone {
                true => keyspace.pop_first().unwrap(),
                false => store.transaction(|tx| tx.pop_first(keyspace)).unwrap(),
            };
            assert_eq!(popped.map(owned), model.pop_first());
        }
        1 => {
            let popped = match is_alone {
                true => keyspace.pop_last().unwrap(),
                false => store.transaction(|tx| tx.pop_last(keyspace)).unwrap(),
            };
            assert_eq!(popped.map(owned), model.pop_last());
        }
        2 | 3 => {
            let keeps = |key: &[u8], value: &[u8]| !takes(key, value);
            let deleted = match is_alone {
                true => keyspace.retain(range.clone(), keeps).unwrap(),
                false => store.transaction(|tx| tx.retain(keyspace, range.clone(), keeps)).unwrap(),
            };
            assert_eq!(deleted, take_out(model, within).len() as u64);
        }
        4 | 5 => {
            let taken = match is_alone {
                true => keyspace.extract_if(range.clone(), takes).unwrap(),
                false => {
                    store.transaction(|tx| tx.extract_if(keyspace, range.clone(), takes)).unwrap()
                }
            };
            let taken: Vec<_> = taken.into_iter().map(owned).collect();
            assert!(taken == take_out(model, within));
        }
        _ => {
            keyspace.delete_range(range.clone()).unwrap();
            take_out(model, |key, _| holds(&range, key));
        }
    }
}

/// Random removals leave what a `BTreeMap` has, with snapshots open that keep what they saw, also
/// after reopening.
pub fn as_of_a_map(place: &dyn Place) {
    for seed in 0..2 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let (mut store, mut model) = (place.open(), Map::new());
        let name = format!("main {seed}");
        let open =
            |store: &Store| place.keyspace(store, &name).with_durability(Durability::Buffered);
        let mut keyspace = open(&store);
        for round in 0..40 {
            if round % 8 == 0 {
                let mut filled = Vec::new();
                for number in 0..MANY {
                    if random.u8(..8) > 0 {
                        filled.push((key(number), value(&mut random)));
                    }
                }
                keyspace.extend(filled.iter().map(|(key, value)| (key, value))).unwrap();
                model.extend(filled);
            }
            let seen = (random.u8(..3) == 0).then(|| (store.snapshot().unwrap(), model.clone()));
            remove(&store, &keyspace, &mut model, &mut random);
            assert!(entries(&keyspace).into_iter().eq(model.clone()), "seed {seed}, {round}");
            if let Some((snapshot, before)) = seen {
                let found = snapshot.iter(&keyspace).map(|entry| owned(entry.unwrap()));
                assert!(found.eq(before), "the snapshot of {round}, seed {seed}");
            }
            if round % 16 == 15 {
                assert_whole(&store);
                store.close().unwrap();
                store = place.open_with(Options::default()).unwrap();
                keyspace = open(&store);
                assert!(entries(&keyspace).into_iter().eq(model.clone()), "{seed}, reopened");
            }
        }
        assert_whole(&store);
    }
}

/// Every entry is popped once, by threads that pop at both ends.
pub fn pops_of_threads(place: &dyn Place) {
    const ENTRIES: u32 = 400;
    let store = place.open();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    keyspace.load_sorted((0..ENTRIES).map(|number| (key(number), ""))).unwrap();
    let pop_all = |first: bool| {
        let pop = || if first { keyspace.pop_first() } else { keyspace.pop_last() };
        std::iter::from_fn(|| pop().unwrap()).map(|entry| owned(entry).0).collect::<Vec<_>>()
    };
    let mut popped = std::thread::scope(|scope| {
        let threads = [true, false, true].map(|first| scope.spawn(move || pop_all(first)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    popped.sort();
    assert!(popped.into_iter().eq((0..ENTRIES).map(key)));
    assert!(keyspace.is_empty().unwrap());
    assert_whole(&store);
}

/// A pop conflicts with whatever changes that end of the keyspace up to the popped key, with
/// another pop above all; and with nothing beyond. It sees the transaction's own writes.
pub fn pops_conflict(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let popped = |tx: &mut adamant::Transaction| owned(tx.pop_first(&keyspace).unwrap().unwrap()).0;
    keyspace.load_sorted((1..=9).map(|number| (key(number), "v"))).unwrap();

    let (mut one, mut other) = (store.begin().unwrap(), store.begin().unwrap());
    assert_eq!((popped(&mut one), popped(&mut other)), (key(1), key(1)));
    one.commit().unwrap();
    assert!(other.commit().unwrap_err().is_conflict(), "there is one first entry");

    let mut below = store.begin().unwrap();
    assert_eq!(popped(&mut below), key(2));
    keyspace.put(key(0), "new").unwrap();
    assert!(below.commit().unwrap_err().is_conflict(), "another entry is the first by now");

    let (mut first, mut last) = (store.begin().unwrap(), store.begin().unwrap());
    assert_eq!(popped(&mut first), key(0));
    assert_eq!(owned(last.pop_last(&keyspace).unwrap().unwrap()).0, key(9));
    first.commit().unwrap();
    last.commit().unwrap();

    let mut own = store.begin().unwrap();
    own.put(&keyspace, key(1), "own").unwrap();
    own.delete(&keyspace, key(2)).unwrap();
    assert_eq!((popped(&mut own), popped(&mut own)), (key(1), key(3)));
    own.put(&keyspace, key(3), "again").unwrap();
    assert_eq!(popped(&mut own), key(3));
    own.commit().unwrap();
    assert!(entries(&keyspace).into_iter().map(|(key, _)| key).eq((4..=8).map(key)));

    let mut chosen = store.begin().unwrap();
    assert_eq!(chosen.retain(&keyspace, key(5)..key(7), |_, _| false).unwrap(), 2);
    keyspace.put(key(6), "changed").unwrap();
    assert!(chosen.commit().unwrap_err().is_conflict());
    let mut none = store.begin().unwrap();
    assert!(none.extract_if(&keyspace, key(5)..key(7), |_, _| false).unwrap().is_empty());
    none.put(&keyspace, key(50), "v").unwrap();
    keyspace.put(key(6), "changed again").unwrap();
    assert!(none.commit().unwrap_err().is_conflict(), "what it kept it has read");
}

/// A closure that panics, or uses the store, changes nothing; later calls work.
pub fn closures_that_panic_or_write(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.load_sorted((0..MANY).map(|number| (key(number), "v"))).unwrap();
    let before = entries(&keyspace);
    let late = key(MANY - 1);
    let panics = |key: &[u8], _: &[u8]| {
        assert!(*key < late[..], "closures may do this");
        true
    };
    let caught = [
        catch_unwind(AssertUnwindSafe(|| drop(keyspace.extract_if(.., panics)))),
        catch_unwind(AssertUnwindSafe(|| {
            drop(keyspace.retain(.., |key, value| !panics(key, value)))
        })),
    ];
    assert!(caught.iter().all(Result::is_err));
    assert!(entries(&keyspace) == before);

    let mut transaction = store.begin().unwrap();
    transaction.delete(&keyspace, key(0)).unwrap();
    let panicked =
        catch_unwind(AssertUnwindSafe(|| transaction.extract_if(&keyspace, .., panics).map(drop)));
    assert!(panicked.is_err());
    transaction.commit().unwrap();
    assert_eq!(keyspace.len().unwrap(), u64::from(MANY) - 1, "only what it did before");

    let refused = keyspace.retain(..key(3), |_, _| {
        assert!(matches!(keyspace.put("new", ""), Err(Error::Reentrant)));
        assert!(matches!(keyspace.get("new"), Err(Error::Reentrant)));
        assert!(matches!(keyspace.pop_first(), Err(Error::Reentrant)));
        assert!(matches!(store.begin().map(drop), Err(Error::Reentrant)));
        assert!(matches!(store.clone().close(), Err(Error::Reentrant)));
        false
    });
    assert_eq!(refused.unwrap(), 2);
    // Within a transaction the closure holds nothing.
    let mut transaction = store.begin().unwrap();
    let deleted = transaction.retain(&keyspace, ..key(5), |key, _| {
        keyspace.put([&b"seen "[..], key].concat(), "").unwrap();
        false
    });
    assert_eq!(deleted.unwrap(), 2);
    transaction.commit().unwrap();
    assert_eq!(keyspace.prefix("seen ").count(), 2);
    assert_whole(&store);
}
