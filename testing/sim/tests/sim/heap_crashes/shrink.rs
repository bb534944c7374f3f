//! Giving space back on a disk that crashes, or that is full when the space is needed again.

use std::collections::BTreeSet;

use adamant_heap::{Durability, Error, Flushing, Heap, Read, Write};
use adamant_medium::storage::Directory;
use adamant_sim::tally::seed;
use adamant_sim::{Choice, SimDirectory, SimDisk, Tally};

use crate::heap_crashes::model::{open, open_bounded};
use crate::heap_crashes::workload::{Mix, Workload};
use crate::heap_crashes::{try_crashes_within, try_deaths, try_faults, try_power_cuts};

const PAGE: usize = 4096;
/// Bytes of a block of many chunks.
const LARGE: usize = 3 << 20;

/// Large blocks come and go, and the freed space is given back.
fn mix(flushing: Flushing, number: u64) -> Mix {
    Mix {
        seed: seed(number),
        flushing,
        steps: 40,
        large_one_in: 3,
        upkeep_one_in: 20,
        reopen_one_in: 12,
        shrink_one_in: 4,
        gives_log_back: true,
        ..Mix::default()
    }
}

fn count(disk: &SimDisk, what: &str) -> usize {
    let history = (0..disk.operation_count()).filter_map(|at| disk.describe(at));
    history.filter(|operation| operation.starts_with(what)).count()
}

#[test]
fn crashes_around_shrinking() {
    try_crashes(Flushing::Auto);
}

#[test]
fn crashes_around_shrinking_in_memory() {
    try_crashes(Flushing::Volatile);
}

/// Some 6,000 states of pools of several MiB: so each medium has a test of its own.
fn try_crashes(flushing: Flushing) {
    let number = 64;
    let disk = SimDisk::new(seed(number));
    let models = Workload::run(&disk, mix(flushing, number));
    let (holes, cuts) = (count(&disk, "punch sim/pool"), count(&disk, "set length sim/pool"));
    assert!(holes > 2 && cuts > 1, "{flushing:?}: {holes} holes, {cuts} cuts");
    try_power_cuts(&disk, &models, 1, 4).print(&format!("shrinking, {flushing:?}"));
    try_deaths(&disk, &models, 3).print(&format!("shrinking, {flushing:?}, killed processes"));
    // In memory each fence of a recovery is a crash point: many more than there are syncs.
    let step = if flushing == Flushing::Volatile { 57 } else { 19 };
    let within = try_crashes_within(&disk, &models, step, 2);
    within.print(&format!("shrinking, {flushing:?}, crashes during recovery"));
}

#[test]
fn shrinking_that_fails_is_undone_or_poisons() {
    let mix = Mix { steps: 30, reopen_one_in: 0, ..mix(Flushing::Auto, 63) };
    try_faults(mix, "shrinking that fails", |operation| operation.contains("sim/pool"));
}

/// A block of which only the first page is written.
fn reserve(heap: &Heap, bytes: usize, root: usize) -> Result<u64, Error> {
    heap.transaction(Durability::Sync, |tx| {
        let block = tx.reserve(bytes as u64)?;
        tx.write(block, 0, PAGE)?.fill(root as u8 + 1);
        tx.set_root(root, block)?;
        Ok(block)
    })
}

/// Two blocks in front of a small one; the first is free and given back.
fn with_a_hole(disk: &SimDisk, flushing: Flushing) -> Heap {
    let (heap, _) = open(disk, flushing).unwrap();
    let block = reserve(&heap, LARGE, 0).unwrap();
    reserve(&heap, 9 * PAGE, 1).unwrap();
    heap.transaction::<_, Error>(Durability::Sync, |tx| {
        tx.set_root(0, 0)?;
        tx.free(block)
    })
    .unwrap();
    let before = disk.space_used_bytes();
    let shrunk = heap.shrink().unwrap();
    assert!(shrunk.bytes_punched > (LARGE - (512 << 10)) as u64, "{shrunk:?}");
    let given_back = before - disk.space_used_bytes();
    assert_eq!(given_back, shrunk.bytes_punched + shrunk.bytes_released, "{shrunk:?}");
    // By now the system may have written it back.
    SimDirectory::root(disk).open("pool").unwrap().unwrap().sync().unwrap();
    heap
}

#[test]
fn a_hole_is_backed_before_it_is_used_or_refused() {
    for flushing in [Flushing::Auto, Flushing::Volatile] {
        for reopens in [false, true] {
            let disk = SimDisk::new(seed(64));
            let mut heap = with_a_hole(&disk, flushing);
            if reopens {
                heap.close().unwrap();
                drop(heap);
                heap = open(&disk, flushing).unwrap().0;
                // The log has enough space for the next commits.
                heap.transaction::<_, Error>(Durability::Sync, |tx| tx.set_root(3, 1)).unwrap();
            }
            disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
            let error = reserve(&heap, 2 << 20, 0).unwrap_err();
            assert!(error.is_out_of_space(), "{error}");
            let error = heap.reserve(2 << 20).unwrap_err();
            assert!(error.is_out_of_space(), "{error}");
            assert_eq!(heap.view().unwrap().root(0), 0, "it is undone");
            // Reservations that fit are granted, and larger ones never.
            reserve(&heap, 200 << 10, 0).unwrap();
            assert!(heap.check().unwrap().is_clean());
            disk.set_space_bytes(None);
            reserve(&heap, 2 << 20, 2).unwrap();
            disk.set_space_bytes(Some(disk.space_used_bytes()));
            write_all(&heap);
        }
    }
}

/// Writes to each block, one page in 96, and brings that to the pool, on a disk that is full.
fn write_all(heap: &Heap) {
    for root in 0..3 {
        let block = heap.view().unwrap().root(root);
        if block == 0 {
            continue;
        }
        let bytes = heap.view().unwrap().block(block).unwrap().len();
        for at in (0..bytes).step_by(96 * PAGE) {
            let value = at as u64 | 1 << 40;
            heap.transaction(Durability::Buffered, |tx| tx.update_u64(block, at, value)).unwrap();
        }
    }
    heap.checkpoint().expect("all that is allocated has space");
    assert!(heap.check().unwrap().is_clean());
}

/// Holes are used and the pool grows; then power cuts, and each page that is allocated is written
/// to on a disk that is full.
fn use_holes(disk: &SimDisk, flushing: Flushing) -> Tally {
    let heap = with_a_hole(disk, flushing);
    let start = disk.operation_count();
    reserve(&heap, 2 << 20, 0).unwrap();
    reserve(&heap, 3 << 20, 2).unwrap();
    let (mut tally, mut cursor, mut verified) = (Tally::new(), disk.cursor(), BTreeSet::new());
    for point in start..=disk.operation_count() {
        cursor.advance_to(point);
        tally.points += 1;
        let random = (0..6).map(|number| Choice::random(point << 8 | number));
        for choice in [Choice::None, Choice::All].into_iter().chain(random) {
            // With its history: without it, stores to memory without space are not noticed.
            let crashed = cursor.crash(&mut choice.clone());
            if !verified.insert(crashed.digest()) {
                tally.repeat();
                continue;
            }
            tally.state(disk, point, &choice, || {
                let (heap, _) = open(&crashed, flushing).unwrap();
                // The log has enough space for the next commits.
                let ready = heap.transaction::<_, Error>(Durability::Sync, |tx| tx.set_root(3, 1));
                ready.unwrap();
                crashed.set_space_bytes(Some(crashed.space_used_bytes()));
                write_all(&heap);
            });
        }
    }
    tally
}

/// Pages allocated over a hole have their space after a crash, whatever that took back.
#[test]
fn a_hole_that_was_used_stays_backed_after_a_crash() {
    for flushing in [Flushing::Auto, Flushing::Volatile] {
        let disk = SimDisk::new(seed(65));
        use_holes(&disk, flushing).print(&format!("holes that were used, {flushing:?}"));
    }
}

/// Held extents keep the log: so its tail names pages that became a hole, more of them than
/// recovery has memory for. Between punching the hole and updating its checksums they are no
/// damage.
#[test]
fn pages_that_the_log_names_may_become_a_hole() {
    let bytes = 1 << 20;
    let disk = SimDisk::new(seed(66));
    let (heap, _) = open(&disk, Flushing::Auto).unwrap();
    let [block, other] = [0, 1].map(|root| reserve(&heap, bytes, root).unwrap());
    let change = |value: u8| {
        heap.transaction::<_, Error>(Durability::Sync, |tx| {
            (0..bytes).step_by(PAGE).try_for_each(|at| {
                tx.write(block, at, 8)?.fill(value);
                Ok(())
            })
        })
    };
    change(3).unwrap();
    heap.checkpoint().unwrap();
    let held = heap.transaction::<_, Error>(Durability::Sync, |tx| {
        let held = tx.reserve_held(20 * PAGE as u64)?;
        tx.write(held, 0, 20 * PAGE)?.fill(5);
        Ok(held)
    });
    let held = held.unwrap();
    heap.checkpoint().unwrap();
    change(4).unwrap();
    heap.transaction::<_, Error>(Durability::Sync, |tx| tx.set_root(0, 0).and(tx.free(block)))
        .unwrap();
    let start = disk.operation_count();
    let shrunk = heap.shrink().unwrap();
    assert!(shrunk.bytes_punched > bytes as u64 / 2, "{shrunk:?}");
    let (mut tally, mut cursor, mut verified) = (Tally::new(), disk.cursor(), BTreeSet::new());
    for point in start..=disk.operation_count() {
        cursor.advance_to(point);
        tally.points += 1;
        let random = (0..4).map(|number| Choice::random(point << 8 | number));
        for choice in [Choice::None, Choice::All].into_iter().chain(random) {
            let crashed = cursor.crash(&mut choice.clone()).without_history();
            if !verified.insert(crashed.digest()) {
                tally.repeat();
                continue;
            }
            tally.state(&disk, point, &choice, || {
                let (heap, _) = open_bounded(&crashed, Flushing::Auto, 128 << 10).unwrap();
                let view = heap.view().unwrap();
                assert_eq!(view.block(other).unwrap()[..PAGE], [2; PAGE]);
                assert_eq!(view.block(held).unwrap()[..20 * PAGE], [5; 20 * PAGE]);
                drop(view);
                assert!(heap.check().unwrap().is_clean());
            });
        }
    }
    tally.print("a hole of pages that the log names");
}
