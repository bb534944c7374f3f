//! A failed creation, and one more in the same directory: the files and names that the first left
//! there look durable, and are not.

use adamant_heap::Flushing;
use adamant_medium::storage::Directory;
use adamant_sim::tally::seed;
use adamant_sim::{SimDirectory, SimDisk, Tally};

use crate::heap_crashes::model::verify;
use crate::heap_crashes::workload::{Mix, Workload};

/// Fails each operation of a creation on an empty disk that `is_tried` accepts, creates again,
/// continues, and cuts the power, at one of `step` crash points, `count` states at each. Returns
/// how many creations failed.
pub(crate) fn try_creations(
    disk: &SimDisk,
    mix: Mix,
    (step, count): (usize, u64),
    is_tried: impl Fn(&str) -> bool,
    tally: &mut Tally,
) -> u64 {
    let sound = disk.emptied();
    drop(Workload::create(&sound, mix).unwrap());
    let mut failed = 0;
    for number in 0..sound.operation_count() {
        if !is_tried(&sound.describe(number).unwrap()) {
            continue;
        }
        let disk = disk.emptied();
        disk.fail(number..number + 1);
        let Err(_) = Workload::create(&disk, mix) else { continue };
        failed += 1;
        let mut workload = Workload::create(&disk, mix)
            .unwrap_or_else(|error| panic!("created again after operation {number}: {error}"));
        for _ in 0..mix.steps {
            workload.step().unwrap();
        }
        tally.power_cuts(&disk, step, count, |crashed, promise| {
            let crashed = crashed.without_history();
            drop(verify(&crashed, &workload.models, promise));
            let left = SimDirectory::root(&crashed).list().unwrap();
            assert!(!left.iter().any(|name| name == "log.new"), "left there: {left:?}");
        });
    }
    failed
}

fn try_all(flushing: Flushing, (step, count): (usize, u64), test: &str) {
    let mix = Mix { seed: seed(71), steps: 4, flushing, ..Mix::default() };
    let mut tally = Tally::new();
    let disk = SimDisk::new(mix.seed);
    let failed = try_creations(&disk, mix, (step, count), |_| true, &mut tally);
    assert!(failed > 6, "only {failed} creations failed");
    println!("{failed} creations failed");
    tally.print(test);
}

#[test]
fn a_creation_after_one_that_failed() {
    try_all(Flushing::Auto, (3, 12), "creations after one that failed");
}

#[test]
fn a_creation_after_one_that_failed_where_memory_is_the_medium() {
    try_all(Flushing::Volatile, (9, 6), "creations after one that failed, direct");
}
