//! Concurrent single changes, which share their commits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use adamant::{Durability, Engine, Error, Keyspace, KeyspaceOptions, Options, Store};
use adamant_sim::tally::seed;
use fastrand::Rng;

const THREADS: u64 = 8;

fn open(path: &Path, engine: Engine, durability: Durability) -> (Store, Keyspace) {
    let store = Store::open_with(path, Options::new().durability(durability)).unwrap();
    let of_engine = KeyspaceOptions::new().engine(engine);
    let keyspace = store.keyspace_with("main", of_engine).unwrap();
    (store, keyspace)
}

/// Changes keys of this thread alone, and verifies the result of each call.
fn change_own(keyspace: &Keyspace, thread: u64, seed: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut random, mut model) = (Rng::with_seed(seed ^ thread << 32), BTreeMap::new());
    for number in 0..600_u64 {
        // Adjacent keys in the tree belong to different threads.
        let key = format!("{:03} {thread}", random.u32(..200)).into_bytes();
        match random.u32(..10) {
            0..4 => {
                // Some are too long for a batch, some have blocks of their own.
                let bytes = [8, 100, 100, 5_000, 20_000][random.usize(..5)];
                let value = number.to_le_bytes().repeat(bytes / 8);
                keyspace.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            4..6 => {
                let value = number.to_le_bytes().to_vec();
                let had = keyspace.insert(&key, &value).unwrap();
                assert_eq!(had, model.insert(key, value).is_some());
            }
            6 => assert_eq!(keyspace.remove(&key).unwrap(), model.remove(&key).is_some()),
            7 => {
                let taken = keyspace.take(&key).unwrap();
                assert_eq!(taken.as_deref(), model.remove(&key).as_deref());
            }
            8 => {
                keyspace.delete(&key).unwrap();
                model.remove(&key);
            }
            _ => {
                let too_long = keyspace.put(vec![7; 1 << 20], "value").unwrap_err();
                assert!(matches!(too_long, Error::KeyTooLong { .. }), "{too_long}");
                let found = keyspace.get(&key).unwrap();
                assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice));
            }
        }
    }
    model
}

/// Each thread finds its own changes, and so do snapshots: two reads of one give the same.
#[test]
fn each_thread_finds_what_it_did() {
    let seed = seed(5);
    println!("seed {seed}");
    for engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        let (store, keyspace) = open(directory.path(), engine, Durability::Buffered);
        let has_ended = AtomicBool::new(false);
        let model = thread::scope(|scope| {
            let keyspace = &keyspace;
            let looker = scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    let snapshot = store.snapshot().unwrap();
                    let entries =
                        || -> Vec<_> { snapshot.iter(keyspace).map(Result::unwrap).collect() };
                    let first = entries();
                    thread::sleep(Duration::from_millis(2));
                    assert!(first == entries(), "{engine}: a snapshot changed");
                }
            });
            let changing: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || change_own(keyspace, thread, seed)))
                .collect();
            let models = changing.into_iter().flat_map(|thread| thread.join().unwrap());
            let model: BTreeMap<_, _> = models.collect();
            has_ended.store(true, Ordering::Relaxed);
            looker.join().unwrap();
            model
        });
        let verify = |keyspace: &Keyspace| {
            let found = keyspace.iter().map(Result::unwrap);
            let found: Vec<_> = found.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert!(found.into_iter().eq(model.clone()), "{engine}");
        };
        verify(&keyspace);
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
        verify(&open(directory.path(), engine, Durability::Buffered).1);
    }
}

/// Transactions count up values that single calls take: none commits that read a value which was
/// taken meanwhile.
#[test]
fn transactions_conflict_with_what_others_changed() {
    for engine in Engine::ALL {
        let directory = tempfile::tempdir().unwrap();
        let (store, keyspace) = open(directory.path(), engine, Durability::Deferred);
        let number = |value: Option<&[u8]>| {
            value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
        };
        let (counted, taken) = thread::scope(|scope| {
            let (store, keyspace, number) = (&store, &keyspace, &number);
            let count = move || {
                for _ in 0..300 {
                    let counted = store.transaction(|transaction| {
                        let found = transaction.get(keyspace, "count")?;
                        let next = number(found.as_deref()) + 1;
                        transaction.put(keyspace, "count", next.to_le_bytes())?;
                        Ok::<(), Error>(())
                    });
                    counted.unwrap();
                }
                300
            };
            let take = move |thread: u64| {
                let mut taken = 0;
                for other in 0..600_u64 {
                    keyspace.put(format!("{thread}"), other.to_le_bytes()).unwrap();
                    taken += number(keyspace.take("count").unwrap().as_deref());
                }
                taken
            };
            let counting = [scope.spawn(count), scope.spawn(count)];
            let taking: Vec<_> = (0..4).map(|thread| scope.spawn(move || take(thread))).collect();
            let taken: u64 = taking.into_iter().map(|thread| thread.join().unwrap()).sum();
            let counted: u64 = counting.into_iter().map(|thread| thread.join().unwrap()).sum();
            (counted, taken)
        });
        let left = number(keyspace.get("count").unwrap().as_deref());
        assert_eq!(counted, taken + left, "{engine}");
    }
}

/// A value with its thread and its number.
fn value(thread: u64, number: u64) -> Vec<u8> {
    [thread.to_le_bytes(), number.to_le_bytes()].concat().repeat(1 + number as usize % 9)
}

fn key(thread: u64, number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    key[8..].copy_from_slice(&thread.to_le_bytes());
    key
}

/// Puts on all threads, each of which records how many have returned, until it is killed.
fn put_until_killed(folder: &Path, engine: Engine) {
    let (_store, keyspace) = open(&folder.join("store"), engine, Durability::Buffered);
    let notes = &File::options().write(true).open(folder.join("notes")).unwrap();
    let read = |thread: u64| read_note(&File::open(folder.join("notes")).unwrap(), thread);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (keyspace, first) = (&keyspace, read(thread));
            scope.spawn(move || {
                for number in first.. {
                    keyspace.put(key(thread, number), value(thread, number)).unwrap();
                    notes.write_all_at(&(number + 1).to_le_bytes(), 8 * thread).unwrap();
                }
            });
        }
    });
}

fn read_note(notes: &File, thread: u64) -> u64 {
    let mut note = [0; 8];
    notes.read_exact_at(&mut note, 8 * thread).unwrap();
    u64::from_le_bytes(note)
}

/// A process with concurrent puts is killed repeatedly: every put that returned is there.
#[test]
fn killed_while_threads_put_at_once() {
    let engine_of = |number: usize| Engine::ALL[number % Engine::ALL.len()];
    if let Some(folder) = std::env::var_os("ADAMANT_COMBINED_FOLDER") {
        let number = std::env::var("ADAMANT_COMBINED_ENGINE").unwrap().parse().unwrap();
        return put_until_killed(Path::new(&folder), engine_of(number));
    }
    let seed = seed(5);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    for number in 0..Engine::ALL.len() {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        let create = OpenOptions::new().read(true).write(true).create_new(true).open(notes);
        let notes = create.unwrap();
        notes.write_all_at(&[0; 8 * THREADS as usize], 0).unwrap();
        for _ in 0..3 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["combined_puts::killed_while_threads_put_at_once", "--exact", "--nocapture"])
                .env("ADAMANT_COMBINED_FOLDER", folder.path())
                .env("ADAMANT_COMBINED_ENGINE", number.to_string())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_millis(random.u64(100..300)));
            child.kill().unwrap();
            child.wait().unwrap();
            let (store, keyspace) =
                open(&folder.path().join("store"), engine_of(number), Durability::Buffered);
            let mut expected = BTreeSet::new();
            for thread in 0..THREADS {
                let returned = read_note(&notes, thread);
                // The one that was on its way may be there.
                let last = key(thread, returned);
                let is_there = keyspace.get(last).unwrap().is_some();
                for number in 0..returned + u64::from(is_there) {
                    let found = keyspace.get(key(thread, number)).unwrap();
                    assert!(found.as_deref() == Some(&value(thread, number)[..]));
                    expected.insert(key(thread, number).to_vec());
                }
            }
            let keys = keyspace.iter().map(|entry| entry.unwrap().0.to_vec());
            assert!(keys.eq(expected), "nothing else is there");
            assert!(store.check().unwrap().is_clean());
            store.close().unwrap();
        }
        assert!((0..THREADS).map(|thread| read_note(&notes, thread)).sum::<u64>() > 0);
    }
}
