//! Transactions of the heap: the write permit, the commit, and what follows it.
//!
//! Invariants: none begins in a closed store, or on a thread that would wait for itself.
//! Thread safety: any thread.

use std::time::Duration;

use adamant_heap::durability::Durability;
use adamant_heap::{Ending, HeldWritePermit, Transaction, WriteGuard};

use super::OpenStore;
use crate::common::history::take_recorded;
use crate::error::{Error, Result};
use crate::metrics::Begun;

impl OpenStore {
    /// Takes the writer lock, and returns its permit.
    pub(crate) fn take_write_permit(&self) -> Result<HeldWritePermit<'_>> {
        self.check_writes()?;
        self.open_still(self.heap.take_write_permit())
    }

    /// The same, but waits at most this long.
    pub(crate) fn take_write_permit_within(
        &self,
        longest: Duration,
    ) -> Result<Option<HeldWritePermit<'_>>> {
        self.check_writes()?;
        self.open_still(self.heap.take_write_permit_within(longest))
    }

    /// Runs a closure under the exclusive lock and commits its changes; undoes them on `Err`.
    /// Returns when the commit is as durable as asked.
    pub(crate) fn transaction<T>(
        &self,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.transaction_in(None, durability, body)
    }

    /// The same, with a write permit that may have been taken before.
    pub(crate) fn transaction_in<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.commit_by(permit, durability, |mut write| {
            let result = body(&mut write)?;
            write.commit(durability)?;
            Ok(result)
        })
    }

    /// Like [`OpenStore::transaction_in`], chunked: `last` is called when it cannot fail any more.
    pub(crate) fn chunked_transaction<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        body: impl FnOnce(&mut Transaction<'_>) -> Result<T>,
        last: impl FnOnce(&mut Ending<'_, '_>),
    ) -> Result<T> {
        self.commit_by(permit, durability, |mut write| {
            write.chunked(self.copied_bytes_max);
            let result = body(&mut write)?;
            write.commit_chunked(durability, last)?;
            Ok(result)
        })
    }

    /// Begins a transaction of the heap, with a permit that was taken before or one that this waits
    /// for, and lets `commit` complete it.
    fn commit_by<'s, T>(
        &'s self,
        permit: Option<HeldWritePermit<'s>>,
        durability: Durability,
        commit: impl FnOnce(WriteGuard<'s>) -> Result<T>,
    ) -> Result<T> {
        if permit.is_none() {
            self.check_writes()?;
        }
        let begun = self.metrics.begin(durability);
        take_recorded();
        let write = permit.map_or_else(|| self.heap.begin_write(), HeldWritePermit::begin_write);
        let done = self.open_still(write).and_then(commit);
        if done.is_ok() {
            self.note_recorded(take_recorded());
        }
        self.end(&begun, done)
    }

    /// Waits until everything committed so far has this durability. Operations that find nothing to
    /// change, and so begin no transaction, end here: what they found is as safe as what they would
    /// have written. Closing has waited for all of it.
    pub(crate) fn settle(&self, durability: Durability) -> Result<()> {
        self.admit()?;
        Ok(self.heap.settle(durability)?)
    }

    /// Completes a transaction with this outcome.
    pub(super) fn end<T>(&self, begun: &Begun, done: Result<T>) -> Result<T> {
        if done.is_ok() {
            self.metrics.commit(begun);
        }
        // It may have closed snapshots that were dropped within a closure, or made some expire.
        self.destroy_unseen();
        if !self.heap.has_writer() {
            self.workers.settle();
        }
        done
    }

    /// Makes room after an operation failed for lack of it, so that a retry is worthwhile; returns
    /// whether it did.
    #[cold]
    pub(crate) fn makes_room_for(&self, error: &Error, removes: bool) -> bool {
        let may_succeed = error.is_out_of_space() && !error.is_poisoned();
        may_succeed && self.workers.make_room(removes)
    }
}
