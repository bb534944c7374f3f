//! Handles for one thread at a time.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::code::{ADAMANT_BUSY, ADAMANT_PANIC};
use crate::failure::{Failure, Result};

/// Holds what is behind a handle for this call. Nobody waits: a second thread is told that it does what
/// the header forbids.
pub(crate) fn hold<T>(content: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    match content.try_lock() {
        Ok(held) => Ok(held),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            ADAMANT_BUSY,
            "another thread uses this handle, which is for one at a time",
        )),
        Err(TryLockError::Poisoned(_)) => Err(Failure::new(
            ADAMANT_PANIC,
            "a call on this handle panicked before; free it and make another",
        )),
    }
}
