//! Verifying a whole tree.
//!
//! The node between two neighbours in the order of keys must be the one that names the first bit
//! in which they differ, and places must rise on each way down: no other rule is needed.

use adamant_heap::access::Read;

use super::find::difference;
use super::layout::{LABEL, Node, PRESENT, Word, place};
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::pairs::Pairs;
use crate::tree::Report;

/// A word still to be looked at, in the order of keys.
struct Waiting {
    word: Word,
    /// One past the place of the node above.
    floor: u64,
    /// Nodes above it.
    depth: u64,
    /// The node that lies between the pair before and the first pair of this word.
    between: Option<(u64, u32)>,
}

/// Checks the tree with this head. O(n) time; 8 bytes and bookkeeping per block.
pub(super) fn check<R: Read>(read: &R, tree: u64) -> Result<Report> {
    let head = head(read, tree, LABEL)?;
    let mut pairs = Pairs::default();
    pairs.block(tree)?;
    let mut waiting = Vec::new();
    if head.root.get() != 0 {
        let word = Word(head.root.get());
        waiting.push(Waiting { word, floor: 0, depth: 0, between: None });
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
    }
    pairs.report.leaf_slots = pairs.report.pairs;
    pairs.finish(tree, head.pairs.get())
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
