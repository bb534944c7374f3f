//! The feed of changes: applied to nothing, it gives the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use adamant::{
    Change, Commit, Durability, Engine, Error, Keyspace, KeyspaceOptions, LsmOptions, Options,
    Store,
};
use tempfile::TempDir;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a feed says of a store: names and entries by the numbers of keyspaces.
#[derive(Default)]
struct Model {
    keyspaces: BTreeMap<u64, (String, Entries)>,
    last: u64,
}

impl Model {
    fn entries(&mut self, id: u64) -> &mut Entries {
        &mut self.keyspaces.get_mut(&id).expect("it was made").1
    }

    fn apply(&mut self, commit: &Commit) {
        assert_eq!(commit.number, self.last + 1);
        self.last = commit.number;
        assert!(!commit.changes.is_empty());
        for change in &commit.changes {
            let id = change.keyspace().id;
            if !matches!(change, Change::Created { .. }) {
                assert_eq!(*change.keyspace().name, *self.keyspaces[&id].0, "{change:?}");
            }
            match change {
                Change::Put { key, value, .. } => {
                    self.entries(id).insert(key.to_vec(), value.to_vec());
                }
                Change::Removed { key, .. } => drop(self.entries(id).remove(&key[..])),
                Change::Moved { key, target, target_key, .. } => {
                    let value = self.entries(id).remove(&key[..]).expect("it is there");
                    self.entries(target.id).insert(target_key.to_vec(), value);
                }
                Change::Swapped { key, target, target_key, .. } => {
                    let value = self.entries(id)[&key[..]].clone();
                    let other = self.entries(target.id).insert(target_key.to_vec(), value);
                    self.entries(id).insert(key.to_vec(), other.expect("it is there"));
                }
                Change::RangeRemoved { bounds, .. } => {
                    let bytes = |bound: &Bound<adamant::Slice>| bound.clone().map(|it| it.to_vec());
                    let range = (bytes(&bounds.0), bytes(&bounds.1));
                    self.entries(id).retain(|key, _| !std::ops::RangeBounds::contains(&range, key));
                }
                Change::Cleared { .. } => self.entries(id).clear(),
                Change::Created { keyspace } => {
                    let made = (keyspace.name.to_string(), Entries::new());
                    assert!(self.keyspaces.insert(id, made).is_none());
                }
                Change::Dropped { .. } => drop(self.keyspaces.remove(&id)),
                Change::Renamed { new_name, .. } => {
                    self.keyspaces.get_mut(&id).expect("it was made").0 = new_name.to_string();
                }
                Change::Exchanged { keyspace, target } => {
                    for (id, name) in [(id, &target.name), (target.id, &keyspace.name)] {
                        self.keyspaces.get_mut(&id).expect("it was made").0 = name.to_string();
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn follow(&mut self, store: &Store) {
        let mut changes = store.changes(self.last).unwrap();
        while let Some(commit) = changes.try_next().unwrap() {
            self.apply(&commit);
        }
        assert_eq!(self.last, store.last_change().unwrap());
    }

    fn check(&self, store: &Store) {
        let found = store.keyspaces().unwrap().into_iter();
        let found: Vec<_> = found
            .map(|info| info.name)
            .filter(|name| name != "adamant.changes" && !name.ends_with(".deadlines"))
            .collect();
        let mut names: Vec<_> = self.keyspaces.values().map(|(name, _)| name.clone()).collect();
        names.sort();
        assert_eq!(found, names);
        for (name, expected) in self.keyspaces.values() {
            let entries = store.open_stored(name).unwrap();
            let found: Entries = entries
                .iter()
                .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
                .collect();
            assert!(found == *expected, "{name}: {} for {}", found.len(), expected.len());
        }
    }
}

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    let options = Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20);
    // The tests count the commits.
    options.sweep_expired(false)
}

fn open(path: &Path) -> Store {
    Store::open_with(path, options()).unwrap()
}

/// A store that records its changes, in the folder `store` of a new one.
pub(crate) fn recorded(bytes_max: u64) -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store"));
    store.record_changes(Some(bytes_max)).unwrap();
    (directory, store)
}

const ENGINES: [Engine; 5] =
    [Engine::Bplus, Engine::Btree, Engine::Critbit, Engine::Redblack, Engine::Lsm];

fn keyspace(store: &Store, engine: Engine, number: usize) -> Keyspace {
    let name = format!("{} {number}", engine.name());
    // By now it may have another engine.
    let found = store.open_keyspace(&name).ok();
    let made = || store.keyspace_with(&name, KeyspaceOptions::new().engine(engine)).unwrap();
    found.unwrap_or_else(made)
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    format!("{:03}", random.u32(..300)).into_bytes()
}

fn value(random: &mut fastrand::Rng) -> Vec<u8> {
    let bytes = if random.u8(..30) == 0 { 10_000 } else { random.usize(..200) };
    vec![random.u8(..); bytes]
}

/// Each way to change a store, at random.
fn change(store: &Store, random: &mut fastrand::Rng) {
    let pick = |random: &mut fastrand::Rng| {
        let (engine, number) = (random.usize(..ENGINES.len()), random.usize(..2));
        keyspace(store, ENGINES[engine], number)
    };
    let (one, other) = (pick(random), pick(random));
    let (first, second) = (key(random), key(random));
    let range = first.clone().min(second.clone())..first.clone().max(second.clone());
    match random.u8(..26) {
        0..5 => one.put(first, value(random)).unwrap(),
        5 => one.delete(first).unwrap(),
        6 => drop(one.insert(first, value(random)).unwrap()),
        7 => drop(one.remove(first).unwrap()),
        8 => drop(one.take(first).unwrap()),
        9 => drop(one.rename(first, second).unwrap()),
        10 => drop(one.move_to(first, &other, second).unwrap()),
        11 => drop(one.swap(first, &other, second).unwrap()),
        12 => drop(one.move_range(range, &other).unwrap()),
        13 => one.delete_range(range).unwrap(),
        14 if random.u8(..4) == 0 => one.clear().unwrap(),
        15 => drop(one.pop_first().unwrap()),
        16 => drop(one.pop_last().unwrap()),
        17 => {
            let entries = (0..random.usize(..2000)).map(|_| (key(random), value(random)));
            one.extend(entries.collect::<Vec<_>>()).map(drop).unwrap();
        }
        18 => one.retain(.., |_, _| random.u8(..4) > 0).map(drop).unwrap(),
        19 => drop(one.fetch_update(first, |old| Some([old.unwrap_or(b""), b"+"].concat()))),
        20 | 21 => {
            let mut batch = store.batch();
            let operations_max = if random.bool() { 3000 } else { 10 };
            for _ in 0..random.usize(..operations_max) {
                match random.u8(..5) {
                    0 => batch.delete(&one, key(random)).unwrap(),
                    1 => batch.rename(&other, key(random), key(random)).unwrap(),
                    _ => batch.put(&other, key(random), value(random)).unwrap(),
                }
            }
            batch.commit().unwrap();
        }
        22 | 23 => {
            store
                .transaction(|tx| {
                    for _ in 0..random.usize(..20) {
                        tx.put(&one, key(random), value(random))?;
                        tx.delete(&other, key(random))?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
        }
        24 => match random.u8(..4) {
            0 => drop(store.drop_keyspace(one.name()).unwrap()),
            1 => store.swap_keyspaces(one.name(), other.name()).unwrap(),
            2 => store.rename_keyspace(one.name(), &format!("new {}", random.u64(..))).unwrap(),
            _ => drop(store.convert_keyspace(one.name(), ENGINES[random.usize(..5)]).unwrap()),
        },
        _ => {
            let sessions = store.expiring("sessions").unwrap();
            let end = random.bool().then(|| sessions.after(Duration::from_secs(random.u64(..3))));
            match random.u8(..6) {
                0 => sessions.remove_expired(10).map(drop).unwrap(),
                1 => sessions.clear().unwrap(),
                2 => sessions.delete(first).unwrap(),
                _ => sessions.put(first, value(random), end).unwrap(),
            }
        }
    }
}

#[test]
fn the_feed_gives_the_store() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let (directory, mut store) = recorded(u64::MAX);
        let path = directory.path().join("store");
        let (mut model, mut beside) = (Model::default(), Model::default());
        for round in 0..120 {
            change(&store, &mut random);
            if random.u8(..8) == 0 {
                model.follow(&store);
                model.check(&store);
            }
            if random.u8(..20) == 0 {
                // What another process finds.
                let reader = Store::open_beside(&path).unwrap();
                beside.follow(&reader);
                beside.check(&reader);
            }
            if round % 40 == 39 {
                store.close().unwrap();
                store = open(&path);
            }
        }
        model.follow(&store);
        model.check(&store);
        assert!(store.check().unwrap().is_clean());
    }
}

#[test]
fn history_is_bounded_and_readers_behind_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store"));
    assert!(matches!(store.changes(0), Err(Error::ChangesNotRecorded)));
    assert!(matches!(store.last_change(), Err(Error::ChangesNotRecorded)));
    assert!(matches!(store.set_cursor("one", 1), Err(Error::ChangesNotRecorded)));
    store.record_changes(Some(20_000)).unwrap();
    let towns = store.keyspace("towns").unwrap();
    let mut slow = store.changes(0).unwrap();
    for number in 0..1000_u32 {
        towns.put(number.to_le_bytes(), [7; 200]).unwrap();
    }
    let error = slow.try_next().unwrap_err();
    let Error::ChangesUnknown { after: 0, first, last } = error else { panic!("{error}") };
    assert!((60..100).contains(&(last - first)), "{first} to {last}");
    assert_eq!(store.last_change().unwrap(), last);
    let mut changes = store.changes(first - 1).unwrap();
    let mut numbers = Vec::new();
    while let Some(commit) = changes.try_next().unwrap() {
        numbers.push(commit.number);
    }
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
    assert!(matches!(store.changes(last + 1), Err(Error::ChangesUnknown { .. })));
    // One commit that is larger than the bound is there; the bound is changed.
    let mut batch = store.batch();
    for number in 0..3000_u32 {
        batch.put(&towns, number.to_le_bytes(), [8; 500]).unwrap();
    }
    batch.commit().unwrap();
    let commit = store.changes(last).unwrap().try_next().unwrap().unwrap();
    assert_eq!((commit.number, commit.changes.len()), (last + 1, 3000));
    for _ in 0..10 {
        towns.put("Bern", "134,000").unwrap();
    }
    assert_eq!(store.last_change().unwrap(), last + 11);
    let entries = store.open_stored("adamant.changes").unwrap().len().unwrap();
    assert_eq!(entries, 11, "the head, and the commits behind the large one");
    store.record_changes(Some(1 << 30)).unwrap();
    // It ends, and begins anew.
    let mut changes = store.changes(last + 11).unwrap();
    store.record_changes(None).unwrap();
    assert!(matches!(changes.try_next(), Err(Error::ChangesNotRecorded)));
    towns.put("Bern", "1").unwrap();
    store.record_changes(Some(1 << 20)).unwrap();
    // Above all numbers that were given: whoever has one of them is told.
    let begun = store.last_change().unwrap();
    assert!(begun > last + 11, "{begun}");
    towns.put("Bern", "2").unwrap();
    assert_eq!(store.own_change(), Some(begun + 1));
    for seen in [1, last, last + 11] {
        assert!(matches!(store.changes(seen), Err(Error::ChangesUnknown { .. })), "{seen}");
    }
    for seen in [0, begun] {
        let next = store.changes(seen).unwrap().try_next().unwrap().unwrap();
        assert_eq!(next.number, begun + 1, "{seen}: 0 has seen none");
    }
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn the_history_is_written_by_nothing_else() {
    let store = Store::in_memory().unwrap();
    store.keyspace("towns").unwrap();
    store.record_changes(Some(1 << 20)).unwrap();
    let name = "adamant.changes";
    let refused = |error: Error| assert!(matches!(error, Error::WrongKind { .. }), "{error}");
    refused(store.keyspace(name).unwrap_err());
    refused(store.drop_keyspace(name).unwrap_err());
    refused(store.rename_keyspace(name, "mine").unwrap_err());
    refused(store.swap_keyspaces("towns", name).unwrap_err());
    refused(store.convert_keyspace(name, Engine::Lsm).unwrap_err());
    let stored = store.open_stored(name).unwrap();
    refused(stored.put("key", "value").unwrap_err());
    refused(stored.clear().unwrap_err());
    let other = Store::in_memory().unwrap();
    other.keyspace(name).unwrap();
    refused(other.record_changes(Some(1)).unwrap_err());
}

/// Threads whose commits are combined have numbers of their own.
#[test]
fn each_commit_has_its_own_number() {
    const THREADS: u32 = 4;
    const PUTS: u32 = 2000;
    let (directory, store) = recorded(u64::MAX);
    let towns = store.keyspace("towns").unwrap();
    let barrier = Barrier::new(THREADS as usize);
    let numbers: BTreeMap<u64, u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (store, towns, barrier) = (&store, &towns, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    let put = |number: u32| {
                        let key = thread * PUTS + number;
                        towns.put(key.to_le_bytes(), "value").unwrap();
                        (store.own_change().unwrap(), key)
                    };
                    (0..PUTS).map(put).collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(numbers.len(), (THREADS * PUTS) as usize);
    assert!(numbers.keys().copied().eq(2..=u64::from(THREADS * PUTS) + 1));
    let mut changes = store.changes(1).unwrap();
    for (number, key) in numbers {
        let commit = changes.try_next().unwrap().unwrap();
        assert_eq!((commit.number, commit.changes.len()), (number, 1));
        let Change::Put { key: found, .. } = &commit.changes[0] else { panic!("{commit:?}") };
        assert_eq!(found[..], key.to_le_bytes());
    }
    store.wait_durable(5).unwrap();
    // A reader cannot tell.
    let beside = Store::open_beside(directory.path().join("store")).unwrap();
    assert!(beside.wait_durable(5).unwrap_err().is_read_only());
    assert!(store.wait_durable(1 << 40).is_err());
}

/// Commits reach readers that wait, in this process and in others; none is missed.
#[test]
fn readers_that_wait_get_each_commit() {
    const PUTS: u64 = 1000;
    let (directory, store) = recorded(u64::MAX);
    let path = directory.path().join("store");
    let jobs = store.keyspace("jobs").unwrap();
    let beside = Store::open_beside(&path).unwrap();
    let read = |store: &Store| {
        let mut changes = store.changes(1).unwrap();
        for number in 2..PUTS + 2 {
            let commit = changes.next_within(Duration::from_secs(60)).unwrap().unwrap();
            assert_eq!(commit.number, number);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| read(&store));
        scope.spawn(|| read(&store));
        scope.spawn(|| read(&beside));
        for number in 0..PUTS {
            jobs.put(number.to_le_bytes(), "sweep").unwrap();
            if number % 50 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut changes = store.changes(PUTS + 1).unwrap();
    let start = Instant::now();
    assert!(changes.next_within(Duration::from_millis(30)).unwrap().is_none());
    assert!(start.elapsed() >= Duration::from_millis(30));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| changes.next_within(Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(20));
        store.clone().close().unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Closed)));
    });
}

#[test]
fn cursors_are_moved_with_results() {
    let (directory, store) = recorded(1 << 20);
    let path = directory.path().join("store");
    let (jobs, done) = (store.keyspace("jobs").unwrap(), store.keyspace("done").unwrap());
    for number in 0..10 {
        jobs.put(number.to_string(), "sweep").unwrap();
    }
    assert_eq!(store.cursor("worker").unwrap(), None);
    let work = |store: &Store, commits: usize| {
        let mut changes = store.changes(store.cursor("worker").unwrap().unwrap_or(0)).unwrap();
        for _ in 0..commits {
            let Some(commit) = changes.try_next().unwrap() else { return };
            let mut batch = store.batch();
            for change in &commit.changes {
                if let Change::Put { keyspace, key, .. } = change
                    && &*keyspace.name == "jobs"
                {
                    batch.put(&done, key, commit.number.to_string()).unwrap();
                }
            }
            batch.set_cursor("worker", commit.number).unwrap();
            batch.commit().unwrap();
        }
    };
    work(&store, 5);
    assert_eq!(store.cursor("worker").unwrap(), Some(5));
    work(&store, 100);
    assert_eq!(done.len().unwrap(), 10);
    // A commit that moves a cursor alone is none of the feed.
    let last = store.last_change().unwrap();
    store.set_cursor("worker", 7).unwrap();
    store.set_cursor("other", 9).unwrap();
    assert_eq!(store.last_change().unwrap(), last);
    assert_eq!(store.cursors().unwrap(), [("other".into(), 9), ("worker".into(), 7)]);
    store.remove_cursor("other").unwrap();
    store.transaction(|tx| tx.set_cursor("worker", 8)).unwrap();
    assert!(store.set_cursor("", 1).is_err());
    store.close().unwrap();
    let store = open(&path);
    assert_eq!(store.cursors().unwrap(), [("worker".into(), 8)]);
}

/// A store that is made anew has its history, and goes on with it.
#[test]
fn the_history_goes_where_the_store_goes() {
    let (directory, store) = recorded(u64::MAX);
    let path = directory.path().join("store");
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..60 {
        change(&store, &mut random);
    }
    store.set_cursor("worker", 7).unwrap();
    let last = store.last_change().unwrap();
    let (copy, again, mended) = ("copy", "again", "mended");
    store.backup(directory.path().join(copy)).unwrap();
    store.compact().unwrap();
    store.close().unwrap();
    adamant::restore(directory.path().join(copy), directory.path().join(again)).unwrap();
    adamant::restore(&path, directory.path().join(mended)).unwrap();
    adamant::repair(directory.path().join(mended)).unwrap();
    adamant::compact(&path).unwrap();
    for name in ["store", copy, again, mended] {
        let store = open(&directory.path().join(name));
        assert_eq!(store.cursor("worker").unwrap(), Some(7), "{name}");
        assert_eq!(store.last_change().unwrap(), last, "{name}");
        change(&store, &mut random);
        let mut model = Model::default();
        model.follow(&store);
        model.check(&store);
        assert!(store.check().unwrap().is_clean(), "{name}");
    }
}

/// Entries that are loaded into an empty range of an LSM tree are told as a range.
#[test]
fn large_loads_are_told_by_their_bounds() {
    let (_directory, store) = recorded(u64::MAX);
    let visits = keyspace(&store, Engine::Lsm, 0);
    let entries = (0..20_000_u32).map(|number| (format!("{number:05}"), [7; 100]));
    visits.load_sorted(entries).unwrap();
    let mut changes = store.changes(1).unwrap();
    let commit = changes.try_next().unwrap().unwrap();
    let [Change::Loaded { keyspace, first, last, .. }] = &commit.changes[..] else {
        panic!("{} changes", commit.changes.len())
    };
    assert_eq!((&*keyspace.name, &first[..], &last[..]), ("lsm 0", &b"00000"[..], &b"19999"[..]));
    assert!(changes.try_next().unwrap().is_none());
}

/// A regression: a store that got the memory of one that was dropped had its commit.
#[test]
fn a_commit_is_that_of_one_opening() {
    for _ in 0..20 {
        let store = Store::in_memory().unwrap();
        store.record_changes(Some(1 << 20)).unwrap();
        store.keyspace("towns").unwrap();
        assert_eq!(store.own_change(), Some(1));
        drop(store);
        assert_eq!(Store::in_memory().unwrap().own_change(), None);
    }
}

/// A regression: a reader that never waited stayed where it was opened.
#[test]
fn readers_beside_a_writer_follow_without_waiting() {
    let (directory, store) = recorded(1 << 20);
    let path = directory.path().join("store");
    let towns = store.keyspace("towns").unwrap();
    let mut changes = Store::open_beside(&path).unwrap().changes(1).unwrap();
    for number in 2..10 {
        assert!(changes.try_next().unwrap().is_none());
        towns.put("Bern", "134,000").unwrap();
        assert_eq!(changes.try_next().unwrap().unwrap().number, number);
    }
}

/// A regression: a commit removed 16 parts, however few bytes they had.
#[test]
fn small_commits_make_room_for_large_ones() {
    const BOUND: u64 = 1 << 20;
    let (_directory, store) = recorded(BOUND);
    let towns = store.keyspace("towns").unwrap();
    for number in 0..10_000_u32 {
        towns.put(number.to_le_bytes(), [1; 50]).unwrap();
    }
    for _ in 0..20 {
        towns.put("large", vec![7; 200_000]).unwrap();
        let history = store.open_stored("adamant.changes").unwrap();
        let bytes: usize = history
            .iter()
            .map(|entry| entry.unwrap())
            .map(|(key, value)| key.len() + value.len())
            .sum();
        assert!(bytes as u64 <= BOUND + 100, "{bytes}");
    }
}

/// What is where it was is no change.
#[test]
fn what_stays_is_not_recorded() {
    let (_directory, store) = recorded(1 << 20);
    for engine in ENGINES {
        let towns = keyspace(&store, engine, 0);
        towns.put("Bern", "134,000").unwrap();
        let last = store.last_change().unwrap();
        assert!(towns.rename("Bern", "Bern").unwrap().is_moved());
        assert!(towns.swap("Bern", &towns, "Bern").unwrap());
        assert!(!towns.insert_unique("Bern", "1").unwrap());
        assert!(towns.compare_and_swap("Bern", Some("1"), Some("2")).unwrap().is_err());
        assert_eq!(store.last_change().unwrap(), last);
        assert!(towns.compare_and_swap("Bern", Some("134,000"), Some("2")).unwrap().is_ok());
        assert_eq!(store.last_change().unwrap(), last + 1);
    }
}

/// A reader of a history that was ended gets nothing of one that was begun anew; it waits no
/// longer.
#[test]
fn a_history_that_is_begun_anew_is_another_one() {
    let (directory, store) = recorded(1 << 20);
    let path = directory.path().join("store");
    let towns = store.keyspace("towns").unwrap();
    towns.put("Bern", "1").unwrap();
    let beside = Store::open_beside(&path).unwrap();
    let mut readers = [store.changes(2).unwrap(), beside.changes(2).unwrap()];
    let mut waiting = store.changes(2).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || waiting.next_within(Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(20));
        let start = Instant::now();
        store.record_changes(None).unwrap();
        assert!(matches!(waiting.join().unwrap(), Err(Error::ChangesNotRecorded)));
        assert!(start.elapsed() < Duration::from_secs(30));
    });
    store.record_changes(Some(1 << 20)).unwrap();
    for _ in 0..10 {
        towns.put("Bern", "2").unwrap();
    }
    for changes in &mut readers {
        assert!(matches!(changes.try_next(), Err(Error::ChangesNotRecorded)));
    }
}

/// Transactions of all kinds: popping, with savepoints that are undone, with reserved values,
/// chunked, failing, and alone.
#[test]
fn the_feed_has_what_transactions_left() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let (_directory, store) = recorded(u64::MAX);
        let mut model = Model::default();
        for _ in 0..60 {
            let random = &mut random;
            let engines = [random.usize(..5), random.usize(..5)];
            let [one, other] = engines.map(|engine| keyspace(&store, ENGINES[engine], 0));
            let sessions = store.expiring("sessions").unwrap();
            let fails = random.u8(..8) == 0;
            let operations = if random.u8(..6) == 0 { 3000 } else { 30 };
            let is_alone = random.bool();
            let mut snapshot = random.bool().then(|| store.snapshot().unwrap());
            let work = |tx: &mut adamant::Transaction| {
                for _ in 0..random.usize(..operations) {
                    let (first, second) = (key(random), key(random));
                    match random.u8(..16) {
                        0..5 => tx.put(&one, first, value(random))?,
                        5 => tx.delete(&other, first)?,
                        6 => drop(tx.pop_first(&one)?),
                        7 => drop(tx.pop_last(&other)?),
                        8 => drop(tx.take(&one, first)?),
                        9 => {
                            let mut reserved = store.reserve(random.usize(..9000))?;
                            reserved.as_mut().fill(7);
                            tx.put_reserved(&other, first, reserved)?;
                        }
                        10 | 11 => {
                            let undone = tx.savepoint(|tx| {
                                tx.put(&one, &first, "undone")?;
                                tx.put(&other, &second, "undone")?;
                                tx.pop_first(&one)?;
                                if random.bool() { Err(Error::Closed) } else { Ok(()) }
                            });
                            drop(undone);
                        }
                        12 => {
                            let end = sessions.after(Duration::from_millis(random.u64(..50)));
                            sessions.within(tx).put(first, value(random), Some(end))?;
                        }
                        13 => drop(sessions.within(tx).pop_first()?),
                        14 => drop(sessions.within(tx).remove_expired(5)?),
                        _ => snapshot = None,
                    }
                }
                if fails { Err(Error::Closed) } else { Ok(()) }
            };
            let before = store.last_change().unwrap();
            let done = match is_alone {
                true => store.exclusive(work),
                false => {
                    let mut tx = store.begin().unwrap();
                    let mut work = work;
                    work(&mut tx).and_then(|()| tx.commit())
                }
            };
            assert_eq!(done.is_err(), fails, "{done:?}");
            let commits = store.last_change().unwrap() - before;
            assert!(commits <= u64::from(!fails), "{commits}");
            model.follow(&store);
        }
        model.check(&store);
        assert!(store.check().unwrap().is_clean());
    }
}

/// Commits of several threads, some of which fail for lack of space: the feed has those that were
/// made.
#[test]
fn commits_without_space_are_none_of_the_feed() {
    const THREADS: u64 = 4;
    for engine in [Engine::Bplus, Engine::Critbit, Engine::Lsm] {
        let disk = adamant_sim::SimDisk::new(1).without_history();
        let root = std::sync::Arc::new(adamant_sim::SimDirectory::root(&disk));
        let store = Store::open_directory(root, options()).unwrap();
        store.record_changes(Some(u64::MAX)).unwrap();
        let towns = store.keyspace_with("towns", KeyspaceOptions::new().engine(engine)).unwrap();
        disk.set_space_bytes(Some(disk.space_used_bytes() + (16 << 20)));
        let failed: u64 = std::thread::scope(|scope| {
            let put = |thread: u64| {
                let mut random = fastrand::Rng::with_seed(thread);
                let (mut failed, mut last) = (0, 0);
                for number in 0..3000_u64 {
                    let key = (thread << 32 | number).to_le_bytes();
                    match towns.put(key, vec![thread as u8; random.usize(..8000)]) {
                        Ok(()) => {
                            let own = store.own_change().unwrap();
                            assert!(own > last);
                            last = own;
                        }
                        Err(error) => {
                            assert!(error.is_out_of_space(), "{error}");
                            assert_eq!(store.own_change().unwrap_or(0), last);
                            failed += 1;
                        }
                    }
                    if failed > 100 {
                        break;
                    }
                }
                failed
            };
            let threads: Vec<_> =
                (0..THREADS).map(|thread| scope.spawn(move || put(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(failed > 0);
        // Recording neither ends nor begins with a commit that fails.
        disk.set_space_bytes(Some(disk.space_used_bytes()));
        let last = store.last_change().unwrap();
        while store.record_changes(Some(u64::MAX)).is_ok() && towns.put("more", [7; 9000]).is_ok() {
        }
        disk.set_space_bytes(None);
        towns.put("more", "").unwrap();
        assert!(store.own_change().unwrap() > last);
        println!("{engine:?}: {failed} failed, {} commits", store.last_change().unwrap());
        let mut model = Model::default();
        model.follow(&store);
        model.check(&store);
    }
}
