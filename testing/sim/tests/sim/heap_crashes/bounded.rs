//! A heap with bounded memory, so that its pages are dropped all the time: later reads see the
//! file's bytes. The disk panics if no successful sync covers those.

use adamant_heap::{Durability, Error, Flushing, Heap, Read, Slice, Write};
use adamant_sim::SimDisk;
use adamant_sim::tally::seed;

use crate::heap_crashes::model::open_bounded;
use crate::heap_crashes::workload::{Mix, Workload};
use crate::heap_crashes::{try_crashes_within, try_deaths, try_faults, try_power_cuts};

/// Nearly every commit drops pages, some of them 2 MiB of anonymous memory at once.
fn mix(number: u64) -> Mix {
    Mix {
        seed: seed(number),
        steps: 50,
        large_one_in: 10,
        alone_one_in: 4,
        abort_one_in: 8,
        reopen_one_in: 25,
        shrink_one_in: 25,
        memory_bytes_max: 256 << 10,
        ..Mix::default()
    }
}

/// Runs the workload, and panics unless it dropped pages.
fn run(disk: &SimDisk, mix: Mix) -> Vec<crate::heap_crashes::model::Model> {
    let mut workload = Workload::create(disk, mix).unwrap();
    let (mut dropped, mut total) = (0, 0);
    for _ in 0..mix.steps {
        workload.step().unwrap();
        let now = workload.heap.stats().memory.dropped_bytes;
        total += if now < dropped { now } else { now - dropped };
        dropped = now;
    }
    workload.last().verify(&workload.heap);
    assert!(total > 1 << 20, "{total} bytes were dropped");
    workload.models
}

#[test]
fn crashes_while_pages_are_dropped() {
    let disk = SimDisk::new(seed(71));
    let models = run(&disk, mix(71));
    try_power_cuts(&disk, &models, 5, 3).print("bounded memory");
    try_deaths(&disk, &models, 29).print("bounded memory, killed processes");
    try_crashes_within(&disk, &models, 199, 1).print("bounded memory, crashes during recovery");
}

#[test]
fn after_a_failed_sync_nothing_is_dropped() {
    let mix = Mix { steps: 12, large_one_in: 3, reopen_one_in: 0, ..mix(72) };
    try_faults(mix, "bounded memory, failing syncs", |operation| operation.starts_with("sync"));
}

#[test]
fn what_fails_otherwise_is_undone_or_poisons() {
    let mix = Mix { steps: 8, reopen_one_in: 0, large_one_in: 3, ..mix(73) };
    let is_tried = |operation: &str| operation.starts_with("write sim/pool");
    try_faults(mix, "bounded memory, failing writes", is_tried);
}

#[test]
fn a_reservation_that_is_filled_meanwhile_keeps_its_bytes() {
    let disk = SimDisk::new(seed(74));
    let (heap, _) = open_bounded(&disk, Flushing::Auto, 64 << 10).unwrap();
    let mut reservation = heap.reserve(3000).unwrap();
    reservation[..1500].fill(1);
    for number in 0..40_u8 {
        write(&heap, number);
    }
    reservation[1500..].fill(2);
    let block = reservation.offset();
    heap.publish(Durability::Sync, [reservation]).unwrap();
    for number in 0..200_u8 {
        write(&heap, number);
    }
    assert!(heap.stats().memory.dropped_bytes > 0, "it is published, and keeps nothing");
    let verify = |heap: &Heap| {
        let view = heap.view().unwrap();
        let bytes = view.block(block).unwrap();
        assert!(bytes[..1500].iter().all(|byte| *byte == 1));
        assert!(bytes[1500..3000].iter().all(|byte| *byte == 2));
    };
    verify(&heap);
    heap.close().unwrap();
    verify(&open_bounded(&disk, Flushing::Auto, u64::MAX).unwrap().0);
}

/// A slice may have bytes of its block that were never written since the block was reserved: the
/// heap leaves there what was in memory, here of a transaction that was undone. No record has them,
/// so the file has others, and dropping a page under the slice changes it.
#[test]
fn what_is_lent_keeps_bytes_that_no_record_has() {
    let disk = SimDisk::new(seed(75));
    // In anonymous memory at first, which is dropped by 2 MiB; then over the file's pages.
    for round in 0..2_u8 {
        let (heap, _) = open_bounded(&disk, Flushing::Auto, 64 << 10).unwrap();
        let (block, slice) = lend_unwritten(&heap, 0xA0 + round);
        for number in 0..200_u8 {
            write(&heap, number);
        }
        assert!(heap.stats().memory.dropped_bytes > 0, "round {round}: nothing was dropped");
        assert!(
            slice.iter().all(|byte| *byte == 0xA0 + round),
            "round {round}: {block:#x} changed"
        );
        drop(slice);
        heap.close().unwrap();
    }
}

/// A block of bytes that are in memory alone, and a slice of them.
fn lend_unwritten(heap: &Heap, byte: u8) -> (u64, Slice) {
    const LEN: usize = 20_000;
    let mut undone = Vec::new();
    // All in one commit: the next one drops pages that nothing holds.
    let block = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let refused = tx.savepoint(|tx| {
            for _ in 0..4 {
                let block = tx.reserve(LEN as u64)?;
                tx.write(block, 0, LEN)?.fill(byte);
                undone.push(block);
            }
            Err::<(), Error>(Error::Misuse { what: "undone" })
        });
        assert!(refused.is_err());
        tx.reserve(LEN as u64)
    });
    let block = block.unwrap();
    assert!(undone.contains(&block), "{block:#x} is none of {undone:x?}");
    let slice = heap.view().unwrap().lend(block, LEN).unwrap();
    assert!(slice.iter().all(|found| *found == byte), "what was undone is left in memory");
    (block, slice)
}

fn write(heap: &Heap, byte: u8) {
    let written = heap.transaction::<_, Error>(Durability::Buffered, |tx| {
        let block = tx.reserve(20_000)?;
        tx.write(block, 0, 20_000)?.fill(byte);
        Ok(())
    });
    written.unwrap();
}
