//! The turn to write, held without a transaction.
//!
//! Purpose: who wants to look first and write then, and nobody to write in between, has the turn for as
//! long as that takes: others that want to write wait asleep, readers do not wait at all. It ends with
//! one transaction, or by being dropped.
//! Invariants: the thread that holds it cannot begin anything else that waits for a turn, which would
//! wait for itself: that is an error. It stays on its thread.

use std::time::Duration;

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::pieces::Ending;
use crate::turns::Turn;
use crate::tx::Transaction;
use crate::writer::Writer;

/// The turn to write, until it is dropped.
#[derive(Debug)]
#[must_use = "others that write wait until it is dropped"]
pub struct HeldTurn<'h> {
    heap: &'h Heap,
    /// `None` once a transaction has it.
    turn: Option<Turn<'h, Writer>>,
}

impl Heap {
    /// Waits for this thread's turn to write, and keeps it: others that write wait until it is dropped,
    /// or its transaction has ended.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_turn(&self) -> Result<HeldTurn<'_>> {
        let turn = self.wait_for_turn()?;
        self.set_within(true);
        Ok(HeldTurn { heap: self, turn: Some(turn) })
    }
}

impl Heap {
    /// As [`Heap::take_turn`], unless others have the turn for longer than this; then `None`. What
    /// is waited for before, room in the log and in memory, is not counted.
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn take_turn_within(&self, longest: Duration) -> Result<Option<HeldTurn<'_>>> {
        self.prepare_turn()?;
        let Some(turn) = self.turns.wait_within(longest) else { return Ok(None) };
        self.set_within(true);
        Ok(Some(HeldTurn { heap: self, turn: Some(turn) }))
    }
}

impl<'h> HeldTurn<'h> {
    /// Runs a transaction in this turn, as [`Heap::transaction`].
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn transaction<T, E: From<Error>>(
        mut self,
        durability: Durability,
        work: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.heap.run(self.let_go()?, durability, None, work, |_| ())
    }

    /// Runs a transaction in pieces in this turn, as [`Heap::transaction_in_pieces`].
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    pub fn transaction_in_pieces<T, E: From<Error>>(
        mut self,
        durability: Durability,
        copied_bytes_max: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> std::result::Result<T, E>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> std::result::Result<T, E> {
        self.heap.run(self.let_go()?, durability, Some(copied_bytes_max), work, last)
    }

    fn let_go(&mut self) -> Result<Turn<'h, Writer>> {
        let turn = self.turn.take();
        turn.ok_or(Error::Misuse { what: "the turn was used for another transaction" })
    }
}

impl Drop for HeldTurn<'_> {
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
