//! In-place overwrite: how an engine sets a value of the same length.
//!
//! Purpose: ask first whether the transaction may overwrite the block (S2). The bytes are then a
//! range of the transaction like any other: undone by savepoints and errors, kept for admitted
//! readers, logged as those bytes.

use crate::error::Result;
use crate::objects::access::Write;
use crate::transaction::tx::Transaction;

impl Transaction<'_> {
    /// See [`crate::Write::overwrite`].
    #[inline]
    pub(crate) fn overwrite_in_place(
        &mut self,
        block: u64,
        at: usize,
        len: usize,
    ) -> Result<Option<&mut [u8]>> {
        if self.allocator.borrowed.has_any() && self.is_lent(block)? {
            return Ok(None);
        }
        self.write(block, at, len).map(Some)
    }

    /// Whether a slice of a block is left.
    #[cold]
    fn is_lent(&self, block: u64) -> Result<bool> {
        let (place, _) = self.find(block)?;
        Ok(self.allocator.borrowed.is_lent(place))
    }
}
