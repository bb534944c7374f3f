//! Transactions that free many objects, also after having written to them.

use adamant_heap::{Heap, Write};

use crate::error::Result;
use crate::heap::ground::{Ground, OBJECT_BYTES};
use crate::measure::thread_seconds;
use crate::report::Unit;

/// Objects of the smallest transaction.
const OBJECTS_MIN: u64 = 10;
/// Objects freed for a row of small transactions, so that the clock and chance count for little.
const FREED: u64 = 20_000;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let heap = ground.touched_heap(ground.settings.frees_max)?;
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
    let durability = ground.durability();
    let times = FREED.min(ground.settings.frees_max) / objects + 1;
    let mut seconds = 0.0;
    for _ in 0..times {
        let blocks = ground.fill(heap, objects, OBJECT_BYTES, false)?;
        let start = thread_seconds();
        heap.transaction(durability, |transaction| -> Result<()> {
            for (number, &block) in (0..).zip(&blocks).filter(|_| written) {
                transaction.update_u64(block, 0, number)?;
            }
            blocks.iter().try_for_each(|&block| Ok(transaction.free(block)?))
        })?;
        seconds += thread_seconds() - start;
    }
    let suffix = if written { ".written" } else { "" };
    let freed = objects * times;
    let each = seconds * 1e9 / freed as f64;
    ground.add(&format!("tx.free.{objects}{suffix}"), Unit::Nanoseconds, freed, each);
    Ok(())
}
