//! Space overhead of objects.

use adamant_heap::{Read, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::report::Unit;

/// The step between sizes, and the number of sizes up to 4 MiB.
const STEP: u64 = 100;
const SIZES: u64 = 41_943;
/// Sizes that are plotted one by one, and the sampling interval of the others: a prime, so that the
/// samples fall on all positions within a page.
const POINTS: u64 = 1_000;
const SHOWN_EVERY: u64 = 37;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    fragmentation(ground)?;
    for bytes in [OBJECT_BYTES, 8] {
        heap_bytes(ground, bytes)?;
    }
    Ok(())
}

/// The unused share of a block's bytes, over sizes.
fn fragmentation(ground: &mut Ground<'_>) -> Result<()> {
    let heap = ground.empty_heap()?;
    let every = (SIZES / ground.settings.sizes.clamp(1, SIZES)) as usize;
    let mut all = Vec::new();
    for number in (0..SIZES).step_by(every) {
        let asked = STEP * (number + 1);
        let bytes = heap.transaction(ground.durability(), |transaction| -> Result<u64> {
            let block = transaction.reserve(asked)?;
            let bytes = transaction.block(block)?.len() as u64;
            transaction.free(block)?;
            Ok(bytes)
        })?;
        all.push((number, asked as f64, (bytes - asked) as f64 / bytes as f64 * 100.0));
    }
    let count = all.len() as u64;
    let sum: f64 = all.iter().map(|(_, _, percent)| percent).sum();
    let most = all.iter().map(|(_, _, percent)| *percent).fold(0.0, f64::max);
    ground.add("fragmentation.average", Unit::Percent, count, sum / count as f64);
    ground.add("fragmentation.maximum", Unit::Percent, count, most);
    let is_shown = |number: u64| number < POINTS || number.is_multiple_of(SHOWN_EVERY);
    let shown = all.iter().filter(|(number, _, _)| is_shown(*number));
    let points: Vec<(f64, f64)> = shown.map(|(_, asked, percent)| (*asked, *percent)).collect();
    ground.add_curve("fragmentation", &points);
    ground.finish(heap)
}

/// Bytes of the heap for each of many objects.
fn heap_bytes(ground: &mut Ground<'_>, bytes: u64) -> Result<()> {
    let heap = ground.empty_heap()?;
    let count = ground.settings.inserts;
    let before = heap.stats().used_bytes;
    ground.fill(&heap, count, bytes, false)?;
    let used = heap.stats().used_bytes - before;
    ground.add(&format!("heap.bytes.{bytes}"), Unit::Bytes, count, used as f64 / count as f64);
    ground.finish(heap)
}
