//! Large values, lent just before a commit keeps them for snapshots.
//!
//! Purpose: what a commit would have to copy while it has the heap alone is lent under a view before.
//! Invariants: a block that is lent is not used for anything else meanwhile, so that a value found in it
//! later is still that value.

use std::collections::HashMap;

use adamant_heap::View;
use adamant_slice::Slice;

use crate::engine::tree::Tree;
use crate::error::Result;

/// Values that were lent just before the heap was locked for a commit, by their blocks: it spares
/// copying them.
#[derive(Debug, Default)]
pub(crate) struct Lent(HashMap<u64, Slice>);

impl Lent {
    /// Lends the value of a key if it has a block of its own.
    ///
    /// # Errors
    /// Those of looking for the key.
    pub(crate) fn add(&mut self, view: &View<'_>, tree: &Tree, key: &[u8]) -> Result<()> {
        if let Some((value, Some(block))) = tree.find_with_block(view, key)? {
            self.0.insert(block, view.lend(block, value.len())?);
        }
        Ok(())
    }

    /// A value, which may lie in a block of its own: lent before, or copied. A block that is lent is not
    /// used for anything else meanwhile.
    pub(crate) fn get(&self, value: &[u8], block: Option<u64>) -> Slice {
        let lent = block.and_then(|block| self.0.get(&block));
        lent.cloned().unwrap_or_else(|| value.into())
    }
}
