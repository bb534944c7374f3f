//! Removals of many entries in one commit: pops, `retain` and `delete_range`, so many that readers
//! are admitted during them. After a power cut all or nothing of each is there; on a full disk,
//! too.

use std::collections::BTreeSet;

use adamant::{Durability, Engine, Keyspace, Store};
use adamant_sim::tally::seed;
use adamant_sim::{SimDisk, Tally};

use adamant_scenarios::crashes::{
    Change, Mix, Plan, Setup, Workload, assert_clean, verify_going_on, verify_of,
};

use crate::store_crashes::ALL;

/// Entries of which half are more than a commit makes in one piece.
const ENTRIES: u64 = 2_600;
const NAME: &str = "main";

fn key(number: u64) -> Vec<u8> {
    format!("{number:06}").into_bytes()
}

fn fill(number: u64) -> Plan {
    let value = |key: u64| vec![number as u8; if key.is_multiple_of(200) { 5_000 } else { 12 }];
    let change = |at| Change { name: NAME.into(), key: key(at), value: Some(value(at)) };
    Plan::Batch((0..ENTRIES).map(change).collect())
}

#[test]
fn a_power_cut_leaves_all_or_nothing() {
    for setup in (0..Engine::ALL.len()).map(Setup::of) {
        let mix = Mix { seed: seed(31), setup, ..Mix::default() };
        let mut workload = Workload::create(&SimDisk::new(mix.seed), mix).unwrap();
        workload
            .commit(&Plan::Create(NAME, setup.engine_of(NAME), None), Durability::Sync)
            .unwrap();
        for (round, durability) in ALL.iter().enumerate() {
            workload.commit(&fill(round as u64), *durability).unwrap();
            let snapshot = (round == 1).then(|| workload.store().snapshot().unwrap());
            let plans = [
                Plan::Retain { name: NAME.into(), start: key(3) },
                Plan::Pop { name: NAME.into(), is_first: true },
                Plan::Pop { name: NAME.into(), is_first: false },
                Plan::RemoveRange { name: NAME.into(), start: key(9), end: Some(key(ENTRIES)) },
            ];
            for plan in plans {
                workload.commit(&plan, *durability).unwrap();
            }
            workload.last().verify(workload.store());
            drop(snapshot);
        }
        let (mut tally, mut tried) = (Tally::new(), 0);
        tally.power_cuts(&workload.disk, 3, 2, |crashed, promise| {
            let (store, found) = verify_of(setup, &crashed, &workload.models, promise);
            tried += 1;
            if tried % 16 == 0 {
                verify_going_on(setup, &crashed, store, &found);
            }
        });
        tally.print(&format!("store, removals of many entries, {}", setup.name()));
    }
}

fn numbers(keyspace: &Keyspace) -> BTreeSet<u64> {
    let number = |key: adamant::Slice| std::str::from_utf8(&key).unwrap().parse().unwrap();
    keyspace.iter().keys().map(|key| number(key.unwrap())).collect()
}

/// A keyspace of so many entries on a disk that they fill.
fn full(disk: &SimDisk, setup: Setup, entries: u64) -> (Store, Keyspace) {
    let store = setup.open(disk).unwrap();
    store
        .create_keyspace_with(NAME, adamant::KeyspaceOptions::new().engine(setup.engine_of(NAME)))
        .unwrap();
    let keyspace = store.open_keyspace(NAME).unwrap().with_durability(Durability::Buffered);
    keyspace.load_sorted((0..entries).map(|number| (key(number), [7; 12]))).unwrap();
    store.sync().unwrap();
    disk.set_space_bytes(Some(disk.space_used_bytes()));
    (store, keyspace)
}

/// The log that every store has is room for the removal of some ten thousand entries.
#[test]
fn a_full_disk_has_room_for_removals() {
    for setup in (0..Engine::ALL.len()).map(Setup::of) {
        println!("{}", setup.name());
        let disk = SimDisk::new(seed(33));
        let (store, keyspace) = full(&disk, setup, 10_000);
        assert_eq!(keyspace.retain(.., |key, _| key[5].is_multiple_of(2)).unwrap(), 5_000);
        let mut left: BTreeSet<u64> = (0..10_000).step_by(2).collect();
        assert_eq!(keyspace.pop_first().unwrap().map(|(key, _)| key.to_vec()), Some(key(0)));
        assert_eq!(keyspace.pop_last().unwrap().map(|(key, _)| key.to_vec()), Some(key(9_998)));
        keyspace.delete_range(key(1_000)..key(9_000)).unwrap();
        left.retain(|number| (1..1_000).contains(number) || (9_000..9_998).contains(number));
        assert_eq!(numbers(&keyspace), left);
        assert_clean(&store);
        drop((keyspace, store));
        let store = setup.open(&disk).unwrap();
        assert_eq!(numbers(&store.open_keyspace(NAME).unwrap()), left);
        assert_clean(&store);
    }
}

/// A commit that needs more log than there is room for is undone, and smaller ranges are removed.
#[test]
fn a_removal_that_is_too_large_for_a_full_disk_changes_nothing() {
    const MANY: u64 = 150_000;
    let number = Engine::ALL.iter().position(|engine| *engine == Engine::Btree);
    let setup = Setup { engine: number, ..Setup::default() };
    let disk = SimDisk::new(seed(34));
    let (store, keyspace) = full(&disk, setup, MANY);
    let before = store.snapshot().unwrap();
    let keeps = |key: &[u8], _: &[u8]| key[5].is_multiple_of(2);
    let error = keyspace.retain(.., keeps).unwrap_err();
    assert!(error.is_out_of_space() && !error.is_poisoned(), "{error:?}");
    assert_eq!((keyspace.len().unwrap(), before.len(&keyspace).unwrap()), (MANY, MANY));
    drop(before);
    for start in (0..MANY).step_by(10_000) {
        assert_eq!(keyspace.retain(key(start)..key(start + 10_000), keeps).unwrap(), 5_000);
    }
    assert!(numbers(&keyspace).into_iter().eq((0..MANY).step_by(2)));
    keyspace.delete_range(..).unwrap();
    assert!(keyspace.is_empty().unwrap());
    assert_clean(&store);
}
