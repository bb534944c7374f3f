//! Trees of words: pairs of 8 bytes and 8 bytes lie in nodes, and no others can be inserted. The
//! other tests verify their behaviour, with the shape `Words`.

use std::collections::BTreeMap;

use adamant_heap::access::Read;
use adamant_trees::{
    Btree, Critbit, Cursor, Error, Map, Moves, OrderedMap, Part, Redblack, Salvaged, Seek,
};
use fastrand::Rng;

use crate::common::mock::Mock;

fn bytes(number: u64) -> [u8; 8] {
    number.swap_bytes().to_le_bytes()
}

/// A tree of `pairs` pairs, and its content.
fn filled<T: OrderedMap>(heap: &mut Mock, pairs: u64) -> (T, BTreeMap<Vec<u8>, Vec<u8>>) {
    let tree = T::create_of_words(heap).unwrap();
    let mut rng = Rng::with_seed(pairs);
    let mut map = BTreeMap::new();
    while map.len() < pairs as usize {
        // Few of the bytes differ, so that bounds of other lengths lie among them.
        let key: Vec<u8> = (0..8).map(|_| b"\0\x01\xff"[rng.usize(..3)]).collect();
        let value = rng.u64(..).to_le_bytes();
        assert_eq!(
            tree.insert(heap, &key, &value).unwrap(),
            map.insert(key, value.into()).is_some()
        );
    }
    (tree, map)
}

fn others_are_refused<T: OrderedMap>() {
    let mut heap = Mock::new();
    let (tree, map) = filled::<T>(&mut heap, 50);
    let key = map.keys().next().unwrap();
    for (key, value) in
        [(&key[..7], &[1; 8][..]), (&key[..], &[1; 7]), (&key[..], &[1; 9]), (b"", &[1; 8])]
    {
        let refused = tree.insert(&mut heap, key, value);
        let Err(Error::NotWords { key_bytes, value_bytes }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((key_bytes, value_bytes), (key.len(), value.len()));
        assert!(!tree.remove(&mut heap, &[key, b"more"].concat()).unwrap());
        assert_eq!(tree.get(&heap, &key[..key.len().min(7)]).unwrap(), None);
    }
    assert_eq!(tree.check(&heap).unwrap().pairs, 50);
}

/// A cursor goes to the gap of any string, also of one that cannot be a key.
fn bounds_have_any_length<T: OrderedMap>() {
    let mut heap = Mock::new();
    let (tree, map) = filled::<T>(&mut heap, 600);
    let mut rng = Rng::with_seed(5);
    let mut cursor = tree.cursor(&heap);
    for _ in 0..5000 {
        let bound: Vec<u8> = (0..rng.usize(..12)).map(|_| b"\0\x01\xff"[rng.usize(..3)]).collect();
        let (before, after) = (map.range(..bound.clone()), map.range(bound.clone()..));
        let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
        cursor.seek(Seek::Before(&bound)).unwrap();
        assert_eq!(cursor.next().unwrap().map(owned), after.clone().next().map(pair));
        cursor.seek(Seek::Before(&bound)).unwrap();
        assert_eq!(cursor.previous().unwrap().map(owned), before.clone().next_back().map(pair));
        cursor.seek(Seek::After(&bound)).unwrap();
        let mut above = after.filter(|(key, _)| **key > bound);
        assert_eq!(cursor.next().unwrap().map(owned), above.next().map(pair));
        let found = tree.get(&heap, &bound).unwrap();
        assert_eq!(found, map.get(&bound).map(|value| &value[..]));
    }
}

/// Moves between trees of words and of entries allocate and free what one needs and the other does
/// not.
fn pairs_move_to_other_forms<T: OrderedMap>() {
    let mut heap = Mock::new();
    let (tree, map) = filled::<T>(&mut heap, 200);
    let other = Critbit::create(&mut heap).unwrap();
    let blocks = heap.block_count();
    for key in map.keys() {
        assert!(tree.move_to(&mut heap, key, &other, key).unwrap().is_moved());
    }
    assert_eq!(tree.check(&heap).unwrap().pairs, 0);
    assert_eq!(other.check(&heap).unwrap().pairs, 200);
    let keys: Vec<&Vec<u8>> = map.keys().collect();
    assert!(other.swap(&mut heap, keys[0], &other, keys[1]).unwrap());
    for key in map.keys() {
        assert!(other.move_to(&mut heap, key, &tree, key).unwrap().is_moved());
    }
    assert!(tree.swap(&mut heap, keys[0], &tree, keys[1]).unwrap());
    assert!(heap.block_count() <= blocks, "entries are gone again");
    for (key, value) in &map {
        assert_eq!(tree.get(&heap, key).unwrap(), Some(&value[..]));
    }
    let new_key = [7; 8];
    assert!(tree.rename(&mut heap, keys[0], &new_key).unwrap().is_moved());
    assert_eq!(tree.get(&heap, &new_key).unwrap(), Some(&map[keys[0]][..]));
    let long = tree.rename(&mut heap, &new_key, b"a longer key");
    assert!(matches!(long, Err(Error::NotWords { key_bytes: 12, value_bytes: 8 })));
}

fn values_are_handed_out<T: OrderedMap>() {
    let mut heap = Mock::new();
    let (tree, map) = filled::<T>(&mut heap, 300);
    let (mut values, mut blocks) = (Vec::new(), 1);
    tree.parts(&heap, &mut |part| match part {
        Part::Value(value) => values.push(value.to_vec()),
        _ => blocks += 1,
    })
    .unwrap();
    assert_eq!(blocks, heap.block_count(), "nodes, and the head");
    values.sort_unstable();
    let mut expected: Vec<_> = map.into_values().collect();
    expected.sort_unstable();
    assert_eq!(values, expected);
}

#[test]
fn salvage_hands_out_words() {
    let mut heap = Mock::new();
    let (btree, map) = filled::<Btree>(&mut heap, 300);
    let (redblack, _) = filled::<Redblack>(&mut heap, 300);
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    let mut note = |at: usize, salvaged: Salvaged<'_>| match salvaged {
        Salvaged::Pair((key, value)) => {
            assert!(found[at].insert(key.to_vec(), value.to_vec()).is_none())
        }
        other => panic!("{other:?}"),
    };
    Btree::salvage(&heap, btree.head(), &mut |salvaged| note(0, salvaged));
    Redblack::salvage(&heap, redblack.head(), &mut |salvaged| note(1, salvaged));
    assert_eq!(found, [map.clone(), map]);
}

macro_rules! of_words {
    ($($test:ident)+) => {$(
        #[test]
        fn $test() {
            super::$test::<Btree>();
            super::$test::<Redblack>();
        }
    )+};
}

mod both {
    use super::{Btree, Redblack};

    of_words! {
        others_are_refused
        bounds_have_any_length
        pairs_move_to_other_forms
        values_are_handed_out
    }
}

/// A typed map of words takes only nodes; one with longer values has entries.
#[test]
fn typed_maps_of_words_have_no_entries() {
    let mut heap = Mock::new();
    let words = Map::<u64, i64, Btree>::create(&mut heap).unwrap();
    let texts = Map::<u64, [u8; 9], Btree>::create(&mut heap).unwrap();
    let blocks = heap.block_count();
    for key in 0..10 {
        words.insert(&mut heap, &key, &-(key as i64)).unwrap();
    }
    assert_eq!(heap.block_count(), blocks + 1, "a node");
    for key in 0..10 {
        texts.insert(&mut heap, &key, &[7; 9]).unwrap();
    }
    assert_eq!(heap.block_count(), blocks + 2 + 10);
    assert_eq!(words.remove(&mut heap, &3).unwrap(), Some(-3));
    assert_eq!(words.first(&heap).unwrap(), Some((0, 0)));
    assert_eq!(words.last(&heap).unwrap(), Some((9, -9)));
    assert_eq!(words.entries(&heap, 2..5).unwrap().count(), 2);
}

/// A tree of the other form is opened by its head, and keeps its form.
#[test]
fn the_form_is_in_the_head() {
    let mut heap = Mock::new();
    let entries = Btree::create(&mut heap).unwrap();
    let words = Btree::create_of_words(&mut heap).unwrap();
    assert_eq!(heap.block(entries.head()).unwrap()[..8], *b"AdamBtr\x01");
    assert_eq!(heap.block(words.head()).unwrap()[..8], *b"AdamBtr\x02");
    let critbit = Critbit::create_of_words(&mut heap).unwrap();
    assert_eq!(heap.block(critbit.head()).unwrap()[..8], *b"AdamCri\x01");
    critbit.insert(&mut heap, &bytes(1), b"any value").unwrap();
    let map = Map::<u64, u64, Redblack>::create(&mut heap).unwrap();
    assert_eq!(heap.block(map.tree(&heap).unwrap().head()).unwrap()[..8], *b"AdamRed\x02");
}
