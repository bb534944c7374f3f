//! Scans of keys alone, and values that are read lazily.

use std::collections::BTreeMap;
use std::ops::Bound;

use adamant::{Engine, Entry, Error, Keyspace, Slice};
use fastrand::Rng;

use crate::place::{Place, assert_whole};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// An item of an iterator: its key, and its value or the handle to it, if any.
enum Met {
    Pair(Slice, Slice),
    Key(Slice),
    Entry(Entry),
}

impl Met {
    fn key(&self) -> Vec<u8> {
        match self {
            Self::Pair(key, _) | Self::Key(key) => key.to_vec(),
            Self::Entry(entry) => entry.key().to_vec(),
        }
    }

    fn value(&self) -> Option<Slice> {
        match self {
            Self::Pair(_, value) => Some(value.clone()),
            Self::Key(_) => None,
            Self::Entry(entry) => Some(entry.value().expect("a value should be readable")),
        }
    }
}

fn some_key(random: &mut Rng) -> Vec<u8> {
    match random.u32(0..600) {
        ..4 => Vec::new(),
        number => format!("{number:03}").into_bytes(),
    }
}

fn some_value(random: &mut Rng) -> Vec<u8> {
    // Within a scan batch, in a blob file of the smallest trees, borrowed.
    let len = match random.u8(0..10) {
        0 => random.usize(2_000..6_000),
        1..4 => random.usize(100..400),
        _ => random.usize(0..60),
    };
    vec![random.u8(..); len]
}

fn change(keyspace: &Keyspace, model: &mut Model, random: &mut Rng, count: u32) {
    for _ in 0..count {
        let key = some_key(random);
        if random.u8(0..4) == 0 {
            keyspace.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = some_value(random);
            keyspace.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
}

/// Some steps from both ends; false at the end.
fn steps<T>(
    iterator: &mut impl DoubleEndedIterator<Item = adamant::Result<T>>,
    random: &mut Rng,
    count: usize,
    met: fn(T) -> Met,
    (low, high): (&mut Vec<Met>, &mut Vec<Met>),
) -> bool {
    let mostly_low = random.bool();
    for _ in 0..count {
        let from_low = mostly_low != (random.u8(0..8) == 0);
        let next = if from_low { iterator.next() } else { iterator.next_back() };
        let Some(next) = next else { return false };
        let met = met(next.expect("an entry should be readable"));
        if from_low { low.push(met) } else { high.push(met) }
    }
    true
}

/// Continues an iterator over pairs as one over keys, or over entries, to its end.
macro_rules! finish {
    ($iterator:expr, $random:expr, $low:expr, $high:expr) => {{
        let mut pairs = $iterator;
        let few = $random.usize(0..40);
        steps(&mut pairs, $random, few, |(key, value)| Met::Pair(key, value), ($low, $high));
        if $random.bool() {
            let all = (&mut *$low, &mut *$high);
            assert!(!steps(&mut pairs.keys(), $random, usize::MAX, Met::Key, all));
        } else {
            let all = (&mut *$low, &mut *$high);
            assert!(!steps(&mut pairs.entries(), $random, usize::MAX, Met::Entry, all));
        }
    }};
}

fn compare(low: Vec<Met>, high: Vec<Met>, expected: &Model, context: &str) {
    let mut expected = expected.iter();
    for met in low.into_iter().chain(high.into_iter().rev()) {
        let (key, value) = expected.next().expect("no more than the model");
        assert_eq!(met.key(), *key, "{context}");
        assert!(met.value().is_none_or(|found| found == value[..]), "{context}, {key:?}");
    }
    assert_eq!(expected.next(), None, "{context}");
}

/// Ranges equal those of a map, for current content, a snapshot, and within a transaction; values
/// are read after further writes.
pub fn keys_and_entries_of_a_map(place: &dyn Place) {
    let seed = 37;
    let random = &mut Rng::with_seed(seed);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut model = Model::new();
    change(&keyspace, &mut model, random, 900);
    for round in 0..18 {
        let context = format!("seed {seed}, round {round}");
        let (one, other) = (some_key(random), some_key(random));
        let range = match random.u8(0..3) {
            0 => (Bound::Unbounded, Bound::Unbounded),
            1 => (Bound::Included(one.clone().min(other.clone())), Bound::Included(one.max(other))),
            _ => (Bound::Unbounded, Bound::Excluded(one)),
        };
        let within = |model: &Model| -> Model {
            model.range(range.clone()).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let mut expected = within(&model);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        match round % 3 {
            0 => finish!(keyspace.range(range.clone()), random, &mut low, &mut high),
            1 => {
                let before = store.snapshot().unwrap();
                change(&keyspace, &mut model, random, 100);
                finish!(before.range(&keyspace, range.clone()), random, &mut low, &mut high);
                assert_eq!(
                    before.len(&keyspace).unwrap() == 0,
                    before.is_empty(&keyspace).unwrap()
                );
            }
            _ => {
                let mut transaction = store.begin().unwrap();
                let mut own = model.clone();
                for _ in 0..30 {
                    let (key, value) = (some_key(random), some_value(random));
                    transaction.put(&keyspace, &key, &value).unwrap();
                    own.insert(key, value);
                    let key = some_key(random);
                    transaction.delete(&keyspace, &key).unwrap();
                    own.remove(&key);
                }
                expected = within(&own);
                let pairs = transaction.range(&keyspace, range.clone());
                finish!(pairs, random, &mut low, &mut high);
            }
        }
        change(&keyspace, &mut model, random, 60);
        compare(low, high, &expected, &context);
    }
    assert_whole(&store);
}

/// An entry keeps its value whatever happens to its key, its keyspace and the keyspace's files.
pub fn an_entry_keeps_its_value(place: &dyn Place) {
    let random = &mut Rng::with_seed(5);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut model = Model::new();
    change(&keyspace, &mut model, random, 600);
    keyspace.compact().unwrap();
    let before = store.snapshot().unwrap();
    let entries: Vec<Entry> = keyspace.iter().entries().map(Result::unwrap).collect();
    let seen: Vec<Entry> = before.iter(&keyspace).entries().map(Result::unwrap).collect();
    let assert_kept = |model: &Model| {
        for entries in [&entries, &seen] {
            let values = entries.iter().map(|entry| entry.value().unwrap());
            assert!(values.eq(model.values().map(|value| Slice::from(&value[..]))));
        }
    };
    let then = model.clone();
    change(&keyspace, &mut model, random, 2_000);
    assert_kept(&then);
    keyspace.clear().unwrap();
    keyspace.compact().unwrap();
    drop(before);
    change(&keyspace, &mut Model::new(), random, 600);
    keyspace.compact().unwrap();
    assert_kept(&then);
    assert!(store.drop_keyspace("main").unwrap());
    assert_kept(&then);
    assert_whole(&store);
}

/// After a store was closed, lazy reads are refused, and copied or borrowed values stay; entries
/// that are kept do not affect the store that is opened in its place.
pub fn entries_of_a_store_that_was_closed(place: &dyn Place) {
    let random = &mut Rng::with_seed(6);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut model = Model::new();
    change(&keyspace, &mut model, random, 600);
    keyspace.compact().unwrap();
    let mut entries: Vec<Entry> = keyspace.iter().entries().map(Result::unwrap).collect();
    // From here on only the entries hold the files of their values.
    change(&keyspace, &mut model, random, 3_000);
    keyspace.compact().unwrap();
    store.close().unwrap();
    for entry in &entries {
        match entry.value() {
            Ok(_) => {}
            Err(Error::Closed) => assert_eq!(place.engine(), Engine::Lsm),
            Err(error) => panic!("{error}"),
        }
    }
    if place.engine() != Engine::Lsm {
        // Borrowed values keep the directory.
        entries.clear();
    }
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    change(&keyspace, &mut model, random, 600);
    drop(entries);
    assert_whole(&store);
    let found: Model = keyspace
        .iter()
        .map(|entry| entry.unwrap())
        .map(|(k, v)| (k.to_vec(), v.to_vec()))
        .collect();
    assert!(found == model);
}
