//! Creating and opening heaps.

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::{disk_bytes, once};
use crate::harness::report::Unit;

/// How often a heap is opened; the minimum counts, as for a warm cache.
const TIMES: u64 = 5;
const MEBIBYTE: f64 = (1 << 20) as f64;

/// All rows of this group. A heap is created without a size: its file grows with use.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let directory = ground.fresh_directory();
    let (heap, created) = once(|| ground.open(&directory))?;
    ground.add("create.large", Unit::Milliseconds, 1, created.milliseconds());
    let used = disk_bytes(&directory)? as f64 / MEBIBYTE;
    ground.add("create.large.used", Unit::Mebibytes, 1, used);
    heap.close()?;
    drop(heap);
    let least = open_again(ground, &directory)?;
    ground.add("open.large", Unit::Milliseconds, TIMES, least);

    let directory = ground.fresh_directory();
    let heap = ground.open(&directory)?;
    let count = ground.settings.inserts;
    ground.fill(&heap, count, OBJECT_BYTES, true)?;
    heap.close()?;
    drop(heap);
    let least = open_again(ground, &directory)?;
    ground.add("open.objects", Unit::Milliseconds, count, least);
    Ok(())
}

/// Milliseconds of the fastest of several openings of a closed heap.
fn open_again(ground: &Ground<'_>, directory: &std::path::Path) -> Result<f64> {
    let mut least = f64::MAX;
    for _ in 0..TIMES {
        let (heap, opened) = once(|| ground.open(directory))?;
        least = least.min(opened.milliseconds());
        heap.close()?;
    }
    Ok(least)
}
