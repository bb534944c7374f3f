//! The poison flag: once a write or sync has failed, no write may follow it.
//!
//! Purpose: R1 and R5. After a failed sync the system may call a lost page clean, so a later
//! success would prove nothing; only reopening, which reads what is there, may continue.
//! Invariants: the first cause stays. Thread safety: any thread may poison or ask.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::events;

/// Whether writing has ended, and why.
#[derive(Debug, Default)]
pub(in crate::journal) struct Poison {
    poisoned: AtomicBool,
    cause: Mutex<Option<String>>,
}

impl Poison {
    /// Ends writing and returns the error that says so. The medium's error becomes the cause: on
    /// its own it would tell the caller that nothing was changed, and the commit may be visible. An
    /// error of damage is passed on.
    pub(in crate::journal) fn set(&self, error: Error) -> Error {
        if matches!(error, Error::Poisoned { .. }) {
            return error;
        }
        let cause = self.cause.lock().get_or_insert_with(|| error.to_string()).clone();
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            tracing::error!(target: events::STORE, cause, "poisoned: no more writing until reopened");
        }
        match error {
            Error::Medium(_) => Error::Poisoned { cause },
            other => other,
        }
    }

    /// # Errors
    /// `Error::Poisoned` once writing has ended.
    #[inline]
    pub(in crate::journal) fn check(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) { Err(self.error()) } else { Ok(()) }
    }

    #[cold]
    fn error(&self) -> Error {
        Error::Poisoned { cause: self.cause.lock().clone().unwrap_or_default() }
    }
}
