//! Maps of plain data, by every tree: what they hold, their order, and their types.

mod common;

use std::sync::Arc;

use adamant_heap::{
    AnyPtr, Durability, Heap, MemoryDirectory, Options, Persistent, Ptr, TypedRead, TypedWrite,
};
use adamant_trees::{Bplus, Critbit, Error, Key, Map, OrderedMap};
use common::for_each_tree;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

fn heap() -> Heap {
    let mut options = Options::default();
    options.background = false;
    Heap::open(Arc::new(MemoryDirectory::new()), options).unwrap().0
}

for_each_tree! {
    pairs_in_order
    objects_of_mixed_types
    maps_are_plain_data
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
        // The same 8 bytes as a map of another type: what a program does that lies about it.
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
