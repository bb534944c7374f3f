//! A held write permit: the writer lock without a transaction.
//!
//! Purpose: a caller that reads first and then writes, with no other write in between, holds the
//! writer lock for as long as that takes: other writers wait asleep, readers do not wait at all.
//! The permit ends with one transaction, or when it is dropped.
//! Invariants: the thread that holds it cannot begin anything else that waits for the writer lock,
//! which would wait for itself: that is an error. It stays on its thread.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::latch::writer_queue::WritePermit;
use crate::transaction::scratch::Writer;
use crate::write_guard::WriteGuard;

/// The writer lock, until this is dropped.
#[derive(Debug)]
#[must_use = "others that write wait until it is dropped"]
pub struct HeldWritePermit<'h> {
    heap: &'h Heap,
    /// `None` once a transaction has it.
    permit: Option<WritePermit<'h, Writer>>,
}

impl Heap {
    /// Waits for the writer lock, and keeps it: other writers wait until the permit is dropped, or
    /// its transaction has ended.
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
    /// As [`Heap::take_write_permit`], unless other threads hold the writer lock for longer than
    /// `longest`; then `None`. Earlier waits, for room in the log and in memory, are not counted.
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
    /// Begins a transaction with this permit, as [`Heap::begin_write`].
    ///
    /// # Errors
    /// As [`Heap::begin_write`].
    pub fn begin_write(mut self) -> Result<WriteGuard<'h>> {
        let Some(permit) = self.permit.take() else {
            return Err(Error::Misuse {
                what: "the write permit was used for another transaction",
            });
        };
        self.heap.begin(permit, None)
    }
}

impl Drop for HeldWritePermit<'_> {
    fn drop(&mut self) {
        if self.heap.is_child() {
            // Ending the permit would wake threads that do not exist here.
            return std::mem::forget(self.permit.take());
        }
        // A transaction itself notes its end.
        if self.permit.is_some() {
            self.heap.set_within(false);
        }
    }
}
