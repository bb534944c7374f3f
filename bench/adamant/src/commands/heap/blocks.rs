//! Single allocations and frees of 64 bytes, and objects allocated by transactions.

use std::hint::black_box;

use adamant_heap::{Durability, Heap, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::on_threads;
use crate::harness::report::Unit;

/// Threads of the multi-threaded row.
const THREADS: usize = 2;
/// Objects of the largest transaction.
const OBJECTS_MAX: u64 = 10_000;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.operations;
    let heap = ground.touched_heap(count)?;
    alloc_and_free(ground, &heap, count)?;
    pairs(ground, &heap, count)?;
    let mut objects = 1;
    while objects <= OBJECTS_MAX {
        transactions(ground, &heap, objects, count.max(objects))?;
        objects *= 10;
    }
    ground.finish(heap)
}

fn alloc_and_free(ground: &mut Ground<'_>, heap: &Heap, count: u64) -> Result<()> {
    let durability = ground.durability();
    let mut blocks = Vec::with_capacity(count as usize);
    ground.timed(heap, "alloc.64", count, || {
        for _ in 0..count {
            blocks.push(alloc(heap, durability)?);
        }
        Ok(())
    })?;
    ground.timed(heap, "free.64", count, || {
        blocks.iter().try_for_each(|&block| free(heap, durability, block))
    })?;
    Ok(())
}

fn alloc(heap: &Heap, durability: Durability) -> Result<u64> {
    let mut reservation = [heap.reserve(OBJECT_BYTES)?];
    heap.publish(durability, &mut reservation)?;
    Ok(reservation[0].offset())
}

fn free(heap: &Heap, durability: Durability, block: u64) -> Result<()> {
    Ok(heap.free(durability, block)?)
}

fn pairs(ground: &mut Ground<'_>, heap: &Heap, count: u64) -> Result<()> {
    let durability = ground.durability();
    let pair = || free(heap, durability, black_box(alloc(heap, durability)?));
    ground.timed(heap, "pair.64.1t", count, || (0..count).try_for_each(|_| pair()))?;
    let measured = on_threads(THREADS, |_| {
        (0..count).try_for_each(|_| pair())?;
        Ok(count)
    })?;
    let rate = measured.thousand_per_second() / 1e3;
    ground.add("pair.64.2t", Unit::MillionPerSecond, measured.operations, rate);
    Ok(())
}

/// Transactions that allocate `objects` objects each.
fn transactions(ground: &mut Ground<'_>, heap: &Heap, objects: u64, count: u64) -> Result<()> {
    let durability = ground.durability();
    let whole = count / objects * objects;
    let mut blocks = Vec::with_capacity(whole as usize);
    ground.timed(heap, &format!("tx.objects.{objects}"), whole, || {
        for _ in 0..whole / objects {
            heap.transaction(durability, |transaction| -> Result<()> {
                for _ in 0..objects {
                    blocks.push(transaction.reserve(OBJECT_BYTES)?);
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    ground.free_all(heap, &blocks)
}
