//! The structural check of a crit-bit tree.
//!
//! The node between two neighbours in the order of keys must be the one that names the first bit in
//! which they differ, and places must rise on each path down: no other rule is needed.

use adamant_heap::access::Read;

use super::find::{difference, most_like};
use super::layout::{LABEL, Node, PRESENT, Word, place};
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::pairs::Pairs;
use crate::visit::entry;

/// A word still to be visited, in the order of keys.
struct Waiting {
    word: Word,
    /// One past the place of the node above.
    floor: u64,
    /// Number of nodes above it.
    depth: u64,
    /// The node that lies between the previous pair and the first pair of this word.
    between: Option<(u64, u32)>,
}

/// Checks a part of the tree with this head, from the lowest key up. O(n) time; 8 bytes and
/// bookkeeping per block.
pub(super) fn check<R: Read>(
    read: &R,
    tree: u64,
    checking: &mut Checking,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool> {
    let head = head(read, tree, LABEL)?;
    let (part, mut pairs) = (checking.begin(is_wanted), Pairs::after(checking.report));
    pairs.block(tree)?;
    let mut waiting = Vec::new();
    if head.root.get() != 0 {
        let root = Waiting { word: Word(head.root.get()), floor: 0, depth: 0, between: None };
        match &part.rest {
            Some(last) => behind(read, tree, &mut pairs, (root, last), &mut waiting)?,
            None => waiting.push(root),
        }
    }
    let mut before: Option<&[u8]> = None;
    while let Some(Waiting { word, floor, depth, between }) = waiting.pop() {
        let Some(slot) = word.slot() else {
            let node = node(read, &mut pairs, word.0, floor)?;
            let (floor, depth) = (u64::from(node.place()) + 1, depth + 1);
            let own = Some((word.0, node.place()));
            waiting.push(Waiting { word: node.child(true), floor, depth, between: own });
            waiting.push(Waiting { word: node.child(false), floor, depth, between });
            continue;
        };
        let entry = pairs.pair(read, slot)?;
        pairs.report.height = pairs.report.height.max(depth);
        if let (Some(before), Some((block, between))) = (before, between) {
            let is_so = difference(entry.key, before)
                .is_some_and(|found| found.side && place(found.byte, found.mask) == between);
            if !is_so {
                return damaged(block, "has a critical bit that is not that of its keys");
            }
        }
        before = Some(entry.key);
        if !waiting.is_empty() && part.is_over(&pairs.report) {
            checking.pause(pairs.report, entry.key);
            return Ok(false);
        }
    }
    pairs.report.leaf_slots = pairs.report.pairs;
    pairs.finish(tree, head.pairs.get(), checking)
}

/// The rest of a tree after a key, which may no longer be there. O(log n).
fn behind<R: Read>(
    read: &R,
    tree: u64,
    pairs: &mut Pairs,
    (root, last): (Waiting, &[u8]),
    waiting: &mut Vec<Waiting>,
) -> Result<()> {
    let Some(like) = most_like(read, tree, last)? else { return Ok(()) };
    // Below that place the bits do not tell the side of `last`: all keys are on one side of it.
    let found = difference(entry(read, like)?.key, last);
    let end = found.map_or(u64::MAX, |found| place(found.byte, found.mask).into());
    let Waiting { mut word, mut floor, mut depth, between } = root;
    let mut between = between;
    while word.slot().is_none() {
        let node = Node::at(read, word.0)?;
        if u64::from(node.place()) >= end {
            break;
        }
        let node = self::node(read, pairs, word.0, floor)?;
        (floor, depth) = (u64::from(node.place()) + 1, depth + 1);
        let own = Some((word.0, node.place()));
        let side = node.side(last);
        if side {
            between = own;
        } else {
            waiting.push(Waiting { word: node.child(true), floor, depth, between: own });
        }
        word = node.child(side);
    }
    if found.is_some_and(|found| found.side) {
        waiting.push(Waiting { word, floor, depth, between });
    }
    Ok(())
}

fn node<'r, R: Read>(read: &'r R, pairs: &mut Pairs, block: u64, floor: u64) -> Result<&'r Node> {
    pairs.block(block)?;
    let node = Node::at(read, block)?;
    let mask = node.mask.get();
    if !mask.is_power_of_two() || mask > PRESENT {
        return damaged(block, "has a mask that is not one bit");
    }
    if u64::from(node.place()) < floor {
        return damaged(block, "has a critical bit before that of the node above");
    }
    pairs.report.inner_nodes += 1;
    Ok(node)
}
