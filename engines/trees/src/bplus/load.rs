//! Bulk insertion of sorted pairs.
//!
//! Purpose: a run of keys that all lie between two neighbours of the tree, or beyond its end, goes
//! into leaves that are written once, full, in order; the slots above the run move after it. One by
//! one, each of the keys would be routed to its leaf, and the leaf searched, 48 times.
//! Invariants: pairs that lie among existing ones take the ordinary path. A load or a batch that
//! cannot benefit costs nothing more: `batch.rs` looks here only if 16 changes have one leaf.

use adamant_heap::access::{Read, Write};

use super::find::{Path, Target, lower_bound, path as path_of, upper_bound};
use super::layout::{HEAD_LEAVES_AT, HEAD_PAIRS_AT, LEAF_BITMAP_AT, LEAF_SLOTS, Leaf, branch};
use super::sort::Sorted;
use super::split::{add_child, check_height, shortest_between};
use super::write::{add, fill_leaf, new_leaf, new_separator, retag_leaf};
use crate::error::Result;
use crate::slot::{KeyHash, Slot, write_entry};
use crate::tree::Operation;

/// Minimum pairs of a run: a third of a leaf, as many as `batch.rs` routes together.
pub(super) const RUN_MIN: usize = 16;

/// A gap between two neighbours of a tree, and the run that fills it.
struct Gap {
    path: Path,
    /// Pairs of the run.
    run: usize,
    /// Slots of the leaf in use.
    used: u64,
    /// Number of entries of the leaf below the gap.
    below: usize,
    /// Slots of the entries above it, in key order.
    above: Vec<(u8, Slot)>,
    /// Those of them that leave the old leaf, as bits of its slots.
    leaving: u64,
    /// The separators between the old leaf and the first new one, between that and the next, and so
    /// on.
    separators: Vec<Vec<u8>>,
    /// The bounds of the old leaf.
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// Makes the first operations if they are enough puts with ascending keys in one gap of the leaf of
/// a path, which is that of the first; returns how many.
pub(super) fn fill_gap<W: Write>(
    tx: &mut W,
    tree: u64,
    path: Path,
    operations: &[Operation<'_>],
) -> Result<Option<usize>> {
    let Some(gap) = gap(tx, path, operations)? else { return Ok(None) };
    fill(tx, tree, &gap, &operations[..gap.run])?;
    Ok(Some(gap.run))
}

/// The gap of the path's leaf that the first operations lie in, if it takes enough of them.
fn gap<R: Read>(read: &R, path: Path, operations: &[Operation<'_>]) -> Result<Option<Gap>> {
    let Some(first) = operations.first().map(|operation| operation.key) else { return Ok(None) };
    let fence = upper_bound(read, &path)?;
    let mut sorted = Sorted::new();
    sorted.load(read, path.leaf)?;
    let below = sorted.rank(read, first, false)?;
    let mut above = Vec::with_capacity(sorted.len() - below);
    for position in below..sorted.len() {
        above.push(sorted.entry(read, position)?.key);
    }
    let end = above.first().copied().into_iter().chain(fence).min();
    let mut run = 0;
    let mut before: Option<&[u8]> = None;
    for Operation { key, .. } in operations.iter().take_while(|put| put.value.is_some()) {
        if before.is_some_and(|before| before >= *key) || end.is_some_and(|end| *key >= end) {
            break;
        }
        (run, before) = (run + 1, Some(*key));
    }
    if run < RUN_MIN {
        return Ok(None);
    }
    let leaf = Leaf::at(read, path.leaf)?;
    let slots: Vec<usize> = (below..sorted.len()).map(|position| sorted.slot(position)).collect();
    let mut gap = Gap {
        path,
        run,
        used: leaf.used(),
        below,
        above: slots.iter().map(|slot| (leaf.fingerprints[*slot], leaf.slot(*slot))).collect(),
        leaving: 0,
        separators: Vec::new(),
        lower: lower_bound(read, &path)?.to_vec(),
        upper: fence.map(<[u8]>::to_vec),
    };
    let keys: Vec<&[u8]> =
        operations[..run].iter().map(|operation| operation.key).chain(above).collect();
    let mut start = LEAF_SLOTS - below;
    gap.leaving =
        slots.iter().skip(start.saturating_sub(run)).fold(0, |bits, slot| bits | 1 << slot);
    while start < keys.len() {
        let before = match start.checked_sub(1) {
            Some(before) => keys[before],
            None => sorted.entry(read, below - 1)?.key,
        };
        gap.separators.push(shortest_between(path.leaf, before, keys[start])?);
        start += LEAF_SLOTS;
    }
    Ok(Some(gap))
}

/// Fills a gap: first the free slots of its leaf, then new leaves.
fn fill<W: Write>(tx: &mut W, tree: u64, gap: &Gap, run: &[Operation<'_>]) -> Result<()> {
    let mut path = gap.path;
    let Gap { lower, upper, .. } = gap;
    let tagging = Leaf::at(tx, path.leaf)?.tagging();
    let mut slots = Vec::with_capacity(run.len() + gap.above.len());
    for (key, value) in run.iter().filter_map(|put| Some((put.key, put.value?))) {
        let hash = KeyHash::of(key);
        let entry = write_entry(tx, key, value)?;
        slots.push((hash.fingerprint(), Slot::tagged(tagging.tag(hash, key), entry)));
    }
    let end = |index: usize| gap.separators.get(index).or(upper.as_ref()).map(Vec::as_slice);
    let staying = slots.len().min(LEAF_SLOTS - gap.below);
    let gained = tagging.gained(tagging.narrowed(lower, end(0)));
    if gained != tagging {
        // Before the leaf is filled: fewer tags are written a second time.
        retag_leaf(tx, path.leaf, gained, lower)?;
        for (_, slot) in &mut slots[..staying] {
            *slot = gained.retag(tx, *slot, (tagging, lower))?;
        }
    }
    let used = gap.used & !gap.leaving;
    if staying > 0 {
        fill_leaf(tx, path.leaf, used, &slots[..staying])?;
    } else {
        tx.update_u64(path.leaf, LEAF_BITMAP_AT, used)?;
    }
    slots.extend_from_slice(&gap.above);
    let moved = slots.get_mut(LEAF_SLOTS - gap.below..).unwrap_or_default();
    for (index, (chunk, bytes)) in moved.chunks_mut(LEAF_SLOTS).zip(&gap.separators).enumerate() {
        if let Some(before) = index.checked_sub(1) {
            // The path to the leaf that was added last, which is that of its own separator.
            path = path_of(tx, tree, Target::Key(&gap.separators[before]))?;
        }
        check_height(tx, &path)?;
        let of_new = tagging.narrowed(bytes, end(index + 1));
        for (_, slot) in &mut *chunk {
            *slot = of_new.retag(tx, *slot, (tagging, lower))?;
        }
        let leaf = new_leaf(tx, of_new, chunk)?;
        add(tx, tree, HEAD_LEAVES_AT, 1)?;
        let separator = new_separator(tx, bytes)?;
        let left = path.leaf;
        add_child(tx, tree, &path, left, branch(separator, leaf))?;
    }
    add(tx, tree, HEAD_PAIRS_AT, run.len() as i64)
}
