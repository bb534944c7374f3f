//! Estimates of a range in the trees of single pairs.
//!
//! Purpose: nodes of these trees have few children or tell little of their keys, so up to
//! [`COUNTED_MAX`] entries are counted, and of a longer range its share is taken among entries that
//! are evenly spaced over the tree. The shape of a crit-bit tree is that of its keys: where most of
//! them share a rare start, most paths end elsewhere, and the estimate is no more than a hint.
//! Invariants: no path follows more links than a tree can have levels, so that it ends in a damaged
//! tree.

use std::ops::Bound;

use adamant_heap::access::Read;
use adamant_wire::key::{is_above, is_below};

use crate::cursor::PairCursor;
use crate::error::Result;
use crate::estimate::{Bounds, Estimate, Seen, Spread};
use crate::kind::{Kind, Link, damaged, head};
use crate::slot::KEY_BYTES_MAX;
use crate::tree::{Cursor, Seek};
use crate::words::WORD_BYTES;

/// The most entries of a range that are counted one by one.
const COUNTED_MAX: u64 = 1_000;
/// Paths from the root of a tree to its lower end that a sample follows.
const PATHS: u32 = 256;
/// The most nodes that a sample reads: then what was seen stands for all.
const VISITS_MAX: u32 = 64 << 10;
/// More than any entry stands for; sums of so many stay finite.
const WEIGHT_MAX: f64 = 1e200;
/// More levels than any of the trees can have: a crit-bit tree has one for each bit of a key.
const LEVELS_MAX: u32 = 9 * (KEY_BYTES_MAX as u32 + 1);

/// The estimate of a range of a tree of single pairs. O(log n), and up to [`COUNTED_MAX`] entries.
pub(crate) fn estimate<K: Kind, R: Read>(
    read: &R,
    tree: u64,
    bounds: Bounds<'_>,
) -> Result<Estimate> {
    let pairs = head(read, tree, K::LABEL)?.pairs.get();
    let is_all = matches!(bounds, (Bound::Unbounded, Bound::Unbounded));
    let counted = if is_all { None } else { count::<K, R>(read, tree, bounds)? };
    if let Some(entries) = counted.filter(|entries| *entries == 0) {
        return Ok(Estimate { entries, is_exact: true, ..Estimate::default() });
    }
    let Sample { within, all, node_bytes } = sample::<K, R>(read, tree, bounds)?;
    let share = if all.entries > 0.0 { within.entries / all.entries } else { 0.0 };
    let entries = match counted {
        _ if is_all => pairs as f64,
        Some(entries) => entries as f64,
        // There are more than were counted, and no more than all.
        None => (share * pairs as f64).max(COUNTED_MAX as f64 + 1.0).min(pairs as f64),
    };
    let node_bytes = if all.entries > 0.0 { node_bytes / all.entries } else { 0.0 };
    // Few of a short range are in the sample: the mean of all is as good then.
    let means = if within.entries > 0.0 { within } else { all };
    Ok(means.scaled(entries).estimate(node_bytes, is_all || counted.is_some()))
}

/// The number of entries, unless there are more than [`COUNTED_MAX`].
fn count<K: Kind, R: Read>(read: &R, tree: u64, (lower, upper): Bounds<'_>) -> Result<Option<u64>> {
    let mut cursor = PairCursor::<'_, R, K::Trail>::new(read, tree);
    cursor.seek(Seek::lower(lower))?;
    for entries in 0..=COUNTED_MAX {
        match cursor.next()? {
            Some((key, _)) if is_below(key, upper) => {}
            _ => return Ok(Some(entries)),
        }
    }
    Ok(None)
}

/// What a sample of a tree holds.
#[derive(Default)]
struct Sample {
    /// Its entries within the bounds.
    within: Seen,
    all: Seen,
    node_bytes: f64,
}

/// Follows some paths, evenly spread, and looks at one entry of each node on them.
fn sample<K: Kind, R: Read>(read: &R, tree: u64, bounds: Bounds<'_>) -> Result<Sample> {
    let head = head(read, tree, K::LABEL)?;
    let mut sample = Sample::default();
    let mut visits = 0;
    for path in 0..PATHS {
        let mut spread = Spread::of(path, PATHS);
        let mut weight = 1.0;
        let mut next = K::root(head);
        let (mut levels, mut nodes, mut last) = (0, 0.0, 0);
        while let Some(link) = next.take() {
            let (block, level) = match link {
                Link::Node { block, level } => (block, level),
                link => {
                    sample.look(read, link, weight, bounds)?;
                    break;
                }
            };
            levels += 1;
            visits += 1;
            if levels > LEVELS_MAX {
                return damaged(block, "is deeper than a tree can be");
            }
            if visits > VISITS_MAX {
                return Ok(sample);
            }
            let mut links = Vec::new();
            K::links(read, head, (block, level), &mut links)?;
            nodes += weight;
            last = block;
            let (below, pairs): (Vec<Link>, Vec<Link>) =
                links.into_iter().partition(|link| matches!(link, Link::Node { .. }));
            if !pairs.is_empty() {
                let chosen = spread.clone().choose(pairs.len());
                sample.look(read, pairs[chosen], weight * pairs.len() as f64, bounds)?;
            }
            if !below.is_empty() {
                weight = (weight * below.len() as f64).min(WEIGHT_MAX);
                next = Some(below[spread.choose(below.len())]);
            }
        }
        if nodes > 0.0 {
            // Most nodes are at the lower end.
            sample.node_bytes += nodes * read.block(last)?.len() as f64;
        }
    }
    Ok(sample)
}

impl Sample {
    /// Looks at a pair that stands for so many.
    fn look<R: Read>(
        &mut self,
        read: &R,
        link: Link,
        weight: f64,
        (lower, upper): Bounds<'_>,
    ) -> Result<()> {
        let mut seen = Seen::default();
        let key = match link {
            Link::Entry(slot) => seen.add(read, slot.entry(), weight)?,
            Link::Words { block, key_at, .. } => {
                seen.add_within(2 * WORD_BYTES, weight);
                let word = read.block(block)?.get(key_at..key_at + WORD_BYTES);
                let Some(word) = word else { return damaged(block, "is too small for a node") };
                word
            }
            Link::Node { .. } => return Ok(()),
        };
        self.all = self.all.and(seen);
        if is_above(key, lower) && is_below(key, upper) {
            self.within = self.within.and(seen);
        }
        Ok(())
    }
}
