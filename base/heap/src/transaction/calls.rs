//! Combined transactions: closures of waiting threads, run by the holder of the writer lock.
//!
//! Purpose: a batch of closures of any type that lie on the stacks of the waiting threads.
//! Invariants: a change is used by one thread at a time: by the thread that took its batch, until
//! its ticket is done (`requests.rs`), and after that by its owner.
//! Thread safety: none of its own. One batch is behind the lock of the posted requests, another
//! belongs to the holder of the writer lock.

use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::transaction::requests::Taken;
use crate::transaction::tx::Transaction;

/// The most changes of other threads in one transaction, and about how many bytes they may write:
/// some 100 us of work, which delay the own work of the thread that does them.
const CALLS_MAX: usize = 64;
pub(crate) const CALLS_BYTES_MAX: usize = 32 << 10;

/// A change to be made in a transaction; returns whether it succeeded. It may be called again when
/// that transaction was undone.
pub(crate) type Change<'c> = dyn FnMut(&mut Transaction<'_>) -> bool + Send + 'c;

/// The changes of other threads that a transaction makes too, if there are any.
pub(crate) type Along<'r> = Option<Taken<'r, Calls>>;

/// A change that its owner lends.
#[derive(Debug)]
struct Call(NonNull<Change<'static>>);

// SAFETY: one thread uses it at a time (`Calls::add`), and it can be sent to another one.
unsafe impl Send for Call {}

/// Changes that share a transaction.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    bytes: usize,
}

impl Calls {
    /// Adds a change that writes about `bytes` bytes, if there is room for it; returns whether
    /// there was.
    ///
    /// # Safety
    /// If there was room, the change must live, and no other code use it, until `self` has been
    /// cleared or is never run again.
    pub(crate) unsafe fn add(&mut self, change: &mut Change<'_>, bytes: usize) -> bool {
        if self.calls.len() == CALLS_MAX || self.bytes + bytes > CALLS_BYTES_MAX {
            return false;
        }
        // SAFETY: only the lifetime differs, and the caller promises that it is long enough.
        let change = unsafe { transmute::<&mut Change<'_>, &mut Change<'static>>(change) };
        self.calls.push(Call(change.into()));
        self.bytes += bytes;
        true
    }

    /// Makes all changes in a transaction, until one fails or panics; returns whether none did.
    /// Removes them all.
    pub(crate) fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        self.bytes = 0;
        self.calls.drain(..).all(|mut call| {
            // SAFETY: the caller of `add` promised that the change lives and is used only here.
            let change = unsafe { call.0.as_mut() };
            // The panic payload is of no use here: the change will panic again on its owner's
            // thread.
            let outcome = catch_unwind(AssertUnwindSafe(|| change(transaction)));
            outcome.unwrap_or_else(|panic| {
                std::mem::forget(panic);
                false
            })
        })
    }
}
