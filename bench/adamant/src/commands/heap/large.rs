//! Transactions of millions of operations: memory for each, and whether the last costs as much as
//! the first.

use adamant_heap::{Heap, Transaction, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::{memory_peak_bytes, memory_peak_reset, thread_seconds};
use crate::harness::report::Unit;

/// Bytes of the blocks whose words are set, so that words of one block are spread over the
/// transaction.
const BLOCK_BYTES: u64 = 4_096;
const WORDS: u64 = BLOCK_BYTES / 8;
/// Number of parts of a transaction, the first and last of which are compared.
const PARTS: u64 = 10;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.large_operations / WORDS * WORDS;
    let heap = ground.empty_heap()?;
    // Pages are in memory before, so that only the transaction's own memory is measured.
    let blocks = ground.fill(&heap, count / WORDS, BLOCK_BYTES, true)?;
    large(ground, &heap, "set", count, |transaction, number| {
        // Neighbours are set far apart in time.
        let block = blocks[(number % blocks.len() as u64) as usize];
        let at = (number / blocks.len() as u64) as usize * 8;
        Ok(transaction.update_u64(block, at, !number)?)
    })?;
    ground.finish(heap)?;
    let heap = ground.touched_heap(count)?;
    large(ground, &heap, "alloc", count, |transaction, _| {
        transaction.reserve(OBJECT_BYTES)?;
        Ok(())
    })?;
    ground.finish(heap)
}

/// One transaction of `count` operations.
fn large(
    ground: &mut Ground<'_>,
    heap: &Heap,
    what: &str,
    count: u64,
    mut operation: impl FnMut(&mut Transaction<'_>, u64) -> Result<()>,
) -> Result<()> {
    let durability = ground.durability();
    let part = count / PARTS;
    let mut seconds = Vec::new();
    memory_peak_reset()?;
    let before = memory_peak_bytes()?;
    ground.timed(heap, &format!("tx.large.{what}"), count, || {
        heap.transaction(durability, |transaction| {
            for first in (0..part * PARTS).step_by(part as usize) {
                let start = thread_seconds();
                (first..first + part).try_for_each(|number| operation(transaction, number))?;
                seconds.push(thread_seconds() - start);
            }
            (part * PARTS..count).try_for_each(|number| operation(transaction, number))
        })
    })?;
    let bytes = memory_peak_bytes()?.saturating_sub(before) as f64 / count as f64;
    ground.add(&format!("tx.large.{what}.memory"), Unit::Bytes, count, bytes);
    let flat = seconds[seconds.len() - 1] / seconds[0];
    ground.add(&format!("tx.large.{what}.last_by_first"), Unit::Share, count, flat);
    Ok(())
}
