//! Tests of the ordered index: against a map, and with readers beside the writer.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::*;
use crate::key::EntryKind;
use crate::memtable::index_entry::ValuePlace;

fn place(sequence: u64) -> Place {
    let value = ValuePlace { chunk: sequence as u32, at: 2, len: 3 };
    Place { sequence, kind: EntryKind::Value, value }
}

fn version(at: Position<'_>) -> (Vec<u8>, Reverse<u64>) {
    assert_eq!(at.place(), place(at.sequence()));
    (at.key(), Reverse(at.sequence()))
}

/// The index of each version.
type Model = BTreeMap<(Vec<u8>, Reverse<u64>), u32>;

fn assert_is(index: &OrderedIndex, model: &Model, seed: u64) {
    let forward = std::iter::successors(index.first(), |at| index.after(at));
    assert!(forward.map(version).eq(model.keys().cloned()), "seed {seed}");
    let backward = std::iter::successors(index.last_before(None), |at| index.before(at));
    assert!(backward.map(version).eq(model.keys().rev().cloned()), "seed {seed}");
    for moment in [0, 700, u64::MAX] {
        let mut back = index.back_from(None);
        let (mut key, mut seen, mut found) = (Vec::new(), None, Vec::new());
        while back.next(moment, &mut key, &mut seen) {
            found.push((key.clone(), seen.map(|at: Position<'_>| at.sequence())));
        }
        let mut expected = BTreeMap::new();
        for (key, sequence) in model.keys() {
            let seen: &mut Option<u64> = expected.entry(key.clone()).or_default();
            *seen = (*seen).or((sequence.0 <= moment).then_some(sequence.0));
        }
        assert!(found.into_iter().rev().eq(expected), "seed {seed}, at {moment}");
    }
}

/// A key of few different bytes, and sometimes a long start that many share.
fn some_key(random: &mut fastrand::Rng) -> Vec<u8> {
    let start = ["", "", "user", "user:profile:", "user:profile:of"][random.usize(0..5)];
    let rest = (0..random.usize(0..12)).map(|_| random.u8(b'm'..b'o'));
    start.bytes().chain(rest).collect()
}

#[test]
fn it_agrees_with_a_map() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let index = OrderedIndex::new();
        let mut model = Model::new();
        assert!(index.first().is_none() && index.last_before(None).is_none());
        for sequence in 1..6_000 {
            let key = some_key(&mut random);
            let entry = index.insert(&key, place(sequence)).unwrap();
            model.insert((key, Reverse(sequence)), entry);
            if random.u8(0..4) == 0 {
                // As when the last transaction is undone.
                let at = random.usize(0..model.len());
                let removed = model.keys().nth(at).cloned().unwrap();
                index.remove(model.remove(&removed).unwrap());
            }
        }
        assert_is(&index, &model, seed);
        for _ in 0..3_000 {
            let at = (some_key(&mut random), Reverse(random.u64(0..6_000)));
            let search = SearchKey::new(&at.0);
            let found = index.seek(&search, at.1.0).map(version);
            let expected = model.range(&at..).next();
            assert_eq!(found.as_ref(), expected.map(|(at, _)| at), "seed {seed}");
            let found = index.last_before(Some((&search, at.1.0))).map(version);
            let expected = model.range(..&at).next_back();
            assert_eq!(found.as_ref(), expected.map(|(at, _)| at), "seed {seed}");
        }
        for (_, entry) in std::mem::take(&mut model) {
            index.remove(entry);
        }
        assert_is(&index, &model, seed);
        for sequence in 1..500 {
            let key = some_key(&mut random);
            let entry = index.insert(&key, place(sequence)).unwrap();
            model.insert((key, Reverse(sequence)), entry);
        }
        assert_is(&index, &model, seed);
    }
}

#[test]
fn keys_are_ordered_as_bytes_are() {
    let long = [&[7; 50][..], &[0]].concat();
    let keys: [&[u8]; 11] = [
        b"",
        b"\0",
        b"\0\0",
        &long[..40],
        &long[..50],
        &long,
        b"a",
        b"a\0",
        b"a\0\0\0\0",
        b"abcd",
        b"\xff\xff\xff\xff\xff",
    ];
    // Several versions of each, so that there are many leaves with the same bounds.
    let index = OrderedIndex::new();
    for sequence in 1..40 {
        for key in keys.iter().rev() {
            index.insert(key, place(sequence)).unwrap();
        }
    }
    let found = std::iter::successors(index.first(), |at| index.after(at)).map(version);
    let expected = keys.iter().flat_map(|key| (1..40).rev().map(move |at| (key, at)));
    assert!(found.eq(expected.map(|(key, at)| (key.to_vec(), Reverse(at)))));
}

#[test]
fn of_equal_versions_the_last_one_is_first() {
    let index = OrderedIndex::new();
    let place = |at| Place { value: ValuePlace { chunk: 1, at, len: 3 }, ..place(1) };
    let entries: Vec<_> = (0..100).map(|at| index.insert(b"key", place(at)).unwrap()).collect();
    let all = || {
        let found = std::iter::successors(index.first(), |at| index.after(at));
        found.map(|at| at.place().value.at).collect::<Vec<_>>()
    };
    assert!(all().into_iter().eq((0..100).rev()));
    for at in [99, 0, 50, 51] {
        index.remove(entries[at]);
    }
    assert_eq!(all().len(), 96);
    assert!([99, 0, 50, 51].iter().all(|at| !all().contains(at)));
}

#[test]
fn ascending_keys_fill_their_leaves() {
    let (ascending, appended) = (OrderedIndex::new(), OrderedIndex::new());
    for number in 0..3_200_u32 {
        let key = format!("{number:08}");
        ascending.insert(key.as_bytes(), place(1)).unwrap();
        appended.append(key.as_bytes(), place(1)).unwrap();
    }
    for index in [ascending, appended] {
        let first = index.first().unwrap();
        let mut leaves = 1;
        let mut leaf = first.leaf;
        while let Some(next) = index.leaves.get(leaf.next.load(Ordering::Relaxed)) {
            leaves += 1;
            leaf = next;
        }
        assert_eq!(leaves, 3_200 / SLOTS);
        // The root, and seven nodes of half its size: a search reads one node of each level.
        assert_eq!(index.levels.load(Ordering::Relaxed), 2);
    }
}

#[test]
fn readers_beside_a_writer_see_all_that_was_there() {
    let index = OrderedIndex::new();
    let key = |number: u32| number.swap_bytes().to_le_bytes();
    for number in 0..500 {
        index.insert(&key(8 * number), place(1)).unwrap();
    }
    let walk = |is_forward: bool| {
        let first = if is_forward { index.first() } else { index.last_before(None) };
        let found = std::iter::successors(first, |at| match is_forward {
            true => index.after(at),
            false => index.before(at),
        });
        let found: Vec<_> = found.map(|at| at.key()).collect();
        assert!(found.is_sorted_by(|one, other| (one < other) == is_forward));
        assert_eq!(found.iter().filter(|key| key[3].is_multiple_of(8)).count(), 500);
    };
    let seek = |number: u32| {
        let key = key(8 * (number % 500));
        let search = SearchKey::new(&key);
        let found = index.seek(&search, 1).map(|at| at.key());
        assert_eq!(found.as_deref(), Some(&key[..]));
        let newest = index.last_before(Some((&search, 0))).map(|at| at.key());
        assert_eq!(newest.as_deref(), Some(&key[..]));
    };
    std::thread::scope(|scope| {
        for is_forward in [true, false] {
            scope.spawn(move || (0..20).for_each(|_| walk(is_forward)));
        }
        scope.spawn(|| (0..20_000).for_each(seek));
        for number in 0..3_500 {
            let entry = index.insert(&key(8 * (number % 500) + 1 + number / 500), place(7));
            if number % 3 > 0 {
                index.remove(entry.unwrap());
            }
        }
    });
}
