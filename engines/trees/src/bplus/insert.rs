//! Inserting one pair.
//!
//! Invariants: an overwrite is a new entry block; the old one is freed, never written (S2).

use adamant_heap::access::Write;

use super::find::{Path, slot_of};
use super::layout::{LEAF_FULL, LEAF_SLOTS_AT, Leaf};
use super::split::split_leaf;
use super::write::fill_leaf;
use crate::error::Result;
use crate::slot::{KeyHash, Slot, free_entry, write_entry};

/// What a change did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Whether the key was there before.
    pub(super) present: bool,
    /// Whether nodes were split or merged, which makes every path void.
    pub(super) reshaped: bool,
}

/// Inserts a pair into the leaf of its path. The count of pairs is the caller's.
pub(super) fn insert<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    hash: KeyHash,
    key: &[u8],
    value: &[u8],
) -> Result<Outcome> {
    let leaf = Leaf::at(tx, path.leaf)?;
    if let Some(index) = slot_of(tx, leaf, hash, key)? {
        let old = leaf.slot(index).entry();
        let entry = write_entry(tx, key, value)?;
        tx.update_u64(path.leaf, LEAF_SLOTS_AT + 8 * index, Slot::new(hash, entry).0)?;
        free_entry(tx, old)?;
        return Ok(Outcome { present: true, reshaped: false });
    }
    let used = leaf.used();
    let entry = write_entry(tx, key, value)?;
    let reshaped = used == LEAF_FULL;
    let (leaf, used) = if reshaped { split_leaf(tx, tree, path, key)? } else { (path.leaf, used) };
    fill_leaf(tx, leaf, used, &[(hash.fingerprint(), Slot::new(hash, entry))])?;
    Ok(Outcome { present: false, reshaped })
}
