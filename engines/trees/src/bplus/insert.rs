//! Inserting one pair.
//!
//! Invariants: an overwrite is a new entry block; the old one is freed or moved, never written (S2).

use adamant_heap::access::Write;

use super::find::{Path, slot_of};
use super::layout::{LEAF_FULL, LEAF_SLOTS_AT, Leaf};
use super::split::split_leaf;
use super::write::fill_leaf;
use crate::error::Result;
use crate::slot::{KeyHash, Slot};

/// What a change did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The entry that the key had before: it is in no tree now.
    pub(super) old: Option<u64>,
    /// Whether nodes were split or merged, which makes every path void.
    pub(super) reshaped: bool,
}

/// Puts the entry of a key into the leaf of its path. The count of pairs is the caller's.
pub(super) fn adopt<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    hash: KeyHash,
    key: &[u8],
    entry: u64,
) -> Result<Outcome> {
    let leaf = Leaf::at(tx, path.leaf)?;
    if let Some(index) = slot_of(tx, leaf, hash, key)? {
        let old = leaf.slot(index).entry();
        tx.update_u64(path.leaf, LEAF_SLOTS_AT + 8 * index, Slot::new(hash, entry).0)?;
        return Ok(Outcome { old: Some(old), reshaped: false });
    }
    let used = leaf.used();
    let reshaped = used == LEAF_FULL;
    let (leaf, used) = if reshaped { split_leaf(tx, tree, path, key)? } else { (path.leaf, used) };
    fill_leaf(tx, leaf, used, &[(hash.fingerprint(), Slot::new(hash, entry))])?;
    Ok(Outcome { old: None, reshaped })
}
