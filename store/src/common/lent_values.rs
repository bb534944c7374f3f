//! Large values borrowed just before a commit keeps them for snapshots.
//!
//! Purpose: values that a commit would have to copy under the exclusive lock are borrowed under a
//! view before.
//! Invariants: a borrowed block is not reused meanwhile, so a value found in it later is still that
//! value.

use std::collections::HashMap;

use adamant_heap::View;
use adamant_slice::Slice;

use crate::engine::tree_map::TreeMap;
use crate::error::Result;

/// Values that were borrowed just before the heap was locked for a commit, by their blocks: saves
/// copying them.
#[derive(Debug, Default)]
pub(crate) struct Lent(HashMap<u64, Slice>);

impl Lent {
    /// Borrows the value of a key if it has a block of its own.
    ///
    /// # Errors
    /// Those of looking up the key.
    pub(crate) fn add(&mut self, view: &View<'_>, tree: &TreeMap, key: &[u8]) -> Result<()> {
        if let Some((value, Some(block))) = tree.find_with_block(view, key)? {
            self.0.insert(block, view.lend(block, value.len())?);
        }
        Ok(())
    }

    /// The slice for a value that may have a block of its own: borrowed before, or copied. A
    /// borrowed block is not reused meanwhile.
    pub(crate) fn get(&self, value: &[u8], block: Option<u64>) -> Slice {
        let lent = block.and_then(|block| self.0.get(&block));
        lent.cloned().unwrap_or_else(|| value.into())
    }
}
