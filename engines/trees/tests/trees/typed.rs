//! Typed maps on every tree: their content, their order, and their types.

use std::sync::Arc;

use adamant_heap::{
    AnyPtr, Array, Durability, Heap, LeakFinding, MemoryDirectory, Options, Persistent, Ptr,
    Transaction, TypedRead, TypedWrite, Types, Write,
};
use adamant_trees::{Bplus, Btree, Critbit, Error, Key, Map, MapPiece, OrderedMap, Part};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

use crate::common::for_each_tree;

fn heap() -> Heap {
    let mut options = Options::default();
    options.background = false;
    Heap::open(Arc::new(MemoryDirectory::new()), options).unwrap().0
}

for_each_tree! {
    pairs_in_order
    objects_of_mixed_types
    maps_are_plain_data
    neighbours_and_ranges
    leaks_are_found_beyond_maps
    damage_is_told_by_the_scan
    many_pairs_at_once
}

fn pairs_in_order<T: OrderedMap>() {
    let heap = heap();
    let map = heap
        .transaction(Durability::Buffered, |tx| {
            let map = Map::<i32, U64, T>::create(tx)?;
            for number in 0..1000_i32 {
                let key = (number * 389) % 1000 - 500;
                assert!(!map.insert(tx, &key, &U64::new(number as u64))?);
            }
            assert!(map.insert(tx, &-500, &U64::new(7))?);
            Ok::<_, Error>(map)
        })
        .unwrap();
    {
        let view = heap.view().unwrap();
        assert_eq!(map.len(&view).unwrap(), 1000);
        assert_eq!(map.get(&view, &-500).unwrap(), Some(U64::new(7)));
        assert_eq!(map.get(&view, &500).unwrap(), None);
        assert!(map.contains(&view, &499).unwrap());
        assert_eq!(map.first(&view).unwrap().unwrap().0, -500);
        assert_eq!(map.last(&view).unwrap().unwrap().0, 499);
        let keys = |entries: &mut dyn Iterator<Item = Result<(i32, U64), Error>>| {
            entries.map(|entry| entry.unwrap().0).collect::<Vec<i32>>()
        };
        assert_eq!(keys(&mut map.entries(&view, ..).unwrap()), (-500..500).collect::<Vec<_>>());
        assert_eq!(keys(&mut map.entries(&view, -3..=3).unwrap()), (-3..=3).collect::<Vec<_>>());
        assert_eq!(
            keys(&mut map.entries_back(&view, -3..3).unwrap()),
            (-3..3).rev().collect::<Vec<_>>()
        );
        let mut none = map.entries(&view, 5..5).unwrap();
        assert!(none.next().is_none() && none.next().is_none());
        // The same 8 bytes as a map of another type: a program that gives a wrong type.
        let other = Map::<i32, u8, T>::read_from_bytes(map.as_bytes()).unwrap();
        assert!(matches!(other.get(&view, &0), Err(Error::Damaged { .. })));
    }
    heap.transaction(Durability::Buffered, |tx| {
        assert_eq!(map.remove(tx, &-500)?, Some(U64::new(7)));
        assert_eq!(map.remove(tx, &-500)?, None);
        map.clear(tx)?;
        assert!(map.is_empty(tx)?);
        map.destroy(tx)
    })
    .unwrap();
    assert_eq!(heap.check().unwrap().blocks, 0);
}

fn objects_of_mixed_types<T: OrderedMap>() {
    let heap = heap();
    let map = heap
        .transaction(Durability::Buffered, |tx| {
            let map = Map::<u64, AnyPtr, T>::create(tx)?;
            let (word, float) = (tx.create(5_u64)?, tx.create(0.5_f64)?);
            map.insert(tx, &1, &word.into())?;
            map.insert(tx, &2, &float.into())?;
            Ok::<_, Error>(map)
        })
        .unwrap();
    let view = heap.view().unwrap();
    let value = map.get(&view, &2).unwrap().unwrap();
    assert!(value.is::<f64>());
    assert_eq!(*view.get(value.downcast::<f64>().unwrap()).unwrap(), 0.5);
    assert!(value.downcast::<u64>().is_err());
}

fn maps_are_plain_data<T: OrderedMap>() {
    let heap = heap();
    heap.transaction(Durability::Buffered, |tx| {
        let root = tx.named_root_or_create("numbers", |tx| {
            Map::<u64, Ptr<u64>, T>::create(tx).map_err(|_| adamant_heap::Error::Misuse {
                what: "an empty heap has room for a map",
            })
        })?;
        let map = *tx.get(root)?;
        let object = tx.create(42_u64)?;
        map.insert(tx, &3, &object)?;
        Ok::<_, Error>(())
    })
    .unwrap();
    let view = heap.view().unwrap();
    let root = view.named_root::<Map<u64, Ptr<u64>, T>>("numbers").unwrap().unwrap();
    let map = view.get(root).unwrap();
    assert_eq!(map.object(&view, &3).unwrap(), Some(&42));
    assert_eq!(map.object(&view, &4).unwrap(), None);
    assert!(view.named_root::<Map<u64, Ptr<i64>, T>>("numbers").is_err(), "another type");
    assert!(view.named_root::<Map<u32, Ptr<u64>, T>>("numbers").is_err(), "another key");
}

fn neighbours_and_ranges<T: OrderedMap>() {
    let heap = heap();
    let map = heap
        .transaction(Durability::Buffered, |tx| {
            let map = Map::<u32, u32, T>::create(tx)?;
            for key in (10..500).step_by(10) {
                map.insert(tx, &key, &(key + 1))?;
            }
            Ok::<_, Error>(map)
        })
        .unwrap();
    let view = heap.view().unwrap();
    for key in 0..500_u32 {
        let pair = |key: u32| (key < 500).then_some((key, key + 1));
        let (lower, upper) = (key.next_multiple_of(10).max(10), key / 10 * 10 + 10);
        assert_eq!(map.lower_bound(&view, &key).unwrap(), pair(lower), "{key}");
        assert_eq!(map.upper_bound(&view, &key).unwrap(), pair(upper), "{key}");
    }
    let mut found = Vec::new();
    map.for_each(&view, 35..=60, |key, value| {
        found.push((key, value));
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(found, [(40, 41), (50, 51), (60, 61)]);
    let mut count = 0;
    let stopped = map.for_each(&view, .., |_, _| {
        count += 1;
        if count < 3 { Ok(()) } else { Err(Error::KeyTooLong { bytes: 0, bytes_max: 0 }) }
    });
    assert!(matches!(stopped, Err(Error::KeyTooLong { .. })) && count == 3);
}

/// Maps within maps, with values that own blocks: all of it is reached from the named root, and
/// unreachable blocks are found.
fn leaks_are_found_beyond_maps<T: OrderedMap>() {
    type Inner<T> = Map<u64, Ptr<Array<u8>>, T>;
    type Outer<T> = Map<u32, Inner<T>, T>;
    let heap = heap();
    let lost = heap
        .transaction(Durability::Buffered, |tx| {
            let outer = Outer::<T>::create(tx)?;
            tx.named_root_or_create("maps", |_| Ok(outer))?;
            let mixed = Map::<u64, AnyPtr, T>::create(tx)?;
            tx.named_root_or_create("mixed", |_| Ok(mixed))?;
            for number in 0..6 {
                let inner = Inner::<T>::create(tx)?;
                outer.insert(tx, &number, &inner)?;
                for key in 0..120 {
                    let text = tx.create_array(b"a text of more than a few bytes")?;
                    let text = tx.create(text)?;
                    inner.insert(tx, &key, &text)?;
                }
                let object = tx.create(u64::from(number))?;
                mixed.insert(tx, &number.into(), &object.into())?;
            }
            // Values so long that they have blocks of their own.
            let long = Map::<u8, [u8; 5000], T>::create(tx)?;
            tx.named_root_or_create("long", |_| Ok(long))?;
            long.insert(tx, &1, &[1; 5000])?;
            let mut lost = Vec::new();
            for key in [3, 50, 119] {
                let text = outer.get(tx, &4)?.unwrap().remove(tx, &key)?.unwrap();
                lost.extend([text.offset(), tx.get(text)?.offset()]);
            }
            lost.push(mixed.remove(tx, &2)?.unwrap().offset());
            lost.sort_unstable();
            Ok::<_, Error>(lost)
        })
        .unwrap();
    let types = Types::new()
        .with::<Outer<T>>()
        .with::<Map<u64, AnyPtr, T>>()
        .with::<Map<u8, [u8; 5000], T>>()
        .with::<u64>();
    let report = heap.leaks(&types).unwrap();
    assert!(report.findings.is_empty() && report.shared == 0, "{report:?}");
    let found: Vec<u64> = report.leaks.iter().map(|leak| leak.offset).collect();
    assert_eq!(found, lost);
    heap.transaction(Durability::Buffered, |tx| {
        lost.iter().try_for_each(|block| tx.free(*block))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    assert!(heap.leaks(&types).unwrap().is_clean());
}

/// A freed block of a map, and one with other content, are findings, not panics.
fn damage_is_told_by_the_scan<T: OrderedMap>() {
    let heap = heap();
    let types = Types::new().with::<Map<u64, Ptr<u64>, T>>();
    let (head, object) = heap
        .transaction(Durability::Buffered, |tx| {
            let map = Map::<u64, Ptr<u64>, T>::create(tx)?;
            tx.named_root_or_create("map", |_| Ok(map))?;
            let object = tx.create(7_u64)?;
            for key in 0..100 {
                map.insert(tx, &key, &object)?;
            }
            Ok::<_, Error>((map.tree(tx)?.head(), object))
        })
        .unwrap();
    let view = heap.view().unwrap();
    let mut blocks = 0;
    let mut count = |part: Part<'_>| blocks += usize::from(matches!(part, Part::Block(_)));
    T::open(&view, head).unwrap().parts(&view, &mut count).unwrap();
    drop(view);
    assert!(blocks > 2);
    let report = heap.leaks(&types).unwrap();
    assert!(report.is_clean());
    assert_eq!(report.shared, 99, "a hundred values are one object");
    heap.transaction(Durability::Buffered, |tx| tx.free(object.offset())).unwrap();
    let report = heap.leaks(&types).unwrap();
    let dangling = |finding: &LeakFinding| matches!(finding, LeakFinding::Dangling { offset, .. } if *offset == object.offset());
    assert!(report.findings.len() == 100 && report.findings.iter().all(dangling), "{report:?}");
    heap.transaction(Durability::Buffered, |tx| {
        tx.write(head, 0, 8)?.copy_from_slice(b"no head.");
        Ok::<_, Error>(())
    })
    .unwrap();
    let report = heap.leaks(&types).unwrap();
    assert!(
        matches!(report.findings[..], [LeakFinding::Damaged { owner, offset, .. }]
            if owner == head && offset == head),
        "{report:?}"
    );
    assert!(report.leaks.len() >= blocks, "what is behind the head is not reached");
}

/// Loads in order and in no order, and moves of ranges to a map of another tree.
fn many_pairs_at_once<T: OrderedMap>() {
    let heap = heap();
    let work = |tx: &mut Transaction<'_>| {
        let map = Map::<u64, i64, T>::create(tx)?;
        let sorted: Vec<(u64, i64)> = (0..1000).map(|key| (2 * key, -(key as i64))).collect();
        assert_eq!(map.load_sorted(tx, &sorted)?, 0);
        assert_eq!(map.load_sorted(tx, &sorted[100..200])?, 100);
        let twice = [(5, 1), (5, 2)];
        assert!(matches!(map.load_sorted(tx, &twice), Err(Error::NotAscending { position: 1 })));
        assert_eq!(map.extend(tx, [])?, 0);
        // 50 are there, and one comes three times: the last one stays.
        let mixed = (0..100_u64).rev().chain([1, 1]).enumerate();
        assert_eq!(map.extend(tx, mixed.map(|(at, key)| (key, at as i64)))?, 52);
        assert_eq!(map.len(tx)?, 1050);
        assert_eq!((map.get(tx, &1)?, map.get(tx, &2)?), (Some(101), Some(97)));

        let other = Map::<u64, i64, Btree>::create(tx)?;
        other.insert(tx, &12, &0)?;
        let piece = map.move_range(tx, 10..20, &other, 4)?;
        assert_eq!(piece, MapPiece { moved: 4, replaced: 1, last: Some(13) });
        let piece = map.move_range(tx, 14..20, &other, 100)?;
        assert_eq!(piece, MapPiece { moved: 6, replaced: 0, last: None });
        assert_eq!((map.len(tx)?, other.len(tx)?), (1040, 10));
        assert_eq!((map.get(tx, &12)?, other.get(tx, &12)?), (None, Some(87)));
        map.tree(tx)?.check(tx)?;
        other.tree(tx)?.check(tx)?;
        Ok::<_, Error>(())
    };
    heap.transaction(Durability::Buffered, work).unwrap();
}

#[test]
fn types_of_maps_differ() {
    let ids = [
        Map::<u64, u32, Bplus>::STORED.id(),
        Map::<u32, u64, Bplus>::STORED.id(),
        Map::<u64, u32, Critbit>::STORED.id(),
        Map::<u64, Ptr<u32>, Bplus>::STORED.id(),
    ];
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id));
    }
}

#[test]
fn keys_are_ordered_as_their_bytes() {
    fn assert_order<K: Key + Ord + Copy + std::fmt::Debug>(keys: &[K]) {
        for pair in keys.windows(2) {
            let bytes = [pair[0].to_key(), pair[1].to_key()];
            assert!(bytes[0].as_ref() < bytes[1].as_ref(), "{pair:?}");
            assert_eq!(K::from_key(bytes[0].as_ref()), Some(pair[0]));
        }
        assert_eq!(K::from_key(&[]), None);
    }
    assert_order(&[u64::MIN, 1, 255, 256, u64::MAX]);
    assert_order(&[i64::MIN, -256, -1, 0, 1, i64::MAX]);
    assert_order(&[i8::MIN, -1, 0, 1, i8::MAX]);
    assert_order(&[0_u16, 255, 256]);
    assert_order(&[*b"ab", *b"ac", *b"ba"]);
}
