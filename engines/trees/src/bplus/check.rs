//! The structural check of a B+ tree.
//!
//! Purpose: verifies every rule that the other modules rely on, from the bytes alone.
//! Invariants: each block is visited once, so that the check of a damaged tree ends.

use std::collections::HashSet;

use adamant_heap::access::Read;
use adamant_wire::key::{common_len, head_of};

use super::find::{head, separator};
use super::layout::{CHILDREN_MAX, HEAD_BYTES, Inner, LEAF_FULL, LEAF_SLOTS, Leaf};
use super::sort::Sorted;
use super::tagging::Tagging;
use crate::checking::{Checking, PartRange, Report};
use crate::error::{Error, Result};
use crate::slot::{Entry, KeyHash};

/// A node still to be checked, and the separators that bound its keys.
struct Waiting<'r> {
    block: u64,
    level: usize,
    lower: Option<&'r [u8]>,
    upper: Option<&'r [u8]>,
    only_child: bool,
}

struct Check<'r, 'w, R> {
    read: &'r R,
    part: PartRange<'w>,
    tagging: Tagging,
    seen: HashSet<u64>,
    waiting: Vec<Waiting<'r>>,
    report: Report,
}

/// Checks a part of the tree with this head, from the highest key down. O(n log n) time, 8 bytes
/// and bookkeeping per block.
pub(super) fn check<R: Read>(
    read: &R,
    tree: u64,
    checking: &mut Checking,
    is_wanted: &dyn Fn() -> bool,
) -> Result<bool> {
    let head = head(read, tree)?;
    if read.block(tree)?.len() < HEAD_BYTES {
        return damaged(tree, "is too small for a head");
    }
    let height = head.height.get() as usize;
    let root = Waiting {
        block: head.root.get(),
        level: height,
        lower: None,
        upper: None,
        only_child: true,
    };
    let (part, report) = (checking.begin(is_wanted), checking.report);
    let (tagging, seen, waiting) = (head.tagging(), HashSet::new(), vec![root]);
    let mut check = Check { read, part, tagging, seen, waiting, report };
    check.visit(tree)?;
    while let Some(node) = check.waiting.pop() {
        if let Some(rest) = check.part.end(&check.report, node.upper) {
            checking.pause(check.report, rest);
            return Ok(false);
        }
        check.visit(node.block)?;
        if node.level == 0 {
            check.leaf(&node)?;
        } else {
            check.inner(&node, node.level == height)?;
        }
    }
    let mut report = check.report;
    report.height = height as u64;
    report.leaf_slots = report.leaves * LEAF_SLOTS as u64;
    checking.report = report;
    if !checking.is_whole() {
        return Ok(true);
    }
    if report.pairs != head.pairs.get() {
        return damaged(tree, "counts other pairs than there are");
    }
    if report.leaves != head.leaves.get() || report.inner_nodes != head.inner_nodes.get() {
        return damaged(tree, "counts other nodes than there are");
    }
    Ok(true)
}

fn damaged<T>(block: u64, what: &'static str) -> Result<T> {
    Err(Error::Damaged { block, what })
}

impl<'r, R: Read> Check<'r, '_, R> {
    /// Notes that a block belongs to the tree.
    fn visit(&mut self, block: u64) -> Result<()> {
        if self.seen.insert(block) {
            Ok(())
        } else {
            damaged(block, "is referred to twice by the tree")
        }
    }

    fn inner(&mut self, node: &Waiting<'r>, is_root: bool) -> Result<()> {
        let Waiting { block, level, lower, upper, .. } = *node;
        let inner = Inner::at(self.read, block, level)?;
        let len = inner.len();
        if is_root && len == 1 {
            return damaged(block, "is a root with one child");
        }
        let mut indices = 0u64;
        for index in &inner.order[..len] {
            if usize::from(*index) >= CHILDREN_MAX || indices >> index & 1 == 1 {
                return damaged(block, "has an order that is no permutation");
            }
            indices |= 1 << index;
        }
        let prefix_len = inner.prefix_bytes();
        let fences = lower.zip(upper);
        if fences.is_some_and(|(lower, upper)| common_len(lower, upper) != prefix_len) {
            return damaged(block, "has a prefix that is not that of its bounds");
        }
        let mut bounds = vec![lower];
        for position in 1..len {
            let separator_block = inner.separator(position);
            self.visit(separator_block)?;
            let bytes = separator(self.read, separator_block)?;
            let below = bounds[position - 1];
            if below.is_some_and(|below| bytes <= below) || upper.is_some_and(|up| bytes >= up) {
                return damaged(block, "has separators out of order");
            }
            if inner.head(position) != head_of(bytes, prefix_len) {
                return damaged(block, "has a head that is not its separator's");
            }
            bounds.push(Some(bytes));
        }
        if fences.is_none() {
            let shared_len = match &bounds[1..] {
                _ if self.tagging == Tagging::HASHED => 0,
                [Some(first), .., Some(last)] => common_len(first, last),
                [Some(only)] => only.len(),
                _ => prefix_len,
            };
            if prefix_len > shared_len {
                return damaged(block, "has a prefix that is not that of its separators");
            }
        }
        bounds.push(upper);
        for position in (0..len).filter(|position| self.part.is_left(bounds[*position])) {
            self.waiting.push(Waiting {
                block: inner.child(position),
                level: level - 1,
                lower: bounds[position],
                upper: bounds[position + 1],
                only_child: len == 1,
            });
        }
        self.report.inner_nodes += 1;
        Ok(())
    }

    fn leaf(&mut self, node: &Waiting<'r>) -> Result<()> {
        let Waiting { block, lower, upper, .. } = *node;
        let leaf = Leaf::at(self.read, block)?;
        if leaf.bitmap.get() & !LEAF_FULL != 0 {
            return damaged(block, "uses slots that a leaf does not have");
        }
        if leaf.used() == 0 && !node.only_child {
            return damaged(block, "is an empty leaf beside others");
        }
        let tagging = leaf.tagging();
        if !tagging.admits(self.tagging.narrowed(lower.unwrap_or_default(), upper)) {
            return damaged(block, "has tags that are not those of its bounds");
        }
        for index in leaf.indices() {
            let slot = leaf.slot(index);
            self.visit(slot.entry())?;
            let entry = Entry::read(self.read, slot.entry())?;
            if let Some(value_block) = entry.value_block() {
                self.visit(value_block)?;
                self.report.external_values += 1;
            }
            let hash = KeyHash::of(entry.key);
            if leaf.fingerprints[index] != hash.fingerprint()
                || slot.tag() != tagging.tag(hash, entry.key)
            {
                return damaged(block, "has a fingerprint or slot that is not its key's");
            }
            if lower.is_some_and(|lower| entry.key < lower)
                || upper.is_some_and(|upper| entry.key >= upper)
            {
                return damaged(block, "holds a key that belongs to another leaf");
            }
            self.report.key_bytes += entry.key.len() as u64;
            self.report.value_bytes += entry.value(self.read)?.len() as u64;
            self.report.pairs += 1;
        }
        // It refuses a duplicate key.
        Sorted::new().load(self.read, block)?;
        self.report.leaves += 1;
        Ok(())
    }
}
