//! In-place overwrite: how an engine sets a value of the same length.
//!
//! Purpose: ask first whether the transaction may overwrite the block (S2). The bytes are then a
//! range of the transaction like any other: undone by savepoints and errors, kept for admitted
//! readers, logged as those bytes.

use adamant_wire::mutants::is_planted;

use crate::error::Result;
use crate::objects::access::Write;
use crate::transaction::ranges::Kind;
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
        if is_planted("S2.an-overwrite-is-not-put-back") {
            return self.write_unused(block, at, len).map(Some);
        }
        if is_planted("S2.an-overwrite-is-in-no-record") {
            let kind = Kind::Reserved(u32::MAX);
            return self.track_in(block, 0, (at as u64, len as u64), kind).map(Some);
        }
        if is_planted("S2.who-is-let-in-sees-an-overwrite") {
            let admits_readers = std::mem::take(&mut self.admits_readers);
            self.write(block, at, len)?;
            self.admits_readers = admits_readers;
            return self.image.bytes_mut(block + at as u64, len as u64).map(Some);
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
