//! Reservations: alone, on several threads, and published in batches.

use std::sync::Mutex;

use adamant_heap::{Heap, Reservation};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::{on_threads, thread_seconds};
use crate::harness::report::Unit;

/// Maximum reservations of a publish.
const BATCH_MAX: u64 = 100;
/// Maximum threads that reserve.
const THREADS_MAX: u64 = 8;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.operations;
    let heap = ground.touched_heap(count)?;
    let mut batch = 1;
    while batch <= BATCH_MAX {
        publishes(ground, &heap, batch, count, false)?;
        publishes(ground, &heap, batch, count, true)?;
        batch *= 10;
    }
    let mut threads = 1;
    while threads <= THREADS_MAX {
        reserves(ground, &heap, threads, count)?;
        threads *= 2;
    }
    ground.finish(heap)
}

/// Reserves and publishes in batches. If they were filled, the bytes of a reservation become
/// durable with it; otherwise only its allocation, as in libpmemobj.
fn publishes(
    ground: &mut Ground<'_>,
    heap: &Heap,
    batch: u64,
    count: u64,
    fill: bool,
) -> Result<()> {
    let durability = ground.durability();
    let whole = (count / batch).max(1) * batch;
    let mut blocks = Vec::with_capacity(whole as usize);
    let mut pending = Vec::with_capacity(batch as usize);
    let row = format!("publish.{batch}{}", if fill { ".filled" } else { "" });
    ground.timed(heap, &row, whole, || {
        for _ in 0..whole / batch {
            for number in 0..batch {
                let mut reservation = heap.reserve(OBJECT_BYTES)?;
                if fill {
                    reservation.fill(number as u8);
                }
                blocks.push(reservation.offset());
                pending.push(reservation);
            }
            heap.publish(durability, &mut pending)?;
            pending.clear();
        }
        Ok(())
    })?;
    ground.free_all(heap, &blocks)
}

/// Reserves on several threads at once, and drops all of it. Processor nanoseconds for each, over
/// all threads: they stay the same if threads do not disturb each other.
fn reserves(ground: &mut Ground<'_>, heap: &Heap, threads: u64, count: u64) -> Result<()> {
    let each = (count / threads).max(1) as usize;
    // Slots that were written to: first touches of memory are no part of the row.
    let room = |_| -> Mutex<Vec<Option<Reservation>>> {
        let mut slots = Vec::new();
        slots.resize_with(each, || None);
        Mutex::new(slots)
    };
    let kept: Vec<_> = (0..threads).map(room).collect();
    let seconds = Mutex::new(0.0);
    let measured = on_threads(threads as usize, |thread| {
        let start = thread_seconds();
        let mut slots = kept[thread].lock().map_err(|_| "a measuring thread panicked")?;
        for slot in slots.iter_mut() {
            *slot = Some(heap.reserve(OBJECT_BYTES)?);
        }
        *seconds.lock().map_err(|_| "a measuring thread panicked")? += thread_seconds() - start;
        Ok(each as u64)
    })?;
    let seconds = seconds.into_inner()?;
    let nanoseconds = seconds * 1e9 / measured.operations as f64;
    let row = format!("reserve.{threads}t");
    ground.add(&row, Unit::Nanoseconds, measured.operations, nanoseconds);
    Ok(())
}
