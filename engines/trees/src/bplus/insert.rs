//! Insertion of one pair.
//!
//! Invariants: a value is overwritten in place, or replaced by a new entry block; the old block is
//! then freed or moved (S2).

use adamant_heap::access::Write;

use super::find::{Path, slot_of};
use super::layout::{LEAF_FULL, LEAF_SLOTS_AT, Leaf};
use super::split::split_leaf;
use super::write::fill_leaf;
use crate::error::Result;
use crate::slot::{KeyHash, Slot, free_entry, overwrite, write_entry};

/// The result of a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// The previous entry of the key, which is in no tree now.
    pub(super) old: Option<u64>,
    /// Whether nodes were split or merged, which invalidates every path.
    pub(super) reshaped: bool,
}

/// The result of a put.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    /// Whether the key was there before.
    pub(super) was_there: bool,
    /// As [`Outcome::reshaped`].
    pub(super) reshaped: bool,
}

/// Sets the value of a key in the leaf of its path. The caller updates the count of pairs.
pub(super) fn put<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    hash: KeyHash,
    (key, value): (&[u8], &[u8]),
) -> Result<Put> {
    let leaf = Leaf::at(tx, path.leaf)?;
    let found = slot_of(tx, leaf, hash, key)?;
    if let Some(index) = found {
        let entry = leaf.slot(index).entry();
        if overwrite(tx, entry, value)? {
            return Ok(Put { was_there: true, reshaped: false });
        }
    }
    let entry = write_entry(tx, key, value)?;
    let Outcome { old, reshaped } = adopt_at(tx, tree, path, found, (hash, key), entry)?;
    old.map_or(Ok(()), |old| free_entry(tx, old))?;
    Ok(Put { was_there: old.is_some(), reshaped })
}

/// Puts the entry of a key into the leaf of its path. The caller updates the count of pairs.
pub(super) fn insert_entry<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    hash: KeyHash,
    key: &[u8],
    entry: u64,
) -> Result<Outcome> {
    let found = slot_of(tx, Leaf::at(tx, path.leaf)?, hash, key)?;
    adopt_at(tx, tree, path, found, (hash, key), entry)
}

/// The same, for a key whose slot was searched for: `found` is the result.
fn adopt_at<W: Write>(
    tx: &mut W,
    tree: u64,
    path: &Path,
    found: Option<usize>,
    (hash, key): (KeyHash, &[u8]),
    entry: u64,
) -> Result<Outcome> {
    let leaf = Leaf::at(tx, path.leaf)?;
    if let Some(index) = found {
        let slot = leaf.slot(index);
        let (tagged, old) = (Slot::tagged(slot.tag(), entry), slot.entry());
        tx.update_u64(path.leaf, LEAF_SLOTS_AT + 8 * index, tagged.0)?;
        return Ok(Outcome { old: Some(old), reshaped: false });
    }
    let used = leaf.used();
    let reshaped = used == LEAF_FULL;
    let (leaf, used) = if reshaped { split_leaf(tx, tree, path, key)? } else { (path.leaf, used) };
    let tag = Leaf::at(tx, leaf)?.tagging().tag(hash, key);
    fill_leaf(tx, leaf, used, &[(hash.fingerprint(), Slot::tagged(tag, entry))])?;
    Ok(Outcome { old: None, reshaped })
}
