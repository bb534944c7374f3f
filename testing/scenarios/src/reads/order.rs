//! Ranges, prefixes and iterators in both directions.

use std::collections::BTreeMap;
use std::ops::Bound;

use adamant::{Error, Iter, Keyspace, Slice};

use crate::place::{Place, assert_whole};

fn keys(iterator: impl Iterator<Item = adamant::Result<(Slice, Slice)>>) -> Vec<String> {
    iterator.map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
}

fn numbered(count: u32) -> impl DoubleEndedIterator<Item = String> {
    (0..count).map(|number| format!("{number:06}"))
}

fn fill(keyspace: &Keyspace, store: &adamant::Store, count: u32) {
    let mut batch = store.batch();
    for key in numbered(count) {
        batch.put(keyspace, &key, format!("value of {key}")).unwrap();
    }
    batch.commit().unwrap();
}

/// First, last, and both on an empty keyspace.
pub fn ends(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    assert_eq!(keyspace.first().unwrap(), None);
    assert_eq!(keyspace.last().unwrap(), None);
    assert_eq!(keyspace.iter().count(), 0);
    assert_eq!(keyspace.iter().rev().count(), 0);
    for key in ["m", "a", "z"] {
        keyspace.insert(key, key).unwrap();
    }
    assert_eq!(keyspace.first().unwrap(), Some(("a".into(), "a".into())));
    assert_eq!(keyspace.last().unwrap(), Some(("z".into(), "z".into())));
    keyspace.remove("z").unwrap();
    keyspace.remove("a").unwrap();
    assert_eq!(keyspace.first().unwrap(), Some(("m".into(), "m".into())));
    assert_eq!(keyspace.last().unwrap(), Some(("m".into(), "m".into())));

    // More removed keys precede the remaining one than a single lookup passes over: a keyspace of
    // the engine `lsm`, which still has them, as removed, was taken for empty.
    let numbers = place.keyspace(&store, "numbers");
    fill(&numbers, &store, 1_000);
    for key in numbered(1_000).filter(|key| key != "000500") {
        numbers.remove(&key).unwrap();
    }
    let left = Some(("000500".into(), "value of 000500".into()));
    assert_eq!((numbers.first().unwrap(), numbers.last().unwrap()), (left.clone(), left));
    assert!(!numbers.is_empty().unwrap());
    numbers.remove("000500").unwrap();
    assert_eq!((numbers.first().unwrap(), numbers.last().unwrap()), (None, None));
    assert!(numbers.is_empty().unwrap());
}

/// More entries than any scan batch holds, forward, backward, and from both ends at once.
pub fn both_directions_and_both_ends(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for count in [1, 2, 15, 16, 17, 33, 3_000] {
        fill(&keyspace, &store, count);
        let expected: Vec<String> = numbered(count).collect();
        assert_eq!(keys(keyspace.iter()), expected);
        let backward: Vec<String> = numbered(count).rev().collect();
        assert_eq!(keys(keyspace.iter().rev()), backward);

        for seed in 0..4 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut iterator = keyspace.iter();
            let (mut low, mut high) = (Vec::new(), Vec::new());
            loop {
                let from_low = random.bool();
                let entry = if from_low { iterator.next() } else { iterator.next_back() };
                let Some(entry) = entry else { break };
                let key = String::from_utf8(entry.unwrap().0.to_vec()).unwrap();
                if from_low { low.push(key) } else { high.push(key) }
            }
            assert!(iterator.next().is_none() && iterator.next_back().is_none());
            low.extend(high.into_iter().rev());
            assert!(low == expected, "{count} entries, seed {seed}");
        }
    }
}

/// Every kind of bounds gives what `BTreeMap::range` gives.
pub fn ranges_as_of_a_map(place: &dyn Place) {
    let seed = 11;
    let mut random = fastrand::Rng::with_seed(seed);
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut model = BTreeMap::new();
    let mut batch = store.batch();
    let mut some_key =
        || -> Vec<u8> { (0..random.usize(0..6)).map(|_| random.u8(b'a'..b'e')).collect() };
    for number in 0..700_u32 {
        let key = some_key();
        batch.put(&keyspace, &key, format!("{number}")).unwrap();
        model.insert(key, format!("{number}").into_bytes());
    }
    batch.commit().unwrap();
    let bounds =
        |key: Vec<u8>| [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded];
    for _ in 0..40 {
        for lower in bounds(some_key()) {
            for upper in bounds(some_key()) {
                let range = (lower.clone(), upper);
                let expected: Vec<_> = model
                    .iter()
                    .filter(|(key, _)| std::ops::RangeBounds::contains(&range, *key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                let collect = |iterator: Iter| -> Vec<(Vec<u8>, Vec<u8>)> {
                    iterator
                        .map(|entry| entry.unwrap())
                        .map(|(key, value)| (key.to_vec(), value.to_vec()))
                        .collect()
                };
                assert!(
                    collect(keyspace.range(range.clone())) == expected,
                    "seed {seed}, range {range:?}"
                );
                assert_eq!(keyspace.range(range).rev().count(), expected.len());
            }
        }
        let prefix = some_key();
        let expected = model.keys().filter(|key| key.starts_with(&prefix)).count();
        assert_eq!(keyspace.prefix(&prefix).count(), expected, "prefix {prefix:?}");
        assert_eq!(keyspace.prefix(&prefix).rev().count(), expected, "prefix {prefix:?}");
    }
    assert_eq!(keyspace.range(..).count(), model.len());
    assert_eq!(keyspace.range("b".."a").count(), 0);
}

/// Prefixes that end in 0xff, and the empty one.
pub fn prefixes_at_the_upper_end(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let keys: [&[u8]; 6] = [b"a", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\xff"];
    for key in keys {
        keyspace.insert(key, "").unwrap();
    }
    assert_eq!(keyspace.prefix("").count(), 6);
    assert_eq!(keyspace.prefix("a").count(), 3);
    assert_eq!(keyspace.prefix(b"a\xff").count(), 2);
    assert_eq!(keyspace.prefix(b"\xff").count(), 2);
    assert_eq!(keyspace.prefix(b"\xff\xff").count(), 1);
    assert_eq!(keyspace.prefix("c").count(), 0);
}

/// An iterator owns what it yields and moves between threads; concurrent writes neither break the
/// order nor hide an entry that stays.
pub fn iterators_go_on_while_others_write(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    fill(&keyspace, &store, 2_000);
    let mut iterator = keyspace.iter();
    let mut seen = vec![iterator.next().unwrap().unwrap().0];
    let mut batch = store.batch();
    for number in (1..2_000).step_by(2) {
        batch.delete(&keyspace, format!("{number:06}")).unwrap();
        batch.put(&keyspace, format!("{number:06}-new"), "").unwrap();
    }
    batch.commit().unwrap();
    let rest =
        std::thread::spawn(move || iterator.map(|entry| entry.unwrap().0).collect::<Vec<Slice>>());
    seen.extend(rest.join().unwrap());
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    for number in (0..2_000).step_by(2) {
        let key = format!("{number:06}");
        assert!(seen.binary_search(&Slice::from(key.as_str())).is_ok(), "{key} was missed");
    }
}

/// An iterator over a keyspace that is dropped meanwhile ends with an error.
pub fn an_iterator_ends_with_an_error_when_its_keyspace_is_dropped(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    fill(&keyspace, &store, 1_000);
    let mut iterator = keyspace.iter();
    assert!(iterator.next().unwrap().is_ok());
    assert!(store.drop_keyspace("main").unwrap());
    let error = iterator.find_map(Result::err).expect("an error ends it");
    assert!(matches!(error, Error::KeyspaceDropped { .. }), "{error}");
    assert!(iterator.next().is_none() && iterator.next_back().is_none());
    assert_whole(&store);
}

/// Large values: scan batches end early, and nothing is left out.
pub fn large_values_in_a_scan(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    for number in 0..40_u8 {
        keyspace.insert([number], vec![number; 50_000]).unwrap();
    }
    let mut next = 0;
    for entry in keyspace.iter() {
        let (key, value) = entry.unwrap();
        assert_eq!(key[..], [next]);
        assert!(value.len() == 50_000 && value.iter().all(|byte| *byte == next));
        next += 1;
    }
    assert_eq!(next, 40);
    assert_eq!(keyspace.iter().rev().count(), 40);
}
