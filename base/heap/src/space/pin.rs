//! Pins: what keeps freed memory from being reused.
//!
//! Purpose: the quarantine's clock. A block that a commit frees is free on the medium at once;
//! memory reuses it when no pin is older than that commit. Snapshots, iterators, lent slices and
//! backups stand on this.
//! Thread safety: a mutex around a small map; pins are few and long, commits look once each.

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_medium::fork::ForkGuard;

use crate::sync::Mutex;

/// Sequence numbers that somebody still looks at, with how many do.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    counts: Mutex<BTreeMap<u64, u64>>,
    /// None where there is no other process.
    fork: Option<ForkGuard>,
}

impl Pins {
    /// Of a heap that was opened in this process.
    pub(crate) fn new(fork: ForkGuard) -> Self {
        Self { fork: Some(fork), ..Self::default() }
    }

    /// Keeps everything that is visible after the commit with this sequence number.
    pub(crate) fn pin(self: &Arc<Self>, sequence: u64) -> Pin {
        *self.counts.lock().entry(sequence).or_insert(0) += 1;
        Pin { pins: Arc::clone(self), sequence }
    }

    /// What commits up to this sequence number freed can be reused.
    pub(crate) fn released(&self) -> u64 {
        self.counts.lock().first_key_value().map_or(u64::MAX, |(sequence, _)| *sequence)
    }

    /// How many pins there are.
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
    /// The sequence number of the last commit that is visible to what this pins.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.pins.fork.is_some_and(|fork| fork.is_child()) {
            // Its parent's pin stays, and the lock may be held by a thread that is not here.
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
