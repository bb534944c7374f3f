//! The turn to write, held without a transaction.
//!
//! Purpose: who wants to look first and write then, and nobody to write in between, has the turn for as
//! long as that takes: others that want to write wait asleep, readers do not wait at all. It ends with
//! one transaction, or by being dropped.
//! Invariants: the thread that holds it cannot begin anything else that waits for a turn, which would
//! wait for itself: that is an error. It stays on its thread.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::latch::writer_queue::WritePermit;
use crate::transaction::scratch::Writer;
use crate::write_guard::WriteGuard;

/// The turn to write, until it is dropped.
#[derive(Debug)]
#[must_use = "others that write wait until it is dropped"]
pub struct HeldWritePermit<'h> {
    heap: &'h Heap,
    /// `None` once a transaction has it.
    permit: Option<WritePermit<'h, Writer>>,
}

impl Heap {
    /// Waits for this thread's turn to write, and keeps it: others that write wait until it is dropped,
    /// or its transaction has ended.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_write_permit(&self) -> Result<HeldWritePermit<'_>> {
        let permit = self.wait_for_write_permit()?;
        self.set_within(true);
        Ok(HeldWritePermit { heap: self, permit: Some(permit) })
    }
}

impl Heap {
    /// As [`Heap::take_write_permit`], unless others have the turn for longer than this; then `None`. What
    /// is waited for before, room in the log and in memory, is not counted.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_write_permit_within(
        &self,
        longest: Duration,
    ) -> Result<Option<HeldWritePermit<'_>>> {
        self.prepare_write()?;
        let Some(permit) = self.writer_queue.wait_within(longest) else { return Ok(None) };
        self.set_within(true);
        Ok(Some(HeldWritePermit { heap: self, permit: Some(permit) }))
    }
}

impl<'h> HeldWritePermit<'h> {
    /// Begins a transaction in this turn, as [`Heap::begin_write`].
    ///
    /// # Errors
    /// As [`Heap::begin_write`].
    pub fn begin_write(mut self) -> Result<WriteGuard<'h>> {
        let Some(permit) = self.permit.take() else {
            return Err(Error::Misuse { what: "the turn was used for another transaction" });
        };
        self.heap.begin(permit, None)
    }
}

impl Drop for HeldWritePermit<'_> {
    fn drop(&mut self) {
        if self.heap.is_child() {
            // Ending it would wake threads that are not here.
            return std::mem::forget(self.permit.take());
        }
        // A transaction says itself when it has ended.
        if self.permit.is_some() {
            self.heap.set_within(false);
        }
    }
}
