//! Combined transactions: small changes of several threads that share a transaction, and its record.
//!
//! Purpose: changes of a microsecond, of many threads. What they change goes from one processor's
//! cache to the other's with the turn to write, which takes longer than the change. So who finds the
//! turn taken lends its change to whoever has it, who makes it in its own transaction.
//! Invariants: who has lent a change does not go on before its ticket is done. What fails, be it one
//! change or the commit, is undone as a whole; then each goes on alone, and has its own error, or
//! panic. Those who lent are told in the turn, when the record is appended and memory shows it.
//! Thread safety: any thread.

use std::cell::Cell;
use std::mem::forget;

use adamant_wire::mutants::is_planted;

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::latch::writer_queue::WritePermit;
use crate::transaction::calls::{Along, CALLS_BYTES_MAX, Calls, Change};
use crate::transaction::scratch::Writer;
use crate::transaction::tx::Transaction;
use crate::write_guard::WriteGuard;

/// A change that writes more than this waits for a turn of its own.
const CHANGE_BYTES_MAX: usize = CALLS_BYTES_MAX / 4;

/// Ends the process if it is dropped: somebody may be using what is about to go.
struct AbortGuard;

impl Drop for AbortGuard {
    fn drop(&mut self) {
        std::process::abort();
    }
}

thread_local! {
    /// Whether another thread made the last change of this one: that one most likely has the next
    /// turn, too.
    static WAS_SERVED: Cell<bool> = const { Cell::new(false) };
}

impl Heap {
    /// As [`Heap::transaction`], for a small change that several threads make at once, which writes
    /// about so many `bytes`: it may share its transaction with others. So `work` may be run by
    /// another thread, while this one waits, and again if the others' failed; what it has done is
    /// undone before. It must not depend on the thread, nor panic in what it has called by
    /// [`Transaction::on_commit`].
    ///
    /// # Errors
    /// As [`Heap::transaction`].
    #[inline]
    pub fn transaction_combined<T: Send, E: From<Error> + Send>(
        &self,
        durability: Durability,
        bytes: usize,
        mut work: impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, E> + Send,
    ) -> std::result::Result<T, E> {
        self.prepare_write()?;
        // Who waits for the device does not come back at once.
        let leaves = WAS_SERVED.get() && durability != Durability::Sync;
        let permit = if leaves { None } else { self.writer_queue.try_wait() };
        let (result, sequence) = match permit {
            Some(permit) => self.lead(permit, &mut work)?,
            None => self.follow((bytes, leaves), &mut work)?,
        };
        self.finish(sequence, durability)?;
        Ok(result)
    }

    /// Makes a change in a turn, and with it what others have lent by then.
    #[inline]
    fn lead<T, E: From<Error>>(
        &self,
        permit: WritePermit<'_, Writer>,
        work: &mut impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<(T, Option<u64>), E> {
        let mut write = self.begin(permit, None)?;
        let result = work(&mut write)?;
        if !self.calls.are_waiting() {
            return Ok((result, write.show(None)?));
        }
        match self.show_with_others(write) {
            Ok(sequence) => Ok((result, sequence)),
            Err(_) => self.go_alone(work),
        }
    }

    /// Makes a change alone.
    #[cold]
    fn go_alone<T, E: From<Error>>(
        &self,
        work: &mut impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, E>,
    ) -> std::result::Result<(T, Option<u64>), E> {
        if is_planted("C1.an-error-of-one-change-reaches-the-others") {
            return Err(failed().into());
        }
        let mut write = self.begin_write()?;
        let result = work(&mut write)?;
        Ok((result, write.show(None)?))
    }

    /// Makes what others have lent in a transaction, too, and shows all of it.
    fn show_with_others<'h>(&'h self, mut write: WriteGuard<'h>) -> Result<Option<u64>> {
        let (calls, along) = self.take_calls();
        write.along = along;
        self.run_calls(write, calls)
    }

    /// Takes what was lent, in a turn.
    fn take_calls(&self) -> (Box<Calls>, Along<'_>) {
        let mut calls = self.calls_spare.lock().take().unwrap_or_default();
        let along = self.calls.take(&mut calls);
        (calls, along)
    }

    /// Makes what was lent in a transaction, and shows all of it.
    fn run_calls(&self, mut write: WriteGuard<'_>, mut calls: Box<Calls>) -> Result<Option<u64>> {
        let have_succeeded = calls.run(&mut write);
        *self.calls_spare.lock() = Some(calls);
        if have_succeeded { write.show(None) } else { Err(failed()) }
    }

    /// Makes a change when somebody has the turn: lends it, or else waits.
    #[cold]
    fn follow<T: Send, E: From<Error> + Send>(
        &self,
        (bytes, leaves): (usize, bool),
        work: &mut (impl FnMut(&mut Transaction<'_>) -> std::result::Result<T, E> + Send),
    ) -> std::result::Result<(T, Option<u64>), E> {
        let mut result = None;
        if bytes <= CHANGE_BYTES_MAX {
            let mut change = |transaction: &mut Transaction<'_>| {
                result = work(transaction).ok();
                result.is_some()
            };
            let record = self.lend(&mut change, (bytes, leaves));
            let is_again = is_planted("C1.what-was-changed-for-another-is-changed-again");
            if let (Some(_), Some(result), false) = (record, result, is_again) {
                return Ok((result, record));
            }
        }
        WAS_SERVED.set(false);
        self.go_alone(work)
    }

    /// Lends a change until somebody has tried to make it; the record that it is in, or one after that,
    /// if it was made.
    fn lend(&self, change: &mut Change<'_>, (bytes, leaves): (usize, bool)) -> Option<u64> {
        let borrowed = AbortGuard;
        // SAFETY: until `borrowed` is forgotten this does not return, nor unwind. By then it was made or
        // given up, as its ticket says, or nobody but this thread has the batch that it is in, which
        // `begin`, or its guard, drops before it returns or unwinds.
        let ticket = self.calls.post(|calls, _| unsafe { calls.add(change, bytes) });
        let is_done = || ticket.is_none_or(|ticket| self.calls.is_done(ticket));
        let is_alone = || self.calls.waiting() <= 1;
        let permit = ticket.and_then(|_| self.writer_queue.wait_served(is_done, is_alone, leaves));
        let own = permit.filter(|_| !is_done()).map(|permit| (permit, self.take_calls()));
        forget(borrowed);
        WAS_SERVED.set(own.is_none());
        if let Some((permit, (calls, along))) = own {
            // Each is told by its ticket, this one, too.
            let _ = self.begin(permit, along).and_then(|write| self.run_calls(write, calls));
        }
        // Not so in the child of a fork.
        let ticket = ticket.filter(|_| is_done())?;
        self.calls.outcome(ticket).ok()
    }
}

/// Why a transaction that changes shared was undone. Nobody is told: each goes on alone.
fn failed() -> Error {
    Error::Misuse { what: "a change that shared a transaction failed" }
}

#[cfg(test)]
mod tests;
