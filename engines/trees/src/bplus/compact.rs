//! Compaction of a B+ tree, part by part.
//!
//! Purpose: leaves that are half empty become full, and entries, leaves and separators are copied
//! in the order of the keys. In a transaction that packs, those of neighbours lie side by side, so
//! that a scan streams, and nothing is left in the old places, whose runs become free.
//! Invariants: the pairs are the same before and after. A part lies below one inner node, which is
//! copied with it; the nodes above are copied when all below them has been.

use adamant_heap::access::{Read, Write};

use super::find::{Path, Target, lower_bound, path as path_of, prefix_len, separator, upper_bound};
use super::layout::{
    Branch, HEAD_LEAVES_AT, HEAD_ROOT_AT, Inner, LEAF_FULL, LEAF_SLOTS, Leaf, branch,
};
use super::remove::merge_upwards;
use super::sort::Sorted;
use super::split::shortest_between;
use super::tagging::Tagging;
use super::write::{add, new_inner, new_leaf, new_separator, set_child};
use crate::compact::next_part;
use crate::error::Result;
use crate::slot::{Entry, KeyHash, Slot, VALUE_MOVED_BYTES_MAX, move_entry};
use crate::tree::COMPACTED_BYTES_MAX;

/// Neighbouring leaves below one inner node, or the root.
struct Part {
    /// Position of the first of them in the node.
    first: usize,
    leaves: Vec<u64>,
    /// Their entries in the order of the keys, each with its fingerprint.
    entries: Vec<(u8, u64)>,
    /// The first entries, which the part before has moved.
    moved: usize,
    tagging: Tagging,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

/// [`OrderedMap::compact_part`](crate::tree::OrderedMap::compact_part).
pub(super) fn compact_part<W: Write>(
    tx: &mut W,
    tree: u64,
    from: &[u8],
    pairs_max: usize,
) -> Result<Option<Vec<u8>>> {
    let path = path_of(tx, tree, Target::Key(from))?;
    let mut part = part(tx, &path, pairs_max)?;
    let mut scratch = Vec::new();
    for (_, entry) in &mut part.entries[part.moved..] {
        *entry = move_entry(tx, *entry, &mut scratch)?;
    }
    let branches = new_leaves(tx, &part)?;
    add(tx, tree, HEAD_LEAVES_AT, branches.len() as i64 - part.leaves.len() as i64)?;
    replace(tx, tree, &path, &part, &branches)?;
    let path = path_of(tx, tree, Target::Key(&part.lower))?;
    if let Some(depth) = path.height.checked_sub(1)
        && part.first + branches.len() == usize::from(path.steps[depth].count)
    {
        // The node above has been compacted to its end, and may have few children left.
        merge_upwards(tx, tree, &path, depth)?;
    }
    next_part(path.leaf, from, part.upper)
}

/// The leaves from that of a path on, and the one before if it has room: the part before ended
/// there.
fn part<R: Read>(read: &R, path: &Path, pairs_max: usize) -> Result<Part> {
    let above = path.height.saturating_sub(1);
    let step = path.steps[above];
    let parent = (path.height > 0).then(|| Inner::at(read, step.node, 1)).transpose()?;
    let child = |position| parent.map_or(path.leaf, |inner| inner.child(position));
    let start = usize::from(step.position);
    let mut part = Part {
        first: start,
        leaves: Vec::new(),
        entries: Vec::new(),
        moved: 0,
        tagging: Leaf::at(read, path.leaf)?.tagging(),
        lower: Vec::new(),
        upper: None,
    };
    if let Some(before) = start.checked_sub(1)
        && Leaf::at(read, child(before))?.used() != LEAF_FULL
    {
        part.first = before;
        part.add_leaf(read, child(before))?;
        part.moved = part.entries.len();
    }
    let (mut end, mut bytes) = (start, 0);
    while end < parent.map_or(1, Inner::len)
        && part.entries.len() < part.moved + pairs_max.max(1)
        && bytes < COMPACTED_BYTES_MAX
    {
        bytes += part.add_leaf(read, child(end))?;
        end += 1;
    }
    let mut aside = *path;
    aside.steps[above].position = part.first as u16;
    part.lower = lower_bound(read, &aside)?.to_vec();
    aside.steps[above].position = end as u16 - 1;
    part.upper = upper_bound(read, &aside)?.map(<[u8]>::to_vec);
    Ok(part)
}

impl Part {
    /// Adds a leaf; returns the bytes of keys and values that will be copied for it.
    fn add_leaf<R: Read>(&mut self, read: &R, block: u64) -> Result<usize> {
        let leaf = Leaf::at(read, block)?;
        let mut sorted = Sorted::new();
        sorted.load(read, block)?;
        sorted.prefetch(read, 0..sorted.len());
        let mut bytes = 0;
        for position in 0..sorted.len() {
            let index = sorted.slot(position);
            self.entries.push((leaf.fingerprints[index], leaf.slot(index).entry()));
            let entry = sorted.entry(read, position)?;
            let copied = Some(entry.value_len()).filter(|len| *len <= VALUE_MOVED_BYTES_MAX);
            bytes += entry.key.len() + copied.unwrap_or(0);
        }
        self.leaves.push(block);
        Ok(bytes)
    }
}

/// Writes full leaves for the entries of a part, and the separators between them.
fn new_leaves<W: Write>(tx: &mut W, part: &Part) -> Result<Vec<Branch>> {
    let mut branches: Vec<Branch> = Vec::with_capacity(part.leaves.len());
    let (mut lower, mut rest) = (part.lower.clone(), &part.entries[..]);
    loop {
        let (chunk, behind) = rest.split_at(rest.len().min(LEAF_SLOTS));
        let upper = match (chunk.last(), behind.first()) {
            (Some(&(_, last)), Some(&(_, next))) => {
                let (last, next) = (Entry::read(tx, last)?.key, Entry::read(tx, next)?.key);
                Some(shortest_between(part.leaves[0], last, next)?)
            }
            _ => part.upper.clone(),
        };
        let tagging = part.tagging.narrowed(&lower, upper.as_deref());
        let mut slots = Vec::with_capacity(LEAF_SLOTS);
        for &(fingerprint, entry) in chunk {
            let key = Entry::read(tx, entry)?.key;
            slots.push((fingerprint, Slot::tagged(tagging.tag(KeyHash::of(key), key), entry)));
        }
        let leaf = new_leaf(tx, tagging, &slots)?;
        let separator = if branches.is_empty() { 0 } else { new_separator(tx, &lower)? };
        branches.push(branch(separator, leaf));
        match upper {
            Some(upper) if !behind.is_empty() => (lower, rest) = (upper, behind),
            _ => return Ok(branches),
        }
    }
}

/// Replaces the leaves of a part in the node above, which is copied; so are the nodes above that
/// one, as far as the part is the last below them.
fn replace<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    part: &Part,
    branches: &[Branch],
) -> Result<()> {
    part.leaves.iter().try_for_each(|leaf| tx.free(*leaf))?;
    let mut child = branches[0].child.get();
    let mut is_passed = true;
    for depth in (0..path.height).rev() {
        let (step, level) = (path.steps[depth], path.level(depth));
        if !is_passed {
            return set_child(tx, step.node, level, usize::from(step.position), child);
        }
        let fences = (path.lower_fence(tx, depth)?, path.upper_fence(tx, depth)?);
        let inner = *Inner::at(tx, step.node, level)?;
        let mut list: Vec<Branch> =
            (0..inner.len()).map(|position| inner.branch(position)).collect();
        if level == 1 {
            let end = part.first + part.leaves.len();
            is_passed = end == inner.len();
            for replaced in &list[part.first + 1..end] {
                tx.free(replaced.separator.get())?;
            }
            copy_separator(tx, &mut list[part.first])?;
            list[part.first].child = branches[0].child;
            list.splice(part.first + 1..end, branches[1..].iter().copied());
        } else {
            is_passed = step.position + 1 == step.count;
            list.iter_mut().try_for_each(|branch| copy_separator(tx, branch))?;
            list[usize::from(step.position)].child = child.into();
        }
        let prefix_len = prefix_len(tx, tree, fences, &list)?;
        child = new_inner(tx, level, prefix_len, &list)?;
        tx.free(step.node)?;
    }
    Ok(tx.update_u64(tree, HEAD_ROOT_AT, child)?)
}

/// Copies the separator of a branch, unless it has none.
fn copy_separator<W: Write>(tx: &mut W, branch: &mut Branch) -> Result<()> {
    let old = branch.separator.get();
    if old != 0 {
        let bytes = separator(tx, old)?.to_vec();
        branch.separator = new_separator(tx, &bytes)?.into();
        tx.free(old)?;
    }
    Ok(())
}
