//! Calls that fail while a heap recovers, each once: the opening reports it, or continues without;
//! the next one, after a kill or a power cut, finds a promised commit.

use adamant_heap::{Error, Flushing, Heap, Recovery, Result};
use adamant_sim::tally::seed;
use adamant_sim::{Call, Choice, Fault, Promise, SimDisk, Tally};

use crate::heap_crashes::model::{Model, open_bounded, verify};
use crate::heap_crashes::workload::{Mix, Workload};
use crate::heap_crashes::{direct, mix_of_batches, try_going_on};

/// Crash points at which recovery is tried.
const POINTS: u64 = 4;

/// With memory for so few pages that several batches write them.
fn recover(disk: &SimDisk, flushing: Flushing) -> Result<(Heap, Recovery)> {
    open_bounded(disk, flushing, 2 * 24 * 4096)
}

/// Fails each call of recoveries, after killed processes and after power cuts.
fn try_failing_recoveries(mix: Mix, test: &str) {
    let disk = SimDisk::new(mix.seed);
    let models = Workload::run(&disk, mix);
    let (mut tally, mut refused) = (Tally::new(), 0);
    let mut cursor = disk.cursor();
    let first = cursor.point();
    for number in 1..=POINTS {
        let point = first + (disk.operation_count() - first) * number / POINTS;
        cursor.advance_to(point);
        let promise = Promise::at_power_cut(&disk, point);
        for choice in [None, Some(Choice::random(point))] {
            let crashed = || match choice.clone() {
                None => cursor.kill(),
                Some(mut choice) => cursor.crash(&mut choice),
            };
            refused += try_calls(&crashed, (&models, promise), &mut tally);
        }
    }
    println!("{test}: {refused} openings refused");
    assert!(refused > 100, "a call that fails is told");
    tally.print(test);
}

/// Fails each call of the recovery of a disk; returns how often the opening reported it.
fn try_calls(
    crashed: &dyn Fn() -> SimDisk,
    (models, promise): (&[Model], Promise),
    tally: &mut Tally,
) -> u64 {
    let flushing = models[0].flushing;
    let (sound, mut refused) = (crashed(), 0);
    drop(recover(&sound, flushing).expect("nothing fails"));
    let calls = Call::ALL
        .into_iter()
        .flat_map(|call| (1..=sound.call_count(call)).map(move |number| (call, number)));
    for (call, number) in calls {
        tally.points += 1;
        let disk = crashed();
        disk.fail_call(call, number, Fault::Device);
        let point = disk.operation_count();
        tally.state(&disk, point, &(call, number), || {
            if let Err(error) = recover(&disk, flushing) {
                let is_of_the_device = matches!(error, Error::Medium(_) | Error::Poisoned { .. });
                assert!(is_of_the_device, "{error:?}");
                refused += 1;
            }
            disk.repair();
            let end = disk.operation_count();
            let left = match number % 2 {
                0 => disk.kill(end),
                _ => disk.crash(end, &mut Choice::random(number)),
            };
            let (heap, commit) = verify(&left, models, promise);
            if number % 8 < 2 {
                try_going_on(&left, heap, &models[commit as usize]);
            }
        });
    }
    refused
}

#[test]
fn a_call_that_fails_within_recovery_loses_nothing() {
    try_failing_recoveries(mix_of_batches(seed(97)), "failing recoveries");
}

#[test]
fn a_call_that_fails_within_recovery_loses_nothing_in_memory() {
    let mix = Mix { steps: 40, upkeep_one_in: 20, ..direct::mix(101) };
    try_failing_recoveries(mix, "failing recoveries in memory");
}
