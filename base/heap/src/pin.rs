//! Pins: what keeps freed memory from being reused.
//!
//! Purpose: the quarantine's clock. A block that a commit frees is free on the medium at once;
//! memory reuses it when no pin is older than that commit. Snapshots, iterators, lent slices and
//! backups stand on this.
//! Thread safety: a mutex around a small map; pins are few and long, commits look once each.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sync::Mutex;

/// Sequence numbers that somebody still looks at, with how many do.
#[derive(Debug, Default)]
pub(crate) struct Pins(Mutex<BTreeMap<u64, u64>>);

impl Pins {
    /// Keeps everything that is visible after the commit with this sequence number.
    pub(crate) fn pin(self: &Arc<Self>, sequence: u64) -> Pin {
        *self.0.lock().entry(sequence).or_insert(0) += 1;
        Pin { pins: Arc::clone(self), sequence }
    }

    /// What commits up to this sequence number freed can be reused.
    pub(crate) fn released(&self) -> u64 {
        self.0.lock().first_key_value().map_or(u64::MAX, |(sequence, _)| *sequence)
    }

    /// How many pins there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().values().sum()
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
        let mut pins = self.pins.0.lock();
        if let Some(count) = pins.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.sequence);
            }
        }
    }
}
