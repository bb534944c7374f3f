//! A closed store gives its system resources back, even while handles to it remain.
//!
//! Each kept handle used to keep a tebibyte of addresses and five descriptors of its store: after
//! 144 closed stores in one process, of fixtures or tracebacks that are never dropped, the next
//! could not be opened.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use adamant::{Durability, Engine, Error, KeyspaceOptions, Options, Store};

/// Bytes of a value that is borrowed, not copied.
const LENT_BYTES: usize = 100_000;

/// One test at a time: each counts resources of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Bytes of addresses that this process has mapped.
fn address_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn fill(path: &Path, engine: Engine) {
    let store = Store::open_with(path, quick()).unwrap();
    let keyspace = store.keyspace_with("entries", KeyspaceOptions::new().engine(engine)).unwrap();
    for number in 0..100_u32 {
        keyspace.put(number.to_le_bytes(), number.to_string()).unwrap();
    }
    keyspace.put("large", vec![7; LENT_BYTES]).unwrap();
    if engine == Engine::Lsm {
        keyspace.compact().unwrap();
    }
    store.close().unwrap();
}

/// Commits that do not wait for a device.
fn quick() -> Options {
    Options::new().durability(Durability::Deferred)
}

#[test]
fn a_thousand_closed_stores_keep_no_descriptor_and_no_addresses() {
    let _alone = alone();
    for engine in [Engine::Bplus, Engine::Lsm] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fill(&path, engine);
        let (files_before, bytes_before) = (descriptors(), address_bytes());
        let mut kept = Vec::new();
        for round in 0..500 {
            // With threads, and without.
            let store = Store::open_with(&path, quick().background(round % 8 == 0)).unwrap();
            let keyspace = store.open_keyspace("entries").unwrap();
            let snapshot = store.snapshot().unwrap();
            let mut iter = keyspace.iter();
            iter.next().unwrap().unwrap();
            let entry = keyspace.range("large"..).entries().next().unwrap().unwrap();
            // Some of them borrow.
            let lent = (round % 50 == 0).then(|| keyspace.get("large").unwrap().unwrap());
            kept.push((store.clone(), keyspace, snapshot, iter, entry, lent));
            store.close().unwrap();
        }
        assert!(descriptors() <= files_before, "{} descriptors", descriptors());
        let bytes = address_bytes() - bytes_before;
        assert!(bytes < 2 << 30, "{bytes} bytes of addresses");
        for (store, keyspace, snapshot, iter, entry, lent) in kept {
            assert!(matches!(keyspace.get("large"), Err(Error::Closed)));
            assert!(matches!(snapshot.get(&keyspace, "large"), Err(Error::Closed)));
            assert!(matches!(store.stats(), Err(Error::Closed)));
            assert!(matches!(store.close(), Err(Error::Closed)));
            assert!(iter.filter_map(Result::err).all(|error| matches!(error, Error::Closed)));
            match entry.value() {
                Ok(value) => assert!(value.iter().all(|byte| *byte == 7)),
                Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
            }
            assert!(lent.iter().all(|lent| lent[..] == [7; LENT_BYTES]));
        }
    }
}

/// A borrowed value gets memory of its own when its store is closed: it does not change, whatever
/// then happens to the store's files.
#[test]
fn what_is_lent_outlives_the_files_of_its_store() {
    let _alone = alone();
    for engine in [Engine::Bplus, Engine::Btree] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fill(&path, engine);
        // Opened again, so that the value is memory of the file.
        let store = Store::open_with(&path, quick()).unwrap();
        let lent = store.open_keyspace("entries").unwrap().get("large").unwrap().unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (lent, is_over) = (&lent, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(lent.iter().all(|byte| *byte == 7), "while it is closed");
                }
            });
            store.close().unwrap();
            let store = Store::open_with(&path, quick()).expect("the lock is free");
            let keyspace = store.open_keyspace("entries").unwrap();
            keyspace.clear().unwrap();
            for number in 0..50_u32 {
                keyspace.put(number.to_le_bytes(), vec![9; LENT_BYTES]).unwrap();
            }
            store.close().unwrap();
            std::fs::File::create(path.join("pool")).unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(lent[..], [7; LENT_BYTES]);
        assert_eq!(lent.clone()[LENT_BYTES - 1], 7);
    }
}

/// A call during a close returns an answer or an error, and ends no process.
#[test]
fn calls_beside_a_close_are_done_or_refused() {
    let _alone = alone();
    for engine in Engine::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fill(&path, engine);
        for _ in 0..10 {
            let store = Store::open_with(&path, quick()).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..3_u32 {
                    let store = store.clone();
                    scope.spawn(move || {
                        let keyspace = store.open_keyspace("entries")?;
                        for number in 0.. {
                            let number = number % 100_u32;
                            match thread {
                                0 => drop(keyspace.get("large")?),
                                1 => keyspace.put(number.to_le_bytes(), "other")?,
                                _ => {
                                    keyspace
                                        .iter()
                                        .entries()
                                        .try_for_each(|entry| entry?.value().map(drop))?;
                                    drop(store.stats()?);
                                    store.check_heap()?;
                                }
                            }
                        }
                        Ok::<(), Error>(())
                    });
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
                store.clone().close().unwrap();
            });
        }
        assert!(Store::open_with(&path, quick()).unwrap().check().unwrap().is_clean());
    }
}

#[test]
fn a_reserved_value_keeps_its_memory() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open_with(&path, quick()).unwrap();
    let mut value = store.reserve(LENT_BYTES).unwrap();
    store.close().unwrap();
    value.fill(7);
    assert!(Store::open_with(&path, quick()).is_err(), "the memory is the store's");
    drop(value);
    Store::open_with(&path, quick()).unwrap();
}
