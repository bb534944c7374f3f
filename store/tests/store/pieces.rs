//! Chunked commits: a concurrent reader sees all of a commit or nothing of it, by gets, scans,
//! lengths and snapshots, in keyspaces of several engines; also if the commit fails in the end, and
//! if snapshots are opened and closed during it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, Options, Snapshot, Store};
use adamant_heap::MemoryDirectory;

/// Keys that always exist, in each keyspace, and those that come and go.
const KEYS: u64 = 900;
const OTHERS: u64 = 300;
/// One in so many values has a block of its own.
const LARGE: u64 = 50;
/// Rounds that fail on purpose write this; no reader may see it.
const FAILED: u64 = u64::MAX;

fn store() -> Store {
    let options = Options::new().durability(Durability::Deferred).background(false);
    Store::open_directory(std::sync::Arc::new(MemoryDirectory::new()), options).expect("a store")
}

fn keyspaces(store: &Store) -> Vec<Keyspace> {
    let open = |engine: Engine| {
        let options = KeyspaceOptions::new().engine(engine);
        store.keyspace_with(engine.name(), options).expect("a keyspace")
    };
    Engine::ALL.into_iter().map(open).collect()
}

fn name(key: u64) -> String {
    format!("{key:08}")
}

/// The value of a key in a round.
fn value(key: u64, round: u64) -> Vec<u8> {
    let bytes = if key.is_multiple_of(LARGE) { 6_000 } else { 8 };
    let mut value = vec![key as u8; bytes];
    value[..8].copy_from_slice(&round.to_le_bytes());
    value
}

/// The round of a value.
fn round_of(key: &[u8], found: &[u8]) -> u64 {
    let number = std::str::from_utf8(key).expect("a number").parse().expect("a number");
    let round = u64::from_le_bytes(found[..8].try_into().expect("8 bytes"));
    assert!(found == value(number, round), "key {number} of round {round}");
    round
}

/// A commit that takes all keys of all keyspaces to a round. Fails if one of the keyspaces was
/// dropped.
fn commit(store: &Store, all: &[Keyspace], last: Option<&Keyspace>, round: u64) -> bool {
    let mut batch = store.batch();
    for keyspace in all {
        // Moved to and fro: the first key keeps its value.
        batch.rename(keyspace, name(1), name(KEYS + OTHERS)).unwrap();
        for key in 0..KEYS {
            batch.put(keyspace, name(key), value(key, round)).unwrap();
        }
        batch.delete(keyspace, name(KEYS + OTHERS)).unwrap();
        for key in KEYS..KEYS + OTHERS {
            if round.is_multiple_of(2) {
                batch.delete(keyspace, name(key)).unwrap();
            } else {
                batch.put(keyspace, name(key), value(key, round)).unwrap();
            }
        }
    }
    if let Some(last) = last {
        batch.put(last, "x", "y").unwrap();
    }
    batch.commit().is_ok()
}

fn len_of(round: u64) -> u64 {
    KEYS + if round.is_multiple_of(2) { 0 } else { OTHERS }
}

/// The round of a snapshot, the same for all entries.
fn look_at(snapshot: &Snapshot, all: &[Keyspace]) -> u64 {
    let mut seen = None;
    for keyspace in all {
        let len = snapshot.len(keyspace).expect("a length");
        let mut count = 0;
        for entry in snapshot.iter(keyspace) {
            let (key, found) = entry.expect("an entry");
            let round = round_of(key.as_ref(), &found);
            assert_eq!(*seen.get_or_insert(round), round, "all of one round, {}", keyspace.name());
            count += 1;
        }
        assert_eq!(count, len);
        let round = seen.expect("entries");
        assert_eq!(len, len_of(round));
        let key = name(KEYS - 1);
        let found = snapshot.get(keyspace, &key).expect("a get").expect("is there");
        assert_eq!(round_of(key.as_ref(), &found), round);
    }
    seen.expect("keyspaces")
}

/// Reads single keys of all keyspaces, in turn: each value is of the same round as the last or a
/// later one.
fn look_on(all: &[Keyspace], random: &mut fastrand::Rng, last: &mut u64) {
    for _ in 0..20 {
        let keyspace = &all[random.usize(..all.len())];
        let key = name(random.u64(..KEYS));
        let found = keyspace.get(&key).expect("a get").expect("is there");
        let round = round_of(key.as_ref(), &found);
        assert!(round >= *last && round != FAILED, "{round} after {last}");
        *last = round;
    }
    // One hold of the lock, one round.
    let keyspace = &all[random.usize(..all.len())];
    let (mut seen, mut count) = (None, 0);
    keyspace
        .iter()
        .lend(|key, found| {
            let round = round_of(key, found);
            assert_eq!(*seen.get_or_insert(round), round);
            count += 1;
            if count < 200 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .expect("a scan");
    let round = seen.expect("entries");
    assert!(round >= *last && round != FAILED);
    *last = round;
    let len = keyspace.len().expect("a length");
    assert!(len == KEYS || len == KEYS + OTHERS, "{len}");
}

#[test]
fn who_reads_beside_large_commits_sees_all_of_them_or_nothing() {
    let store = store();
    let all = keyspaces(&store);
    assert!(commit(&store, &all, None, 0));
    let (is_over, seen_in_the_midst) = (AtomicBool::new(false), AtomicU64::new(0));
    let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (store, all, is_over) = (&store, &all, &is_over);
            let (begun, ended, seen_in_the_midst) = (&begun, &ended, &seen_in_the_midst);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                let mut last = 0;
                let mut open: Vec<(Snapshot, u64)> = Vec::new();
                while !is_over.load(Ordering::Acquire) {
                    let before = begun.load(Ordering::SeqCst);
                    let was_running = before > ended.load(Ordering::SeqCst);
                    look_on(all, &mut random, &mut last);
                    let is_same = before == begun.load(Ordering::SeqCst);
                    if was_running && is_same && before > ended.load(Ordering::SeqCst) {
                        seen_in_the_midst.fetch_add(1, Ordering::Relaxed);
                    }
                    // Snapshots outlive commits, and do not change.
                    if random.u8(..4) == 0 {
                        let snapshot = store.snapshot().expect("opens");
                        let round = look_at(&snapshot, all);
                        assert!(round >= last && round != FAILED, "{round} after {last}");
                        last = round;
                        open.push((snapshot, round));
                    }
                    if open.len() > 3 || random.u8(..6) == 0 {
                        for (snapshot, round) in open.drain(..) {
                            assert_eq!(look_at(&snapshot, all), round);
                        }
                    }
                }
            });
        }
        let begun_at = Instant::now();
        let mut round = 0;
        while round < 12 || seen_in_the_midst.load(Ordering::Relaxed) < 3 {
            assert!(begun_at.elapsed() < Duration::from_secs(100), "readers come in between");
            begun.fetch_add(1, Ordering::SeqCst);
            if round % 4 == 3 {
                let dropped = store.keyspace("dropped").expect("a keyspace");
                assert!(store.drop_keyspace("dropped").expect("drops"));
                assert!(!commit(&store, &all, Some(&dropped), FAILED));
            }
            round += 1;
            assert!(commit(&store, &all, None, round));
            ended.fetch_add(1, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::Release);
    });
    let report = store.check().expect("can be checked");
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(store.stats().expect("figures").snapshots.open, 0);
}

#[test]
fn large_transactions_conflict_with_what_was_committed_and_not_with_what_was_not() {
    let store = store();
    let all = keyspaces(&store);
    assert!(commit(&store, &all, None, 0));
    let mut early = store.begin().unwrap();
    assert!(early.get(&all[0], name(5)).unwrap().is_some());
    early.put(&all[1], "early", "1").unwrap();
    store
        .transaction(|tx| {
            for keyspace in &all {
                for key in 0..KEYS {
                    tx.put(keyspace, name(key), value(key, 1))?;
                }
                for key in KEYS..KEYS + OTHERS {
                    tx.put(keyspace, name(key), value(key, 1))?;
                }
            }
            Ok::<_, adamant::Error>(())
        })
        .unwrap();
    assert!(early.commit().unwrap_err().is_conflict());
    assert_eq!(look_at(&store.snapshot().unwrap(), &all), 1);
}

#[test]
fn with_little_memory_for_copies_readers_wait_and_snapshots_end() {
    let options = Options::new()
        .durability(Durability::Deferred)
        .background(false)
        .snapshot_bytes_max(20_000);
    let directory = std::sync::Arc::new(MemoryDirectory::new());
    let store = Store::open_directory(directory, options).expect("a store");
    let all = keyspaces(&store);
    assert!(commit(&store, &all, None, 0));
    let snapshot = store.snapshot().unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            let mut random = fastrand::Rng::with_seed(7);
            while last < 5 {
                look_on(&all, &mut random, &mut last);
            }
        });
        for round in 1..6 {
            assert!(commit(&store, &all, None, round));
        }
        reader.join().expect("no panic");
    });
    assert!(snapshot.get(&all[0], name(0)).is_err());
}

/// Such a range was deleted in parts, which readers saw.
#[test]
fn who_reads_beside_the_removal_of_many_entries_sees_all_of_them_or_none() {
    const ENTRIES: u64 = 4_000;
    let store = store();
    for keyspace in keyspaces(&store) {
        let (is_over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let look = || {
                while !is_over.load(Ordering::Acquire) {
                    let snapshot = store.snapshot().expect("opens");
                    let len = snapshot.len(&keyspace).expect("a length");
                    assert!([0, ENTRIES / 2, ENTRIES].contains(&len), "{len} entries");
                    assert_eq!(snapshot.iter(&keyspace).count() as u64, len);
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            };
            scope.spawn(look);
            scope.spawn(look);
            let mut round = 0;
            while round < 4 || looks.load(Ordering::Relaxed) < 40 {
                round += 1;
                let mut batch = store.batch();
                for key in 0..ENTRIES {
                    batch.put(&keyspace, name(key), value(key, round)).unwrap();
                }
                batch.commit().unwrap();
                let is_even = |key: &[u8], _: &[u8]| key[7].is_multiple_of(2);
                assert_eq!(keyspace.retain(.., is_even).unwrap(), ENTRIES / 2);
                keyspace.delete_range(..name(ENTRIES)).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
    }
    assert!(store.check().expect("can be checked").is_clean());
}

/// Removals that take more memory than there may be for copies.
#[test]
fn with_little_memory_for_copies_removals_are_whole_all_the_same() {
    let options = Options::new().background(false).snapshot_bytes_max(20_000);
    let directory = std::sync::Arc::new(MemoryDirectory::new());
    let store = Store::open_directory(directory, options).expect("a store");
    for keyspace in keyspaces(&store) {
        keyspace.load_sorted((0..5_000).map(|key| (name(key), value(key, 1)))).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(keyspace.retain(.., |key, _| key[7] == b'7').unwrap(), 4_500);
        keyspace.delete_range(..name(4_000)).unwrap();
        assert_eq!(keyspace.len().unwrap(), 100);
        let seen = snapshot.iter(&keyspace).collect::<adamant::Result<Vec<_>>>();
        match seen {
            Ok(seen) => assert_eq!(seen.len(), 5_000, "{}", keyspace.name()),
            Err(error) => assert!(matches!(error, adamant::Error::SnapshotExpired { .. })),
        }
    }
    assert!(store.check().expect("can be checked").is_clean());
}
