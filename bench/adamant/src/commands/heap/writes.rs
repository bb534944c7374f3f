//! Transactions that overwrite ranges of existing blocks.

use adamant_heap::{Heap, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;

/// Blocks written in turn.
const BLOCKS: u64 = 64;
/// Bytes of the largest range.
const BYTES_MAX: u64 = 1 << 20;
/// Transactions of a row that only counts.
const COUNTED: u64 = 1_000;
/// Ranges declared at once, and the distance between them in bytes.
const RANGES: u64 = 10;
const DISTANCE: u64 = 512;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let heap = ground.empty_heap()?;
    let mut bytes = 64;
    while bytes <= BYTES_MAX {
        // About as long for each size: bytes dominate the time of large ranges.
        let count = (ground.settings.operations * 1024 / (1024 + bytes) / 2).max(BLOCKS);
        writes(ground, &heap, bytes, count)?;
        bytes *= 4;
    }
    counted(ground, &heap)?;
    ground.finish(heap)
}

fn writes(ground: &mut Ground<'_>, heap: &Heap, bytes: u64, count: u64) -> Result<()> {
    let durability = ground.durability();
    let blocks = ground.fill(heap, BLOCKS, bytes, true)?;
    let write = |at: u64| {
        heap.transaction(durability, |transaction| -> Result<()> {
            let block = blocks[(at % BLOCKS) as usize];
            transaction.write(block, 0, bytes as usize)?.fill(at as u8);
            Ok(())
        })
    };
    // Not measured: the first touch.
    (0..BLOCKS).try_for_each(write)?;
    ground.timed(heap, &format!("write.{bytes}"), count, || (0..count).try_for_each(write))?;
    ground.free_all(heap, &blocks)
}

/// Storage costs of empty and small transactions.
fn counted(ground: &mut Ground<'_>, heap: &Heap) -> Result<()> {
    let durability = ground.durability();
    ground.timed(heap, "empty", COUNTED, || {
        (0..COUNTED).try_for_each(|_| heap.transaction(durability, |_| Ok(())))
    })?;
    let large = 2 * RANGES * DISTANCE;
    for (row, ranges, bytes, block_bytes) in [
        ("write.8", 1, 8, OBJECT_BYTES),
        ("write.8.large", 1, 8, large),
        ("ranges.10", RANGES, 64, large),
    ] {
        let blocks = ground.fill(heap, 1, block_bytes, true)?;
        ground.timed(heap, row, COUNTED, || {
            (0..COUNTED).try_for_each(|round| {
                heap.transaction(durability, |transaction| -> Result<()> {
                    for range in 0..ranges {
                        let at = (range * DISTANCE) as usize;
                        transaction.write(blocks[0], at, bytes)?.fill(round as u8);
                    }
                    Ok(())
                })
            })
        })?;
        ground.free_all(heap, &blocks)?;
    }
    Ok(())
}
