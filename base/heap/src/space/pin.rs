//! Pins: keep freed memory from being reused.
//!
//! Purpose: the quarantine's clock. A block that a commit frees is free on the medium at once;
//! memory reuses it when no pin is older than that commit. Snapshots, iterators, borrowed slices
//! and backups rest on this.
//! Thread safety: a mutex around a small map. Pins are few and long-lived; each commit looks once.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_medium::fork::ForkGuard;

use crate::sync::Mutex;

/// Pinned sequence numbers, each with its number of pins.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    counts: Mutex<BTreeMap<u64, u64>>,
    /// `None` where there is no other process.
    fork: Option<ForkGuard>,
}

impl Pins {
    /// The pins of a heap that was opened in this process.
    pub(crate) fn new(fork: ForkGuard) -> Self {
        Self { fork: Some(fork), ..Self::default() }
    }

    /// Keeps everything that is visible after the commit with this sequence number.
    pub(crate) fn pin(self: &Arc<Self>, sequence: u64) -> Pin {
        *self.counts.lock().entry(sequence).or_insert(0) += 1;
        Pin { pins: Arc::clone(self), sequence }
    }

    /// Blocks freed by commits up to this sequence number can be reused.
    pub(crate) fn released(&self) -> u64 {
        self.counts.lock().first_key_value().map_or(u64::MAX, |(sequence, _)| *sequence)
    }

    /// The number of pins.
    pub(crate) fn count(&self) -> u64 {
        self.counts.lock().values().sum()
    }
}

/// While this lives, no block that was visible when it was made is reused.
#[derive(Debug)]
pub struct Pin {
    pins: Arc<Pins>,
    sequence: u64,
}

impl Pin {
    /// The sequence number of the last commit that the pin keeps visible.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.pins.fork.is_some_and(|fork| fork.is_child()) {
            // The pin belongs to the parent, and the lock may be held by a thread that does not
            // exist here.
            return;
        }
        let mut pins = self.pins.counts.lock();
        if let Some(count) = pins.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.sequence);
            }
        }
    }
}
