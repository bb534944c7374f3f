//! Memory as the medium of the log and the pool: every fence is a crash point, and every cache line
//! that was not fenced may be lost, kept or torn.

use adamant_heap::Flushing;
use adamant_sim::tally::seed;
use adamant_sim::{Choice, Promise, SimDisk, Tally};

use crate::heap_crashes::model::{open, verify};
use crate::heap_crashes::workload::{Mix, Workload};
use crate::heap_crashes::{try_crashes_within, try_deaths, try_faults, try_power_cuts};

/// Steps of all kinds.
pub(crate) fn mix(number: u64) -> Mix {
    Mix {
        flushing: Flushing::Volatile,
        seed: seed(number),
        steps: 60,
        upkeep_one_in: 12,
        alone_one_in: 5,
        abort_one_in: 6,
        declare_one_in: 4,
        thread_one_in: 3,
        reopen_one_in: 20,
        ..Mix::default()
    }
}

#[test]
fn every_fence() {
    let disk = SimDisk::new(seed(31));
    let models = Workload::run(&disk, mix(31));
    let history: Vec<_> = (0..disk.operation_count()).filter_map(|at| disk.describe(at)).collect();
    let count = |what: &str| history.iter().filter(|operation| operation.contains(what)).count();
    assert!(count("fence") > 100, "the log and the pool are written by stores");
    assert_eq!(count("write sim/log/00"), 0, "and by nothing else: {history:#?}");
    try_power_cuts(&disk, &models, 1, 16).print("direct");
}

/// Files that the system does not map are written by calls, and made durable by syncs.
fn unmapped(number: u64) -> Mix {
    Mix { is_unmapped: true, steps: 30, ..mix(number) }
}

#[test]
fn what_is_not_mapped_is_durable_when_it_is_synced() {
    let disk = SimDisk::new(seed(83));
    let models = Workload::run(&disk, unmapped(83));
    try_power_cuts(&disk, &models, 1, 4).print("direct, by calls");
}

#[test]
fn a_failing_write_of_what_is_not_mapped_is_undone_or_poisons() {
    let is_tried =
        |operation: &str| operation.starts_with("write") || operation.starts_with("sync");
    // A heap that failed while closing takes no more steps.
    let mix = Mix { reopen_one_in: 0, ..unmapped(89) };
    try_faults(mix, "direct, failing calls", is_tried);
}

/// All combinations of lines lost and kept, where there are at most 256 at a crash point; with
/// `ADAMANT_SIM_STATES=64` at most 2^14.
#[test]
fn every_combination_of_lines() {
    let disk = SimDisk::new(seed(47));
    let models = Workload::run(&disk, Mix { steps: 16, ..mix(47) });
    try_power_cuts(&disk, &models, 1, 1 << 8).print("direct, all combinations");
}

/// Blocks of more than a megabyte: the pool grows, and the log continues in another file.
#[test]
fn large_blocks() {
    let disk = SimDisk::new(seed(53));
    let models = Workload::run(&disk, Mix { steps: 20, large_one_in: 5, ..mix(53) });
    try_power_cuts(&disk, &models, 2, 6).print("direct, large blocks");
}

/// A header of the log is one line, a checkpoint two.
const HEADER: &str = "1 lines stored";
const CHECKPOINT: &str = "2 lines stored";

/// The crash points of a disk's history that lie behind such an operation.
fn points_behind(disk: &SimDisk, operation: &str) -> Vec<u64> {
    let is_behind =
        |point: &u64| disk.describe(point - 1).is_some_and(|it| it.starts_with(operation));
    (disk.cursor().point() + 1..=disk.operation_count()).filter(is_behind).collect()
}

/// Crashes there, tearing the things in doubt in `count` ways.
fn try_torn(
    disk: &SimDisk,
    (operation, count): (&str, u64),
    tally: &mut Tally,
    mut verify: impl FnMut(SimDisk, u64),
) {
    let mut cursor = disk.cursor();
    for point in points_behind(disk, operation) {
        cursor.advance_to(point);
        tally.points += 1;
        for choice in (0..count).map(Choice::torn) {
            tally.state(disk, point, &choice, || verify(cursor.crash(&mut choice.clone()), point));
        }
    }
}

/// Each opening writes a header of the next generation over the one before, and a header has four
/// words of eight bytes that differ: a torn header is invalid.
#[test]
fn headers_of_many_generations() {
    let disk = SimDisk::new(seed(73));
    let models = Workload::run(&disk, Mix { steps: 16, reopen_one_in: 2, ..mix(73) });
    let mut tally = Tally::new();
    try_torn(&disk, (HEADER, 64), &mut tally, |crashed, point| {
        let promise = Promise::at_power_cut(&disk, point);
        drop(verify(&crashed.without_history(), &models, promise));
    });
    tally.print("direct, headers");
}

#[test]
fn a_killed_process() {
    let disk = SimDisk::new(seed(37));
    let models = Workload::run(&disk, mix(37));
    try_deaths(&disk, &models, 1).print("direct, killed processes");
}

#[test]
fn crashes_during_recovery() {
    try_crashes_during_recovery(41);
}

#[test]
fn crashes_during_another_recovery() {
    try_crashes_during_recovery(43);
}

/// A minute: so each seed has a test of its own.
fn try_crashes_during_recovery(number: u64) {
    let disk = SimDisk::new(seed(number));
    let models = Workload::run(&disk, Mix { steps: 40, ..mix(number) });
    try_crashes_within(&disk, &models, 9, 6).print("direct, crashes during recovery");
}

/// A checkpoint that is in the caches alone when the process dies is written again, before the next
/// one overwrites the one before it: if that one were torn, and this one lost, none would be left.
#[test]
fn a_checkpoint_in_the_caches_is_not_trusted() {
    let disk = SimDisk::new(seed(79));
    let models = Workload::run(&disk, Mix { steps: 24, ..mix(79) });
    let (mut tally, mut cursor) = (Tally::new(), disk.cursor());
    for point in points_behind(&disk, CHECKPOINT) {
        cursor.advance_to(point);
        let promise = Promise::at_power_cut(&disk, point);
        let killed = cursor.kill();
        tally.state(&disk, point, &"killed", || drop(open(&killed, Flushing::Volatile).unwrap()));
        try_torn(&killed, (CHECKPOINT, 64), &mut tally, |crashed, _| {
            drop(verify(&crashed.without_history(), &models, promise));
        });
    }
    tally.print("direct, checkpoints in the caches");
}

#[test]
fn every_crash_point_of_a_creation() {
    let disk = SimDisk::new(seed(71));
    let models = Workload::run(&disk, Mix { steps: 2, ..mix(71) });
    try_power_cuts(&disk, &models, 1, 16).print("direct, creation");
}
