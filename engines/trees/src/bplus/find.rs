//! Search: from a key to its leaf and slot.
//!
//! Purpose: routing through inner nodes, the path of a descent, the search of a leaf.
//! Invariants: a path is valid until nodes are split or merged. No descent follows more levels than
//! the head's height, which is bounded, so that it ends in a damaged tree.

use adamant_heap::access::Read;
use adamant_heap::ptr::Ptr;
use adamant_wire::key::{common_len, head_of};
use adamant_wire::varint;

use super::layout::{
    Branch, CHILDREN_MAX, HEAD_MAGIC, HEAD_MAGIC_HASHED, HEIGHT_MAX, Head, INNER_BRANCHES_AT,
    Inner, LEAF_BYTES, Leaf, branch,
};
use crate::error::{Error, Result};
use crate::slot::{Entry, KeyHash};

/// One inner node of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// The inner node.
    pub(super) node: u64,
    /// Position of the child taken.
    pub(super) position: u16,
    /// Children of the node.
    pub(super) count: u16,
}

/// The path from the root to a leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// Steps from the root down; the first `height` are in use.
    pub(super) steps: [Step; HEIGHT_MAX],
    /// Levels above the leaves.
    pub(super) height: usize,
    /// The leaf.
    pub(super) leaf: u64,
}

/// Which leaf below a node to go to.
#[derive(Clone, Copy)]
pub(super) enum Target<'k> {
    Key(&'k [u8]),
    First,
    Last,
}

impl Path {
    /// Level of the node at `steps[depth]`.
    pub(super) fn level(&self, depth: usize) -> usize {
        self.height - depth
    }

    /// Whether the path below the root took the first child in each of the steps above `depth`.
    pub(super) fn is_first(&self, depth: usize) -> bool {
        self.steps[..depth].iter().all(|step| step.position == 0)
    }

    /// Whether the path below the root took the last child in each of the steps above `depth`.
    pub(super) fn is_last(&self, depth: usize) -> bool {
        self.steps[..depth].iter().all(|step| step.position + 1 == step.count)
    }

    /// Whether the node at `steps[depth]` lacks a bound.
    pub(super) fn is_edge(&self, depth: usize) -> bool {
        self.is_first(depth) || self.is_last(depth)
    }

    /// Block of the separator that is the lower bound of the node at `depth` (the leaf, for
    /// `height`); 0 if there is none.
    pub(super) fn lower_fence<R: Read>(&self, read: &R, depth: usize) -> Result<u64> {
        for above in (0..depth).rev() {
            let step = &self.steps[above];
            if step.position > 0 {
                let inner = Inner::at(read, step.node, self.level(above))?;
                return Ok(inner.separator(usize::from(step.position)));
            }
        }
        Ok(0)
    }

    /// Block of the separator that is the upper bound of the node at `depth`; 0 if there is none.
    pub(super) fn upper_fence<R: Read>(&self, read: &R, depth: usize) -> Result<u64> {
        for above in (0..depth).rev() {
            let step = &self.steps[above];
            if step.position + 1 < step.count {
                let inner = Inner::at(read, step.node, self.level(above))?;
                return Ok(inner.separator(usize::from(step.position) + 1));
            }
        }
        Ok(0)
    }

    /// Descends from `steps[depth]`, whose node is `node`, to a leaf.
    pub(super) fn descend<R: Read>(
        &mut self,
        read: &R,
        depth: usize,
        mut node: u64,
        target: Target<'_>,
    ) -> Result<()> {
        let (mut is_first, mut is_last) = (self.is_first(depth), self.is_last(depth));
        for depth in depth..self.height {
            if let Target::Key(_) = target {
                prefetch_heads(read, node);
            }
            let inner = Inner::at(read, node, self.level(depth))?;
            let position = match target {
                Target::Key(key) => route(read, inner, key, is_first || is_last)?,
                Target::First => 0,
                Target::Last => inner.len() - 1,
            };
            self.steps[depth] =
                Step { node, position: position as u16, count: u16::from(inner.count) };
            is_first &= position == 0;
            is_last &= position + 1 == inner.len();
            node = inner.child(position);
        }
        self.leaf = node;
        Ok(())
    }
}

/// The head of a tree, verified.
pub(super) fn head<R: Read>(read: &R, block: u64) -> Result<&Head> {
    let head: &Head = read.read(Ptr::new(block))?;
    if head.magic != HEAD_MAGIC && head.magic != HEAD_MAGIC_HASHED {
        return Err(Error::NotThisTree { head: block, expected: "bplus" });
    }
    if head.height.get() > HEIGHT_MAX as u64 {
        return Err(Error::Damaged { block, what: "has more levels than a tree can have" });
    }
    Ok(head)
}

/// The path to the leaf of a target. O(log n).
pub(super) fn path<R: Read>(read: &R, tree: u64, target: Target<'_>) -> Result<Path> {
    let head = head(read, tree)?;
    let mut path = Path { height: head.height.get() as usize, ..Path::default() };
    path.descend(read, 0, head.root.get(), target)?;
    prefetch_leaf(read, path.leaf);
    Ok(path)
}

/// The leaf of a key: as [`path()`], without keeping the path, for readers.
#[inline]
pub(super) fn leaf_of<R: Read>(read: &R, tree: u64, key: &[u8]) -> Result<u64> {
    let head = head(read, tree)?;
    let mut node = head.root.get();
    let (mut is_first, mut is_last) = (true, true);
    for level in (1..=head.height.get() as usize).rev() {
        prefetch_heads(read, node);
        let inner = Inner::at(read, node, level)?;
        let position = route(read, inner, key, is_first || is_last)?;
        is_first &= position == 0;
        is_last &= position + 1 == inner.len();
        node = inner.child(position);
    }
    prefetch_leaf(read, node);
    Ok(node)
}

/// Prefetches the lines of an inner node that a search may read before it knows the child: one
/// cache miss instead of one for each step.
#[inline]
fn prefetch_heads<R: Read>(read: &R, inner: u64) {
    for at in (0..INNER_BRANCHES_AT as u64).step_by(64) {
        read.prefetch(inner.wrapping_add(at));
    }
}

/// Prefetches all lines of a leaf: one cache miss instead of two, for fingerprints and then the
/// slot.
#[inline]
pub(super) fn prefetch_leaf<R: Read>(read: &R, leaf: u64) {
    for at in (0..LEAF_BYTES as u64).step_by(64) {
        read.prefetch(leaf.wrapping_add(at));
    }
}

/// Prefetches the first 128 bytes of an entry: all of a small pair.
#[inline]
pub(super) fn prefetch_entry<R: Read>(read: &R, entry: u64) {
    read.prefetch(entry);
    read.prefetch(entry.wrapping_add(64));
}

/// Slot of a key in a leaf.
#[inline]
pub(super) fn slot_of<R: Read>(
    read: &R,
    leaf: &Leaf,
    hash: KeyHash,
    key: &[u8],
) -> Result<Option<usize>> {
    Ok(entry_of(read, leaf, hash, key)?.map(|(index, _)| index))
}

/// Slot and entry of a key in a leaf. Few candidates are not the key's: those whose byte of the
/// hash is the same, and whose tag, too.
#[inline]
pub(super) fn entry_of<'r, R: Read>(
    read: &'r R,
    leaf: &Leaf,
    hash: KeyHash,
    key: &[u8],
) -> Result<Option<(usize, Entry<'r>)>> {
    let mut candidates = leaf.matches(hash.fingerprint());
    let tag = leaf.tagging().tag(hash, key);
    while candidates != 0 {
        let index = candidates.trailing_zeros() as usize;
        candidates &= candidates - 1;
        let slot = leaf.slot(index);
        if slot.tag() == tag {
            let entry = Entry::read(read, slot.entry())?;
            if entry.key == key {
                return Ok(Some((index, entry)));
            }
        }
    }
    Ok(None)
}

/// Position of the child that a key is routed to: the number of separators at or below the key.
///
/// Heads decide; only separators whose head ties with the key's are compared in full, since a head
/// cannot tell a string from the same string followed by zeros. At an edge of the tree keys may not
/// have the start that all separators share.
#[inline]
fn route<R: Read>(read: &R, inner: &Inner, key: &[u8], is_edge: bool) -> Result<usize> {
    let prefix_len = inner.prefix_bytes();
    let order = &inner.order[1..inner.len()];
    if is_edge && prefix_len > 0 && !order.is_empty() {
        let shared = separator(read, inner.separator(1))?;
        let shared = &shared[..prefix_len.min(shared.len())];
        if !key.starts_with(shared) {
            return Ok(if key < shared { 0 } else { order.len() });
        }
    }
    let head = head_of(key, prefix_len);
    let head_at = |index: &u8| inner.heads[usize::from(*index).min(CHILDREN_MAX - 1)].get();
    // The keys of an ascending load are above all separators, at each level of the tree's edge: no
    // search for them.
    let Some(last) = order.last().map(head_at) else { return Ok(0) };
    if last < head || last == head && separator(read, inner.separator(order.len()))? <= key {
        return Ok(order.len());
    }
    let mut low = order.partition_point(|index| head_at(index) < head);
    if head_at(&order[low.min(order.len() - 1)]) != head {
        return Ok(low);
    }
    let mut high = low + order[low..].partition_point(|index| head_at(index) == head);
    while low < high {
        let middle = low + (high - low) / 2;
        if separator(read, inner.separator(middle + 1))? <= key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The separator in a block.
pub(super) fn separator<R: Read>(read: &R, block: u64) -> Result<&[u8]> {
    let mut rest = read.block(block)?;
    let damaged = Error::Damaged { block, what: "is no separator" };
    let Some(len) = varint::take(&mut rest) else { return Err(damaged) };
    usize::try_from(len).ok().and_then(|len| rest.get(..len)).ok_or(damaged)
}

/// The prefix length of an inner node with these fences (separator blocks, 0 for none) and
/// branches: what all strings between the fences share, or else what all separators do.
pub(super) fn prefix_len<R: Read>(
    read: &R,
    tree: u64,
    (lower, upper): (u64, u64),
    branches: &[Branch],
) -> Result<usize> {
    let (first, last) = match (lower, upper) {
        (0, _) | (_, 0) => {
            let [_, first, ..] = branches else { return Ok(0) };
            if head(read, tree)?.magic == HEAD_MAGIC_HASHED {
                return Ok(0);
            }
            (first.separator.get(), branches[branches.len() - 1].separator.get())
        }
        fences => fences,
    };
    Ok(common_len(separator(read, first)?, separator(read, last)?))
}

/// The prefix length of an inner node at an edge of the tree, with one more separator.
pub(super) fn prefix_len_with<R: Read>(
    read: &R,
    tree: u64,
    inner: &Inner,
    added: u64,
) -> Result<usize> {
    if inner.len() == 1 {
        return prefix_len(read, tree, (0, 0), &[inner.branch(0), branch(added, 0)]);
    }
    let one = separator(read, inner.separator(1))?;
    Ok(common_len(one, separator(read, added)?).min(inner.prefix_bytes()))
}

/// The lower bound of a path's leaf; empty if there is none.
pub(super) fn lower_bound<'r, R: Read>(read: &'r R, path: &Path) -> Result<&'r [u8]> {
    lower_of(read, path.lower_fence(read, path.height)?)
}

/// The upper bound of a path's leaf.
pub(super) fn upper_bound<'r, R: Read>(read: &'r R, path: &Path) -> Result<Option<&'r [u8]>> {
    upper_of(read, path.upper_fence(read, path.height)?)
}

/// The lower bound in a separator block; empty for none (0).
pub(super) fn lower_of<R: Read>(read: &R, fence: u64) -> Result<&[u8]> {
    if fence == 0 { Ok(&[]) } else { separator(read, fence) }
}

/// The upper bound in a separator block, 0 for none.
pub(super) fn upper_of<R: Read>(read: &R, fence: u64) -> Result<Option<&[u8]>> {
    if fence == 0 { Ok(None) } else { separator(read, fence).map(Some) }
}
