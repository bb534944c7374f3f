//! Sequence numbers: which commit wrote an entry, and which ones readers see.
//!
//! Purpose: the one clock of all trees of a store, so that a number stands for one moment in all of
//! them.
//! Invariants: each change of a tree has a number that no other one has; what is visible is complete.
//! Numbers of transactions that were undone are not used again.
//! Thread safety: numbers are assigned by who has the turn to write, and become visible under the
//! heap's exclusive lock. Readers look at what is visible under its shared lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// The clock.
#[derive(Debug, Default)]
pub struct Sequences {
    assigned: AtomicU64,
    visible: AtomicU64,
}

impl Sequences {
    /// The last change that readers see.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// The number of the next change.
    pub(crate) fn assign(&self) -> u64 {
        self.assigned.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes a change visible, and those before it.
    pub(crate) fn show(&self, sequence: u64) {
        self.visible.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Takes note of a number that was found when a tree was opened.
    pub(crate) fn note(&self, sequence: u64) {
        self.assigned.fetch_max(sequence, Ordering::AcqRel);
        self.show(sequence);
    }
}
