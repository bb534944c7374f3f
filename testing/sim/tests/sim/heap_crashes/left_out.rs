//! Mutation tests: each call that makes something durable is left out once, and the crash tests
//! notice.

use adamant_sim::mutation::{verdicts, verify};
use adamant_sim::site::{Kind, Site};
use adamant_sim::{Mark, Promise, SimDisk, Tally};

use crate::heap_crashes::creation::try_creations;
use crate::heap_crashes::direct;
use crate::heap_crashes::model::{self, Model};
use crate::heap_crashes::workload::{Mix, Workload};
use crate::heap_crashes::{
    mix_of_batches, try_crashes_of_batches, try_crashes_within, try_deaths, try_power_cuts,
};

/// Commits of all kinds, checkpoints and reopenings, then crashes within them and within the
/// recoveries from those.
fn suite(disk: &SimDisk, mix: Mix) {
    let models = Workload::run(disk, mix);
    // The cheapest is first: it notices most.
    try_power_cuts(disk, &models, 1, 4);
    try_deaths(disk, &models, 3);
    // Enough for each state without one of the names that the two creations gave.
    try_new_creations(disk, Mix { steps: 1, ..mix }, (1, 64));
    try_new_names(disk, &models, mix);
    // Three: none and all alone show nothing of writes that reached the medium too early.
    try_crashes_within(disk, &models, 19, 3);
}

/// A creation after one whose sync of the store's directory failed.
fn try_new_creations(disk: &SimDisk, mix: Mix, (step, count): (usize, u64)) {
    let is_tried = |operation: &str| operation.starts_with("sync directory 0");
    try_creations(disk, mix, (step, count), is_tried, &mut Tally::new());
}

/// The process dies when a file just got its name, and the next one continues with large commits:
/// they may be in files whose names the dead process was about to sync.
fn try_new_names(disk: &SimDisk, models: &[Model], mix: Mix) {
    let mut cursor = disk.cursor();
    while cursor.advance() {
        let last = disk.describe(cursor.point() - 1);
        if !last.is_some_and(|operation| operation.starts_with("rename")) {
            continue;
        }
        let killed = cursor.kill();
        // Promises to the dead process hold for the next one too.
        let before = Promise::at_power_cut(disk, cursor.point());
        Mark::Begun.put(&killed, before.most);
        if before.created {
            Mark::Durable.put(&killed, before.least);
        }
        let promise = Promise::at_death(disk, cursor.point());
        let (heap, commit) = model::verify(&killed, models, promise);
        let mix = Mix { large_one_in: 1, upkeep_one_in: 0, reopen_one_in: 0, ..mix };
        let mut next = Workload::resume(&killed, heap, &models[..=commit as usize], mix);
        for _ in 0..6 {
            next.step().unwrap();
        }
        Tally::new().power_cuts(&killed, 1, 1, |crashed, promise| {
            drop(model::verify(&crashed, &next.models, promise));
        });
    }
}

#[test]
fn a_missing_sync_is_noticed() {
    let mix = Mix {
        // This workload is known to need every call; others may not.
        seed: 19,
        steps: 40,
        large_one_in: 8,
        upkeep_one_in: 8,
        reopen_one_in: 8,
        ..Mix::default()
    };
    // The first commit in a new log file syncs its zeros unless that was done before: the early
    // sync only saves that commit the time.
    let saves_time = |site: &Site| site.file.ends_with("/log_file.rs") && site.kind == Kind::Sync;
    let is_tried = |site: &Site| !saves_time(site) && !is_of_batches(site);
    let verdicts = verdicts(mix.seed, is_tried, |disk| suite(disk, mix));
    verify(&verdicts, |_| false);
}

/// Sites that need several batches, of which the workload above has none.
fn is_of_batches(site: &Site) -> bool {
    site.file.ends_with("/batch.rs")
}

#[test]
fn a_missing_sync_of_batches_is_noticed() {
    let mix = mix_of_batches(83);
    let verdicts = verdicts(mix.seed, is_of_batches, |disk| {
        let models = Workload::run(disk, mix);
        try_crashes_of_batches(disk, &models, 40);
    });
    assert_eq!(verdicts.len(), 2, "before a batch, and before the next table: {verdicts:?}");
    verify(&verdicts, |_| false);
}

/// With memory as the medium. The test above covers the syncs of changes made by calls.
fn direct_suite(disk: &SimDisk, mix: Mix) {
    let models = Workload::run(disk, mix);
    try_power_cuts(disk, &models, 1, 4);
}

#[test]
fn a_missing_flush_or_fence_of_memory_is_noticed() {
    let mix = Mix { seed: 43, steps: 40, ..direct::mix(43) };
    let is_tried = |site: &Site| matches!(site.kind, Kind::Copy | Kind::Flush | Kind::Fence);
    let verdicts = verdicts(mix.seed, is_tried, |disk| direct_suite(disk, mix));
    assert!(verdicts.len() >= 2, "a copy and a fence: {verdicts:?}");
    verify(&verdicts, |_| false);
}
