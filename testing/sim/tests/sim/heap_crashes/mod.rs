//! The heap on a disk that crashes: recovery always gives a prefix of the commits that includes
//! every acknowledged one.
//!
//! Each test runs a scripted workload once, then recovers the disk as it may be at its crash
//! points. `ADAMANT_SIM_STATES` multiplies the number of states tried at each, and
//! `ADAMANT_SIM_SEED` (default 0) selects other workloads.

mod backup;
mod beyond;
mod bounded;
mod buffers;
mod closing;
mod creation;
mod direct;
mod full;
mod left_out;
mod model;
mod reads;
mod recovery_faults;
mod shrink;
mod workload;

use adamant_heap::{Durability, Error, Flushing, Heap};
use adamant_sim::tally::seed;
use adamant_sim::{Choice, Mark, Promise, SimDisk, Tally};

use crate::heap_crashes::model::{Model, commit_of, is_poisoned, open, open_bounded, verify};
use crate::heap_crashes::workload::{ALL, Mix, Workload};

/// Recovers power cuts at one of `step` crash points.
fn try_power_cuts(disk: &SimDisk, models: &[Model], step: usize, count: u64) -> Tally {
    let mut tally = Tally::new();
    let mut tried = 0;
    tally.power_cuts(disk, step, count, |crashed, promise| {
        tried += 1;
        if tried % 8 == 0 {
            let (heap, commit) = verify(&crashed, models, promise);
            try_going_on(&crashed, heap, &models[commit as usize]);
        } else {
            verify(&crashed.without_history(), models, promise);
        }
    });
    tally
}

/// The recovered state is durable, and so is the next commit on it, wherever the recovered heap
/// found its files: the names of those that a killed process left may not be.
fn try_going_on(disk: &SimDisk, heap: Heap, model: &Model) {
    let recovered = Promise::exactly(model.commit);
    let models = vec![model.clone(); model.commit as usize + 1];
    let point = disk.operation_count();
    heap.transaction::<(), Error>(Durability::Sync, |tx| tx.set_root(1, 77)).unwrap();
    let durable = disk.operation_count();
    drop(heap);
    verify(&disk.crash(point, &mut Choice::None).without_history(), &models, recovered);
    let (heap, _) = verify(&disk.crash(durable, &mut Choice::None), &models, recovered);
    assert_eq!(heap.view().unwrap().root(1), 77);
}

#[test]
fn every_crash_point_of_small_commits() {
    let mut total = Tally::new();
    for seed in [seed(0), seed(1)] {
        let disk = SimDisk::new(seed);
        let mix = Mix { seed, steps: 120, upkeep_one_in: 12, ..Mix::default() };
        let models = Workload::run(&disk, mix);
        let tally = try_power_cuts(&disk, &models, 1, 10);
        total.points += tally.points;
        total.states += tally.states;
        total.repeated += tally.repeated;
    }
    total.print("small commits");
}

#[test]
fn many_unsynced_commits() {
    let disk = SimDisk::new(seed(3));
    let durabilities = &[Durability::Buffered, Durability::Deferred];
    let mix = Mix { seed: seed(3), steps: 150, upkeep_one_in: 60, durabilities, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    try_power_cuts(&disk, &models, 2, 16).print("unsynced commits");
}

#[test]
fn actions_without_a_transaction() {
    let disk = SimDisk::new(seed(19));
    let mix =
        Mix { seed: seed(19), steps: 120, upkeep_one_in: 15, alone_one_in: 2, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    assert!(models.iter().filter(|model| model.loose_max > 0).count() > 10);
    try_power_cuts(&disk, &models, 1, 8).print("actions without a transaction");
}

#[test]
fn large_records_fill_and_recycle_the_log() {
    let disk = SimDisk::new(seed(5));
    let mix =
        Mix { seed: seed(5), steps: 60, large_one_in: 3, upkeep_one_in: 15, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    let history = (0..disk.operation_count()).filter_map(|number| disk.describe(number));
    let heads = |text: &String| text.starts_with("write sim/log/") && text.contains(" at 0:");
    let heads = history.filter(heads).count();
    assert!(heads > 12, "the log went through its files several times: {heads}");
    try_power_cuts(&disk, &models, 3, 5).print("large records");
}

#[test]
fn a_killed_process_loses_no_buffered_commit() {
    let disk = SimDisk::new(seed(7));
    let mix =
        Mix { seed: seed(7), steps: 120, large_one_in: 40, upkeep_one_in: 20, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    try_deaths(&disk, &models, 1).print("killed processes");
}

/// Kills the process at one of `step` crash points, recovers and continues.
fn try_deaths(disk: &SimDisk, models: &[Model], step: usize) -> Tally {
    let mut tally = Tally::new();
    tally.deaths(disk, step, |killed, promise| {
        let (heap, commit) = verify(&killed, models, promise);
        // The page cache had it, but recovery does not trust that: now it is durable.
        try_going_on(&killed, heap, &models[commit as usize]);
    });
    tally
}

/// Recovers at one of `step` crash points, and crashes that recovery at each of its own.
fn try_crashes_within(disk: &SimDisk, models: &[Model], step: usize, count: u64) -> Tally {
    let mut tally = Tally::new();
    let mut cursor = disk.cursor();
    for point in (cursor.point()..=disk.operation_count()).step_by(step) {
        cursor.advance_to(point);
        let promise = Promise::at_power_cut(disk, point);
        for first in [
            cursor.crash(&mut Choice::All),
            cursor.crash(&mut Choice::random(point)),
            cursor.kill(),
        ] {
            tally.state(disk, point, &"first crash", || {
                drop(open(&first, models[0].flushing).unwrap())
            });
            tally.cuts_within(&first, count, point, |crashed| {
                drop(verify(&crashed.without_history(), models, promise));
            });
        }
    }
    tally
}

/// Kills the process at one of `step` crash points, and recovers with memory for 32 pages, so that
/// these are written by batches whose tables overwrite each other. Crashes that before each of its
/// syncs, and recovers with memory for 16 pages, so that a table names fewer pages than the one
/// that it overwrites. Crashes that before each of its syncs, too.
fn try_crashes_of_batches(disk: &SimDisk, models: &[Model], step: usize) -> Tally {
    let mut tally = Tally::new();
    let mut cursor = disk.cursor();
    let recover = |disk: &SimDisk, pages: u64| {
        // Recovery takes half of the bound.
        let opened = open_bounded(disk, models[0].flushing, 2 * pages * 4096);
        drop(opened.unwrap_or_else(|error| panic!("recovery failed: {error:?}")));
    };
    for point in (cursor.point()..=disk.operation_count()).step_by(step) {
        cursor.advance_to(point);
        let promise = Promise::at_power_cut(disk, point);
        let killed = cursor.kill();
        tally.state(disk, point, &"killed", || recover(&killed, 32));
        each_before_a_sync(&killed, 8, &mut tally, |tally, crashed| {
            recover(&crashed, 16);
            each_before_a_sync(&crashed, 4, tally, |_, crashed| {
                drop(verify(&crashed.without_history(), models, promise));
            });
        });
    }
    tally
}

/// Crashes before each sync of the pool in a disk's history, in `count` random ways.
fn each_before_a_sync(
    disk: &SimDisk,
    count: u64,
    tally: &mut Tally,
    mut each: impl FnMut(&mut Tally, SimDisk),
) {
    let mut cursor = disk.cursor();
    while cursor.advance() {
        let point = cursor.point();
        if !disk.describe(point).is_some_and(|operation| operation.starts_with("sync sim/pool")) {
            continue;
        }
        tally.points += 1;
        for number in 0..count {
            let choice = Choice::random(point << 8 | number);
            let mut tried = Tally::new();
            tally.state(disk, point, &choice, || {
                each(&mut tried, cursor.crash(&mut choice.clone()));
            });
            tally.points += tried.points;
            tally.states += tried.states;
            tally.repeated += tried.repeated;
        }
    }
}

/// Commits with two checkpoints, so that many pages wait for one.
fn mix_of_batches(seed: u64) -> Mix {
    Mix { seed, steps: 120, upkeep_one_in: 60, ..Mix::default() }
}

#[test]
fn crashes_of_a_recovery_in_batches() {
    let disk = SimDisk::new(seed(83));
    let models = Workload::run(&disk, mix_of_batches(seed(83)));
    try_crashes_of_batches(&disk, &models, 40).print("a recovery in batches");
}

#[test]
fn crashes_during_recovery() {
    let disk = SimDisk::new(seed(11));
    let mix =
        Mix { seed: seed(11), steps: 60, large_one_in: 20, upkeep_one_in: 30, ..Mix::default() };
    let models = Workload::run(&disk, mix);
    try_crashes_within(&disk, &models, 9, 3).print("crashes during recovery");
}

/// Runs a workload repeatedly, each time with another operation failing, and checks that the heap
/// either undoes the commit or is poisoned, and that reopening recovers.
fn try_faults(mix: Mix, test: &str, is_tried: impl Fn(&str) -> bool) {
    let mut tally = Tally::new();
    let sound = SimDisk::new(mix.seed);
    Workload::run(&sound, mix);
    let (mut poisoned, mut refused) = (0, 0);
    for number in 0..sound.operation_count() {
        if !is_tried(&sound.describe(number).unwrap()) {
            continue;
        }
        tally.points += 1;
        let disk = SimDisk::new(mix.seed);
        disk.fail(number..number + 1);
        // A heap that could not even be created has made no promise.
        let mut models = vec![Model::empty(mix.flushing)];
        if let Ok(mut workload) = Workload::create(&disk, mix) {
            tally.state(&disk, number, &"failing", || {
                poisoned += u64::from(run_with_a_fault(&mut workload));
            });
            refused += workload.refused;
            models = workload.models;
        }
        // Data of a failed sync looks clean, and recovery must not build on it. Where files are
        // mapped by then it stores the same bytes, which are durable when flushed; the simulator
        // does not see that.
        let within = if number % 4 == 0 && !mix.is_unmapped { 3 } else { 0 };
        tally.after_fault(&disk, number, (4, within), |crashed, promise| {
            drop(verify(crashed, &models, promise));
        });
    }
    println!("{test}: poisoned {poisoned} times, refused and went on {refused} times");
    tally.print(test);
}

/// Takes the steps until the heap is poisoned; returns whether it was.
fn run_with_a_fault(workload: &mut Workload) -> bool {
    for _ in 0..workload.mix.steps {
        let Err(_) = workload.step() else { continue };
        // Reads always continue.
        workload.last().verify(&workload.heap);
        let commit = commit_of(&workload.heap);
        match workload.heap.transaction(Durability::Buffered, |tx| tx.set_root(2, 1)) {
            Ok(()) => {}
            Err(error) if is_poisoned(&error) => {
                assert!(is_poisoned(&workload.heap.checkpoint().unwrap_err()));
                // There may be nothing left to sync; then all visible commits are durable.
                match workload.heap.sync() {
                    Ok(()) => Mark::Durable.put(&workload.disk, commit),
                    Err(error) => assert!(is_poisoned(&error), "{error:?}"),
                }
                assert_eq!(commit_of(&workload.heap), commit);
                return true;
            }
            Err(error) => panic!("expected a poisoned heap or a sound one, found {error:?}"),
        }
    }
    false
}

fn faulty() -> Mix {
    Mix { seed: seed(13), steps: 60, large_one_in: 12, upkeep_one_in: 10, ..Mix::default() }
}

#[test]
fn a_failing_sync_poisons_and_reopening_recovers() {
    try_faults(faulty(), "failing syncs", |operation| operation.starts_with("sync"));
}

#[test]
fn any_other_failing_operation_is_undone_or_poisons() {
    try_faults(faulty(), "failing operations", |operation| !operation.starts_with("sync"));
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let disk = SimDisk::new(seed(17));
    let mix =
        Mix { seed: seed(17), steps: 0, large_one_in: 4, upkeep_one_in: 15, ..Mix::default() };
    let mut workload = Workload::create(&disk, mix).unwrap();
    for round in 0..4 {
        for _ in 0..10 {
            workload.step().unwrap();
        }
        disk.set_space_bytes(Some(disk.space_used_bytes() + round * (64 << 10)));
        for _ in 0..30 {
            if let Err(error) = workload.step() {
                assert!(error.is_out_of_space(), "{error:?}");
            }
        }
        for durability in ALL {
            workload.free_one(*durability).unwrap();
        }
        workload.heap.sync().unwrap();
        Mark::Durable.put(&disk, workload.last().commit);
        disk.set_space_bytes(None);
    }
    assert!(workload.refused > 3, "only {} commits were refused", workload.refused);
    println!("full disk: {} commits refused", workload.refused);
    let models = workload.models;
    try_power_cuts(&disk, &models, 7, 4).print("full disk");

    let mut tally = Tally::new();
    let mut refused = 0;
    let mut cursor = disk.cursor();
    for point in (0..=disk.operation_count()).step_by(7) {
        cursor.advance_to(point);
        tally.points += 1;
        tally.state(&disk, point, &"recovery on a full disk", || {
            let full = cursor.crash(&mut Choice::random(point));
            full.set_space_bytes(Some(full.space_used_bytes()));
            if let Err(error) = open(&full, Flushing::Auto) {
                assert!(error.is_out_of_space(), "{error:?}");
                refused += 1;
            }
            full.set_space_bytes(None);
            verify(&full, &models, Promise::at_power_cut(&disk, point));
        });
    }
    println!("recovery on a full disk: {refused} refused until there was space");
    tally.print("recovery on a full disk");
}
