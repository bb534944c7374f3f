//! Freeing of all nodes and entries of a tree.

use adamant_heap::access::Write;

use super::find::head;
use super::layout::{
    HEAD_HEIGHT_AT, HEAD_INNER_NODES_AT, HEAD_LEAVES_AT, HEAD_PAIRS_AT, HEAD_ROOT_AT, Inner, Leaf,
};
use super::write::new_leaf;
use crate::error::Result;
use crate::slot::free_entry;

/// Removes all pairs: the head then refers to one empty leaf. O(n).
pub(super) fn clear<W: Write>(tx: &mut W, tree: u64) -> Result<()> {
    free_nodes(tx, tree)?;
    let tagging = head(tx, tree)?.tagging();
    let root = new_leaf(tx, tagging, &[])?;
    tx.update_u64(tree, HEAD_ROOT_AT, root)?;
    tx.update_u64(tree, HEAD_HEIGHT_AT, 0)?;
    tx.update_u64(tree, HEAD_PAIRS_AT, 0)?;
    tx.update_u64(tree, HEAD_LEAVES_AT, 1)?;
    tx.update_u64(tree, HEAD_INNER_NODES_AT, 0)?;
    Ok(())
}

/// Frees every block but the head. Each node is freed when it is visited, and freeing twice is an
/// error, so this ends in a damaged tree, too. Memory: 60 words per level. O(n).
pub(super) fn free_nodes<W: Write>(tx: &mut W, tree: u64) -> Result<()> {
    let head = head(tx, tree)?;
    let mut waiting = vec![(head.root.get(), head.height.get() as usize)];
    while let Some((block, level)) = waiting.pop() {
        if level == 0 {
            let leaf = *Leaf::at(tx, block)?;
            for index in leaf.indices() {
                free_entry(tx, leaf.slot(index).entry())?;
            }
        } else {
            let inner = *Inner::at(tx, block, level)?;
            for position in 0..inner.len() {
                waiting.push((inner.child(position), level - 1));
                if position > 0 {
                    tx.free(inner.separator(position))?;
                }
            }
        }
        tx.free(block)?;
    }
    Ok(())
}
