//! Exclusive transactions: other writers wait for their end, readers do not, and a thread that
//! would wait for itself gets an error. Also snapshots of durable data.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant::{Durability, Engine, Error, KeyspaceOptions, Options, Store};

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("8 bytes"))
}

#[test]
fn counting_by_threads_loses_nothing_and_never_conflicts() {
    let store = Store::in_memory().unwrap();
    let counts = store.keyspace("counts").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, counts) = (&store, &counts);
            scope.spawn(move || {
                for step in 0..50 {
                    let add = |tx: &mut adamant::Transaction| {
                        let found = tx.get(counts, "all")?.map_or(0, |value| number(&value));
                        tx.put(counts, "all", (found + 1).to_le_bytes())?;
                        Ok::<_, Error>(())
                    };
                    // Beside transactions that may lose, which are run again.
                    if (thread + step) % 3 == 0 {
                        store.transaction(add).unwrap();
                    } else {
                        store.exclusive(add).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(number(&counts.get("all").unwrap().unwrap()), 200);
}

#[test]
fn others_wait_for_its_end_and_readers_do_not() {
    let store = Store::in_memory().unwrap();
    let all = Engine::ALL.map(|engine| {
        store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine)).unwrap()
    });
    all[0].insert("key", "before").unwrap();
    store.keyspace("old name").unwrap();
    let cleared = store.keyspace("cleared").unwrap();
    cleared.insert("key", "value").unwrap();
    let is_written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut only = store.begin_exclusive().unwrap();
        assert_eq!(only.get(&all[0], "key").unwrap(), Some("before".into()));
        let writer = scope.spawn(|| {
            all[0].insert("key", "by another").unwrap();
            is_written.store(true, Ordering::SeqCst);
            // A new keyspace waits, too, and holds nothing meanwhile that opening one needs.
            store.keyspace("new").unwrap();
        });
        let creator = scope.spawn(|| store.keyspace("other").map(|_| ()).unwrap());
        // So do all changes of the list of keyspaces.
        let renamer = scope.spawn(|| store.rename_keyspace("old name", "new name").unwrap());
        let clearer = scope.spawn(|| cleared.clear().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!is_written.load(Ordering::SeqCst));
        // Readers and snapshots of this thread and of others.
        scope
            .spawn(|| assert_eq!(all[0].get("key").unwrap(), Some("before".into())))
            .join()
            .unwrap();
        assert_eq!(
            store.open_keyspace("bplus").unwrap().get("key").unwrap(),
            Some("before".into())
        );
        drop(store.snapshot().unwrap());
        // Large enough for a chunked commit.
        for keyspace in &all {
            for key in 0..400 {
                only.put(keyspace, format!("{key:03}"), "mine").unwrap();
            }
        }
        only.put(&all[0], "key", "mine").unwrap();
        assert!(!is_written.load(Ordering::SeqCst));
        only.commit().unwrap();
        writer.join().unwrap();
        for changer in [creator, renamer, clearer] {
            changer.join().unwrap();
        }
    });
    assert!(store.open_keyspace("new name").is_ok() && cleared.is_empty().unwrap());
    assert_eq!(all[0].get("key").unwrap(), Some("by another".into()));
    assert_eq!(all[3].len().unwrap(), 400);
}

#[test]
fn a_thread_that_would_wait_for_itself_gets_an_error() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("keys").unwrap();
    let mut only = store.begin_exclusive().unwrap();
    only.put(&keyspace, "key", "1").unwrap();
    let is_refused = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::WithinExclusive)), "{result:?}");
    };
    is_refused(keyspace.insert("key", "2").map(|_| ()));
    is_refused(keyspace.remove("key").map(|_| ()));
    is_refused(store.begin_exclusive().map(|_| ()));
    is_refused(store.keyspace("another").map(|_| ()));
    is_refused(store.drop_keyspace("keys").map(|_| ()));
    is_refused(store.clone().close());
    let mut batch = store.batch();
    batch.put(&keyspace, "key", "3").unwrap();
    is_refused(batch.commit());
    let mut other = store.begin().unwrap();
    other.put(&keyspace, "key", "4").unwrap();
    is_refused(other.commit());
    assert!(store.check_heap().is_err());
    // Within a closure under the lock none can begin.
    drop(only);
    assert_eq!(keyspace.get("key").unwrap(), None, "it was dropped");
    keyspace.insert("key", "5").unwrap();
    let refused = keyspace.get_with("key", |_| store.begin_exclusive().is_err()).unwrap();
    assert_eq!(refused, Some(true));
    store.close().unwrap();
}

#[test]
fn a_panic_and_an_error_let_others_write() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("keys").unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.exclusive(|tx| -> Result<(), Error> {
            tx.put(&keyspace, "key", "1")?;
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    let failed = store.exclusive(|tx| {
        tx.put(&keyspace, "key", "2")?;
        Err::<(), _>(Error::Closed)
    });
    assert!(failed.is_err());
    std::thread::scope(|scope| {
        scope.spawn(|| keyspace.insert("other", "3").unwrap());
    });
    assert_eq!(keyspace.get("key").unwrap(), None);
    assert_eq!(keyspace.len().unwrap(), 1);
}

#[test]
fn a_snapshot_of_what_is_durable_makes_durable_what_it_shows() {
    for durability in [Durability::Deferred, Durability::Buffered, Durability::Sync] {
        let options = Options::new().durability(durability).background(false);
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open_with(directory.path().join("store"), options).unwrap();
        let keyspace = store.keyspace("keys").unwrap();
        for round in 0..5_u64 {
            keyspace.insert("key", round.to_le_bytes()).unwrap();
            let journal = store.stats().unwrap().heap.journal;
            let is_durable = journal.durable_sequence == journal.last_sequence;
            assert_eq!(is_durable, durability == Durability::Sync);
            let snapshot = store.snapshot_durable().unwrap();
            let after = store.stats().unwrap().heap.journal;
            assert!(after.durable_sequence >= journal.last_sequence);
            assert_eq!(after.syncs > journal.syncs, !is_durable, "what is durable needs no flush");
            keyspace.insert("key", u64::MAX.to_le_bytes()).unwrap();
            let seen = snapshot.get(&keyspace, "key").unwrap().unwrap();
            assert_eq!(number(&seen), round);
        }
    }
}

/// Its reads are not recorded, since no other commit can change them: without the writer lock it
/// cannot be validated.
#[test]
fn one_that_is_swapped_out_of_its_turn_conflicts() {
    let store = Store::in_memory().unwrap();
    let stock = store.keyspace("stock").unwrap();
    stock.insert("apples", "1").unwrap();
    let mut swapped = store.begin().unwrap();
    swapped.get(&stock, "apples").unwrap();
    let mut only = store.begin_exclusive().unwrap();
    only.get(&stock, "apples").unwrap();
    std::mem::swap(&mut *only, &mut swapped);
    drop(only);
    stock.insert("apples", "2").unwrap();
    swapped.put(&stock, "pears", "as many as apples: 1").unwrap();
    assert!(swapped.commit().unwrap_err().is_conflict());

    // The other way round it conflicts as it would have.
    let mut before = store.begin().unwrap();
    before.get(&stock, "apples").unwrap();
    stock.insert("apples", "3").unwrap();
    let mut only = store.begin_exclusive().unwrap();
    std::mem::swap(&mut *only, &mut before);
    only.put(&stock, "pears", "as many as apples: 2").unwrap();
    assert!(only.commit().unwrap_err().is_conflict());
    assert_eq!(stock.len().unwrap(), 1);
}
