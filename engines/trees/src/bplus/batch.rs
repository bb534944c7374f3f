//! Batched changes with overlapped cache misses.
//!
//! Purpose: the cache misses of 16 changes overlap. First all keys of a group are routed to their
//! leaves, which are prefetched; then the entries that their fingerprints select are prefetched;
//! then each change is made. A group that lies in one gap of the tree begins a run that fills
//! leaves.
//! Invariants: after a split or merge the rest of the group is routed anew.

use adamant_heap::access::Write;

use super::find::{Path, Target, path, prefetch_entry, prefetch_leaf, upper_bound};
use super::insert::put;
use super::layout::{HEAD_PAIRS_AT, Leaf};
use super::load::{RUN_MIN, fill_gap};
use super::remove::take;
use super::write::add;
use crate::error::Result;
use crate::slot::{KeyHash, free_entry};
use crate::tree::{Operation, Pair};

/// Number of changes whose leaves are prefetched together: about as many as a core has fill
/// buffers.
const GROUP: usize = RUN_MIN;

/// Inserts pairs, whose keys ascend strictly; returns how many replaced one.
pub(super) fn load<W: Write>(tx: &mut W, tree: u64, pairs: &[Pair<'_>]) -> Result<u64> {
    let operation = |&(key, value)| Operation { key, value: Some(value) };
    let operations: Vec<Operation<'_>> = pairs.iter().map(operation).collect();
    let mut present = Vec::new();
    apply(tx, tree, &operations, &mut present)?;
    Ok(present.iter().filter(|present| **present).count() as u64)
}

/// Makes the changes in order and appends to `present` whether each key was there before. Runs of
/// new keys that all lie between two neighbours of the tree fill leaves, as in `load.rs`.
pub(super) fn apply<W: Write>(
    tx: &mut W,
    tree: u64,
    mut operations: &[Operation<'_>],
    present: &mut Vec<bool>,
) -> Result<()> {
    present.reserve(operations.len());
    let mut change = 0;
    while !operations.is_empty() {
        let (group, rest) = operations.split_at(operations.len().min(GROUP));
        let mut paths = [Path::default(); GROUP];
        let mut hashes = [KeyHash::of(&[]); GROUP];
        let first_may_exist = route_group(tx, tree, group, &mut paths, &mut hashes)?;
        let is_one_leaf = group.len() == GROUP && paths[0].leaf == paths[GROUP - 1].leaf;
        if is_one_leaf
            && !first_may_exist
            && let Some(filled) = fill_gap(tx, tree, paths[0], operations)?
        {
            present.resize(present.len() + filled, false);
            operations = &operations[filled..];
            continue;
        }
        change += apply_group(tx, tree, group, (&mut paths, &hashes), present)?;
        operations = rest;
    }
    if change != 0 {
        add(tx, tree, HEAD_PAIRS_AT, change)?;
    }
    Ok(())
}

/// Makes the changes of a group; returns by how many entries the tree grew.
fn apply_group<W: Write>(
    tx: &mut W,
    tree: u64,
    group: &[Operation<'_>],
    (paths, hashes): (&mut [Path; GROUP], &[KeyHash; GROUP]),
    present: &mut Vec<bool>,
) -> Result<i64> {
    let (mut change, mut reshaped, mut index) = (0, false, 0);
    while let Some(operation) = group.get(index) {
        // Earlier changes may have reshaped the tree; what counts is the path of the next one.
        if reshaped {
            paths[index] = path(tx, tree, Target::Key(operation.key))?;
        }
        let (path, hash, key) = (&paths[index], hashes[index], operation.key);
        if let Some(value) = operation.value {
            let put = put(tx, tree, path, hash, (key, value))?;
            reshaped |= put.reshaped;
            change += i64::from(!put.was_there);
            present.push(put.was_there);
            index += 1;
            continue;
        }
        let is_taken_too =
            |at: &usize| !reshaped && group[*at].value.is_none() && paths[*at].leaf == path.leaf;
        let end = index + 1 + (index + 1..group.len()).take_while(is_taken_too).count();
        let mut olds = [None; GROUP];
        let keys = (index..end).map(|at| (hashes[at], group[at].key));
        reshaped |= take(tx, tree, path, keys, &mut olds)?;
        for old in &olds[..end - index] {
            old.map_or(Ok(()), |old| free_entry(tx, old))?;
            change -= i64::from(old.is_some());
            present.push(old.is_some());
        }
        index = end;
    }
    Ok(change)
}

/// Finds the leaves of a group, and prefetches them and the entries that it may replace; returns
/// whether there is one that its first key may replace.
fn route_group<W: Write>(
    tx: &W,
    tree: u64,
    group: &[Operation<'_>],
    paths: &mut [Path; GROUP],
    hashes: &mut [KeyHash; GROUP],
) -> Result<bool> {
    let mut first_may_exist = false;
    // Where the leaf of the change before ends, if that is known.
    let mut upper: Option<Option<&[u8]>> = None;
    for (index, operation) in group.iter().enumerate() {
        let key = operation.key;
        let before = index.checked_sub(1).filter(|before| group[*before].key <= key);
        let is_below = upper.is_some_and(|upper| upper.is_none_or(|upper| key < upper));
        paths[index] = match before.filter(|_| is_below) {
            Some(before) => paths[before],
            None => {
                let found = path(tx, tree, Target::Key(key))?;
                // A descent, whose nodes are in the cache, is cheaper than a lookup of the
                // separator, unless the keys lie close together.
                let is_close = before.is_some_and(|before| paths[before].leaf == found.leaf);
                let is_known = is_close || found.is_last(found.height);
                upper = is_known.then(|| upper_bound(tx, &found)).transpose()?;
                found
            }
        };
        prefetch_leaf(tx, paths[index].leaf);
        hashes[index] = KeyHash::of(key);
    }
    for (index, operation) in group.iter().enumerate() {
        let (path, hash) = (&paths[index], hashes[index]);
        let leaf = Leaf::at(tx, path.leaf)?;
        let tag = leaf.tagging().tag(hash, operation.key);
        let mut candidates = leaf.matches(hash.fingerprint());
        while candidates != 0 {
            let slot = leaf.slot(candidates.trailing_zeros() as usize);
            candidates &= candidates - 1;
            if slot.tag() == tag {
                prefetch_entry(tx, slot.entry());
                first_may_exist |= index == 0;
            }
        }
    }
    Ok(first_may_exist)
}
