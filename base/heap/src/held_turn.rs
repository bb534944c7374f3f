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
    turn: Option<WritePermit<'h, Writer>>,
}

impl Heap {
    /// Waits for this thread's turn to write, and keeps it: others that write wait until it is dropped,
    /// or its transaction has ended.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_turn(&self) -> Result<HeldWritePermit<'_>> {
        let turn = self.wait_for_turn()?;
        self.set_within(true);
        Ok(HeldWritePermit { heap: self, turn: Some(turn) })
    }
}

impl Heap {
    /// As [`Heap::take_turn`], unless others have the turn for longer than this; then `None`. What
    /// is waited for before, room in the log and in memory, is not counted.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_turn_within(&self, longest: Duration) -> Result<Option<HeldWritePermit<'_>>> {
        self.prepare_turn()?;
        let Some(turn) = self.turns.wait_within(longest) else { return Ok(None) };
        self.set_within(true);
        Ok(Some(HeldWritePermit { heap: self, turn: Some(turn) }))
    }
}

impl<'h> HeldWritePermit<'h> {
    /// Begins a transaction in this turn, as [`Heap::begin_write`].
    ///
    /// # Errors
    /// As [`Heap::begin_write`].
    pub fn begin_write(mut self) -> Result<WriteGuard<'h>> {
        let Some(turn) = self.turn.take() else {
            return Err(Error::Misuse { what: "the turn was used for another transaction" });
        };
        self.heap.begin(turn, None)
    }
}

impl Drop for HeldWritePermit<'_> {
    fn drop(&mut self) {
        if self.heap.is_child() {
            // Ending it would wake threads that are not here.
            return std::mem::forget(self.turn.take());
        }
        // A transaction says itself when it has ended.
        if self.turn.is_some() {
            self.heap.set_within(false);
        }
    }
}
