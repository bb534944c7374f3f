//! Locking of handles for one thread at a time.

use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::border::code::{ADAMANT_BUSY, ADAMANT_PANIC};
use crate::border::failure::{Failure, Result};

/// Locks the content of a handle for this call. Does not wait: a second thread gets an error, since
/// the header forbids that.
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
