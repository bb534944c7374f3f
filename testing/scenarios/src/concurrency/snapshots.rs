//! Snapshots: their view stays, whatever is committed.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use adamant::{Durability, Engine, Error, Keyspace, Moved, Options, Snapshot, Store};
use fastrand::Rng;

use crate::place::{Place, assert_whole, entries};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Verifies a snapshot's view of a keyspace, through every call.
fn assert_sees(snapshot: &Snapshot, keyspace: &Keyspace, map: &Map, context: &str) {
    let pair = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    let owned = |entry: adamant::Result<(adamant::Slice, adamant::Slice)>| {
        let (key, value) = entry.unwrap_or_else(|error| panic!("{context}: {error}"));
        (key.to_vec(), value.to_vec())
    };
    assert_eq!(snapshot.len(keyspace).unwrap(), map.len() as u64, "{context}");
    assert!(snapshot.iter(keyspace).map(owned).eq(map.iter().map(pair)), "{context}");
    assert!(snapshot.iter(keyspace).rev().map(owned).eq(map.iter().rev().map(pair)), "{context}");
    assert!(
        snapshot.first(keyspace).unwrap().map(|entry| owned(Ok(entry)))
            == map.iter().next().map(pair)
    );
    assert!(
        snapshot.last(keyspace).unwrap().map(|entry| owned(Ok(entry)))
            == map.iter().next_back().map(pair)
    );
    let mut lent = Vec::new();
    snapshot
        .iter(keyspace)
        .lend_back(|key, value| {
            lent.push((key.to_vec(), value.to_vec()));
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    assert!(lent.iter().rev().cloned().eq(map.iter().map(pair)), "{context}");
    for key in 0..KEYS {
        let key = key_of(key);
        let expected = map.get(&key).map(Vec::as_slice);
        assert!(snapshot.get(keyspace, &key).unwrap().as_deref() == expected, "{context}: {key:?}");
        let found = snapshot.get_with(keyspace, &key, <[u8]>::to_vec).unwrap();
        assert!(found.as_deref() == expected, "{context}: {key:?}");
        assert_eq!(snapshot.contains(keyspace, &key).unwrap(), expected.is_some(), "{context}");
    }
    let (low, high) = (key_of(KEYS / 4), key_of(KEYS / 2));
    let range = snapshot.range(keyspace, &low..&high).map(owned);
    assert!(range.eq(map.range(low..high).map(pair)), "{context}");
}

const KEYS: u32 = 300;

fn key_of(number: u32) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

fn some_value(random: &mut Rng) -> Vec<u8> {
    let bytes = match random.u8(0..20) {
        0..10 => random.usize(0..30),
        10..19 => random.usize(0..600),
        _ => random.usize(4000..12_000),
    };
    vec![random.u8(..); bytes]
}

/// Overwritten, removed and added keys, in single commits and in one batch.
pub fn see_one_moment(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let mut map = Map::new();
    for number in (0..KEYS).step_by(2) {
        map.insert(key_of(number), vec![1; 20 + number as usize * 30]);
    }
    for (key, value) in &map {
        keyspace.insert(key, value).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    assert_sees(&snapshot, &keyspace, &map, "before anything changes");
    assert_eq!(store.stats().unwrap().snapshots.versions, 0);
    for number in 0..KEYS / 2 {
        match number % 3 {
            0 => assert!(keyspace.remove(key_of(number)).unwrap() == (number % 2 == 0)),
            1 => assert!(keyspace.insert(key_of(number), "new").unwrap() == (number % 2 == 0)),
            _ => assert!(keyspace.take(key_of(number)).unwrap().is_some() == (number % 2 == 0)),
        }
    }
    assert_sees(&snapshot, &keyspace, &map, "after single commits");
    let mut batch = store.batch();
    for number in KEYS / 3..KEYS {
        batch.put(&keyspace, key_of(number), "newer").unwrap();
    }
    batch.commit().unwrap();
    let later = store.snapshot().unwrap();
    let later_map: Map = entries(&keyspace).into_iter().collect();
    assert_sees(&snapshot, &keyspace, &map, "after a batch");
    for number in 0..KEYS {
        keyspace.remove(key_of(number)).unwrap();
    }
    assert!(keyspace.is_empty().unwrap());
    assert_sees(&snapshot, &keyspace, &map, "when nothing is left");
    assert_sees(&later, &keyspace, &later_map, "when nothing is left, the later one");
    drop(snapshot);
    assert_sees(&later, &keyspace, &later_map, "alone");
    // The engine lsm keeps them itself.
    assert!(store.stats().unwrap().snapshots.versions > 0 || place.engine() == Engine::Lsm);
    drop(later);
    assert_eq!(store.stats().unwrap().snapshots, adamant::SnapshotStats::default());
    assert_whole(&store);
}

/// Dropped and converted keyspaces stay visible unchanged, and are freed with the snapshot.
pub fn of_keyspaces_that_go(place: &dyn Place) {
    let store = place.open();
    let other = if place.engine() == Engine::Critbit { Engine::Btree } else { Engine::Critbit };
    let (kept, dropped) = (place.keyspace(&store, "kept"), place.keyspace(&store, "dropped"));
    let mut map = Map::new();
    for number in 0..KEYS {
        let (key, value) = (key_of(number), vec![number as u8; number as usize * 40]);
        kept.insert(&key, &value).unwrap();
        dropped.insert(&key, &value).unwrap();
        map.insert(key, value);
    }
    let blocks = || store.check_heap().unwrap().blocks;
    let before = blocks();
    let snapshot = store.snapshot().unwrap();
    assert!(store.drop_keyspace("dropped").unwrap());
    assert!(matches!(dropped.get("k"), Err(Error::KeyspaceDropped { .. })));
    assert!(store.convert_keyspace("kept", other).unwrap());
    kept.insert(key_of(3), "changed").unwrap();
    kept.insert("one more", "").unwrap();
    let again = place.keyspace(&store, "dropped");
    again.insert(key_of(7), "another").unwrap();
    assert_sees(&snapshot, &kept, &map, "converted");
    assert_sees(&snapshot, &dropped, &map, "dropped");
    assert_sees(&snapshot, &again, &Map::new(), "made after the snapshot");
    let names: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["dropped", "kept"]);
    // The old tree of a conversion from the engine lsm is kept, too.
    let kept_keyspaces = if place.engine() == Engine::Lsm { 2 } else { 1 };
    assert_eq!(store.stats().unwrap().snapshots.keyspaces, kept_keyspaces);
    assert_whole(&store);
    let after = store.snapshot().unwrap();
    assert!(matches!(after.get(&dropped, "k"), Err(Error::KeyspaceDropped { .. })));
    assert_eq!(after.get(&kept, key_of(3)).unwrap(), Some("changed".into()));
    let with_snapshot = blocks();
    drop(snapshot);
    assert!(blocks() < with_snapshot - before / 3, "what was dropped is freed");
    assert_eq!(store.stats().unwrap().snapshots.keyspaces, 0);
    assert_eq!(
        after.get(&kept, key_of(4)).unwrap().as_deref(),
        map.get(&key_of(4)).map(|v| &v[..])
    );
    assert_whole(&store);
}

/// Moves take a value away and put it somewhere else: a snapshot sees it at its old place.
pub fn of_values_that_move(place: &dyn Place) {
    let store = place.open();
    let (left, right) = (place.keyspace(&store, "left"), place.keyspace(&store, "right"));
    let mut random = Rng::with_seed(5);
    let (mut left_map, mut right_map) = (Map::new(), Map::new());
    for number in 0..KEYS {
        let keyspace = if random.bool() { &left } else { &right };
        let value = some_value(&mut random);
        keyspace.insert(key_of(number), &value).unwrap();
        let map = if keyspace.name() == "left" { &mut left_map } else { &mut right_map };
        map.insert(key_of(number), value);
    }
    left.insert(key_of(0), vec![1; 100_000]).unwrap();
    left_map.insert(key_of(0), vec![1; 100_000]);
    right.insert(key_of(1), vec![2; 50_000]).unwrap();
    right_map.insert(key_of(1), vec![2; 50_000]);
    let snapshot = store.snapshot().unwrap();
    assert!(left.rename(key_of(0), key_of(7)).unwrap() != Moved::Absent);
    assert!(left.swap(key_of(7), &right, key_of(1)).unwrap());
    left.move_range(key_of(20)..key_of(200), &right).unwrap();
    right.move_to(key_of(1), &left, "elsewhere").unwrap();
    let mut batch = store.batch();
    batch.rename(&left, key_of(7), key_of(8)).unwrap();
    batch.put(&left, key_of(7), "").unwrap();
    batch.move_to(&left, "elsewhere", &right, key_of(2)).unwrap();
    batch.commit().unwrap();
    assert_sees(&snapshot, &left, &left_map, "left");
    assert_sees(&snapshot, &right, &right_map, "right");
    assert_eq!(left.get(key_of(8)).unwrap(), Some(vec![2; 50_000].into()));
    assert_eq!(right.get(key_of(2)).unwrap(), Some(vec![1; 100_000].into()));
    drop(snapshot);
    assert_whole(&store);
}

/// Beyond the limit the oldest snapshot ends, with an error; the newest one continues.
pub fn that_take_too_much_end(place: &dyn Place) {
    if place.engine() == Engine::Lsm {
        // Its tables hold what it keeps for snapshots.
        return;
    }
    let store = place.open_with(Options::new().snapshot_bytes_max(100_000)).unwrap();
    let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
    for number in 0..KEYS {
        keyspace.insert(key_of(number), [1; 1000]).unwrap();
    }
    let first = store.snapshot().unwrap();
    for number in 0..50 {
        keyspace.insert(key_of(number), [2; 1000]).unwrap();
    }
    let second = store.snapshot().unwrap();
    assert_eq!(first.get(&keyspace, key_of(0)).unwrap(), Some([1; 1000].into()));
    let used = store.stats().unwrap().snapshots;
    assert_eq!((used.open, used.versions), (2, 50));
    assert!((50_000..100_000).contains(&used.bytes), "{used:?}");
    for number in 50..100 {
        keyspace.insert(key_of(number), [3; 1000]).unwrap();
    }
    let error = first.get(&keyspace, key_of(0)).unwrap_err();
    assert!(matches!(error, Error::SnapshotExpired { bytes_max: 100_000 }), "{error}");
    assert!(first.iter(&keyspace).next().unwrap().is_err());
    assert_eq!(second.get(&keyspace, key_of(60)).unwrap(), Some([1; 1000].into()));
    assert_eq!(store.stats().unwrap().snapshots.expired, 1);
    for number in 0..KEYS {
        keyspace.insert(key_of(number), [4; 1000]).unwrap();
    }
    assert!(matches!(second.len(&keyspace), Err(Error::SnapshotExpired { .. })));
    assert_eq!(store.stats().unwrap().snapshots.bytes, 0);
    drop((first, second));
    let third = store.snapshot().unwrap();
    keyspace.remove(key_of(0)).unwrap();
    assert_eq!(third.get(&keyspace, key_of(0)).unwrap(), Some([4; 1000].into()));
    assert_whole(&store);
}

/// More removed keys than are visited under one hold of the lock, between some that stay.
pub fn see_thousands_that_went(place: &dyn Place) {
    const COUNT: u32 = 5000;
    let owned =
        |entry: adamant::Result<(adamant::Slice, adamant::Slice)>| entry.unwrap().0.to_vec();
    for gone in [17..3000, 2100..4990, 0..COUNT] {
        let store = place.open_with(Options::new().durability(Durability::Deferred)).unwrap();
        let keyspace = place.keyspace(&store, "main");
        keyspace.load_sorted((0..COUNT).map(|number| (key_of(number), "old"))).unwrap();
        let snapshot = store.snapshot().unwrap();
        for number in gone.clone() {
            assert!(keyspace.remove(key_of(number)).unwrap());
        }
        let all = || (0..COUNT).map(key_of);
        assert!(snapshot.iter(&keyspace).map(owned).eq(all()), "{gone:?} upwards");
        assert!(snapshot.iter(&keyspace).rev().map(owned).eq(all().rev()), "{gone:?} downwards");
        let lent = |forward: bool| {
            let mut keys = Vec::new();
            let mut iterator = snapshot.iter(&keyspace);
            let each = |key: &[u8], _: &[u8]| {
                keys.push(key.to_vec());
                ControlFlow::<()>::Continue(())
            };
            if forward { iterator.lend(each) } else { iterator.lend_back(each) }.unwrap();
            keys
        };
        assert!(lent(true).into_iter().eq(all()), "{gone:?} lent upwards");
        assert!(lent(false).into_iter().eq(all().rev()), "{gone:?} lent downwards");
        store.drop_keyspace("main").unwrap();
    }
}

/// One snapshot that stays while others come and go, and one key that is overwritten all the time:
/// only versions that a snapshot sees are kept.
pub fn of_a_key_written_time_and_again(place: &dyn Place) {
    let store = place.open_with(Options::new().durability(Durability::Deferred)).unwrap();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "first").unwrap();
    let oldest = store.snapshot().unwrap();
    let mut recent = VecDeque::new();
    for number in 0..6000_u32 {
        keyspace.insert("k", number.to_le_bytes()).unwrap();
        recent.push_back((number, store.snapshot().unwrap()));
        if recent.len() > 3 {
            recent.pop_front();
        }
        for (number, snapshot) in &recent {
            assert_eq!(snapshot.get(&keyspace, "k").unwrap().unwrap(), number.to_le_bytes()[..]);
        }
    }
    assert_eq!(oldest.get(&keyspace, "k").unwrap(), Some("first".into()));
    let used = store.stats().unwrap().snapshots;
    assert!(used.versions < 20 && used.bytes < 5000, "{used:?}");
    drop(oldest);
    for (number, snapshot) in &recent {
        assert_eq!(snapshot.get(&keyspace, "k").unwrap().unwrap(), number.to_le_bytes()[..]);
    }
    assert!(store.stats().unwrap().snapshots.versions <= 3);
    drop(recent);
    assert_eq!(store.stats().unwrap().snapshots, adamant::SnapshotStats::default());
}

/// A closure with a borrowed value may wait for a thread that opens and closes snapshots; and a
/// keyspace that was kept for a snapshot which was dropped there is freed by the next commit.
pub fn beside_closures(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    place.keyspace(&store, "other").insert("k", [1; 50_000]).unwrap();
    keyspace.insert("changed", "old").unwrap();
    keyspace.insert("same", "old").unwrap();
    let snapshot = store.snapshot().unwrap();
    keyspace.insert("changed", "new").unwrap();
    assert!(store.drop_keyspace("other").unwrap());
    assert_eq!(store.check().unwrap().keyspaces.len(), 1, "what is kept is no keyspace");
    let elsewhere = || {
        let (sender, receiver) = mpsc::channel();
        let store = store.clone();
        let opens = move || sender.send(store.snapshot().map(drop).is_ok());
        let thread = std::thread::spawn(opens);
        assert_eq!(receiver.recv_timeout(Duration::from_secs(20)), Ok(true), "it waits for us");
        thread.join().unwrap().unwrap();
    };
    for key in ["changed", "same"] {
        snapshot.get_with(&keyspace, key, |value| assert_eq!(value, b"old")).unwrap().unwrap();
        snapshot.get_with(&keyspace, key, |_| elsewhere()).unwrap().unwrap();
    }
    let count = |_: &[u8], _: &[u8]| {
        elsewhere();
        ControlFlow::<()>::Continue(())
    };
    snapshot.iter(&keyspace).lend(count).unwrap();
    let mut transaction = store.begin().unwrap();
    transaction.put(&keyspace, "changed", "refused").unwrap();
    let refused = keyspace.get_with("same", |_| transaction.commit()).unwrap();
    assert!(matches!(refused, Some(Err(Error::Reentrant))), "{refused:?}");
    keyspace.get_with("same", move |_| drop(snapshot)).unwrap().unwrap();
    let blocks = || store.check().unwrap().heap.blocks;
    let before = blocks();
    keyspace.insert("changed", "newer").unwrap();
    assert!(blocks() + 2 <= before, "the tree and its value are gone");
    assert_eq!(store.check().unwrap().keyspaces.len(), 1);
    assert_whole(&store);
}

/// Closures that drop snapshots, and handles that outlive their store.
pub fn are_dropped_anywhere(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "old").unwrap();
    let (one, other) = (store.snapshot().unwrap(), store.snapshot().unwrap());
    let iterator = other.iter(&keyspace);
    keyspace.insert("k", "new").unwrap();
    let mut inner = Some((one.clone(), other));
    let read = one.get_with(&keyspace, "k", |value| {
        inner = None;
        value.to_vec()
    });
    assert_eq!(read.unwrap().as_deref(), Some(&b"old"[..]));
    let error = one.get_with(&keyspace, "k", |_| one.get(&keyspace, "k").map(drop)).unwrap();
    assert!(matches!(error, Some(Err(Error::Reentrant))));
    assert_eq!(entries_of(iterator), [(b"k".to_vec(), b"old".to_vec())]);
    let read = keyspace.get_with("k", move |_| drop(one));
    assert!(read.unwrap().is_some());
    // The next commit finds that it is closed.
    keyspace.insert("k", "newer").unwrap();
    assert_eq!(store.stats().unwrap().snapshots.open, 0);
    let elsewhere = Store::in_memory().unwrap();
    let error = elsewhere.snapshot().unwrap().get(&keyspace, "k").unwrap_err();
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");
    keyspace.insert("k", [1; 50_000]).unwrap();
    let last = store.snapshot().unwrap();
    keyspace.insert("k", "newest").unwrap();
    assert_eq!(last.get(&keyspace, "k").unwrap(), Some([1; 50_000].into()));
    store.close().unwrap();
    assert!(matches!(last.get(&keyspace, "k"), Err(Error::Closed)));
    // Versions that were kept for it do not keep the directory.
    let store = place.open();
    assert_eq!(place.keyspace(&store, "main").get("k").unwrap(), Some("newest".into()));
    drop(last);
}

fn entries_of(iterator: adamant::Iter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |(key, value): (adamant::Slice, adamant::Slice)| (key.to_vec(), value.to_vec());
    iterator.map(|entry| pair(entry.unwrap())).collect()
}

/// Money that moves between accounts in batches: every snapshot sees all of it, on any thread.
pub fn beside_writers(place: &dyn Place) {
    const ACCOUNTS: u32 = 64;
    let store = place.open();
    let keyspace = place.keyspace(&store, "accounts").with_durability(Durability::Deferred);
    for number in 0..ACCOUNTS {
        keyspace.insert(key_of(number), 100_i64.to_le_bytes()).unwrap();
    }
    let is_done = AtomicBool::new(false);
    let balance = |value: &[u8]| i64::from_le_bytes(value.try_into().unwrap());
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (store, keyspace, is_done) = (&store, &keyspace, &is_done);
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                let mut held = Vec::new();
                while !is_done.load(Ordering::Relaxed) {
                    let snapshot = store.snapshot().unwrap();
                    let sum: i64 = snapshot.iter(keyspace).map(|e| balance(&e.unwrap().1)).sum();
                    assert_eq!(sum, i64::from(ACCOUNTS) * 100);
                    let at = key_of(random.u32(0..ACCOUNTS));
                    let value = snapshot.get(keyspace, &at).unwrap().unwrap();
                    held.push((snapshot, at, value));
                    let seen = random.usize(0..held.len());
                    let (snapshot, at, value) = &held[seen];
                    assert!(snapshot.get(keyspace, at).unwrap().as_ref() == Some(value));
                    if held.len() > 5 {
                        held.swap_remove(random.usize(0..held.len()));
                    }
                }
            });
        }
        let mut random = Rng::with_seed(9);
        for _ in 0..1500 {
            let (from, to) = (random.u32(0..ACCOUNTS), random.u32(0..ACCOUNTS));
            if from == to {
                continue;
            }
            let [left, right] =
                [from, to].map(|at| balance(&keyspace.get(key_of(at)).unwrap().unwrap()));
            let amount = random.i64(0..50);
            let mut batch = store.batch();
            batch.durability(Durability::Deferred);
            batch.put(&keyspace, key_of(from), (left - amount).to_le_bytes()).unwrap();
            batch.put(&keyspace, key_of(to), (right + amount).to_le_bytes()).unwrap();
            batch.commit().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.stats().unwrap().snapshots.versions, 0);
    assert_whole(&store);
}

/// Random commits of all kinds, and snapshots that come and go, each compared with the maps of its
/// time.
pub fn against_a_model(place: &dyn Place) {
    for seed in 0..3 {
        random_work(place, seed);
    }
}

/// A snapshot with its view of each keyspace: the handle of that time and a map.
type Held = (Snapshot, [(Keyspace, Map); 2]);

fn random_work(place: &dyn Place, seed: u64) {
    const NAMES: [&str; 2] = ["first", "second"];
    let mut random = Rng::with_seed(seed);
    let store = place.open_with(Options::new().durability(Durability::Deferred)).unwrap();
    for name in NAMES {
        store.drop_keyspace(name).unwrap();
    }
    let mut now = NAMES.map(|name| (place.keyspace(&store, name), Map::new()));
    let mut held: Vec<Held> = Vec::new();
    for step in 0..700 {
        let context = format!("seed {seed}, step {step}");
        let at = random.usize(0..2);
        let (key, other) = (key_of(random.u32(0..KEYS)), key_of(random.u32(0..KEYS)));
        match random.u8(0..100) {
            0..40 => {
                let value = some_value(&mut random);
                now[at].0.insert(&key, &value).unwrap();
                now[at].1.insert(key, value);
            }
            40..55 => {
                now[at].0.remove(&key).unwrap();
                now[at].1.remove(&key);
            }
            55..65 => {
                let mut batch = store.batch();
                for _ in 0..random.u32(1..60) {
                    let (at, key) = (random.usize(0..2), key_of(random.u32(0..KEYS)));
                    if random.u8(0..3) == 0 {
                        batch.delete(&now[at].0, &key).unwrap();
                        now[at].1.remove(&key);
                    } else {
                        let value = some_value(&mut random);
                        batch.put(&now[at].0, &key, &value).unwrap();
                        now[at].1.insert(key, value);
                    }
                }
                batch.commit().unwrap();
            }
            65..75 => {
                let moved = now[at].0.move_to(&key, &now[1 - at].0, &other).unwrap();
                if let Some(value) = now[at].1.remove(&key) {
                    assert!(moved.is_moved(), "{context}");
                    now[1 - at].1.insert(other, value);
                }
            }
            75..77 => {
                let (low, high) = (key.clone().min(other.clone()), key.max(other));
                now[at].0.move_range(&low..&high, &now[1 - at].0).unwrap();
                let mut moved = now[at].1.split_off(&low);
                now[at].1.append(&mut moved.split_off(&high));
                now[1 - at].1.extend(moved);
            }
            77 => {
                let start = random.u32(0..KEYS / 2);
                let loaded: Map = (start..start + random.u32(1..KEYS / 2))
                    .map(|number| (key_of(number), some_value(&mut random)))
                    .collect();
                if random.bool() {
                    now[at].0.load_sorted(&loaded).unwrap();
                } else {
                    now[at].0.extend(&loaded).unwrap();
                }
                now[at].1.extend(loaded);
            }
            78 => {
                store.drop_keyspace(NAMES[at]).unwrap();
                now[at] = (place.keyspace(&store, NAMES[at]), Map::new());
            }
            79 => {
                let engine = Engine::ALL[random.usize(0..Engine::ALL.len())];
                store.convert_keyspace(NAMES[at], engine).unwrap();
            }
            80..90 => {
                if held.len() < 6 {
                    held.push((store.snapshot().unwrap(), now.clone()));
                }
            }
            _ => {
                if !held.is_empty() {
                    let (snapshot, seen) = held.swap_remove(random.usize(0..held.len()));
                    for (keyspace, map) in &seen {
                        assert_sees(&snapshot, keyspace, map, &context);
                    }
                }
            }
        }
    }
    for (snapshot, seen) in held {
        for (keyspace, map) in &seen {
            assert_sees(&snapshot, keyspace, map, &format!("seed {seed}, at the end"));
        }
    }
    for (keyspace, map) in now {
        assert!(entries(&keyspace).into_iter().eq(map), "seed {seed}");
        keyspace.len().unwrap();
        drop(store.convert_keyspace(keyspace.name(), place.engine()));
    }
    assert_eq!(store.stats().unwrap().snapshots, adamant::SnapshotStats::default());
    assert_whole(&store);
}
