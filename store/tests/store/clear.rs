//! Clearing of keyspaces, under snapshots, transactions and other handles.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant::{Durability, Engine, Error, Keyspace, KeyspaceOptions, Options, Snapshot, Store};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn verify(snapshot: &Snapshot, keyspace: &Keyspace, model: &Model, random: &mut fastrand::Rng) {
    let found: Vec<_> = snapshot.iter(keyspace).map(|entry| entry.unwrap()).collect();
    let found = found.iter().map(|(key, value)| (key.to_vec(), value.to_vec()));
    assert!(found.eq(model.clone()), "{} entries", model.len());
    assert_eq!(snapshot.iter(keyspace).rev().count(), model.len());
    assert_eq!(snapshot.len(keyspace).unwrap(), model.len() as u64);
    for _ in 0..10 {
        let key = key(random);
        let found = snapshot.get(keyspace, &key).unwrap();
        assert_eq!(found.as_deref(), model.get(&key).map(Vec::as_slice));
    }
}

fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    match random.u32(..300) {
        0 => Vec::new(),
        number => format!("key {number}").into_bytes(),
    }
}

/// Random commits, clears among them; each snapshot is compared with the model of its moment.
#[test]
fn snapshots_see_what_was_there_before() {
    for (seed, engine) in (20..).zip(Engine::ALL) {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory = Arc::new(adamant_heap::MemoryDirectory::new());
        let store = Store::open_directory(directory.clone(), Options::new()).unwrap();
        let options = KeyspaceOptions::new().engine(engine);
        let old = store.keyspace_with("main", options).unwrap();
        let old = old.with_durability(Durability::Buffered);
        let mut model = Model::new();
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        for step in 0..3_000 {
            // Handles from before a clear and from after it.
            let keyspace = match random.bool() {
                true => old.clone(),
                false => store.open_keyspace("main").unwrap(),
            };
            match random.u8(..100) {
                0..=49 => {
                    let (key, value) = (key(&mut random), vec![step as u8; random.usize(..6_000)]);
                    keyspace.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                50..=69 => {
                    let key = key(&mut random);
                    assert_eq!(keyspace.remove(&key).unwrap(), model.remove(&key).is_some());
                }
                70..=72 => {
                    keyspace.clear().unwrap();
                    model.clear();
                }
                73..=80 if snapshots.len() < 6 => {
                    snapshots.push((store.snapshot().unwrap(), model.clone()));
                }
                81..=88 if !snapshots.is_empty() => {
                    drop(snapshots.swap_remove(random.usize(..snapshots.len())));
                }
                _ => {
                    for (snapshot, model) in &snapshots {
                        verify(snapshot, &keyspace, model, &mut random);
                    }
                }
            }
            assert_eq!(keyspace.len().unwrap(), model.len() as u64, "seed {seed}, step {step}");
        }
        verify(&store.snapshot().unwrap(), &old, &model, &mut random);
        let kept = snapshots.pop();
        drop(snapshots);
        // The tree kept for a snapshot is there while it is open, and in a copy, whose next open
        // frees it.
        if kept.is_some() {
            old.clear().unwrap();
        }
        assert!(store.check().unwrap().is_clean());
        let copy: Arc<dyn adamant::Directory> = Arc::new(adamant_heap::MemoryDirectory::new());
        store.backup_into(&copy).unwrap();
        let copy = Store::open_directory(copy, Options::new()).unwrap();
        assert!(copy.check().unwrap().is_clean());
        assert_eq!(copy.open_keyspace("main").unwrap().engine(), engine);
        assert!(copy.stats().unwrap().heap.used_bytes > 0);
    }
}

#[test]
fn a_large_keyspace_is_cleared_by_a_small_commit_and_freed_by_pieces() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("main").unwrap();
    let entries = (0..60_000_u32).map(|number| (format!("{number:06}"), [7; 90]));
    keyspace.load_sorted(entries).unwrap();
    let snapshot = store.snapshot().unwrap();
    let appended = || store.stats().unwrap().heap.journal.log_appended_bytes;
    let before = appended();
    keyspace.clear().unwrap();
    assert!(appended() - before < 16 << 10, "{} bytes of log", appended() - before);
    assert_eq!(snapshot.len(&keyspace).unwrap(), 60_000);
    let records = store.stats().unwrap().heap.journal.records;
    drop(snapshot);
    store.keyspace("other").unwrap();
    let pieces = store.stats().unwrap().heap.journal.records - records;
    assert!(pieces > 3, "{pieces} commits freed it");
    keyspace.clear().unwrap();
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn a_transaction_that_read_of_it_conflicts() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("main").unwrap();
    keyspace.insert("key", "value").unwrap();
    let mut reads = store.begin().unwrap();
    reads.get(&keyspace, "another").unwrap();
    reads.put(&keyspace, "seen", "x").unwrap();
    let mut blind = store.begin().unwrap();
    blind.put(&keyspace, "blind", "x").unwrap();
    keyspace.clear().unwrap();
    assert!(reads.commit().unwrap_err().is_conflict());
    blind.commit().unwrap();
    assert_eq!(keyspace.iter().count(), 1);

    store.rename_keyspace("main", "renamed").unwrap();
    keyspace.clear().unwrap();
    assert!(store.open_keyspace("renamed").unwrap().is_empty().unwrap());
    store.drop_keyspace("renamed").unwrap();
    assert!(matches!(keyspace.clear(), Err(Error::KeyspaceDropped { .. })));
}
