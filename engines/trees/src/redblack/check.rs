//! The structural check of a red-black tree.

use adamant_heap::access::Read;
use adamant_wire::key::head_of;

use super::layout::{HEIGHT_MAX, LABEL, Node};
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::pairs::Pairs;
use crate::slot::Slot;
use crate::words::Form;

/// A node still to be checked.
struct Waiting<'r> {
    block: u64,
    lower: Option<&'r [u8]>,
    upper: Option<&'r [u8]>,
    /// Number of nodes above it, and of the black ones among them.
    depth: usize,
    blacks: usize,
    below_red: bool,
}

/// Checks a part of the tree with this head, from the highest key down. O(n) time; 8 bytes and
/// bookkeeping per block.
pub(super) fn check<R: Read>(
    read: &R,
    tree: u64,
    checking: &mut Checking,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool> {
    let head = head(read, tree, LABEL)?;
    let form = Form::of(head);
    let (part, mut pairs) = (checking.begin(is_wanted), Pairs::after(checking.report));
    pairs.block(tree)?;
    // The root must be black, as if it hung below a red node.
    let root = Waiting {
        block: head.root.get(),
        lower: None,
        upper: None,
        depth: 0,
        blacks: 0,
        below_red: true,
    };
    let mut waiting = vec![root];
    let mut blacks_of_all = None;
    while let Some(place) = waiting.pop() {
        let Waiting { block, lower, upper, depth, blacks, below_red } = place;
        if let Some(rest) = part.end(&pairs.report, upper) {
            checking.pause(pairs.report, rest);
            return Ok(false);
        }
        if block == 0 {
            if *blacks_of_all.get_or_insert(blacks) != blacks {
                return damaged(tree, "has ways with different numbers of black nodes");
            }
            continue;
        }
        if depth >= HEIGHT_MAX {
            return damaged(block, "lies deeper than a tree can reach");
        }
        pairs.block(block)?;
        let node = Node::at(read, block)?;
        if node.is_red() && below_red {
            return damaged(block, "is red, and so is the node above it, or it is the root");
        }
        let key = match form {
            Form::Entries => pairs.pair(read, Slot(node.slot.get()))?.key,
            Form::Words => {
                let entry = node.entry(read, form)?;
                pairs.words(entry);
                entry.key
            }
        };
        if form.number(node.head) != head_of(key, 0) {
            return damaged(block, "has a head that is not its key's");
        }
        if lower.is_some_and(|lower| key <= lower) || upper.is_some_and(|upper| key >= upper) {
            return damaged(block, "has a key that is out of the tree's order");
        }
        let (depth, below_red) = (depth + 1, node.is_red());
        let blacks = blacks + usize::from(!below_red);
        for (child, lower, upper) in
            [(node.child(false), lower, Some(key)), (node.child(true), Some(key), upper)]
        {
            // Of a subtree that was visited, one path, so that all parts have the same number on
            // all paths.
            let block = if part.is_left(lower) { child } else { 0 };
            let blacks = if block == child { blacks } else { blacks + blacks_below(read, child)? };
            waiting.push(Waiting { block, lower, upper, depth, blacks, below_red });
        }
        pairs.report.inner_nodes += 1;
        pairs.report.height = pairs.report.height.max(depth as u64 - 1);
    }
    pairs.report.leaf_slots = pairs.report.pairs;
    pairs.finish(tree, head.pairs.get(), checking)
}

/// Black nodes on the path to the lowest key below a node; 0 for none. O(log n).
fn blacks_below<R: Read>(read: &R, mut block: u64) -> Result<usize> {
    let mut blacks = 0;
    for _ in 0..HEIGHT_MAX {
        if block == 0 {
            return Ok(blacks);
        }
        let node = Node::at(read, block)?;
        blacks += usize::from(!node.is_red());
        block = node.child(false);
    }
    damaged(block, "lies deeper than a tree can reach")
}
