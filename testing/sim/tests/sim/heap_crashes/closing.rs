//! A failed close: the pool may look closed although nothing of that is durable. The next open
//! finds nothing to recover, and what it overwrites or removes of the log may still be needed by
//! the last durable checkpoint.

use adamant_sim::tally::seed;
use adamant_sim::{Mark, Promise, SimDisk, Tally};

use crate::heap_crashes::model::{Model, verify};
use crate::heap_crashes::workload::{Mix, Workload};

#[test]
fn a_close_that_failed_is_not_built_upon() {
    let mix = Mix { seed: seed(67), steps: 14, upkeep_one_in: 5, ..Mix::default() };
    let mut tally = Tally::new();
    after_closes_that_failed(mix, |killed, models, promise| {
        let (heap, commit) = verify(killed, &models, promise);
        let mut next = Workload::resume(killed, heap, &models[..=commit as usize], mix);
        for _ in 0..4 {
            next.step().unwrap();
        }
        tally.power_cuts(killed, 1, 8, |crashed, promise| {
            drop(verify(&crashed.without_history(), &next.models, promise));
        });
    });
    tally.print("closes that failed");
}

/// Its log is longer than the next open likes it, because of large blocks.
#[test]
fn a_log_is_not_trimmed_after_a_close_that_failed() {
    let mix = Mix { seed: seed(68), steps: 7, large_one_in: 1, ..Mix::default() };
    let mut tally = Tally::new();
    after_closes_that_failed(mix, |killed, models, promise| {
        let (heap, _) = verify(killed, &models, promise);
        tally.power_cuts(killed, 8, 2, |crashed, promise| {
            drop(verify(&crashed.without_history(), &models, promise));
        });
        drop(heap);
    });
    tally.print("closes that failed, of long logs");
}

/// Runs a workload once for each sync of its close, which fails and kills the process. `then` gets
/// what is left, in the caches too, the models by commit, and what the next open must find.
fn after_closes_that_failed(mix: Mix, mut then: impl FnMut(&SimDisk, Vec<Model>, Promise)) {
    // Returns where the close begins.
    let run = |disk: &SimDisk| {
        let mut workload = Workload::create(disk, mix).unwrap();
        for _ in 0..mix.steps {
            workload.step().unwrap();
        }
        let start = disk.operation_count();
        let closed = workload.heap.close();
        (workload.models, start, closed)
    };
    let sound = SimDisk::new(mix.seed);
    let (_, start, closed) = run(&sound);
    closed.unwrap();
    let is_sync = |number: &u64| sound.describe(*number).unwrap().starts_with("sync");
    let syncs: Vec<u64> = (start..sound.operation_count()).filter(is_sync).collect();
    assert!(syncs.len() >= 3, "log, pool and position: {syncs:?}");
    for number in syncs {
        let disk = SimDisk::new(mix.seed);
        disk.fail(number..number + 1);
        let (models, _, closed) = run(&disk);
        assert!(closed.is_err(), "operation {number} failed and nobody noticed");
        let mut cursor = disk.cursor();
        cursor.advance_to(disk.operation_count());
        let killed = cursor.kill();
        let before = Promise::at_power_cut(&disk, cursor.point());
        Mark::Begun.put(&killed, before.most);
        Mark::Durable.put(&killed, before.least);
        then(&killed, models, Promise::at_death(&disk, cursor.point()));
    }
}
