//! Estimates of a range in a B+ tree.
//!
//! Purpose: the paths to both ends of a range tell which children lie between them at each level.
//! The leaves at the ends are counted; of the subtrees between, some are sampled, evenly spaced, by
//! one path down each: the product of its fan-outs estimates the leaves of the subtree without bias
//! (Knuth, 1975), and fan-outs of a B+ tree differ little.
//! Invariants: a range that ends in one leaf, or in two with none between, is counted exactly.

use std::ops::Bound;

use adamant_heap::access::Read;
use adamant_wire::key::{is_above, is_below};

use super::find::{Path, Step, Target, head, path};
use super::layout::{INNER_BYTES, Inner, LEAF_BYTES, Leaf};
use crate::error::Result;
use crate::estimate::{Bounds, Estimate, Seen, Spread};

/// Subtrees that are sampled at the highest level at which some lie between the ends.
const SAMPLES: u32 = 16;
/// The same at each level below, at each end: they hold less than one of those above.
const SAMPLES_BELOW: u32 = 2;
/// Entries of a leaf that are looked at for their lengths.
const LOOKED_AT: usize = 12;
/// Approximate bytes of the block of a separator.
const SEPARATOR_BYTES: f64 = 32.0;

/// The estimate. O(log^2 n): for a million entries some 100 nodes.
pub(super) fn estimate<R: Read>(read: &R, tree: u64, bounds: Bounds<'_>) -> Result<Estimate> {
    let (pairs, leaves, inner_nodes) = {
        let head = head(read, tree)?;
        (head.pairs.get() as f64, head.leaves.get() as f64, head.inner_nodes.get() as f64)
    };
    let nodes = leaves * (LEAF_BYTES as f64 + SEPARATOR_BYTES) + inner_nodes * INNER_BYTES as f64;
    let node_bytes = if pairs > 0.0 { nodes / pairs } else { 0.0 };
    let target = |bound, end| match bound {
        Bound::Included(key) | Bound::Excluded(key) => Target::Key(key),
        Bound::Unbounded => end,
    };
    let low = path(read, tree, target(bounds.0, Target::First))?;
    let high = path(read, tree, target(bounds.1, Target::Last))?;
    let mut ends = Seen::default();
    count_leaf(read, low.leaf, bounds, &mut ends)?;
    if low.leaf == high.leaf {
        return Ok(ends.estimate(node_bytes, true));
    }
    count_leaf(read, high.leaf, bounds, &mut ends)?;
    let between = between(read, &low, &high)?;
    let is_all = matches!(bounds, (Bound::Unbounded, Bound::Unbounded));
    let Some(between) = between.filter(|_| !is_all || pairs > ends.entries) else {
        return Ok(ends.estimate(node_bytes, true));
    };
    let most = (pairs - ends.entries).max(0.0);
    let entries = if is_all { most } else { between.entries.round().min(most) };
    Ok(ends.and(between.scaled(entries)).estimate(node_bytes, is_all))
}

/// Adds the entries of a leaf within bounds.
fn count_leaf<R: Read>(
    read: &R,
    leaf: u64,
    (lower, upper): Bounds<'_>,
    seen: &mut Seen,
) -> Result<()> {
    let leaf = Leaf::at(read, leaf)?;
    for index in leaf.indices() {
        let entry = leaf.slot(index).entry();
        let mut one = Seen::default();
        let key = one.add(read, entry, 1.0)?;
        if is_above(key, lower) && is_below(key, upper) {
            *seen = seen.and(one);
        }
    }
    Ok(())
}

/// The estimate of all leaves between two paths; `None` if there are none.
fn between<R: Read>(read: &R, low: &Path, high: &Path) -> Result<Option<Seen>> {
    let steps = low.steps.iter().zip(&high.steps).take(low.height);
    let is_apart = |(low, high): (&Step, &Step)| low.position != high.position;
    let Some(parting) = steps.clone().position(is_apart) else { return Ok(None) };
    let mut found: Option<Seen> = None;
    for (depth, (low_step, high_step)) in steps.enumerate().skip(parting) {
        let groups = match depth == parting {
            true => [Some((low_step, low_step.position + 1..high_step.position)), None],
            false => [
                Some((low_step, low_step.position + 1..low_step.count)),
                Some((high_step, 0..high_step.position)),
            ],
        };
        let samples = if found.is_none() { SAMPLES } else { SAMPLES_BELOW };
        for (step, positions) in groups.into_iter().flatten() {
            let children = u32::from(positions.end.saturating_sub(positions.start));
            if children == 0 {
                continue;
            }
            let level = low.level(depth);
            let samples = samples.min(children);
            let mut seen = Seen::default();
            for index in 0..samples {
                let mut spread = Spread::of(index, samples);
                let inner = Inner::at(read, step.node, level)?;
                let chosen = usize::from(positions.start) + spread.choose(children as usize);
                let weight = f64::from(children) / f64::from(samples);
                descend(read, (inner.child(chosen), level - 1), spread, weight, &mut seen)?;
            }
            found = Some(found.unwrap_or_default().and(seen));
        }
    }
    Ok(found)
}

/// Follows one path down from a node, which stands for so many, and adds its leaf.
fn descend<R: Read>(
    read: &R,
    (mut node, levels): (u64, usize),
    mut spread: Spread,
    mut weight: f64,
    seen: &mut Seen,
) -> Result<()> {
    for level in (1..=levels).rev() {
        let inner = Inner::at(read, node, level)?;
        weight *= inner.len() as f64;
        node = inner.child(spread.choose(inner.len()));
    }
    let leaf = Leaf::at(read, node)?;
    let entries = leaf.indices().count();
    let step = entries.div_ceil(LOOKED_AT).max(1);
    let looked_at = leaf.indices().step_by(step);
    let each = weight * entries as f64 / looked_at.clone().count().max(1) as f64;
    for index in looked_at {
        seen.add(read, leaf.slot(index).entry(), each)?;
    }
    Ok(())
}
