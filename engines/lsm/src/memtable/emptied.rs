//! Range tombstones of a memtable.
//!
//! Purpose: as [`RangeTombstones`], with readers beside a writer that adds tombstones and may take
//! them back.
//! Invariants: what a transaction adds is in the newest state at once, under a number that no
//! reader sees; the state that readers see stays until the commit.
//! Thread safety: added to by the holder of the write permit; read by any thread.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::key::RangeTombstone;
use crate::sequence::Sequences;
use crate::tombstones::fragments::Fragments;
use crate::tombstones::range_tombstones::RangeTombstones;

/// The range tombstones.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    /// Whether there are any. Mostly there are none, and then the lock is not taken.
    is_used: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    cover: RangeTombstones,
    /// Tombstones that may yet be taken back.
    uncommitted: Vec<RangeTombstone>,
}

impl Emptied {
    /// Sets the tombstones that were read back.
    pub(super) fn fill(&self, cover: RangeTombstones) {
        self.is_used.store(!cover.is_empty(), Ordering::Release);
        self.state.write().cover = cover;
    }

    /// Adds one. O(log n), plus O(log n) for each one that is dropped.
    pub(super) fn add(&self, range: RangeTombstone, sequences: &Sequences) {
        let state = &mut *self.state.write();
        state.uncommitted.push(range.clone());
        state.cover.put(range, &sequences.seen());
        self.is_used.store(true, Ordering::Release);
    }

    /// Takes back what was added under a number. O(what the transaction added).
    pub(super) fn take_back(&self, sequence: u64, sequences: &Sequences) {
        let state = &mut *self.state.write();
        state.uncommitted.retain(|range| range.sequence != sequence);
        let seen = sequences.seen();
        state.cover.take_back(sequences.visible());
        for range in &state.uncommitted {
            state.cover.put(range.clone(), &seen);
        }
        self.is_used.store(!state.cover.is_empty(), Ordering::Release);
    }

    /// Drops what was committed from the list of uncommitted ones, and states that no reader sees
    /// any more.
    pub(super) fn let_go(&self, sequences: &Sequences) {
        let state = &mut *self.state.write();
        let visible = sequences.visible();
        state.uncommitted.retain(|range| range.sequence > visible);
        if state.uncommitted.is_empty() {
            state.uncommitted = Vec::new();
        }
        state.cover.retain(&sequences.seen());
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The newest commit up to a sequence number that removed a range with this key; 0 if there is
    /// none. O(log n).
    #[inline]
    pub(crate) fn over(&self, key: &[u8], moment: u64) -> u64 {
        if self.is_used() { self.state.read().cover.over(key, moment) } else { 0 }
    }

    /// The tombstones as seen at a sequence number. O(1).
    pub(crate) fn at(&self, moment: u64) -> Fragments {
        if self.is_used() { self.state.read().cover.at(moment) } else { Fragments::default() }
    }

    /// Whether a commit after a sequence number removed a range that has keys between bounds. O(log
    /// n).
    pub(crate) fn has_newer(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), moment: u64) -> bool {
        self.is_used() && self.state.read().cover.has_newer(bounds, moment)
    }

    /// All tombstones that a reader can tell apart, disjoint for each sequence number.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        if self.is_used() { self.state.read().cover.between(None, None) } else { Vec::new() }
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        if !self.is_used() {
            return 0;
        }
        let state = self.state.read();
        state.cover.bytes() + state.cover.kept_bytes()
    }

    /// Approximate bytes of memory that are held for snapshots only.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if self.is_used() { self.state.read().cover.kept_bytes() } else { 0 }
    }
}
