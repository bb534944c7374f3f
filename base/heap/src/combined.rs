//! Combined transactions: small changes of several threads that share a transaction, and its
//! record.
//!
//! Purpose: changes that take a microsecond, of many threads. The data they change moves from one
//! processor's cache to the other's with the writer lock, which takes longer than the change. So a
//! thread that finds the lock taken lends its change to the holder, which makes the change in its
//! own transaction.
//! Invariants: a thread that has lent a change does not go on before its ticket is done. A failure,
//! be it of one change or of the commit, undoes the whole transaction; then each goes on alone, and
//! has its own error, or panic. Lending threads are answered under the writer lock, when the record
//! is appended and memory shows it.
//! Thread safety: any thread.

use std::cell::Cell;
use std::mem::forget;

use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::latch::writer_queue::WritePermit;
use crate::transaction::calls::{Along, CALLS_BYTES_MAX, Calls, Change};
use crate::transaction::scratch::Writer;
use crate::transaction::tx::Transaction;
use crate::write_guard::WriteGuard;

/// A change that writes more than this takes the writer lock itself.
const CHANGE_BYTES_MAX: usize = CALLS_BYTES_MAX / 4;

/// Aborts the process if it is dropped: another thread may be using the change on this stack.
struct AbortGuard;

impl Drop for AbortGuard {
    fn drop(&mut self) {
        std::process::abort();
    }
}

thread_local! {
    /// Whether another thread made the last change of this one: that thread most likely gets the
    /// writer lock next, too.
    static WAS_SERVED: Cell<bool> = const { Cell::new(false) };
}

impl Heap {
    /// As [`Heap::transaction`], for a small change that several threads make at once, which writes
    /// about `bytes` bytes: it may share its transaction with others. So another thread may run
    /// `work`, while this one waits, and `work` may run again if the shared transaction failed;
    /// what it has done is undone before. It must not depend on the thread, nor panic in a hook
    /// that it passed to [`Transaction::on_commit`].
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
        // A thread that waits for the device does not come back at once.
        let leaves = WAS_SERVED.get() && durability != Durability::Sync;
        let permit = if leaves { None } else { self.writer_queue.try_wait() };
        let (result, sequence) = match permit {
            Some(permit) => self.lead(permit, &mut work)?,
            None => self.follow((bytes, leaves), &mut work)?,
        };
        self.finish(sequence, durability)?;
        Ok(result)
    }

    /// Makes a change with a write permit, together with the changes that others have lent by then.
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
        let mut write = self.begin_write()?;
        let result = work(&mut write)?;
        Ok((result, write.show(None)?))
    }

    /// Makes the changes that others have lent in a transaction, too, and makes all of it visible.
    fn show_with_others<'h>(&'h self, mut write: WriteGuard<'h>) -> Result<Option<u64>> {
        let (calls, along) = self.take_calls();
        write.along = along;
        self.run_calls(write, calls)
    }

    /// Takes the lent changes; the caller holds the writer lock.
    fn take_calls(&self) -> (Box<Calls>, Along<'_>) {
        let mut calls = self.calls_spare.lock().take().unwrap_or_default();
        let along = self.calls.take(&mut calls);
        (calls, along)
    }

    /// Makes the lent changes in a transaction, and makes all of it visible.
    fn run_calls(&self, mut write: WriteGuard<'_>, mut calls: Box<Calls>) -> Result<Option<u64>> {
        let have_succeeded = calls.run(&mut write);
        *self.calls_spare.lock() = Some(calls);
        if have_succeeded { write.show(None) } else { Err(failed()) }
    }

    /// Makes a change while another thread holds the writer lock: lends it, or else waits.
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
            if let (Some(_), Some(result)) = (record, result) {
                return Ok((result, record));
            }
        }
        WAS_SERVED.set(false);
        self.go_alone(work)
    }

    /// Lends a change until another thread has tried to make it. Returns the record that it is in,
    /// or a later one, if it was made.
    fn lend(&self, change: &mut Change<'_>, (bytes, leaves): (usize, bool)) -> Option<u64> {
        let borrowed = AbortGuard;
        // SAFETY: until `borrowed` is forgotten this does not return, nor unwind. By then the
        // change was made or given up, as its ticket says, or only this thread has the batch that
        // it is in, which `begin`, or its guard, drops before it returns or unwinds.
        let ticket = self.calls.post(|calls, _| unsafe { calls.add(change, bytes) });
        let is_done = || ticket.is_none_or(|ticket| self.calls.is_done(ticket));
        let is_alone = || self.calls.waiting() <= 1;
        let permit = ticket.and_then(|_| self.writer_queue.wait_served(is_done, is_alone, leaves));
        let own = permit.filter(|_| !is_done()).map(|permit| (permit, self.take_calls()));
        forget(borrowed);
        WAS_SERVED.set(own.is_none());
        if let Some((permit, (calls, along))) = own {
            // Each request is answered by its ticket, this one, too.
            let _ = self.begin(permit, along).and_then(|write| self.run_calls(write, calls));
        }
        // The ticket is not done in the child of a fork.
        let ticket = ticket.filter(|_| is_done())?;
        self.calls.outcome(ticket).ok()
    }
}

/// The error of a shared transaction that was undone. No caller sees it: each goes on alone.
fn failed() -> Error {
    Error::Misuse { what: "a change that shared a transaction failed" }
}

#[cfg(test)]
mod tests;
