//! Blocking: long operations delay writers, and never readers.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, Store};

/// Long enough for any call that is not blocked, on a busy machine.
const LONGEST: Duration = Duration::from_secs(30);
/// Enough time for a writer to reach the readers in its way.
const WRITER_COMES: Duration = Duration::from_millis(20);

/// Reads of a thread that a closure waits for: each of them used to wait for the closure.
fn look(store: &Store, keyspace: &Keyspace) {
    assert_eq!(keyspace.get("a").unwrap(), Some("1".into()));
    assert!(keyspace.contains("b").unwrap());
    assert_eq!(keyspace.len().unwrap(), 2);
    assert_eq!(keyspace.get_briefly("a", <[u8]>::len).unwrap(), Some(1));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.get(keyspace, "a").unwrap(), Some("1".into()));
    assert_eq!(keyspace.iter().count() + snapshot.iter(keyspace).count(), 4);
    assert_eq!(keyspace.first().unwrap().unwrap().0, "a");
}

/// `long` runs its closure until other threads have read, while a writer waits for it.
fn others_look_during(long: impl Fn(&Store, &Keyspace, &mut dyn FnMut()) + Send) {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("k").unwrap();
    keyspace.extend([("a", "1"), ("b", "2")]).unwrap();
    let (store, keyspace) = (&store, &keyspace);
    let (inside, is_inside) = channel::<()>();
    let (looked, have_looked) = channel::<()>();
    let has_written = &AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut is_first = true;
            long(store, keyspace, &mut || {
                if std::mem::take(&mut is_first) {
                    inside.send(()).unwrap();
                    have_looked.recv_timeout(LONGEST).expect("others look meanwhile");
                    assert!(!has_written.load(Ordering::SeqCst), "what is lent is not changed");
                }
            });
        });
        is_inside.recv_timeout(LONGEST).unwrap();
        let writer = scope.spawn(move || {
            keyspace.insert("a", "3").unwrap();
            has_written.store(true, Ordering::SeqCst);
        });
        let begun = Instant::now();
        while begun.elapsed() < WRITER_COMES {
            look(store, keyspace);
        }
        looked.send(()).unwrap();
        writer.join().unwrap();
    });
    assert_eq!(keyspace.get("a").unwrap(), Some("3".into()));
}

/// A closure of 300 ms and a writer used to delay a `get` of another thread by 237 ms.
#[test]
fn reads_go_on_while_a_writer_waits_for_a_closure() {
    others_look_during(|_, keyspace, inside| {
        keyspace.get_with("a", |_| inside()).unwrap();
    });
    others_look_during(|store, keyspace, inside| {
        store.snapshot().unwrap().get_with(keyspace, "a", |_| inside()).unwrap();
    });
}

#[test]
fn reads_go_on_while_a_writer_waits_for_a_scan_that_lends() {
    let lend = |inside: &mut dyn FnMut()| {
        inside();
        ControlFlow::<()>::Continue(())
    };
    others_look_during(|_, keyspace, inside| {
        keyspace.iter().lend(|_, _| lend(inside)).unwrap();
    });
    others_look_during(|store, keyspace, inside| {
        store.snapshot().unwrap().iter(keyspace).lend(|_, _| lend(inside)).unwrap();
    });
}

/// Closures of two threads that follow one another delay a writer only by those that ran when it
/// came.
#[test]
fn closures_without_end_do_not_keep_a_writer_out() {
    let store = Store::in_memory().unwrap();
    let keyspace = &store.keyspace("k").unwrap();
    keyspace.insert("a", "1").unwrap();
    let is_done = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let begun = Instant::now();
                while !is_done.load(Ordering::SeqCst) {
                    assert!(begun.elapsed() < LONGEST, "the writer has its turns");
                    keyspace.get_with("a", |_| thread::sleep(Duration::from_millis(2))).unwrap();
                }
            });
        }
        for number in 0..20 {
            keyspace.insert("a", number.to_string()).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
}

/// A check used to delay writers while it read the pool file, and then for each keyspace, and gets
/// behind them: 576 ms with two million entries. It reports no changes made meanwhile as damage.
#[test]
fn a_check_lets_writers_in_again_and_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = &Store::open(directory.path()).unwrap();
    let keyspace = |name: &str, engine, entries: u32| {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.keyspace_with(name, options).unwrap();
        let keyspace = keyspace.with_durability(Durability::Deferred);
        let all = (0..entries).map(|number| (format!("{number:08}"), vec![7; 20]));
        keyspace.extend(all).unwrap();
        keyspace
    };
    let all = &[
        keyspace("b", Engine::Bplus, 60_000),
        keyspace("t", Engine::Btree, 10_000),
        keyspace("c", Engine::Critbit, 10_000),
        keyspace("r", Engine::Redblack, 10_000),
    ];
    let (is_done, commits) = (&AtomicBool::new(false), &AtomicU64::new(0));
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut random = fastrand::Rng::with_seed(1);
            while !is_done.load(Ordering::SeqCst) {
                let keyspace = &all[random.usize(..all.len())];
                let key = format!("{:08}", random.u32(..70_000));
                // Blocks of runs, and extents, which come and go.
                match random.u32(..4) {
                    0 => drop(keyspace.remove(&key).unwrap()),
                    1 => keyspace.put(&key, vec![8; random.usize(4_000..200_000)]).unwrap(),
                    _ => keyspace.put(&key, vec![9; random.usize(..500)]).unwrap(),
                }
                commits.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..3 {
            let before = commits.load(Ordering::SeqCst);
            let report = store.check().unwrap();
            let between = commits.load(Ordering::SeqCst) - before;
            assert!(report.is_clean(), "{:?}", report.findings);
            assert_eq!(report.keyspaces.len(), 4);
            // Trees alone have some thirty parts; a check in one part admitted five commits.
            assert!(between > 15, "{between} commits during a check");
        }
        is_done.store(true, Ordering::SeqCst);
        writer.join().unwrap();
    });
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    for (found, keyspace) in report.keyspaces.iter().zip(["b", "c", "r", "t"]) {
        let expected = store.keyspace(keyspace).unwrap().len().unwrap();
        assert_eq!((&*found.name, found.entries), (keyspace, expected));
    }
}
