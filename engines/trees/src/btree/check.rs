//! The structural check of a B-tree.

use adamant_heap::access::Read;
use adamant_wire::key::head_of;

use super::find::Top;
use super::layout::{LABEL, Node};
use crate::checking::Checking;
use crate::error::Result;
use crate::kind::{damaged, head};
use crate::pairs::Pairs;
use crate::slot::Slot;
use crate::words::Form;

/// A node still to be checked, and the keys that bound its own.
struct Waiting<'r> {
    block: u64,
    level: usize,
    lower: Option<&'r [u8]>,
    upper: Option<&'r [u8]>,
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
    let top = Top::of(read, tree)?;
    let (part, mut pairs) = (checking.begin(is_wanted), Pairs::after(checking.report));
    pairs.block(tree)?;
    let mut waiting = Vec::new();
    if top.root != 0 {
        waiting.push(Waiting { block: top.root, level: top.height, lower: None, upper: None });
    } else if top.height != 0 {
        return damaged(tree, "has levels but no root");
    }
    while let Some(Waiting { block, level, lower, upper }) = waiting.pop() {
        if let Some(rest) = part.end(&pairs.report, upper) {
            checking.pause(pairs.report, rest);
            return Ok(false);
        }
        pairs.block(block)?;
        let node = Node::at(read, block, level, top.order)?;
        if node.pairs.len() < top.pairs_min() && block != top.root {
            return damaged(block, "has fewer pairs than a node must have");
        }
        let mut bounds = vec![lower];
        for pair in node.pairs {
            let key = match top.form {
                Form::Entries => pairs.pair(read, Slot(pair.slot.get()))?.key,
                Form::Words => {
                    let entry = top.entry(read, pair)?;
                    pairs.words(entry);
                    entry.key
                }
            };
            if top.form.number(pair.head) != head_of(key, 0) {
                return damaged(block, "has a head that is not its key's");
            }
            let below = bounds[bounds.len() - 1];
            if below.is_some_and(|below| key <= below) || upper.is_some_and(|upper| key >= upper) {
                return damaged(block, "has a key that is out of the tree's order");
            }
            bounds.push(Some(key));
        }
        bounds.push(upper);
        for (child, bounds) in node.children.iter().zip(bounds.windows(2)) {
            let [lower, upper] = [bounds[0], bounds[1]];
            if part.is_left(lower) {
                waiting.push(Waiting { block: child.get(), level: level - 1, lower, upper });
            }
        }
        let nodes = match level {
            0 => &mut pairs.report.leaves,
            _ => &mut pairs.report.inner_nodes,
        };
        *nodes += 1;
    }
    pairs.report.height = top.height as u64;
    let nodes = pairs.report.leaves + pairs.report.inner_nodes;
    pairs.report.leaf_slots = nodes * (top.order as u64 - 1);
    pairs.finish(tree, head.pairs.get(), checking)
}
