//! Batches: many changes, one commit.

use adamant::{Durability, Error, KEY_BYTES_MAX, Slice, Store};

use crate::place::{Place, assert_whole, entries};

/// Several keyspaces, in any order; the last operation on a key wins.
pub fn over_several_keyspaces(place: &dyn Place) {
    let store = place.open();
    let one = place.keyspace(&store, "one");
    let two = place.keyspace(&store, "two");
    two.insert("old", "1").unwrap();
    let mut batch = store.batch();
    assert!(batch.is_empty());
    batch.put(&two, "b", "1").unwrap();
    batch.put(&one, "a", "1").unwrap();
    batch.put(&two, "b", "2").unwrap();
    batch.delete(&two, "old").unwrap();
    batch.put(&one, "gone", "1").unwrap();
    batch.delete(&one, "gone").unwrap();
    batch.delete(&one, "back").unwrap();
    batch.put(&one, "back", "1").unwrap();
    batch.delete(&one, "never there").unwrap();
    assert_eq!(batch.len(), 9);
    assert!(one.is_empty().unwrap(), "nothing is there before the commit");
    batch.commit().unwrap();
    let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(entries(&one), [pair("a", "1"), pair("back", "1")]);
    assert_eq!(entries(&two), [pair("b", "2")]);
    assert_eq!((one.len().unwrap(), two.len().unwrap()), (2, 1));
    assert_whole(&store);
}

/// An empty batch, one that is dropped, one with each durability.
pub fn empty_dropped_and_by_durability(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    store.batch().commit().unwrap();
    {
        let mut batch = store.batch();
        batch.put(&keyspace, "never", "").unwrap();
        drop(batch);
    }
    for durability in [Durability::Sync, Durability::Buffered, Durability::Deferred] {
        let mut batch = store.batch();
        batch.durability(durability).put(&keyspace, format!("{durability:?}"), "").unwrap();
        batch.commit().unwrap();
    }
    store.sync().unwrap();
    assert_eq!(keyspace.len().unwrap(), 3);
}

/// Invalid operations are refused at once and leave the batch as it was.
pub fn refuses_what_cannot_be_stored(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let other = Store::in_memory().unwrap();
    let foreign = other.keyspace("main").unwrap();
    let mut batch = store.batch();
    batch.put(&keyspace, "good", "1").unwrap();
    let long = vec![0; KEY_BYTES_MAX + 1];
    assert!(matches!(batch.delete(&keyspace, &long), Err(Error::KeyTooLong { .. })));
    assert!(matches!(batch.put(&keyspace, &long, "1"), Err(Error::KeyTooLong { .. })));
    assert!(matches!(batch.put(&foreign, "k", "1"), Err(Error::OtherStore { .. })));
    assert_eq!(batch.len(), 1);
    batch.commit().unwrap();
    assert_eq!(keyspace.get("good").unwrap(), Some(Slice::from("1")));
    assert_eq!(keyspace.len().unwrap(), 1);
}

/// A keyspace of the batch is dropped before the commit: nothing of the batch is applied.
pub fn is_undone_whole(place: &dyn Place) {
    let store = place.open();
    let stays = place.keyspace(&store, "a stays");
    let goes = place.keyspace(&store, "b goes");
    stays.insert("k", "before").unwrap();
    let mut batch = store.batch();
    for number in 0..500 {
        batch.put(&stays, format!("{number}"), vec![7; 300]).unwrap();
    }
    batch.put(&stays, "k", "after").unwrap();
    batch.put(&goes, "k", "after").unwrap();
    store.drop_keyspace("b goes").unwrap();
    assert!(matches!(batch.commit(), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(entries(&stays), [(b"k".to_vec(), b"before".to_vec())]);
    assert_whole(&store);
}

/// 20,000 operations, including values with pages of their own.
pub fn large(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let value =
        |number: u32| vec![number as u8; if number.is_multiple_of(500) { 200_000 } else { 60 }];
    let mut batch = store.batch();
    for number in (0..20_000).rev() {
        batch.put(&keyspace, format!("{number:08}"), value(number)).unwrap();
    }
    batch.commit().unwrap();
    assert_eq!(keyspace.len().unwrap(), 20_000);
    for (number, entry) in (0..).zip(keyspace.iter()) {
        assert!(entry.unwrap().1[..] == value(number)[..], "{number}");
    }
    assert_whole(&store);
    let mut batch = store.batch();
    for number in 0..20_000 {
        batch.delete(&keyspace, format!("{number:08}")).unwrap();
    }
    batch.commit().unwrap();
    assert!(keyspace.is_empty().unwrap());
    assert_whole(&store);
}
