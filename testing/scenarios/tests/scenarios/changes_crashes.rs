//! The feed of changes on a disk that crashes: after every power cut the history is that of the
//! commits that are there, and a cursor is where the results are that were committed with it.

use std::collections::BTreeMap;

use adamant::{Change, Engine, Keyspace, KeyspaceOptions, Store};
use adamant_scenarios::crashes::{assert_clean, open};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDisk, Tally};

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn keyspace(store: &Store, engine: Engine) -> Keyspace {
    store.keyspace_with("data", KeyspaceOptions::new().engine(engine)).unwrap()
}

/// Commits until the crash: numbers of the feed are those of the marks.
fn run(disk: &SimDisk, engine: Engine, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = open(disk).unwrap();
    // The history loses its oldest commits on the way.
    store.record_changes(Some(6_000)).unwrap();
    for commit in 1..90 {
        Mark::Begun.put(disk, commit);
        if commit == 1 {
            keyspace(&store, engine);
        } else {
            let data = keyspace(&store, engine);
            let key = |random: &mut fastrand::Rng| vec![b'k', random.u8(..20)];
            match random.u8(..8) {
                0 if data.len().unwrap() > 0 => drop(data.pop_first().unwrap()),
                1 => {
                    data.put("gone", "soon").unwrap_or_default();
                    data.delete_range(key(&mut random)..).unwrap_or_default();
                }
                2..5 => {
                    let mut batch = store.batch();
                    for _ in 0..random.usize(1..9) {
                        batch.put(&data, key(&mut random), vec![commit as u8; 40]).unwrap();
                    }
                    batch.set_cursor("commits", commit).unwrap();
                    batch.put(&data, "commit", commit.to_le_bytes()).unwrap();
                    batch.commit().unwrap();
                }
                _ => data.put(key(&mut random), vec![commit as u8; random.usize(..90)]).unwrap(),
            }
        }
        Mark::Durable.put(disk, commit);
    }
}

/// Compares the feed, from its first commit on, with the entries; returns its first and its last
/// number.
fn verify(disk: &SimDisk, engine: Engine) -> (u64, u64) {
    let store = open(disk).unwrap();
    assert_clean(&store);
    let Ok(last) = store.last_change() else { return (0, 0) };
    let first = match store.changes(0) {
        Err(adamant::Error::ChangesUnknown { first, .. }) => first,
        changes => changes.map(|_| 1).unwrap(),
    };
    let (mut changed, mut number) = (BTreeMap::<Vec<u8>, Option<Vec<u8>>>::new(), first - 1);
    let mut changes = store.changes(first - 1).unwrap();
    while let Some(commit) = changes.try_next().unwrap() {
        number += 1;
        assert_eq!(commit.number, number);
        for change in commit.changes {
            match change {
                Change::Put { key, value, .. } => {
                    drop(changed.insert(key.to_vec(), Some(value.to_vec())));
                }
                Change::Removed { key, .. } => drop(changed.insert(key.to_vec(), None)),
                Change::RangeRemoved { bounds, .. } => {
                    let std::ops::Bound::Included(start) = &bounds.0 else { panic!("{bounds:?}") };
                    changed
                        .iter_mut()
                        .filter(|(key, _)| key[..] >= start[..])
                        .for_each(|(_, value)| *value = None);
                }
                Change::Created { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(number, last);
    let found: Entries = store.open_keyspace("data").map_or_else(
        |_| Entries::new(),
        |data| {
            let entries = data.iter().map(|entry| entry.unwrap());
            entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
        },
    );
    for (key, value) in &changed {
        assert_eq!(found.get(key), value.as_ref(), "key {key:?} after commit {last}");
    }
    if first == 1 {
        let there = changed.iter().filter(|(_, value)| value.is_some()).count();
        assert_eq!(found.len(), there, "each entry is in the feed");
    }
    let cursor = store.cursor("commits").unwrap();
    if let Some(commit) = found.get(&b"commit"[..]) {
        assert_eq!(cursor.map(u64::to_le_bytes).as_ref().map(|it| &it[..]), Some(&commit[..]));
    }
    // The next commit has the next number.
    keyspace(&store, engine).put("more", "1").unwrap();
    assert_eq!(store.own_change(), Some(store.last_change().unwrap()));
    (first, last)
}

#[test]
fn the_history_is_that_of_the_commits_that_are_there() {
    let mut tally = Tally::new();
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(number as u64);
        let disk = SimDisk::new(seed);
        run(&disk, engine, seed);
        let mut cut = 0;
        tally.power_cuts(&disk, 3, 2, |crashed, promise| {
            let (first, last) = verify(&crashed, engine);
            assert!(last >= promise.least, "{promise:?}: {last}");
            cut += u64::from(first > 1);
        });
        assert!(cut > 0, "the history was cut");
    }
    tally.print("changes");
}
