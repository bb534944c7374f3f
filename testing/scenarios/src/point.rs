//! Single entries: set, get, replace, remove.

use std::panic::{AssertUnwindSafe, catch_unwind};

use adamant::{KEY_BYTES_MAX, Slice};

use crate::place::{Place, assert_whole};

/// Inserting reports whether it replaced, removing whether it removed, reading finds the last
/// value.
pub fn insert_get_replace_remove(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    assert_eq!(keyspace.get("k").unwrap(), None);
    assert!(!keyspace.contains("k").unwrap());
    assert!(!keyspace.insert("k", "1").unwrap());
    assert!(keyspace.insert("k", "22").unwrap());
    assert_eq!(keyspace.get("k").unwrap(), Some(Slice::from("22")));
    assert!(keyspace.contains("k").unwrap());
    assert_eq!(keyspace.len().unwrap(), 1);
    assert!(!keyspace.remove("other").unwrap());
    assert!(keyspace.remove("k").unwrap());
    assert!(!keyspace.remove("k").unwrap());
    assert_eq!(keyspace.get("k").unwrap(), None);
    assert!(keyspace.is_empty().unwrap());
    assert_whole(&store);
}

/// `take` returns what it removed.
pub fn take_returns_the_value(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let long = vec![b'v'; 10_000];
    keyspace.insert("short", "v").unwrap();
    keyspace.insert("long", &long).unwrap();
    assert_eq!(keyspace.take("short").unwrap(), Some(Slice::from("v")));
    assert_eq!(keyspace.take("short").unwrap(), None);
    assert_eq!(keyspace.take("long").unwrap().as_deref(), Some(&long[..]));
    assert!(keyspace.is_empty().unwrap());
    assert_whole(&store);
}

/// Values of every size around the borders of classes, pages and chunks round-trip.
pub fn values_of_all_sizes(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let sizes = [
        0, 1, 7, 8, 19, 20, 21, 100, 127, 128, 129, 1023, 1024, 1025, 4000, 4095, 4096, 4097, 5000,
        65_535, 65_536, 70_000, 262_144, 1_048_575, 1_048_576, 1_048_577, 3_000_000,
    ];
    let value = |bytes: usize| -> Vec<u8> { (0..bytes).map(|at| (at % 251) as u8).collect() };
    for bytes in sizes {
        assert!(!keyspace.insert(format!("{bytes}"), value(bytes)).unwrap());
    }
    // Replaced in the other order, so that each block is freed beside others of its size.
    for bytes in sizes.iter().rev() {
        assert!(keyspace.insert(format!("{bytes}"), value(bytes + 1)).unwrap());
    }
    for bytes in sizes {
        assert!(keyspace.get(format!("{bytes}")).unwrap().as_deref() == Some(&value(bytes + 1)));
        let found = keyspace.get_with(format!("{bytes}"), |found| found == value(bytes + 1));
        assert_eq!(found.unwrap(), Some(true), "{bytes}");
    }
    assert_whole(&store);
    for bytes in sizes {
        assert!(keyspace.remove(format!("{bytes}")).unwrap());
    }
    assert!(keyspace.is_empty().unwrap());
    assert_whole(&store);
}

/// Keys are bytes: zero, 0xff, a key that is a prefix of another one, and very long ones that share
/// all but the end.
pub fn keys_of_all_kinds(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut keys: Vec<Vec<u8>> = vec![
        vec![0],
        vec![0, 0],
        vec![0xff],
        vec![0xff; 9],
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"a\0\0".to_vec(),
        b"ab".to_vec(),
        vec![b'x'; KEY_BYTES_MAX],
        vec![b'x'; KEY_BYTES_MAX - 1],
    ];
    for end in 0..40 {
        let mut key = vec![b'y'; 3_000];
        key.push(end);
        keys.push(key);
    }
    for (at, key) in keys.iter().enumerate() {
        assert!(!keyspace.insert(key, format!("{at}")).unwrap());
    }
    for (at, key) in keys.iter().enumerate() {
        assert_eq!(keyspace.get(key).unwrap(), Some(Slice::from(format!("{at}").as_str())));
    }
    assert_eq!(keyspace.len().unwrap(), keys.len() as u64);
    assert_whole(&store);
}

/// A closure that panics poisons nothing.
pub fn a_panic_within_get_with_leaves_the_store_usable(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "v").unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = catch_unwind(AssertUnwindSafe(|| keyspace.get_with("k", |_| panic!("as told"))));
    std::panic::set_hook(hook);
    assert!(caught.is_err());
    assert!(keyspace.insert("k", "w").unwrap());
    assert_eq!(keyspace.get("k").unwrap(), Some(Slice::from("w")));
    assert_whole(&store);
}
