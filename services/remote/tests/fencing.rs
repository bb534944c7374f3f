//! One writer a store: whoever opens it takes the place of the one before.
//!
//! The story: SlateDB's own put returns before the commit is in the objects. A writer whose place
//! another one has taken finds that out when it creates the next object of its log, which is there
//! already; until then its puts returned `Ok`, and were lost. Here every call waits for the
//! objects: it returns `Ok` and the commit is there for whoever opens the store next, or it is an
//! error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_remote::object_store::ObjectStore;
use adamant_remote::object_store::memory::InMemory;
use adamant_remote::{Error, Options, Result, Store};

fn options() -> Options {
    // It would find out by itself after a second: here it has to by its own writes.
    Options::new().flush_ms(2).poll_ms(3_600_000)
}

fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

fn open(objects: &Arc<dyn ObjectStore>) -> Store {
    Store::open_objects(Arc::clone(objects), "store", options()).unwrap()
}

/// Something that changes a store.
type Write = fn(&Store) -> Result<()>;

/// Each kind of write is the first one after the loss of the place.
const WRITES: [(&str, Write); 10] = [
    ("put", |store| store.open_keyspace("main")?.put("k", "late")),
    ("insert", |store| store.open_keyspace("main")?.insert("k", "late").map(drop)),
    ("delete", |store| store.open_keyspace("main")?.delete("k")),
    ("remove", |store| store.open_keyspace("main")?.remove("k").map(drop)),
    ("compare and swap", |store| {
        store.open_keyspace("main")?.compare_and_swap("k", Some("early"), Some("late")).map(drop)
    }),
    ("remove a range", |store| store.open_keyspace("main")?.delete_range(..)),
    ("batch", |store| {
        let (keyspace, mut batch) = (store.open_keyspace("main")?, store.batch());
        batch.put(&keyspace, "k", "late")?;
        batch.put(&keyspace, "l", "late")?;
        batch.commit()
    }),
    ("transaction", |store| {
        let keyspace = store.open_keyspace("main")?;
        store.transaction(|tx| {
            tx.get(&keyspace, "k")?;
            tx.put(&keyspace, "k", "late")
        })
    }),
    ("create a keyspace", |store| store.create_keyspace("late").map(drop)),
    ("drop a keyspace", |store| store.drop_keyspace("main").map(drop)),
];

fn refuse_writes(name: &str, write: Write, open: impl Fn() -> Store) {
    let first = open();
    first.keyspace("main").unwrap().put("k", "early").unwrap();
    let second = open();
    let outcome = write(&first);
    assert!(matches!(outcome, Err(Error::Fenced { .. })), "{name}: {outcome:?}");
    // And so on.
    for (name, write) in WRITES {
        let outcome = write(&first);
        assert!(matches!(outcome, Err(Error::Fenced { .. })), "{name}, later: {outcome:?}");
    }
    let is_whole = |store: &Store, value: &str| {
        let names: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
        assert_eq!(names, ["main"], "{name}");
        let keyspace = store.open_keyspace("main").unwrap();
        assert_eq!(keyspace.get("k").unwrap(), Some(value.into()), "{name}");
        assert_eq!(keyspace.len().unwrap(), 1, "{name}");
    };
    is_whole(&second, "early");
    second.keyspace("main").unwrap().put("k", "newer").unwrap();
    assert!(matches!(first.close(), Ok(()) | Err(Error::Fenced { .. })), "{name}");
    is_whole(&second, "newer");
    second.close().unwrap();
    is_whole(&open(), "newer");
}

#[test]
fn writes_of_a_fenced_writer_are_errors_in_memory() {
    for (name, write) in WRITES {
        let objects = memory();
        refuse_writes(name, write, || open(&objects));
    }
}

#[test]
fn writes_of_a_fenced_writer_are_errors_on_the_file_system() {
    for (name, write) in WRITES {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("slatedb+file://{}", directory.path().display());
        refuse_writes(name, write, || Store::open_with(&url, options()).unwrap());
    }
}

/// Writers of several threads while others take the place, one after the other: whatever returned
/// is there at the end, and what failed is not, or at most the one commit of each thread of which
/// it is not known.
#[test]
fn no_commit_that_returned_is_lost_when_the_place_is_taken() {
    const THREADS: u8 = 3;
    let objects = memory();
    for round in 0..6_u8 {
        let writer = open(&objects);
        let keyspace = writer.keyspace("main").unwrap();
        let is_taken = AtomicBool::new(false);
        let returned: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let write = |thread: u8| {
                let mut returned = Vec::new();
                for number in 0_u32.. {
                    let key = [&[round, thread][..], &number.to_le_bytes()].concat();
                    match keyspace.put(key, "v") {
                        Ok(()) => returned.push(number),
                        Err(error) => {
                            assert!(error.is_fenced(), "{error}");
                            assert!(is_taken.load(Ordering::Relaxed));
                            break;
                        }
                    }
                }
                returned
            };
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || write(thread))).collect();
            while keyspace.len().unwrap() < 20 * u64::from(round + 1) {
                std::thread::yield_now();
            }
            is_taken.store(true, Ordering::Relaxed);
            let next = open(&objects);
            let returned = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            next.close().unwrap();
            returned
        });
        let store = open(&objects);
        let keyspace = store.open_keyspace("main").unwrap();
        for (thread, returned) in (0..).zip(&returned) {
            let found = keyspace.prefix([round, thread]).map(|entry| entry.unwrap().0);
            let found: Vec<u32> =
                found.map(|key| u32::from_le_bytes(key[2..].try_into().unwrap())).collect();
            let missing: Vec<_> =
                returned.iter().filter(|number| !found.contains(number)).collect();
            assert!(missing.is_empty(), "round {round}, thread {thread}: {missing:?} are lost");
            assert!(found.len() <= returned.len() + 1, "round {round}, thread {thread}");
        }
        store.close().unwrap();
    }
}

/// A writer that does nothing finds out by itself, at the latest when it looks at what others did.
#[test]
fn reads_of_a_fenced_writer_end_with_an_error() {
    let objects = memory();
    let options = Options::new().flush_ms(2).poll_ms(20);
    let first = Store::open_objects(Arc::clone(&objects), "store", options).unwrap();
    let keyspace = first.keyspace("main").unwrap();
    keyspace.put("k", "v").unwrap();
    let _second = open(&objects);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    loop {
        match keyspace.get("k") {
            Ok(found) => assert_eq!(found, Some("v".into())),
            Err(error) => break assert!(error.is_fenced(), "{error}"),
        }
        assert!(std::time::Instant::now() < deadline, "it never found out");
        std::thread::yield_now();
    }
}
