//! Refusals and their messages.

use adamant::{Error, KEY_BYTES_MAX, NAME_BYTES_MAX};

use crate::place::{Place, assert_whole};

/// Too long keys, in every call that takes one: only writes refuse them.
pub fn keys(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let longest = vec![b'k'; KEY_BYTES_MAX];
    let too_long = vec![b'k'; KEY_BYTES_MAX + 1];
    assert!(!keyspace.insert(&longest, "v").unwrap());
    assert_eq!(keyspace.get(&longest).unwrap(), Some("v".into()));
    let error = keyspace.insert(&too_long, "v").unwrap_err();
    let most = KEY_BYTES_MAX as u64;
    assert!(matches!(error, Error::KeyTooLong { bytes, bytes_max }
        if (bytes, bytes_max) == (most + 1, most)));
    let words = format!("at most {most} bytes, this one has {}", most + 1);
    assert!(error.to_string().contains(&words), "{error}");
    assert!(matches!(keyspace.remove(&too_long), Err(Error::KeyTooLong { .. })));
    assert!(matches!(keyspace.take(&too_long), Err(Error::KeyTooLong { .. })));
    for key in [too_long.clone(), vec![b'k'; 1 << 20], vec![0; KEY_BYTES_MAX + 1]] {
        assert_eq!(keyspace.get(&key).unwrap(), None);
        assert_eq!(keyspace.get_with(&key, |_| ()).unwrap(), None);
        assert!(!keyspace.contains(&key).unwrap());
        let (snapshot, mut transaction) = (store.snapshot().unwrap(), store.begin().unwrap());
        keyspace.insert(&longest, "v").unwrap();
        assert_eq!(snapshot.get(&keyspace, &key).unwrap(), None);
        assert!(!snapshot.contains(&keyspace, &key).unwrap());
        assert_eq!(transaction.get(&keyspace, &key).unwrap(), None);
        transaction.put(&keyspace, "a", "v").unwrap();
        assert!(!transaction.contains(&keyspace, &key).unwrap());
        transaction.commit().unwrap();
    }
    assert_eq!(keyspace.range(&too_long..).count(), 0);
    assert_eq!(keyspace.range(..&too_long).count(), 2);
    assert_eq!(keyspace.prefix(&too_long).count(), 0);
    assert_whole(&store);
}

/// Names of keyspaces: `/`, `..` and NUL are only bytes; empty and over 255 bytes are errors.
pub fn names(place: &dyn Place) {
    let store = place.open();
    let longest = "n".repeat(NAME_BYTES_MAX);
    let names = ["/", "..", "\0", "../../pool", "log", "\u{e9}\u{1f980}", longest.as_str()];
    for name in names {
        place.keyspace(&store, name).insert("k", name).unwrap();
    }
    for name in names {
        assert_eq!(store.open_keyspace(name).unwrap().get("k").unwrap(), Some(name.into()));
    }
    for name in ["", &"n".repeat(NAME_BYTES_MAX + 1), &"\u{1f980}".repeat(64)] {
        assert!(matches!(store.keyspace(name), Err(Error::KeyspaceName { .. })));
        assert!(matches!(store.create_keyspace(name), Err(Error::KeyspaceName { .. })));
        assert!(matches!(store.open_keyspace(name), Err(Error::KeyspaceName { .. })));
        assert!(matches!(store.drop_keyspace(name), Err(Error::KeyspaceName { .. })));
    }
    assert_eq!(store.keyspaces().unwrap().len(), names.len());
    assert_whole(&store);
}
