//! Read-only stores: many readers, stores of killed writers, and read-only file systems.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use adamant::{Durability, Engine, Error, KeyspaceOptions, Options, Store};

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 30 + number as usize % 9_000]
}

/// Commits that are only in the log, not in the pool.
fn fill(store: &Store, numbers: std::ops::Range<u32>) {
    for engine in Engine::ALL {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with(engine.name(), options).unwrap();
        let keyspace = keyspace.with_durability(Durability::Buffered);
        for number in numbers.clone() {
            keyspace.insert(number.to_string(), value(number)).unwrap();
        }
    }
}

fn verify(store: &Store, count: u32) {
    for engine in Engine::ALL {
        let keyspace = store.open_keyspace(engine.name()).unwrap();
        assert_eq!(keyspace.iter().count() as u32, count);
        for number in 0..count {
            let found = keyspace.get(number.to_string()).unwrap();
            assert_eq!(found.as_deref(), Some(&value(number)[..]), "{number} in {engine}");
        }
    }
    assert!(store.check().unwrap().is_clean());
}

/// The metadata and contents of a directory and all in it: names, bytes and times.
fn look_of(path: &Path) -> Vec<(String, u64, i64, i64, u32)> {
    let mut found = Vec::new();
    let mut list = vec![path.to_path_buf()];
    while let Some(path) = list.pop() {
        let about = std::fs::metadata(&path).unwrap();
        let name = path.display().to_string();
        let sum = std::fs::read(&path).map_or(0, |bytes| {
            bytes.iter().fold(17_u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(*byte))
        });
        found.push((name, about.len(), about.mtime_nsec(), about.ctime_nsec(), sum));
        if about.is_dir() {
            list.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found.sort();
    found
}

/// Copies a store as a killed process leaves it.
fn copy_files(source: &Path, target: &Path) {
    std::fs::create_dir(target).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let target = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_files(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_killed_store_is_read_without_a_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, Options::new().log_bytes_max(64 << 20)).unwrap();
    fill(&store, 0..200);
    store.sync().unwrap();
    fill(&store, 200..400);
    let killed = directory.path().join("killed");
    copy_files(&path, &killed);
    drop(store);

    // The superuser may write all the same; the comparison shows it.
    for name in ["pool", "lock", "log", "."] {
        std::fs::set_permissions(killed.join(name), Permissions::from_mode(0o555)).unwrap();
    }
    let before = look_of(&killed);
    let stores: Vec<_> = (0..3).map(|_| Store::open_read_only(&killed).unwrap()).collect();
    for store in &stores {
        verify(store, 400);
        assert!(!store.recovery().was_closed && store.recovery().records > 100);
        let snapshot = store.snapshot().unwrap();
        let keyspace = store.open_keyspace("critbit").unwrap();
        assert_eq!(snapshot.iter(&keyspace).rev().count(), 400);
        let mut transaction = store.begin().unwrap();
        assert!(transaction.get(&keyspace, "7").unwrap().is_some());
        transaction.commit().unwrap();
        assert_eq!(store.stats().unwrap().entries, 400 * Engine::ALL.len() as u64);
        store.occupancy().unwrap();
    }
    // Every write is refused, and what it would have written is not visible.
    let store = &stores[0];
    let keyspace = store.open_keyspace("bplus").unwrap();
    let mut batch = store.batch();
    batch.put(&keyspace, "new", "x").unwrap();
    let refused = [
        keyspace.insert("new", "x").err(),
        keyspace.remove("7").err(),
        batch.commit().err(),
        store.keyspace("new").err(),
        store.drop_keyspace("bplus").err(),
        store.convert_keyspace("bplus", Engine::Btree).err(),
        store.shrink().err(),
        keyspace.load_sorted([("a", "b")]).err(),
        keyspace.insert_unique("new", "x").err(),
        store.transaction(|tx| tx.put(&keyspace, "new", "x").map(|_| ())).err(),
    ];
    for (number, error) in refused.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {number} was not refused"));
        assert!(error.is_read_only() && error.to_string().contains("reading only"), "{error}");
    }
    verify(store, 400);

    // Its copy is a store like any other.
    store.backup(directory.path().join("copy")).unwrap();
    let copy = Store::open(directory.path().join("copy")).unwrap();
    verify(&copy, 400);
    fill(&copy, 400..410);
    verify(&copy, 410);
    stores.into_iter().for_each(|store| store.close().unwrap());
    assert_eq!(look_of(&killed), before);

    // A full recovery finds the same.
    for name in ["pool", "lock", "log", "."] {
        std::fs::set_permissions(killed.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    verify(&Store::open(&killed).unwrap(), 400);
}

#[test]
fn readers_and_a_writer_keep_each_other_out_and_say_who() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    assert!(matches!(Store::open_read_only(&path), Err(Error::Missing { .. })));
    assert!(!path.exists());
    let writer = Store::open(&path).unwrap();
    fill(&writer, 0..10);
    let me = format!("process {}", std::process::id());
    for _ in 0..2 {
        let error = Store::open_read_only(&path).unwrap_err();
        assert!(
            matches!(error, Error::Locked { .. }) && error.to_string().contains(&me),
            "{error}"
        );
    }
    writer.close().unwrap();
    let readers = [Store::open_read_only(&path).unwrap(), Store::open_read_only(&path).unwrap()];
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    if cfg!(target_os = "linux") {
        assert!(error.to_string().contains("only reads"), "{error}");
    }
    readers.into_iter().for_each(drop);
    fill(&Store::open(&path).unwrap(), 10..20);
    verify(&Store::open_read_only(&path).unwrap(), 20);

    std::fs::create_dir(directory.path().join("empty")).unwrap();
    let error = Store::open_read_only(directory.path().join("empty")).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert_eq!(std::fs::read_dir(directory.path().join("empty")).unwrap().count(), 0);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn damage_is_an_error_when_a_store_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    fill(&store, 0..50);
    store.sync().unwrap();
    fill(&store, 50..60);
    store.sync().unwrap();
    let killed = directory.path().join("killed");
    copy_files(&path, &killed);
    let log = std::fs::read_dir(killed.join("log")).unwrap();
    let mut files: Vec<_> = log.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut bytes = std::fs::read(&files[0]).unwrap();
    bytes[3_000] ^= 8;
    std::fs::write(&files[0], &bytes).unwrap();
    let before = look_of(&killed);
    let error = Store::open_read_only(&killed).unwrap_err();
    assert!(error.is_damaged() && error.to_string().contains("log"), "{error}");
    assert_eq!(look_of(&killed), before);
    assert!(Store::open(&killed).unwrap_err().is_damaged());
}
