//! Fork detection: whether this process is a fork's child of the one that opened a handle.
//!
//! Purpose: the heap refuses calls in a fork's child, whose pages it does not have. But a lock of
//! the store that another thread held at the fork stays locked forever in the child, so the child
//! may not touch the store at all, not even to drop it.
//! Invariants: the count of forks only grows; a handle keeps the count at which it was made.
//! Thread safety: a child has one thread when its count changes; each check is one load.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::errors;

/// Forks between the start of the first process and this one. The only state here that belongs to
/// the process and not to a store, as a fork does.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Called in the child of each fork that Python notices (`os.register_at_fork`).
#[pyfunction]
pub(crate) fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A handle of the store. In a fork's child it cannot be used, and is never dropped: leaking its
/// memory is the price of not waiting for threads that do not exist there.
pub(crate) struct Kept<T: Send> {
    value: Option<T>,
    forks: u64,
}

impl<T: Send> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), forks: FORKS.load(Ordering::Relaxed) }
    }

    /// Fails in a child.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.is_child() {
            return Err(errors::named(
                "Forked",
                "the store was opened before a fork, and a child does not have its memory: open \
                 it in the child, after its parent closed it, or start processes by spawn",
            ));
        }
        Ok(())
    }

    /// The handle.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.check()?;
        self.value.as_ref().ok_or_else(|| errors::named("Closed", "the handle was closed"))
    }

    fn is_child(&self) -> bool {
        self.forks != FORKS.load(Ordering::Relaxed)
    }
}

impl<T: Send> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.take() else { return };
        if self.is_child() {
            return std::mem::forget(value);
        }
        // The last handle of a store closes it, which waits for the device.
        let mut value = Some(value);
        Python::try_attach(|py| {
            let value = value.take();
            py.detach(|| drop(value));
        });
    }
}
