//! Backups of stores during writes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use adamant::{Durability, Engine, Error, KeyspaceOptions, Options, Store};

use crate::device_bytes;

/// The number of keys.
const KEYS: u64 = 5_000;

fn options() -> Options {
    Options::new().log_bytes_max(4 << 20)
}

fn store_at(path: &Path) -> Store {
    Store::open_with(path, options()).unwrap()
}

fn value(number: u64) -> Vec<u8> {
    let mut value = number.to_string().into_bytes();
    value.resize(40 + (number % 600) as usize, number as u8);
    value
}

/// Commit `number`: it changes one key, and records its own number.
fn commit(store: &Store, number: u64) {
    let name = Engine::ALL[(number % 4) as usize].name();
    let mut batch = store.batch();
    batch.durability(Durability::Buffered);
    batch.put(&store.open_keyspace(name).unwrap(), key(number), value(number)).unwrap();
    let last = store.open_keyspace("last").unwrap();
    batch.put(&last, "last", number.to_string()).unwrap();
    batch.commit().unwrap();
}

fn key(number: u64) -> String {
    format!("key {:05}", number * 7919 % KEYS)
}

/// Panics unless a store holds exactly the first commits; returns how many.
fn verify(store: &Store) -> u64 {
    assert!(store.check().unwrap().is_clean());
    let last = store.open_keyspace("last").unwrap().get("last").unwrap().unwrap();
    let last: u64 = String::from_utf8(last.to_vec()).unwrap().parse().unwrap();
    let mut entries = [0; 4];
    // The last commit that wrote each key; they repeat every KEYS commits.
    for number in last.saturating_sub(KEYS - 1).max(1)..=last {
        let engine = (number % 4) as usize;
        let keyspace = store.open_keyspace(Engine::ALL[engine].name()).unwrap();
        assert_eq!(keyspace.engine(), Engine::ALL[engine]);
        assert_eq!(keyspace.get(key(number)).unwrap().as_deref(), Some(&value(number)[..]));
        entries[engine] += 1;
    }
    for (engine, entries) in Engine::ALL.into_iter().zip(entries) {
        assert_eq!(store.open_keyspace(engine.name()).unwrap().len().unwrap(), entries);
    }
    last
}

fn with_keyspaces(store: &Store) {
    for engine in Engine::ALL {
        let options = KeyspaceOptions::new().engine(engine);
        store.create_keyspace_with(engine.name(), options).unwrap();
    }
    store.create_keyspace("last").unwrap();
}

#[test]
fn a_backup_is_a_prefix_of_what_is_committed_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_at(&directory.path().join("store"));
    with_keyspaces(&store);
    // Keys and engines repeat in the same order.
    assert_eq!(KEYS % 4, 0);
    (1..=KEYS).for_each(|number| commit(&store, number));
    let (done, is_over) = (AtomicU64::new(KEYS), AtomicBool::new(false));
    let mut while_running = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = done.load(Ordering::Relaxed) + 1;
                commit(&store, number);
                done.store(number, Ordering::Release);
            }
        });
        for round in 0..5 {
            let path = directory.path().join(format!("backup {round}"));
            let before = done.load(Ordering::Acquire);
            store.backup(&path).unwrap();
            let after = done.load(Ordering::Acquire) + 1;
            assert!(!directory.path().join(format!("backup {round}.backing-up")).exists());
            let copy = Store::open_with(&path, options()).unwrap();
            assert!(copy.recovery().was_closed);
            let found = verify(&copy);
            assert!((before..=after).contains(&found), "{before} <= {found} <= {after}");
            while_running += after - before;
            // It is a store like any other.
            commit(&copy, found + 1);
            copy.close().unwrap();
            assert_eq!(verify(&Store::open(&path).unwrap()), found + 1);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("{while_running} commits while 5 backups were made");
    assert!(while_running > 20, "{while_running} commits");
    assert_eq!(verify(&store), done.into_inner());
}

#[test]
fn what_is_in_the_way_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = store_at(&path("store"));
    store.keyspace("main").unwrap().insert("key", "value").unwrap();
    std::fs::create_dir(path("empty")).unwrap();
    std::fs::write(path("file"), "precious").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(path("nowhere"), path("link")).unwrap();
    #[cfg(not(unix))]
    std::fs::write(path("link"), "precious").unwrap();
    for name in ["empty", "file", "link", "store"] {
        let error = store.backup(path(name)).unwrap_err();
        assert!(matches!(&error, Error::TargetExists { path: found } if *found == path(name)));
        assert!(error.to_string().contains("already"), "{error}");
    }
    for name in ["store/copy", "store/log/copy", "store/../store/copy"] {
        let error = store.backup(path(name)).unwrap_err();
        assert!(matches!(error, Error::TargetInside { .. }), "{error}");
    }
    let error = store.backup(path("no such/copy")).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");

    // A foreign directory is not removed, whatever its name.
    std::fs::create_dir(path("copy.backing-up")).unwrap();
    std::fs::write(path("copy.backing-up/notes"), "precious").unwrap();
    let error = store.backup(path("copy")).unwrap_err();
    assert!(error.to_string().contains("notes"), "{error}");
    assert_eq!(std::fs::read(path("copy.backing-up/notes")).unwrap(), b"precious");
    std::fs::remove_file(path("copy.backing-up/notes")).unwrap();

    // A backup in progress is not removed, either; an interrupted one is.
    let held = adamant_heap::OsDirectory::open(path("copy.backing-up")).unwrap();
    let lock = adamant_heap::Directory::lock(&held, "lock").unwrap();
    let error = store.backup(path("copy")).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    drop((lock, held));
    std::fs::write(path("copy.backing-up/pool.new"), "a part").unwrap();
    std::fs::create_dir(path("copy.backing-up/tables")).unwrap();
    store.backup(path("copy")).unwrap();
    assert!(!path("copy.backing-up").exists());
    let copy = Store::open(path("copy")).unwrap();
    assert_eq!(copy.keyspace("main").unwrap().get("key").unwrap(), Some("value".into()));

    let other = store.clone();
    store.close().unwrap();
    assert!(matches!(other.backup(path("late")), Err(Error::Closed)));
    assert!(!path("late").exists() && !path("late.backing-up").exists());
}

#[test]
fn closing_ends_a_backup() {
    let directory = tempfile::tempdir().unwrap();
    let store = store_at(&directory.path().join("store"));
    store.keyspace("main").unwrap().insert("large", vec![7; 40 << 20]).unwrap();
    let other = store.clone();
    let target = directory.path().join("copy");
    let outcome = thread::scope(|scope| {
        let backup = scope.spawn(|| other.backup(&target));
        while !directory.path().join("copy.backing-up").exists() && !backup.is_finished() {
            thread::yield_now();
        }
        store.close().unwrap();
        backup.join().unwrap()
    });
    assert_eq!(outcome.is_ok(), target.exists(), "{outcome:?}");
    assert!(!directory.path().join("copy.backing-up").exists());
    let again = Store::open(directory.path().join("store")).unwrap();
    assert!(again.check().unwrap().is_clean());
}

#[test]
#[cfg_attr(windows, ignore = "files have no holes there")]
fn free_space_takes_none_in_the_copy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = store_at(&path);
    let keyspace = store.keyspace("main").unwrap();
    let snapshot = {
        for number in 0..40_u32 {
            keyspace.insert(number.to_le_bytes(), vec![number as u8 + 1; 1 << 20]).unwrap();
        }
        let dropped = store.keyspace("dropped").unwrap();
        dropped.insert("key", "value").unwrap();
        store.snapshot().unwrap()
    };
    // Kept for the snapshot, and of no use to the copy.
    store.drop_keyspace("dropped").unwrap();
    (0..39_u32).for_each(|number| assert!(keyspace.remove(number.to_le_bytes()).unwrap()));
    drop(snapshot);
    store.shrink().unwrap();
    let copy = directory.path().join("copy");
    store.backup(&copy).unwrap();
    let taken = |path: &Path| device_bytes(path.join("pool"));
    let (source, target) = (taken(&path), taken(&copy));
    assert!(target <= source + (1 << 20) && target < 8 << 20, "{source} and {target} bytes");
    let copy = Store::open(&copy).unwrap();
    assert!(copy.check().unwrap().is_clean());
    assert_eq!(copy.keyspaces().unwrap().len(), 1);
    let found = copy.open_keyspace("main").unwrap().get(39_u32.to_le_bytes()).unwrap();
    assert_eq!(found.as_deref(), Some(&[40; 1 << 20][..]));
}
