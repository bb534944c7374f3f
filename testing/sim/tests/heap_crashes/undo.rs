//! The undo journal: memory is the medium, every fence is a crash point, and every cache line that
//! was not fenced may be lost, kept or torn.
//!
//! Lanes are made small, so that a short workload starts them over and needs files for what has no
//! room in them.

use adamant_heap::JournalKind;
use adamant_sim::SimDisk;
use adamant_sim::tally::seed;

use crate::workload::{Mix, Workload};
use crate::{try_crashes_within, try_deaths, try_power_cuts};

/// Two lanes of 2 KiB, and steps of all kinds.
pub(crate) fn mix(number: u64) -> Mix {
    Mix {
        journal: JournalKind::Undo,
        lanes: Some((2, 2048)),
        seed: seed(number),
        steps: 60,
        upkeep_one_in: 20,
        alone_one_in: 5,
        abort_one_in: 6,
        declare_one_in: 4,
        thread_one_in: 3,
        reopen_one_in: 20,
        ..Mix::default()
    }
}

#[test]
fn every_fence_of_the_undo_journal() {
    let disk = SimDisk::new(seed(31));
    let models = Workload::run(&disk, mix(31));
    let history: Vec<_> = (0..disk.operation_count()).filter_map(|at| disk.describe(at)).collect();
    let count = |what: &str| history.iter().filter(|operation| operation.contains(what)).count();
    assert!(count("create sim/log/large-") > 0, "some entry has no room in a lane");
    assert!(count("lanes_file.rs") > 4, "lanes start over");
    assert!(count("allocate sim/pool") > 0, "the pool grows");
    try_power_cuts(&disk, &models, 1, 16).print("undo journal");
}

/// All combinations of lines lost and kept, where there are at most 256 at a crash point; with
/// `ADAMANT_SIM_STATES=64` at most 2^14.
#[test]
fn every_combination_of_lines() {
    let disk = SimDisk::new(seed(47));
    let models = Workload::run(&disk, Mix { steps: 16, ..mix(47) });
    try_power_cuts(&disk, &models, 1, 1 << 8).print("undo journal, all combinations");
}

/// Most transactions have more than two copies: they go over to changing blocks in place, whatever
/// their size.
#[test]
fn small_blocks_in_place_under_the_undo_journal() {
    let disk = SimDisk::new(seed(59));
    let models = Workload::run(&disk, Mix { copies_bytes_max: 150, ..mix(59) });
    try_power_cuts(&disk, &models, 1, 16).print("undo journal, small blocks in place");
}

/// Blocks of more than a megabyte: the pool grows, and what they hold is fenced before the record.
#[test]
fn large_blocks_under_the_undo_journal() {
    let disk = SimDisk::new(seed(53));
    let models = Workload::run(&disk, Mix { steps: 20, large_one_in: 5, ..mix(53) });
    try_power_cuts(&disk, &models, 2, 6).print("undo journal, large blocks");
}

#[test]
fn a_killed_process_under_the_undo_journal() {
    let disk = SimDisk::new(seed(37));
    let models = Workload::run(&disk, mix(37));
    try_deaths(&disk, &models, 1).print("undo journal, killed processes");
}

#[test]
fn crashes_during_recovery_of_the_undo_journal() {
    let disk = SimDisk::new(seed(41));
    let models = Workload::run(&disk, mix(41));
    try_crashes_within(&disk, &models, 9, 4).print("undo journal, crashes during recovery");
}

#[test]
fn every_crash_point_of_a_creation_where_memory_is_the_medium() {
    let disk = SimDisk::new(seed(71));
    let models = Workload::run(&disk, Mix { steps: 2, lanes: None, ..mix(71) });
    try_power_cuts(&disk, &models, 1, 16).print("creation of the undo journal");
}
