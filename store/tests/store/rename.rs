//! Renaming and swapping of keyspaces, under handles, snapshots and crashes of the process.

use std::sync::Arc;

use adamant::{Engine, Error, KeyspaceOptions, Options, Store};

#[test]
fn a_renamed_keyspace_is_the_same_to_all_who_have_it() {
    let directory = Arc::new(adamant_heap::MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new()).unwrap();
    let store = open();
    for engine in Engine::ALL {
        let (old, new) = (engine.name().to_owned(), format!("{engine} renamed"));
        let options = KeyspaceOptions::new().engine(engine);
        let handle = store.keyspace_with(&old, options).unwrap();
        handle.insert("key", "before").unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut batch = store.batch();
        batch.put(&handle, "batch", "x").unwrap();
        let mut transaction = store.begin().unwrap();
        assert!(transaction.get(&handle, "key").unwrap().is_some());

        store.rename_keyspace(&old, &new).unwrap();
        let named = store.open_keyspace(&new).unwrap();
        assert_eq!((named.name(), named.engine()), (&*new, engine));
        assert!(matches!(store.open_keyspace(&old), Err(Error::UnknownKeyspace { .. })));

        // Old handles, batches and transactions go on, and all see the same.
        handle.insert("key", "after").unwrap();
        named.insert("other", "y").unwrap();
        batch.commit().unwrap();
        transaction.put(&handle, "key", "lost").unwrap();
        assert!(transaction.commit().unwrap_err().is_conflict());
        assert_eq!(handle.name(), old);
        for handle in [&handle, &named] {
            assert_eq!(handle.len().unwrap(), 3);
            assert_eq!(handle.get("key").unwrap(), Some("after".into()));
            assert_eq!(snapshot.get(handle, "key").unwrap(), Some("before".into()));
            assert_eq!(snapshot.iter(handle).count(), 1);
        }

        // The old name is free, and then means another keyspace.
        let again = store.create_keyspace(&old).unwrap();
        again.insert("key", "another").unwrap();
        assert_eq!(handle.get("key").unwrap(), Some("after".into()));
        let error = store.rename_keyspace(&new, &old).unwrap_err();
        assert!(matches!(&error, Error::KeyspaceExists { name } if *name == old), "{error}");
        assert!(store.rename_keyspace(&old, &old).is_err());
        assert!(store.rename_keyspace("none", "x").is_err());
        assert!(store.rename_keyspace(&old, "").is_err());

        // Dropped under its new name, it is gone for the old handle; not for the snapshot.
        assert!(store.drop_keyspace(&new).unwrap());
        for handle in [&handle, &named] {
            assert!(matches!(handle.get("key"), Err(Error::KeyspaceDropped { .. })));
            assert_eq!(snapshot.get(handle, "key").unwrap(), Some("before".into()));
        }
        drop(snapshot);
        store.rename_keyspace(&old, &new).unwrap();
    }
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
    let store = open();
    assert_eq!(store.keyspaces().unwrap().len(), Engine::ALL.len());
    for engine in Engine::ALL {
        let keyspace = store.open_keyspace(&format!("{engine} renamed")).unwrap();
        assert_eq!(keyspace.get("key").unwrap(), Some("another".into()));
    }
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn swapped_keyspaces_are_the_same_to_all_who_have_them() {
    let directory = Arc::new(adamant_heap::MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new()).unwrap();
    let store = open();
    for engine in Engine::ALL {
        let (one, other) = (format!("{engine} one"), format!("{engine} other"));
        let first = store.keyspace_with(&one, KeyspaceOptions::new().engine(engine)).unwrap();
        let second = store.keyspace(&other).unwrap();
        first.insert("key", "first").unwrap();
        second.insert("key", "second").unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut transaction = store.begin().unwrap();
        assert!(transaction.get(&first, "key").unwrap().is_some());

        store.swap_keyspaces(&one, &other).unwrap();
        let (now_one, now_other) =
            (store.open_keyspace(&one).unwrap(), store.open_keyspace(&other).unwrap());
        assert_eq!((now_one.engine(), now_other.engine()), (Engine::Bplus, engine));
        assert_eq!(now_one.get("key").unwrap(), Some("second".into()));
        // Earlier handles, snapshots and transactions stay with their keyspace.
        first.insert("key", "first again").unwrap();
        assert_eq!(now_other.get("key").unwrap(), Some("first again".into()));
        assert_eq!(snapshot.get(&first, "key").unwrap(), Some("first".into()));
        assert_eq!(snapshot.get(&now_one, "key").unwrap(), Some("second".into()));
        transaction.put(&first, "key", "lost").unwrap();
        assert!(transaction.commit().unwrap_err().is_conflict());

        // A swap that fails changes nothing, and neither does one with itself.
        assert!(matches!(store.swap_keyspaces(&one, "none"), Err(Error::UnknownKeyspace { .. })));
        assert!(matches!(store.swap_keyspaces("none", &one), Err(Error::UnknownKeyspace { .. })));
        assert!(store.swap_keyspaces(&one, "").is_err());
        store.swap_keyspaces(&one, &one).unwrap();
        assert_eq!(now_one.get("key").unwrap(), Some("second".into()));
    }
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
    let store = open();
    for engine in Engine::ALL {
        let get = |name: &str| store.open_keyspace(name).unwrap().get("key").unwrap();
        assert_eq!(get(&format!("{engine} one")), Some("second".into()));
        assert_eq!(get(&format!("{engine} other")), Some("first again".into()));
    }
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn entries_that_end_are_swapped_with_their_deadlines() {
    let store = Store::in_memory().unwrap();
    let (one, other) = (store.expiring("one").unwrap(), store.expiring("other").unwrap());
    let deadline = one.after(std::time::Duration::from_secs(1000));
    one.insert("a", "1", Some(deadline)).unwrap();
    other.insert("b", "2", None).unwrap();
    store.swap_expiring("one", "other").unwrap();
    let (one, other) = (store.expiring("one").unwrap(), store.expiring("other").unwrap());
    assert_eq!((one.len().unwrap(), one.get("b").unwrap()), (1, Some("2".into())));
    assert_eq!(
        (one.next_deadline().unwrap(), other.next_deadline().unwrap()),
        (None, Some(deadline))
    );
    assert_eq!(other.get_with_deadline("a").unwrap(), Some(("1".into(), Some(deadline))));
    assert!(store.swap_expiring("one", "none").is_err());
    assert_eq!(one.get("b").unwrap(), Some("2".into()));
}
