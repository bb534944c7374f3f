//! The whole store on a disk that crashes: recovery always gives all keyspaces as they were after
//! some prefix of the commits, which includes every acknowledged commit.
//!
//! Each test runs a scripted workload once, then recovers the disk in its possible states at the
//! crash points. For `ADAMANT_SIM_STATES` and `ADAMANT_SIM_SEED` see `adamant_sim::tally`.

mod chosen;
mod full_disk;

use adamant::{Durability, Engine, KeyspaceOptions};
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Choice, Mark, Promise, SimDisk, Tally};

use adamant_scenarios::crashes::{
    Change, Content, Mix, Plan, Setup, Workload, assert_refusing, key, open, verify,
    verify_going_on,
};

const ALL: &[Durability] = &[Durability::Sync, Durability::Buffered, Durability::Deferred];

fn create(name: &'static str) -> Plan {
    Plan::Create(name, Setup::default().engine_of(name), None)
}

/// Recovers power cuts at one of `step` crash points.
fn try_power_cuts(disk: &SimDisk, models: &[Content], step: usize, count: u64) -> Tally {
    let (mut tally, mut tried) = (Tally::new(), 0);
    tally.power_cuts(disk, step, count, |crashed, promise| {
        let (store, found) = verify(&crashed, models, promise);
        tried += 1;
        if tried % 16 == 0 {
            verify_going_on(Setup::default(), &crashed, store, &found);
        }
    });
    tally
}

/// A workload of the steps that a test takes.
fn scripted(number: u64) -> Workload {
    let mix = Mix { seed: seed(number), ..Mix::default() };
    Workload::create(&SimDisk::new(mix.seed), mix).unwrap()
}

#[test]
fn every_crash_point_of_small_commits() {
    let mut total = Tally::new();
    for (seed, step) in [(seed(0), 1), (seed(1), 2)] {
        let disk = SimDisk::new(seed);
        let mix = Mix { seed, steps: 120, upkeep_one_in: 15, ..Mix::default() };
        let models = Workload::run(&disk, mix);
        let tally = try_power_cuts(&disk, &models, step, 3);
        total.points += tally.points;
        total.states += tally.states;
        total.repeated += tally.repeated;
    }
    total.print("store, small commits");
}

/// A retry after a weaker commit: it finds nothing to do, but promises what it found.
#[test]
fn a_commit_that_changes_nothing_keeps_its_promise() {
    let disk = SimDisk::new(seed(4));
    let store = open(&disk).unwrap();
    let keyspace = store.keyspace("main").unwrap();
    keyspace.insert("key", "value").unwrap();
    let weak = keyspace.with_durability(Durability::Deferred);
    assert!(weak.remove("key").unwrap());
    assert!(!keyspace.remove("key").unwrap());
    let crashed = disk.crash(disk.operation_count(), &mut Choice::None);
    let recovered = open(&crashed).unwrap().open_keyspace("main").unwrap();
    assert_eq!(recovered.get("key").unwrap(), None);
}

#[test]
fn many_unsynced_commits() {
    let disk = SimDisk::new(seed(3));
    let durabilities = &[Durability::Buffered, Durability::Deferred];
    let mix = Mix { seed: seed(3), steps: 200, upkeep_one_in: 70, durabilities, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    try_power_cuts(&disk, &models, 3, 6).print("store, unsynced commits");
}

#[test]
fn large_values_span_and_recycle_log_files() {
    let disk = SimDisk::new(seed(5));
    let mix =
        Mix { seed: seed(5), steps: 50, large_one_in: 3, upkeep_one_in: 15, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    let history = (0..disk.operation_count()).filter_map(|number| disk.describe(number));
    let heads = |text: &String| text.starts_with("write sim/log/") && text.contains(" at 0:");
    assert!(history.filter(heads).count() > 12, "the log went through its files several times");
    try_power_cuts(&disk, &models, 3, 3).print("store, large values");
}

/// Batches that make a tree grow to two levels above its leaves, and shrink to nothing.
#[test]
fn a_tree_grows_and_shrinks() {
    let mut workload = scripted(6);
    let name = "tree";
    workload.commit(&create(name), Durability::Sync).unwrap();
    let changes = |numbers: std::ops::Range<u64>, value: Option<Vec<u8>>| {
        let change = |number| Change { name: name.into(), key: key(number), value: value.clone() };
        Plan::Batch(numbers.map(change).collect())
    };
    let tree = |workload: &Workload| workload.store().check().unwrap().keyspaces[0].tree;
    for (round, start) in (0..2400).step_by(200).enumerate() {
        let plan = changes(start..start + 200, Some(vec![round as u8; 20]));
        workload.commit(&plan, ALL[round % 3]).unwrap();
    }
    assert_eq!(tree(&workload).height, 2, "{:?}", tree(&workload));
    workload.reopen().unwrap();
    for round in (0..12).rev() {
        let start = round as u64 * 200;
        workload.commit(&changes(start..start + 200, None), ALL[round % 3]).unwrap();
    }
    assert_eq!(tree(&workload).height, 0, "{:?}", tree(&workload));
    try_power_cuts(&workload.disk, &workload.models, 1, 2)
        .print("store, a tree that grows and shrinks");
}

/// A keyspace is cleared and renamed, with and without a snapshot that sees it.
#[test]
fn clears_and_renames() {
    let mut workload = scripted(9);
    let mut names = ["one", "two"];
    workload.commit(&create(names[0]), Durability::Sync).unwrap();
    for round in 0..9 {
        let snapshot = (round % 3 == 1).then(|| workload.store().snapshot().unwrap());
        let change = |number| Change {
            name: names[0].into(),
            key: key(number),
            value: Some(vec![round as u8; 20]),
        };
        let plan = Plan::Batch((0..150).map(change).collect());
        workload.commit(&plan, ALL[round % 3]).unwrap();
        workload.commit(&Plan::Clear(names[0]), ALL[(round + 1) % 3]).unwrap();
        let plan = Plan::Batch((0..40).map(change).collect());
        workload.commit(&plan, ALL[round % 3]).unwrap();
        drop(snapshot);
        workload.commit(&Plan::Rename(names[0], names[1]), Durability::Sync).unwrap();
        names.reverse();
        if round % 4 == 3 {
            workload.reopen().unwrap();
        }
    }
    try_power_cuts(&workload.disk, &workload.models, 1, 3).print("store, clears and renames");
}

/// Two keyspaces of different engines exchange their names, with changes in between.
#[test]
fn exchanges_of_names() {
    let mut workload = scripted(10);
    let names = ["one", "two"];
    for (name, engine) in names.into_iter().zip([Engine::Bplus, Engine::Lsm]) {
        workload.commit(&Plan::Create(name, engine, None), Durability::Sync).unwrap();
    }
    for round in 0..8 {
        let change = |number: u64| Change {
            name: names[number as usize % 2].into(),
            key: key(number),
            value: Some(vec![round as u8; 20]),
        };
        let numbers = 40 * round as u64..40 * round as u64 + 60;
        let plan = Plan::Batch(numbers.map(change).collect());
        workload.commit(&plan, ALL[round % 3]).unwrap();
        workload
            .commit(&Plan::Exchange(names[round % 2], names[(round + 1) % 2]), Durability::Sync)
            .unwrap();
        if round % 3 == 2 {
            workload.reopen().unwrap();
        }
    }
    try_power_cuts(&workload.disk, &workload.models, 1, 3).print("store, exchanges of names");
}

/// A keyspace is converted from engine to engine, with changes in between.
#[test]
fn conversions() {
    let mut workload = scripted(8);
    let name = "tree";
    workload.commit(&create(name), Durability::Sync).unwrap();
    let engines = Engine::ALL.into_iter().cycle().skip(1).take(8);
    for (round, engine) in engines.enumerate() {
        let change = |number| {
            let value = (number % 7 != 0).then(|| vec![round as u8; 20]);
            Change { name: name.into(), key: key(number), value }
        };
        let numbers = (0..150).map(|number| number * (round as u64 + 1) % 300);
        let plan = Plan::Batch(numbers.map(change).collect());
        workload.commit(&plan, ALL[round % 3]).unwrap();
        workload.commit(&Plan::Convert(name, engine), Durability::Sync).unwrap();
        let info = &workload.store().keyspaces().unwrap()[0];
        assert_eq!(info.engine, engine);
        assert!(workload.store().check().unwrap().is_clean());
    }
    try_power_cuts(&workload.disk, &workload.models, 1, 4).print("store, conversions");
}

/// Keyspaces that are dropped under a snapshot: what is kept for it is freed with it, or by the
/// opening after a crash.
#[test]
fn keyspaces_that_go_under_a_snapshot() {
    let mut workload = scripted(9);
    for name in ["one", "two"] {
        workload.commit(&create(name), Durability::Sync).unwrap();
        let change = |number| Change {
            name: name.into(),
            key: key(number),
            value: Some(vec![number as u8; if number % 20 == 0 { 5000 } else { 30 }]),
        };
        workload.commit(&Plan::Batch((0..80).map(change).collect()), Durability::Sync).unwrap();
    }
    let snapshot = workload.store().snapshot().unwrap();
    let handles = ["one", "two"].map(|name| workload.store().open_keyspace(name).unwrap());
    workload.commit(&Plan::Drop("one"), Durability::Sync).unwrap();
    workload.commit(&Plan::Convert("two", Engine::Critbit), Durability::Sync).unwrap();
    workload.commit(&create("one"), Durability::Sync).unwrap();
    let change = Change { name: "two".into(), key: key(20), value: None };
    workload.commit(&Plan::Single(change), Durability::Sync).unwrap();
    workload.commit(&Plan::Drop("two"), Durability::Sync).unwrap();
    for handle in &handles {
        assert_eq!(snapshot.iter(handle).count(), 80);
        assert_eq!(snapshot.get(handle, key(20)).unwrap(), Some(vec![20; 5000].into()));
    }
    drop((snapshot, handles));
    workload.commit(&Plan::Drop("one"), Durability::Sync).unwrap();
    try_power_cuts(&workload.disk, &workload.models, 1, 4)
        .print("store, keyspaces that go under a snapshot");
}

/// Loads in order and in any order: a crash leaves complete pieces, the lowest keys first, and
/// after the load has returned, all of it.
#[test]
fn loads_leave_whole_pieces() {
    const ENTRIES: usize = 3_000;
    let entry = |number: usize| (format!("{number:06}").into_bytes(), vec![number as u8; 9]);
    for (number, engine) in (20..).zip([Engine::Bplus, Engine::Btree]) {
        let disk = SimDisk::new(seed(number));
        let store = open(&disk).unwrap();
        let of_engine = KeyspaceOptions::new().engine(engine);
        let keyspaces = ["in order", "in any order"]
            .map(|name| store.create_keyspace_with(name, of_engine).unwrap());
        Mark::Durable.put(&disk, 0);
        Mark::Begun.put(&disk, 1);
        keyspaces[0].load_sorted((0..ENTRIES).map(entry)).unwrap();
        Mark::Durable.put(&disk, 1);
        Mark::Begun.put(&disk, 2);
        keyspaces[1].extend((0..ENTRIES).map(|number| entry(number * 7 % ENTRIES))).unwrap();
        Mark::Durable.put(&disk, 2);
        drop((keyspaces, store));
        let (mut tally, mut partial) = (Tally::new(), 0);
        tally.power_cuts(&disk, 1, 6, |crashed, promise| {
            if !promise.created {
                return;
            }
            let store = open(&crashed).unwrap();
            let mut loaded = Vec::new();
            for name in ["in order", "in any order"] {
                let found = store.open_keyspace(name).unwrap().iter().map(Result::unwrap);
                let found: Vec<_> =
                    found.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                assert!(found.len().is_multiple_of(1024) || found.len() == ENTRIES);
                assert!(found.iter().enumerate().all(|(number, found)| *found == entry(number)));
                loaded.push(found.len());
            }
            assert!(promise.least < 1 || loaded[0] == ENTRIES, "{loaded:?} of {promise:?}");
            assert!(promise.least < 2 || loaded[1] == ENTRIES, "{loaded:?} of {promise:?}");
            assert!(loaded[1] == 0 || loaded[0] == ENTRIES, "commits survive in their order");
            partial += u64::from(!loaded[0].is_multiple_of(ENTRIES));
            assert!(store.check().unwrap().is_clean());
        });
        assert!(partial > 0, "some crash leaves a part of a load");
        tally.print(&format!("store, loads into {engine}"));
    }
}

#[test]
fn a_killed_process_loses_no_buffered_commit() {
    let disk = SimDisk::new(seed(7));
    let mix =
        Mix { seed: seed(7), steps: 150, large_one_in: 40, upkeep_one_in: 20, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    let mut tally = Tally::new();
    tally.deaths(&disk, 1, |killed, promise| {
        let (store, found) = verify(&killed, &models, promise);
        if killed.operation_count() % 8 == 0 {
            // The page cache had it, but recovery does not trust that: now it is durable.
            verify_going_on(Setup::default(), &killed, store, &found);
        }
    });
    tally.print("store, killed processes");
}

#[test]
fn crashes_during_recovery() {
    let mut tally = Tally::new();
    let disk = SimDisk::new(seed(11));
    let mix =
        Mix { seed: seed(11), steps: 60, large_one_in: 30, upkeep_one_in: 30, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    let mut cursor = disk.cursor();
    for point in (0..=disk.operation_count()).step_by(67) {
        cursor.advance_to(point);
        let promise = Promise::at_power_cut(&disk, point);
        for first in [cursor.crash(&mut Choice::random(point)), cursor.kill()] {
            tally.state(&disk, point, &"first crash", || drop(open(&first).unwrap()));
            tally.cuts_within(&first, states_max(2), point, |crashed| {
                drop(verify(&crashed, &models, promise));
            });
        }
    }
    tally.print("store, crashes during recovery");
}

/// Runs a workload repeatedly, each time with another failing sync.
#[test]
fn a_failing_sync_poisons_and_reopening_recovers() {
    let mix =
        Mix { seed: seed(13), steps: 60, large_one_in: 20, upkeep_one_in: 10, ..Mix::default() };
    let sound = SimDisk::new(mix.seed);
    Workload::run(&sound, mix);
    let is_sync = |number: &u64| sound.describe(*number).unwrap().starts_with("sync");
    let (mut tally, mut poisoned, mut refused) = (Tally::new(), 0, 0);
    for number in (0..sound.operation_count()).filter(is_sync) {
        tally.points += 1;
        let disk = SimDisk::new(mix.seed);
        disk.fail(number..number + 1);
        // A store that could not even be created has made no promise.
        let mut models = vec![Content::default()];
        if let Ok(mut workload) = Workload::create(&disk, mix) {
            tally.state(&disk, number, &"failing", || {
                poisoned += u64::from(run_with_a_fault(&mut workload));
            });
            refused += workload.refused;
            models = workload.models;
        }
        // Pages after a failed sync look clean, and recovery must not rely on them.
        let within = if number % 16 == 0 { 2 } else { 0 };
        tally.after_fault(&disk, number, (3, within), |crashed, promise| {
            drop(verify(crashed, &models, promise));
        });
    }
    assert!(poisoned > 10, "only {poisoned} of the failing syncs poisoned an open store");
    println!("store, failing syncs: {poisoned} poisoned, {refused} refused a commit and went on");
    tally.print("store, failing syncs");
}

/// Takes steps until the store is poisoned or could not be reopened; returns whether it is
/// poisoned.
fn run_with_a_fault(workload: &mut Workload) -> bool {
    for _ in 0..workload.mix.steps {
        let Err(error) = workload.step() else { continue };
        let Some(store) = &workload.store else {
            // It failed while it was closed or opened: the next opening recovers.
            let promise = Promise::at_death(&workload.disk, workload.disk.operation_count());
            verify(&workload.disk, &workload.models, promise);
            return false;
        };
        let last = workload.last();
        if !error.is_poisoned() {
            // A spare log file could not be created: nothing was appended, and work continues.
            last.verify(store);
            continue;
        }
        last.verify(store);
        assert_refusing(store, last);
        last.verify(store);
        // There may be nothing left to sync; then everything visible is durable.
        match store.sync() {
            Ok(()) => Mark::Durable.put(&workload.disk, workload.models.len() as u64 - 1),
            Err(error) => assert!(error.is_poisoned(), "{error:?}"),
        }
        return true;
    }
    false
}
