//! Transactions that free many objects, also after writes to them.

use adamant_heap::{Heap, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::thread_seconds;
use crate::harness::report::Unit;

/// Objects of the smallest transaction.
const OBJECTS_MIN: u64 = 10;
/// Objects freed for a row of small transactions, so that clock resolution and chance matter
/// little.
const FREED: u64 = 20_000;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let heap = ground.empty_heap()?;
    // Not measured: the first touch of pages, and of the memory that a large transaction holds.
    free_once(ground, &heap, ground.settings.frees_max, true)?;
    let mut objects = OBJECTS_MIN;
    while objects <= ground.settings.frees_max {
        for written in [false, true] {
            frees(ground, &heap, objects, written)?;
        }
        objects *= 10;
    }
    ground.finish(heap)
}

fn frees(ground: &mut Ground<'_>, heap: &Heap, objects: u64, written: bool) -> Result<()> {
    let times = FREED.min(ground.settings.frees_max) / objects + 1;
    let mut seconds = 0.0;
    for _ in 0..times {
        seconds += free_once(ground, heap, objects, written)?;
    }
    let suffix = if written { ".written" } else { "" };
    let freed = objects * times;
    let each = seconds * 1e9 / freed as f64;
    ground.add(&format!("tx.free.{objects}{suffix}"), Unit::Nanoseconds, freed, each);
    Ok(())
}

/// Seconds of a transaction that frees `objects` objects.
fn free_once(ground: &Ground<'_>, heap: &Heap, objects: u64, written: bool) -> Result<f64> {
    let blocks = ground.fill(heap, objects, OBJECT_BYTES, written)?;
    let start = thread_seconds();
    heap.transaction(ground.durability(), |transaction| -> Result<()> {
        for (number, &block) in (1..).zip(&blocks).filter(|_| written) {
            transaction.update_u64(block, 0, !number)?;
        }
        blocks.iter().try_for_each(|&block| Ok(transaction.free(block)?))
    })?;
    Ok(thread_seconds() - start)
}
