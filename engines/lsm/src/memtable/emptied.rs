//! The ranges that commits made empty while a memtable took what they wrote.
//!
//! Purpose: as [`RangeTombstones`], beside somebody who adds to it, and may take back what was added.
//! Invariants: what a transaction adds is in the newest state at once, under a number that no
//! reader sees; the state that readers see stays until the commit.
//! Thread safety: added to by who has the turn to write; read by anybody.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use adamant_wire::mutants::is_planted;
use parking_lot::RwLock;

use crate::key::RangeTombstone;
use crate::sequence::Sequences;
use crate::tombstones::fragments::Fragments;
use crate::tombstones::range_tombstones::RangeTombstones;

/// The ranges.
#[derive(Debug, Default)]
pub(crate) struct Emptied {
    /// Whether there are some: mostly there is none, and then the lock is not asked for.
    is_used: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    cover: RangeTombstones,
    /// What may yet be taken back.
    uncommitted: Vec<RangeTombstone>,
}

impl Emptied {
    /// Puts what was read back in its place.
    pub(super) fn fill(&self, cover: RangeTombstones) {
        self.is_used.store(!cover.is_empty(), Ordering::Release);
        self.state.write().cover = cover;
    }

    /// Adds one. O(log n), and for each one that is let go.
    pub(super) fn add(&self, range: RangeTombstone, sequences: &Sequences) {
        let state = &mut *self.state.write();
        state.uncommitted.push(range.clone());
        state.cover.put(range, &seen(sequences));
        self.is_used.store(true, Ordering::Release);
    }

    /// Takes what was added under a number back. O(what the transaction added).
    pub(super) fn take_back(&self, sequence: u64, sequences: &Sequences) {
        let state = &mut *self.state.write();
        state.uncommitted.retain(|range| range.sequence != sequence);
        let seen = seen(sequences);
        state.cover.take_back(sequences.visible());
        for range in &state.uncommitted {
            state.cover.put(range.clone(), &seen);
        }
        self.is_used.store(!state.cover.is_empty(), Ordering::Release);
    }

    /// Lets go what was committed, and what nobody sees any more.
    pub(super) fn let_go(&self, sequences: &Sequences) {
        let state = &mut *self.state.write();
        let visible = sequences.visible();
        state.uncommitted.retain(|range| range.sequence > visible);
        if state.uncommitted.is_empty() {
            state.uncommitted = Vec::new();
        }
        state.cover.retain(&seen(sequences));
    }

    fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// The newest commit up to a moment that made a range with this key in it empty; 0 if none did.
    /// O(log n).
    #[inline]
    pub(crate) fn over(&self, key: &[u8], moment: u64) -> u64 {
        if self.is_used() { self.state.read().cover.over(key, moment) } else { 0 }
    }

    /// The ranges as a moment sees them. O(1).
    pub(crate) fn at(&self, moment: u64) -> Fragments {
        if self.is_used() { self.state.read().cover.at(moment) } else { Fragments::default() }
    }

    /// Whether a commit after a moment made a range empty that has keys between bounds. O(log n).
    pub(crate) fn has_newer(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>), moment: u64) -> bool {
        self.is_used() && self.state.read().cover.has_newer(bounds, moment)
    }

    /// All that somebody can tell apart, as tombstones that are disjoint for each sequence number.
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

    /// Bytes of memory that are there for snapshots only, about.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if self.is_used() { self.state.read().cover.kept_bytes() } else { 0 }
    }
}

/// The moments that somebody looks at.
fn seen(sequences: &Sequences) -> Vec<u64> {
    if is_planted("R9.ranges-forget-what-snapshots-see") {
        return vec![sequences.visible()];
    }
    sequences.seen()
}
