//! Changes that threads lend to whoever has the turn to write, to be made in its transaction.
//!
//! Purpose: a batch of closures that lie on the stacks of those who wait, whatever their types.
//! Invariants: a change is used by one thread at a time: by whoever took the batch that it is in,
//! until its ticket is done (`requests.rs`), and after that by its owner.
//! Thread safety: none of its own; one batch is behind the lock of what waits, one belongs to who
//! has the turn.

use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::transaction::requests::Taken;
use crate::transaction::tx::Transaction;

/// Changes of others in one transaction at most, and about how many bytes they may write: some 100 us
/// of work, for which whoever makes them is kept from its own.
const CALLS_MAX: usize = 64;
pub(crate) const CALLS_BYTES_MAX: usize = 32 << 10;

/// A change to be made in a transaction; whether it succeeded. It may be called again when that
/// transaction was undone.
pub(crate) type Change<'c> = dyn FnMut(&mut Transaction<'_>) -> bool + Send + 'c;

/// Those whose changes a transaction makes, too, if there are any.
pub(crate) type Along<'r> = Option<Taken<'r, Calls>>;

/// A change that its owner lends.
#[derive(Debug)]
struct Call(NonNull<Change<'static>>);

// SAFETY: it is used by one thread at a time (`Calls::add`), and can be sent to another one.
unsafe impl Send for Call {}

/// Changes that share a transaction.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<Call>,
    bytes: usize,
}

impl Calls {
    /// Adds a change that writes about so many bytes, if there is room for it; whether there is.
    ///
    /// # Safety
    /// If there was room, the change must live, and nobody else use it, until `self` has been
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

    /// Makes all changes in a transaction, until one fails or panics; whether none did. They are
    /// cleared then.
    pub(crate) fn run(&mut self, transaction: &mut Transaction<'_>) -> bool {
        self.bytes = 0;
        self.calls.drain(..).all(|mut call| {
            // SAFETY: whoever called `add` promised that the change lives, and is used here alone.
            let change = unsafe { call.0.as_mut() };
            // What it panics with is of no use here: it will again, on the thread of its owner.
            let outcome = catch_unwind(AssertUnwindSafe(|| change(transaction)));
            outcome.unwrap_or_else(|panic| {
                std::mem::forget(panic);
                false
            })
        })
    }
}
