//! What opening finds, makes and refuses.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant_remote::object_store::ObjectStore;
use adamant_remote::object_store::memory::InMemory;
use adamant_remote::{Durability, Error, Options, Store};
use slatedb::{Db, DbReader};

const PATH: &str = "store";

fn memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

fn open(objects: &Arc<dyn ObjectStore>) -> Store {
    open_with(objects, Options::new()).unwrap()
}

fn open_with(objects: &Arc<dyn ObjectStore>, options: Options) -> adamant_remote::Result<Store> {
    Store::open_objects(Arc::clone(objects), PATH, options.flush_ms(1))
}

/// Waits for SlateDB itself.
fn wait<T>(work: impl Future<Output = Result<T, slatedb::Error>>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work).unwrap()
}

/// Writes to the database below.
fn put(objects: &Arc<dyn ObjectStore>, key: &[u8], value: &[u8]) {
    wait(async {
        let db = Db::open(PATH, Arc::clone(objects)).await?;
        db.put(key, value).await?.await_durable().await?;
        db.close().await
    });
}

/// How many keys the database below has that begin so.
fn count(objects: &Arc<dyn ObjectStore>, prefix: &[u8]) -> usize {
    wait(async {
        let reader = DbReader::builder(PATH, Arc::clone(objects)).build().await?;
        let mut scan = reader.scan_prefix(prefix, ..).await?;
        let mut count = 0;
        while scan.next().await?.is_some() {
            count += 1;
        }
        drop(scan);
        reader.close().await?;
        Ok(count)
    })
}

#[test]
fn nothing_is_created_that_is_not_to_be() {
    let objects = memory();
    let refused = open_with(&objects, Options::new().create(false)).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    let refused = open_with(&objects, Options::new().read_only(true)).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    let refused = open_with(&objects, Options::new().create(false)).unwrap_err();
    assert!(matches!(refused, Error::Missing { .. }), "{refused}");
    open(&objects).close().unwrap();
    open_with(&objects, Options::new().create(false)).unwrap().close().unwrap();
}

#[test]
fn databases_of_others_are_refused() {
    let objects = memory();
    put(&objects, b"somebody's key", b"v");
    for options in [Options::new(), Options::new().create(false), Options::new().read_only(true)] {
        let refused = open_with(&objects, options).unwrap_err();
        assert!(matches!(refused, Error::NotAStore { .. }), "{refused}");
    }
    assert_eq!(count(&objects, b""), 1);
}

#[test]
fn a_newer_format_and_damage_are_told() {
    let objects = memory();
    open(&objects).close().unwrap();
    put(&objects, &[0; 5], b"AdamRemo\x02\0\0\0\x01\0\0\0");
    for options in [Options::new(), Options::new().read_only(true)] {
        let refused = open_with(&objects, options).unwrap_err();
        assert!(matches!(refused, Error::Format { found: 2, known: 1 }), "{refused}");
    }
    put(&objects, &[0; 5], b"AdamRemo\x01\0\0\0\x01\0\0");
    let refused = open_with(&objects, Options::new()).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
    put(&objects, &[0; 5], b"AdamRemo\x01\0\0\0\x01\0\0\0");
    put(&objects, b"\0\0\0\0\x01name", b"\x01\0");
    let refused = open_with(&objects, Options::new()).unwrap_err();
    assert!(matches!(refused, Error::Damaged { .. }), "{refused}");
}

#[test]
fn a_store_into_which_a_copy_has_not_ended_is_told() {
    let objects = memory();
    open(&objects).close().unwrap();
    put(&objects, b"\0\0\0\0\x03", b"");
    for options in [Options::new(), Options::new().read_only(true)] {
        let refused = open_with(&objects, options).unwrap_err();
        assert!(matches!(refused, Error::Unfinished { .. }), "{refused}");
    }
}

#[test]
fn everything_is_there_after_closing_and_after_dropping() {
    let objects = memory();
    let mut expected = Vec::new();
    for round in 0..6_u8 {
        let store = open(&objects);
        let keyspace = store.keyspace("main").unwrap().with_durability(Durability::Deferred);
        let found = keyspace.iter().map(|entry| entry.unwrap().0.to_vec());
        assert!(found.eq(expected.iter().cloned()), "round {round}");
        for number in 0..3_u8 {
            keyspace.put([round, number], vec![round; 5_000 * usize::from(number)]).unwrap();
            expected.push(vec![round, number]);
        }
        if round % 2 == 0 {
            store.close().unwrap();
        } else {
            // The keyspace keeps the store open.
            drop(store);
            keyspace.put([round, 3], "").unwrap();
            expected.push(vec![round, 3]);
        }
    }
}

#[test]
fn handles_to_a_closed_store_say_so() {
    let store = open(&memory());
    let keyspace = store.keyspace("main").unwrap();
    keyspace.put("k", "v").unwrap();
    let mut batch = store.batch();
    batch.put(&keyspace, "l", "w").unwrap();
    let mut iterator = keyspace.iter();
    let (snapshot, mut tx) = (store.snapshot().unwrap(), store.begin().unwrap());
    tx.put(&keyspace, "m", "x").unwrap();
    let other = store.clone();
    store.close().unwrap();
    assert!(matches!(keyspace.get("k"), Err(Error::Closed)));
    assert!(matches!(keyspace.put("k", "w"), Err(Error::Closed)));
    assert!(matches!(keyspace.insert("k", "w"), Err(Error::Closed)));
    assert!(matches!(keyspace.len(), Err(Error::Closed)));
    assert!(matches!(batch.commit(), Err(Error::Closed)));
    assert!(matches!(iterator.next(), Some(Err(Error::Closed))));
    assert!(iterator.next().is_none());
    assert!(matches!(snapshot.get(&keyspace, "k"), Err(Error::Closed)));
    assert!(matches!(tx.get(&keyspace, "k"), Err(Error::Closed)));
    assert!(matches!(tx.commit(), Err(Error::Closed)));
    assert!(matches!(other.keyspace("main"), Err(Error::Closed)));
    assert!(matches!(other.keyspaces(), Err(Error::Closed)));
    assert!(matches!(other.sync(), Err(Error::Closed)));
    assert!(matches!(other.close(), Err(Error::Closed)));
}

/// Entries of a dropped keyspace go by and by; whoever opens the store next goes on with it.
#[test]
fn entries_of_dropped_keyspaces_are_removed() {
    let objects = memory();
    for leaves_at_once in [false, true] {
        let store = open(&objects);
        let keyspace = store.keyspace("main").unwrap();
        for piece in 0..4 {
            let mut batch = store.batch();
            for number in 0..1_000 {
                batch.put(&keyspace, format!("{piece} {number}"), vec![7; 100]).unwrap();
            }
            batch.commit().unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        assert!(store.drop_keyspace("main").unwrap());
        assert_eq!(snapshot.len(&keyspace).unwrap(), 4_000, "it is there as it was");
        assert!(store.keyspaces().unwrap().is_empty());
        let store = match leaves_at_once {
            true => {
                drop((store, keyspace, snapshot));
                open(&objects)
            }
            false => store,
        };
        let deadline = Instant::now() + Duration::from_secs(120);
        // The head alone.
        while count(&objects, b"") > 1 {
            assert!(Instant::now() < deadline, "they are still there");
        }
        store.close().unwrap();
    }
}

/// Calls wait on the thread that makes them, whatever else it does.
#[test]
fn threads_of_other_runtimes_may_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::in_memory().unwrap();
        let keyspace = store.keyspace("main").unwrap();
        keyspace.insert("k", "v").unwrap();
        assert_eq!(keyspace.iter().count(), 1);
    });
}
