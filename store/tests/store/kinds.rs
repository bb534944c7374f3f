//! Kinds of keyspaces: which functions open them, and expiring entries with their deadlines as one.
//!
//! An expiring keyspace that was opened as a plain one used to show the bytes of deadlines and to
//! take values that no later iteration got past. Renamed without its deadlines, it lost them for
//! good to the next expiring keyspace with the old name; dropped, it left them to that.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use adamant::{Deadline, Engine, Error, KeyspaceKind, Store};

fn names(store: &Store) -> Vec<(String, KeyspaceKind)> {
    store.keyspaces().unwrap().into_iter().map(|info| (info.name, info.kind)).collect()
}

/// Checks that keyspace `NAME` holds an entry with this deadline, and nothing else.
fn assert_ends(store: &Store, name: &str, deadline: Deadline) {
    let all = store.open_expiring(name).unwrap();
    assert_eq!(all.get_with_deadline("key").unwrap(), Some(("value".into(), Some(deadline))));
    assert_eq!((all.len().unwrap(), all.next_deadline().unwrap()), (1, Some(deadline)));
}

#[test]
fn the_wrong_door_names_the_right_one() {
    let store = Store::in_memory().unwrap();
    store.expiring("sessions").unwrap().insert("ada", "1", None).unwrap();
    let doors = [
        |name: &str, store: &Store| store.keyspace(name).err(),
        |name: &str, store: &Store| store.open_keyspace(name).err(),
        |name: &str, store: &Store| {
            store.keyspace_with(name, adamant::KeyspaceOptions::new().engine(Engine::Bplus)).err()
        },
    ];
    for door in doors {
        let error = door("sessions", &store).expect("refused");
        let kind = KeyspaceKind::Expiring;
        assert!(matches!(&error, Error::WrongKind { found, .. } if *found == kind), "{error:?}");
        assert!(error.to_string().contains("`Store::expiring`"), "{error}");
        let error = door("sessions.deadlines", &store).expect("refused").to_string();
        assert!(error.contains("the keyspace \"sessions\"; open"), "{error}");
    }
    assert!(matches!(store.create_keyspace("sessions"), Err(Error::KeyspaceExists { .. })));
    let error = store.expiring("sessions.deadlines").unwrap_err();
    assert!(matches!(error, Error::WrongKind { .. }), "{error}");

    // A keyspace with such a name is not mistaken for deadlines.
    store.keyspace("tasks.deadlines").unwrap().insert("monday", "the tax").unwrap();
    store.keyspace("towns").unwrap();
    for (asked, found) in [("tasks", "tasks.deadlines"), ("towns", "towns")] {
        let error = store.expiring(asked).unwrap_err();
        assert!(matches!(&error, Error::NotExpiring { name } if name == found), "{error}");
        assert!(store.drop_expiring(asked).is_err() && store.open_expiring(asked).is_err());
    }
    assert_eq!(names(&store).len(), 4, "nothing was made");
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn what_is_stored_is_only_looked_at() {
    let store = Store::in_memory().unwrap();
    let all = store.expiring("all").unwrap();
    let deadline = all.after(Duration::from_secs(1000));
    all.insert("key", "value", Some(deadline)).unwrap();
    let plain = store.keyspace("plain").unwrap();
    plain.insert("key", "value").unwrap();
    let (entries, deadlines) = all.keyspaces();
    let stored = store.open_stored("all").unwrap();
    for lent in [entries, deadlines, &stored, &entries.with_durability(adamant::Durability::Sync)] {
        assert_eq!(lent.iter().count(), 1);
        let refused = [
            lent.insert("key", "7 bytes").err(),
            lent.put("key", "7 bytes").err(),
            lent.remove("key").err(),
            lent.take("key").err(),
            lent.delete("key").err(),
            lent.clear().err(),
            lent.delete_range(..).err(),
            lent.pop_first().err(),
            lent.pop_last().err(),
            lent.retain(.., |_, _| false).err(),
            lent.extract_if(.., |_, _| true).err(),
            store.begin().unwrap().pop_first(lent).err(),
            store.begin().unwrap().pop_last(lent).err(),
            store.begin().unwrap().retain(lent, .., |_, _| false).err(),
            store.begin().unwrap().extract_if(lent, .., |_, _| true).err(),
            lent.insert_unique("new", "").err(),
            lent.compare_and_swap("key", None::<&str>, Some("")).err(),
            lent.load_sorted([("new", "")]).err(),
            lent.extend([("new", "")]).err(),
            lent.rename("key", "new").err(),
            lent.move_to("key", &plain, "new").err(),
            plain.move_to("key", lent, "new").err(),
            plain.swap("key", lent, "key").err(),
            plain.move_range(.., lent).err(),
            lent.put_reserved("new", store.reserve(10).unwrap()).err(),
            store.batch().put(lent, "key", "").err(),
            store.batch().move_to(&plain, "key", lent, "key").err(),
            store.begin().unwrap().put(lent, "key", "").err(),
            store.begin().unwrap().delete(lent, "key").err(),
            store.exclusive(|tx| tx.put(lent, "key", "")).err(),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            assert!(matches!(refused, Some(Error::WrongKind { .. })), "{number}: {refused:?}");
        }
    }
    assert_ends(&store, "all", deadline);
    // A plain one is written through this handle too.
    store.open_stored("plain").unwrap().insert("other", "").unwrap();
}

#[test]
fn both_halves_are_made_renamed_exchanged_and_dropped_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let commits = |store: &Store| store.stats().unwrap().commits.commits;
    let before = commits(&store);
    let all = store.expiring("f").unwrap();
    assert_eq!(commits(&store), before + 1, "one commit");
    let deadline = all.after(Duration::from_secs(1000));
    all.insert("key", "value", Some(deadline)).unwrap();

    let before = commits(&store);
    store.rename_keyspace("f", "g").unwrap();
    assert_eq!(commits(&store), before + 1, "one commit");
    assert_ends(&store, "g", deadline);
    assert!(store.expiring("f").unwrap().is_empty().unwrap());
    // Earlier handles go on.
    assert!(all.insert("key", "value", Some(deadline)).unwrap());

    store.keyspace("plain").unwrap().insert("key", "as it is").unwrap();
    for (one, other) in [("g", "plain"), ("g", "plain"), ("f", "g"), ("g", "f")] {
        let before = commits(&store);
        store.swap_keyspaces(one, other).unwrap();
        assert_eq!(commits(&store), before + 1, "one commit");
        let kind = |name: &str| store.open_stored(name).unwrap().kind();
        let found = if kind("plain") == KeyspaceKind::Expiring { "plain" } else { "g" };
        let found = if store.open_expiring("f").unwrap().is_empty().unwrap() { found } else { "f" };
        assert_ends(&store, found, deadline);
    }
    assert!(matches!(store.swap_expiring("g", "plain"), Err(Error::NotExpiring { .. })));

    // A change that cannot be done as a whole is not done.
    store.keyspace("taken.deadlines").unwrap();
    let long = "n".repeat(250);
    for new_name in ["taken", &long] {
        assert!(store.rename_keyspace("g", new_name).is_err());
    }
    store.keyspace("taken").unwrap();
    assert!(store.swap_keyspaces("g", "taken").is_err());
    for error in [
        store.rename_keyspace("g.deadlines", "h").unwrap_err(),
        store.drop_keyspace("g.deadlines").unwrap_err(),
        store.swap_keyspaces("g.deadlines", "plain").unwrap_err(),
        store.convert_keyspace("g.deadlines", Engine::Btree).unwrap_err(),
    ] {
        assert!(matches!(error, Error::WrongKind { .. }), "{error}");
    }
    assert_ends(&store, "g", deadline);

    for engine in Engine::ALL {
        store.convert_keyspace("g", engine).unwrap();
        assert_ends(&store, "g", deadline);
    }
    all.clear().unwrap();
    assert!(all.is_empty().unwrap() && all.next_deadline().unwrap().is_none());
    all.insert("key", "value", Some(deadline)).unwrap();
    assert!(store.check().unwrap().is_clean());
    drop(all);
    store.close().unwrap();

    adamant::compact(&path).unwrap();
    let store = Store::open(&path).unwrap();
    assert_ends(&store, "g", deadline);
    let before = commits(&store);
    assert!(store.drop_keyspace("g").unwrap() && !store.drop_expiring("g").unwrap());
    assert_eq!(commits(&store), before + 1, "one commit");
    assert!(store.drop_expiring("f").unwrap());
    let left: Vec<String> = names(&store).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["plain", "taken", "taken.deadlines"]);
    assert!(store.check().unwrap().is_clean());
}

/// The drop looked at a name, and dropped the keyspace to which another thread had given it
/// meanwhile.
#[test]
fn what_has_the_name_only_now_is_not_dropped() {
    let store = Store::in_memory().unwrap();
    let plain = store.keyspace("plain").unwrap();
    plain.insert("key", "value").unwrap();
    for _ in 0..3 {
        store.expiring("ending").unwrap();
        let permit = store.begin_exclusive().unwrap();
        std::thread::scope(|scope| {
            // The swap waits for the writer lock before the drop does.
            scope.spawn(|| store.swap_keyspaces("ending", "plain").unwrap());
            std::thread::sleep(Duration::from_millis(20));
            scope.spawn(|| match store.drop_expiring("ending") {
                Err(error) => assert!(matches!(error, Error::NotExpiring { .. }), "{error}"),
                Ok(dropped) => assert!(dropped),
            });
            std::thread::sleep(Duration::from_millis(20));
            drop(permit);
        });
        assert_eq!(plain.len().unwrap(), 1, "it holds entries of another kind");
        if store.drop_expiring("plain").unwrap() {
            store.rename_keyspace("ending", "plain").unwrap();
        }
    }
}

/// The open looked at a name, and made anew what another thread had dropped meanwhile.
#[test]
fn what_exists_is_opened_and_never_made() {
    let store = Store::in_memory().unwrap();
    for _ in 0..100 {
        store.expiring("ending").unwrap();
        let is_dropped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_dropped.load(SeqCst) && store.open_expiring("ending").is_ok() {
                    std::hint::spin_loop();
                }
            });
            store.drop_expiring("ending").unwrap();
            is_dropped.store(true, SeqCst);
        });
        assert_eq!(names(&store), []);
    }
}
