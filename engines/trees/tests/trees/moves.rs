//! Moves: values go to other keys and other trees without a copy, and nothing else changes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::access::{Read, Write};
use adamant_heap::{Durability, Heap};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{
    Bplus, Btree, Critbit, Cursor, Error, Map, Moved, Moves, OrderedMap, Redblack, Result,
};
use fastrand::Rng;

use crate::common::mock::Mock;
use crate::common::shapes::{Shape, value};
use crate::common::{for_each_tree, open};

for_each_tree! {
    pairs_move_within_a_tree_and_to_others
    values_swap_within_a_tree_and_with_others
    impossible_moves_change_nothing
    ranges_move_in_pieces
    random_moves_match_maps_over_reopenings
    a_move_costs_the_same_whatever_the_value
    a_pair_that_keeps_its_key_keeps_its_block
    typed_maps_move_too
}

/// Values that lie in their entries, and values with blocks of their own.
const SIZES: [usize; 4] = [0, 30, 4096, 4097];

fn pairs_move_within_a_tree_and_to_others<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let other = Bplus::create(&mut heap).unwrap();
    let empty = heap.block_count();
    for size in SIZES {
        let (value, loser) = (vec![1; size], vec![2; 5000]);
        assert!(!tree.insert(&mut heap, b"a", &value).unwrap());
        assert_eq!(tree.rename(&mut heap, b"none", b"b").unwrap(), Moved::Absent);
        assert_eq!(tree.rename(&mut heap, b"a", b"a").unwrap(), Moved::Placed);
        assert_eq!(tree.rename(&mut heap, b"a", b"b").unwrap(), Moved::Placed);
        assert!(tree.get(&heap, b"a").unwrap().is_none());
        assert_eq!(tree.get(&heap, b"b").unwrap(), Some(&value[..]));
        tree.insert(&mut heap, b"c", &loser).unwrap();
        assert_eq!(tree.rename(&mut heap, b"b", b"c").unwrap(), Moved::Replaced);
        assert_eq!(tree.len(&heap).unwrap(), 1);
        assert_eq!(tree.move_to(&mut heap, b"c", &other, b"c").unwrap(), Moved::Placed);
        assert!(tree.is_empty(&heap).unwrap());
        tree.insert(&mut heap, b"d", &loser).unwrap();
        assert_eq!(other.move_to(&mut heap, b"c", &tree, b"d").unwrap(), Moved::Replaced);
        assert_eq!(tree.get(&heap, b"d").unwrap(), Some(&value[..]));
        assert_eq!((tree.check(&heap).unwrap().pairs, other.check(&heap).unwrap().pairs), (1, 0));
        assert!(tree.remove(&mut heap, b"d").unwrap());
        assert_eq!(heap.block_count(), empty, "nothing is left");
    }
}

fn values_swap_within_a_tree_and_with_others<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let other = Btree::create(&mut heap).unwrap();
    for (left, right) in SIZES.into_iter().flat_map(|left| SIZES.map(|right| (left, right))) {
        let (left, right) = (vec![1; left], vec![2; right]);
        tree.insert(&mut heap, b"a", &left).unwrap();
        tree.insert(&mut heap, b"b", &right).unwrap();
        other.insert(&mut heap, b"b", &right).unwrap();
        let blocks = heap.block_count();
        assert!(tree.swap(&mut heap, b"a", &tree, b"a").unwrap());
        assert!(!tree.swap(&mut heap, b"a", &tree, b"none").unwrap());
        assert!(!tree.swap(&mut heap, b"none", &other, b"b").unwrap());
        assert_eq!(tree.get(&heap, b"a").unwrap(), Some(&left[..]));
        assert!(tree.swap(&mut heap, b"a", &tree, b"b").unwrap());
        assert_eq!(tree.get(&heap, b"a").unwrap(), Some(&right[..]));
        assert_eq!(tree.get(&heap, b"b").unwrap(), Some(&left[..]));
        assert!(tree.swap(&mut heap, b"b", &other, b"b").unwrap());
        assert_eq!(tree.get(&heap, b"b").unwrap(), Some(&right[..]));
        assert_eq!(other.get(&heap, b"b").unwrap(), Some(&left[..]));
        assert_eq!(heap.block_count(), blocks, "nothing leaks");
        assert_eq!((tree.check(&heap).unwrap().pairs, other.check(&heap).unwrap().pairs), (2, 1));
    }
}

fn impossible_moves_change_nothing<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    tree.insert(&mut heap, b"a", b"value").unwrap();
    heap.commit();
    assert!(matches!(tree.rename(&mut heap, b"a", &[7; 65_536]), Err(Error::KeyTooLong { .. })));
    let long = vec![0; 65_536];
    assert!(matches!(tree.rename(&mut heap, b"a", &long), Err(Error::KeyTooLong { .. })));
    assert_eq!(tree.rename(&mut heap, &long, b"b").unwrap(), Moved::Absent);
    assert!(!tree.swap(&mut heap, b"a", &tree, &long).unwrap());
    assert_eq!(tree.get(&heap, b"a").unwrap(), Some(&b"value"[..]));
    assert_eq!(heap.commit(), 0, "nothing was written");
    assert_eq!(tree.rename(&mut heap, b"a", &long[1..]).unwrap(), Moved::Placed);
    assert_eq!(tree.check(&heap).unwrap().key_bytes, 65_535);
}

fn ranges_move_in_pieces<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let other = Critbit::create(&mut heap).unwrap();
    let key = |number: u32| format!("{number:05}").into_bytes();
    for number in 0..1000 {
        let bytes = if number % 50 == 0 { 6000 } else { 10 };
        tree.insert(&mut heap, &key(number), &vec![number as u8; bytes]).unwrap();
    }
    for number in 190..210 {
        other.insert(&mut heap, &key(number), b"loser").unwrap();
    }
    let (low, high) = (key(200), key(700));
    let whole = (Bound::Excluded(&low[..]), Bound::Included(&high[..]));
    assert_eq!(tree.move_range(&mut heap, whole, &tree, 10).unwrap().moved, 0);
    let (mut moved, mut replaced, mut pieces) = (0, 0, 0);
    let mut last = Some(low.clone());
    while let Some(key) = last {
        let range = (Bound::Excluded(&key[..]), Bound::Included(&high[..]));
        let piece = tree.move_range(&mut heap, range, &other, 99).unwrap();
        assert!(piece.moved == 99 || piece.last.is_none());
        (moved, replaced, pieces) = (moved + piece.moved, replaced + piece.replaced, pieces + 1);
        last = piece.last;
    }
    assert_eq!((moved, replaced, pieces), (500, 9, 6));
    assert_eq!((tree.check(&heap).unwrap().pairs, other.check(&heap).unwrap().pairs), (500, 511));
    for number in 0..1000 {
        let is_moved = (201..=700).contains(&number);
        assert_eq!(tree.contains(&heap, &key(number)).unwrap(), !is_moved);
        if is_moved {
            let value = other.get(&heap, &key(number)).unwrap().unwrap();
            assert!(value.len() != 5 && value.iter().all(|byte| *byte == number as u8));
        }
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn assert_same<T: OrderedMap, R: Read>(tree: &T, read: &R, model: &Model) {
    assert_eq!(tree.check(read).unwrap().pairs, model.len() as u64);
    let mut cursor = tree.cursor(read);
    for (key, value) in model {
        assert_eq!(cursor.next().unwrap(), Some((&key[..], &value[..])));
    }
    assert!(cursor.next().unwrap().is_none());
}

/// A key of a model, most of the time.
fn some_key(rng: &mut Rng, model: &Model) -> Vec<u8> {
    let key = Shape::Random20.key(rng, 1500, 0);
    if rng.u8(..5) == 0 {
        return key;
    }
    model.range(key.clone()..).next().map_or(key, |(key, _)| key.clone())
}

/// Moves a pair between models.
fn move_in(models: &mut [Model; 2], from: (usize, &[u8]), to: (usize, &[u8])) -> Moved {
    match models[from.0].remove(from.1) {
        None => Moved::Absent,
        Some(value) => match models[to.0].insert(to.1.to_vec(), value) {
            None => Moved::Placed,
            Some(_) => Moved::Replaced,
        },
    }
}

/// One random change of two trees, which are of different kinds, and of their models.
fn change<T: OrderedMap, U: OrderedMap, W: Write>(
    tx: &mut W,
    (one, two): (&T, &U),
    models: &mut [Model; 2],
    rng: &mut Rng,
) -> Result<()> {
    let (key, new_key) = (some_key(rng, &models[0]), some_key(rng, &models[1]));
    match rng.u8(..20) {
        11..20 => {
            let value = value(Shape::Random20, rng);
            let replaced = one.insert(tx, &key, &value)?;
            assert_eq!(replaced, models[0].insert(key, value).is_some());
        }
        0..5 => {
            let value = value(Shape::Random20, rng);
            let replaced = two.insert(tx, &new_key, &value)?;
            assert_eq!(replaced, models[1].insert(new_key, value).is_some());
        }
        5 => assert_eq!(one.remove(tx, &key)?, models[0].remove(&key).is_some()),
        6 => {
            let moved = one.rename(tx, &key, &new_key)?;
            let expected = move_in(models, (0, &key), (0, &new_key));
            // A move to its own key leaves a pair in place.
            let expected =
                if key == new_key && moved.is_moved() { Moved::Placed } else { expected };
            assert_eq!(moved, expected);
        }
        7 => {
            let moved = one.move_to(tx, &key, two, &key)?;
            assert_eq!(moved, move_in(models, (0, &key), (1, &key)));
        }
        8 => {
            let moved = two.move_to(tx, &new_key, one, &key)?;
            assert_eq!(moved, move_in(models, (1, &new_key), (0, &key)));
        }
        9 => {
            let swapped = one.swap(tx, &key, two, &new_key)?;
            let [left, right] = models;
            if let (Some(left), Some(right)) = (left.get_mut(&key), right.get_mut(&new_key)) {
                std::mem::swap(left, right);
                assert!(swapped);
            } else {
                assert!(!swapped);
            }
        }
        10 => {
            let other = some_key(rng, &models[0]);
            let both = models[0].contains_key(&key) && models[0].contains_key(&other);
            assert_eq!(one.swap(tx, &key, one, &other)?, both);
            if both && key != other {
                let value = models[0].remove(&key).unwrap();
                let other_value = models[0].insert(other, value).unwrap();
                models[0].insert(key, other_value);
            }
        }
        _ => {
            let range = (Bound::Included(&key[..]), Bound::Unbounded);
            let piece = one.move_range(tx, range, two, 5)?;
            let keys: Vec<Vec<u8>> =
                models[0].range(key.clone()..).take(5).map(|(key, _)| key.clone()).collect();
            assert_eq!(piece.moved, keys.len() as u64);
            let mut replaced = 0;
            for key in keys {
                let moved = move_in(models, (0, &key), (1, &key));
                replaced += u64::from(moved == Moved::Replaced);
            }
            assert_eq!(piece.replaced, replaced);
        }
    }
    Ok(())
}

fn random_moves_match_maps_over_reopenings<T: OrderedMap>() {
    random_moves::<T, Bplus>(1);
    random_moves::<T, Btree>(2);
    random_moves::<T, Critbit>(3);
    random_moves::<T, Redblack>(4);
}

fn random_moves<T: OrderedMap, U: OrderedMap>(seed: u64) {
    println!("{} to {}, seed {seed}", T::NAME, U::NAME);
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut heap = open(&directory);
    let blocks = heap.check().unwrap().blocks;
    let (one, two) = heap
        .transaction(Durability::Buffered, |tx| Ok::<_, Error>((T::create(tx)?, U::create(tx)?)))
        .unwrap();
    let mut models: [Model; 2] = Default::default();
    let mut rng = Rng::with_seed(seed);
    for round in 0..30 {
        // Each third transaction fails after its changes, and leaves nothing of them.
        let mut after = models.clone();
        let mut changes = rng.clone();
        let fails = round % 3 == 2;
        let outcome = heap.transaction(Durability::Deferred, |tx| {
            for _ in 0..100 {
                change(tx, (&one, &two), &mut after, &mut changes)?;
            }
            if fails { Err(Error::KeyTooLong { bytes: 0, bytes_max: 0 }) } else { Ok(()) }
        });
        assert_eq!(outcome.is_err(), fails, "{outcome:?}");
        rng = changes;
        if !fails {
            models = after;
        }
        if round % 10 == 9 {
            drop(heap);
            heap = open(&directory);
        }
        let view = heap.view().unwrap();
        assert_same(&one, &view, &models[0]);
        assert_same(&two, &view, &models[1]);
    }
    assert!(models.iter().all(|model| model.len() > 20), "both have pairs");
    heap.transaction(Durability::Buffered, |tx| {
        one.destroy(tx)?;
        two.destroy(tx)
    })
    .unwrap();
    let check = heap.check().unwrap();
    assert!(check.is_clean(), "{:?}", check.findings);
    assert_eq!(check.blocks, blocks, "every block was given back");
}

/// Log bytes of a transaction.
fn cost(heap: &Heap, work: impl FnOnce(&mut adamant_heap::Transaction<'_>) -> Result<()>) -> u64 {
    let before = heap.stats().journal.log_appended_bytes;
    heap.transaction(Durability::Sync, work).unwrap();
    heap.stats().journal.log_appended_bytes - before
}

/// Values of 8 KiB and of 64 MiB: the same bytes of log, and no more of the pool.
fn a_move_costs_the_same_whatever_the_value<T: OrderedMap>() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let heap = open(&directory);
    let (tree, other) = heap
        .transaction(Durability::Sync, |tx| Ok::<_, Error>((T::create(tx)?, Bplus::create(tx)?)))
        .unwrap();
    let mut costs = Vec::new();
    for bytes in [8 << 10, 64 << 20] {
        heap.transaction(Durability::Sync, |tx| {
            for key in [b"a", b"b"] {
                let value = vec![key[0]; bytes];
                tree.insert(tx, key, &value)?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        let (blocks, used) = (heap.check().unwrap().blocks, heap.stats().used_bytes);
        costs.push([
            cost(&heap, |tx| tree.rename(tx, b"a", b"c").map(drop)),
            cost(&heap, |tx| tree.swap(tx, b"b", &tree, b"c").map(drop)),
            cost(&heap, |tx| tree.move_to(tx, b"b", &other, b"b").map(drop)),
            cost(&heap, |tx| tree.swap(tx, b"c", &other, b"b").map(drop)),
            cost(&heap, |tx| other.move_to(tx, b"b", &tree, b"d").map(drop)),
        ]);
        assert_eq!(heap.stats().used_bytes, used, "no new page is used");
        let nodes = heap.check().unwrap().blocks.abs_diff(blocks);
        assert!(nodes <= 2, "{nodes} more or fewer nodes");
        for (key, byte) in [(b"c", b'a'), (b"d", b'b')] {
            let view = heap.view().unwrap();
            let value = tree.get(&view, key).unwrap().unwrap();
            assert!(value.len() == bytes && value.iter().all(|it| *it == byte));
        }
        heap.transaction(Durability::Sync, |tx| tree.clear(tx)).unwrap();
    }
    println!("{}: {costs:?}", T::NAME);
    for (small, large) in costs[0].into_iter().zip(costs[1]) {
        assert!(small > 0 && small < 2500, "a move of 8 KiB writes {small} bytes");
        // Offsets have other lengths in the record.
        assert!(large < small + 400, "{large} bytes for 64 MiB, {small} for 8 KiB");
    }
}

/// Between trees, under the same key, one word moves: the value stays at its address.
fn a_pair_that_keeps_its_key_keeps_its_block<T: OrderedMap>() {
    let mut heap = Mock::new();
    let tree = T::create(&mut heap).unwrap();
    let other = Redblack::create(&mut heap).unwrap();
    for number in 0..100_u8 {
        tree.insert(&mut heap, &[number], &[number; 3000]).unwrap();
    }
    heap.commit();
    let before = tree.get(&heap, &[50]).unwrap().unwrap().as_ptr();
    assert_eq!(tree.move_to(&mut heap, &[50], &other, &[50]).unwrap(), Moved::Placed);
    let after = other.get(&heap, &[50]).unwrap().unwrap().as_ptr();
    assert_eq!(before, after);
    let logged = heap.commit();
    assert!(logged < 1000, "a move of a pair of 3,000 bytes wrote {logged}");
    // The same by hand.
    let entry = other.take(&mut heap, &[50]).unwrap().unwrap();
    assert_eq!(entry.read(&heap).unwrap().key, [50]);
    assert!(other.is_empty(&heap).unwrap());
    let entry = entry.with_key(&mut heap, &[200]).unwrap();
    let old = tree.insert_entry(&mut heap, entry).unwrap();
    assert!(old.is_none());
    let entry = tree.take(&mut heap, &[200]).unwrap().unwrap().with_key(&mut heap, &[7]).unwrap();
    let old = tree.insert_entry(&mut heap, entry).unwrap().expect("there was one");
    assert_eq!(old.read(&heap).unwrap().value(&heap).unwrap(), [7; 3000]);
    old.free(&mut heap).unwrap();
    assert_eq!(tree.get(&heap, &[7]).unwrap().unwrap(), [50; 3000]);
    assert_eq!(tree.check(&heap).unwrap().pairs, 99);
}

fn typed_maps_move_too<T: OrderedMap>() {
    let mut heap = Mock::new();
    let map = Map::<u64, u64, T>::create(&mut heap).unwrap();
    let other = Map::<u64, u64, Btree>::create(&mut heap).unwrap();
    for key in 0..100 {
        map.insert(&mut heap, &key, &(key * 10)).unwrap();
    }
    assert_eq!(map.rename(&mut heap, &7, &1000).unwrap(), Moved::Placed);
    assert_eq!(map.rename(&mut heap, &8, &1000).unwrap(), Moved::Replaced);
    assert_eq!(map.rename(&mut heap, &8, &1000).unwrap(), Moved::Absent);
    assert_eq!(map.move_to(&mut heap, &1000, &other, &1).unwrap(), Moved::Placed);
    assert!(map.swap(&mut heap, &1, &other, &1).unwrap());
    assert!(!map.swap(&mut heap, &8, &other, &1).unwrap());
    assert_eq!((map.get(&heap, &1).unwrap(), other.get(&heap, &1).unwrap()), (Some(80), Some(10)));
    assert_eq!((map.len(&heap).unwrap(), other.len(&heap).unwrap()), (98, 1));
}
