//! The empty key in every call that takes or returns a key.

use std::ops::Bound;

use adamant::Slice;

use crate::place::{Place, assert_whole};

/// The empty key is the lowest of all, and otherwise a key like any other, in every call that takes
/// or returns one.
pub fn is_a_key(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let keys = |bounds: (Bound<&str>, Bound<&str>)| -> Vec<Slice> {
        keyspace.range(bounds).keys().map(Result::unwrap).collect()
    };
    let before = store.snapshot().unwrap();
    assert!(!keyspace.insert("", "alone").unwrap());
    assert_eq!(keyspace.get("").unwrap(), Some("alone".into()));
    assert_eq!(keys((Bound::Unbounded, Bound::Included(""))), [Slice::EMPTY]);
    assert_eq!(keyspace.last().unwrap(), keyspace.first().unwrap());
    for key in ["\0", "\0\0", "a"] {
        keyspace.insert(key, key).unwrap();
    }
    let all = ["", "\0", "\0\0", "a"].map(Slice::from);
    let (included, excluded) = (Bound::Included(""), Bound::Excluded(""));
    assert_eq!(keys((included, Bound::Unbounded)), all);
    assert_eq!(keys((excluded, Bound::Unbounded)), all[1..]);
    assert_eq!(keys((included, included)), all[..1]);
    assert!(keys((Bound::Unbounded, excluded)).is_empty());
    assert_eq!(keys((included, Bound::Excluded("\0"))), all[..1]);
    let down: Vec<Slice> = keyspace.iter().rev().map(|entry| entry.unwrap().0).collect();
    assert!(down.iter().eq(all.iter().rev()), "{down:?}");
    assert_eq!(keyspace.prefix("").count(), 4);
    // A snapshot and a transaction see the earlier state, and a transaction that read its absence
    // conflicts.
    let during = store.snapshot().unwrap();
    let mut reader = store.begin().unwrap();
    assert!(reader.contains(&keyspace, "").unwrap());
    reader.put(&keyspace, "b", "").unwrap();
    assert_eq!(keyspace.take("").unwrap(), Some("alone".into()));
    assert!(reader.commit().unwrap_err().is_conflict());
    assert_eq!((before.get(&keyspace, "").unwrap(), keyspace.get("").unwrap()), (None, None));
    assert_eq!(during.first(&keyspace).unwrap(), Some(("".into(), "alone".into())));
    assert_eq!(during.range(&keyspace, ..).keys().map(Result::unwrap).collect::<Vec<_>>(), all);
    let mut writer = store.begin().unwrap();
    writer.put(&keyspace, "", "again").unwrap();
    assert_eq!(writer.first(&keyspace).unwrap(), Some(("".into(), "again".into())));
    let seen = writer.iter(&keyspace).map(|entry| entry.unwrap().0).collect::<Vec<_>>();
    assert_eq!(seen, all);
    writer.commit().unwrap();
    assert_eq!(keyspace.compare_and_swap("", Some("again"), Some("swapped")).unwrap(), Ok(()));
    // Removed as part of a range, with every kind of start.
    keyspace.delete_range((excluded, Bound::Included("a"))).unwrap();
    assert_eq!(keys((Bound::Unbounded, Bound::Unbounded)), all[..1]);
    keyspace.delete_range(.."a").unwrap();
    assert!(keyspace.is_empty().unwrap());
    let loaded = keyspace.load_sorted(all.iter().map(|key| (key, key))).unwrap();
    assert_eq!((loaded.entries, keyspace.len().unwrap()), (4, 4));
    keyspace.extend([("", "last")]).unwrap();
    keyspace.compact().unwrap();
    assert_whole(&store);
    drop((keyspace, before, during));
    store.close().unwrap();
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    assert_eq!(keyspace.first().unwrap(), Some(("".into(), "last".into())));
    assert_eq!(keyspace.range(""..="").count(), 1);
    assert_eq!(keyspace.delete_range((included, included)).unwrap(), ());
    assert_eq!(keyspace.first().unwrap().map(|(key, _)| key), Some("\0".into()));
    assert_whole(&store);
}
