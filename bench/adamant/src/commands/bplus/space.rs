//! Space of a tree in the heap, leftovers after deletion, and the time to open it.

use crate::commands::bplus::ground::Ground;
use crate::commands::heap::used_bytes;
use crate::harness::error::Result;
use crate::harness::measure::median;
use crate::harness::report::Unit;

/// Openings in a round, whose median is its figure.
const OPENINGS: usize = 5;

/// Bytes of keys and values divided by bytes of used pages, of a newly filled tree.
pub(super) fn efficiency(ground: &mut Ground<'_>) -> Result<()> {
    let pairs = ground.settings.pairs;
    let user_bytes = pairs * ground.records.record_bytes();
    let used = used_bytes(ground.tree()?.0)?;
    ground.add("efficiency", Unit::Speedup, pairs, user_bytes as f64 / used as f64);
    Ok(())
}

/// After all pairs are deleted: bytes of blocks beyond those of an empty tree, and of pages that
/// are not free again.
pub(super) fn left(ground: &mut Ground<'_>) -> Result<()> {
    let pairs = ground.settings.pairs;
    let (heap, _) = ground.tree()?;
    let allocated = heap.occupancy()?.allocated_bytes() as f64 - ground.empty_bytes as f64;
    ground.add("left", Unit::Bytes, pairs, allocated);
    let used = used_bytes(ground.tree()?.0)?;
    ground.add("left.pages", Unit::Bytes, pairs, used as f64);
    Ok(())
}

/// The time until a heap with a tree is open and the first get has returned.
pub(super) fn reopen(ground: &mut Ground<'_>) -> Result<()> {
    let pairs = ground.settings.pairs;
    let times: Result<Vec<f64>> = (0..OPENINGS).map(|_| ground.reopen()).collect();
    ground.verify(pairs, 2)?;
    ground.add("reopen", Unit::Milliseconds, pairs, median(times?));
    Ok(())
}
