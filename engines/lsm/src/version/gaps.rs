//! Gaps: key ranges without visible entries, which scans skip.
//!
//! Purpose: removed entries stay where they are until they are merged with their tombstones, and
//! scans step over them. Gaps remember empty ranges, from range removals and from what scans have
//! stepped over, so that the next scan skips them: the beginning of a queue is found in O(log n),
//! however many entries were taken from it.
//! Invariants: a reader at a gap's sequence number, or a later one, sees no entry in it, and no
//! newer value lies in it, committed or not: the writer of one cuts it out. What is written during
//! a scan lies in the memtable that was active when the scan began, or the epoch has changed. Gaps
//! are never stored: losing one costs time only.
//! Thread safety: any thread.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use adamant_slice::Slice;
use adamant_wire::key::NEXT;
use parking_lot::RwLock;

use crate::key::RangeTombstone;
use crate::memtable::Memtable;
use crate::sequence::Sequences;
use crate::tombstones::fragments::Fragments;

/// Maximum bytes of memory of a tree's gaps: beyond it they are forgotten.
const BYTES_MAX: usize = 1 << 20;
/// Number of consecutive removed entries that are worth a gap.
const STEPS_MIN: u64 = 32;
/// Weight of a skipped gap, so that adjacent gaps become one.
const GAP_STEPS: u64 = 8;

/// The gaps of a tree.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Whether there ever was a gap: otherwise writers need not look for any.
    is_used: AtomicBool,
    /// Removed entries that scans stepped over since a memtable was frozen.
    stepped: AtomicU64,
    /// Whether there were many when a memtable was frozen, and no merge was made for that yet.
    is_stepped_over: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    gaps: Fragments,
    /// Grows when the version of the tree changes.
    epoch: u64,
}

/// The gaps that a scan sees.
#[derive(Clone, Debug)]
pub(crate) struct SeenGaps {
    gaps: Fragments,
    epoch: u64,
    /// The sequence number of the scan.
    moment: u64,
    /// Whether that is the last one. Entries newer than an older one may be in tables.
    is_newest: bool,
}

impl SeenGaps {
    /// The gap that a key is in.
    pub(crate) fn over(&self, key: &[u8]) -> Option<&RangeTombstone> {
        self.gaps.over(key).filter(|gap| gap.sequence <= self.moment)
    }
}

impl Gaps {
    /// The gaps for a scan at a sequence number; `NEWEST` sees uncommitted writes, too. To be
    /// called under the heap's lock.
    pub(crate) fn seen(&self, moment: u64, sequences: &Sequences) -> SeenGaps {
        let visible = sequences.visible();
        // A scan that sees writes which may be taken back makes no gaps of them.
        let is_all = moment > visible && sequences.assigned() == visible;
        let moment = if is_all { visible } else { moment };
        let State { gaps, epoch } = &*self.state.read();
        SeenGaps { gaps: gaps.clone(), epoch: *epoch, moment, is_newest: moment == visible }
    }

    /// Cuts out a written value. To be called after it is in the memtable.
    pub(crate) fn fill(&self, key: &[u8]) {
        // Either the thread that is about to add a gap sees the value, or this thread sees that
        // there may be a gap.
        fence(Ordering::SeqCst);
        if !self.is_used.load(Ordering::Relaxed) || self.state.read().gaps.over(key).is_none() {
            return;
        }
        let gaps = &mut self.state.write().gaps;
        gaps.cut(key, &[key, NEXT].concat());
        bound(gaps);
    }

    /// Cuts out values that were written from one key to another.
    pub(crate) fn fill_between(&self, first: &[u8], last: &[u8]) {
        self.state.write().gaps.cut(first, &[last, NEXT].concat());
    }

    /// Adds the gap of a removed range. To be called by the holder of the write permit.
    pub(crate) fn empty(&self, range: RangeTombstone) {
        self.is_used.store(true, Ordering::Relaxed);
        let gaps = &mut self.state.write().gaps;
        gaps.put(range);
        bound(gaps);
    }

    /// Forgets all gaps, because writes are taken back.
    pub(crate) fn forget(&self) {
        self.state.write().gaps = Fragments::default();
    }

    /// Begins a new epoch, because the version has changed.
    pub(crate) fn next_epoch(&self) {
        self.state.write().epoch += 1;
    }

    /// Number of gaps.
    pub(crate) fn len(&self) -> usize {
        self.state.read().gaps.len()
    }

    /// Removed entries that scans stepped over since the last memtable was frozen.
    pub(crate) fn stepped(&self) -> u64 {
        self.stepped.load(Ordering::Relaxed)
    }

    /// Restarts the count, because a memtable is frozen: its content will be merged, soon if at
    /// least `many` entries were stepped over.
    pub(crate) fn begin_to_count(&self, many: u64) {
        if self.stepped.swap(0, Ordering::Relaxed) >= many {
            self.is_stepped_over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a merge is due because of the entries that scans stepped over; says so once.
    pub(crate) fn take_stepped_over(&self) -> bool {
        self.is_stepped_over.swap(false, Ordering::Relaxed)
    }

    /// Makes a gap of a range in which a scan found nothing, from `start` to `end`, excluded;
    /// `active` is the memtable that took writes when the scan began. O(entries of that memtable in
    /// the range).
    fn add(&self, seen: &SeenGaps, (start, end): (&[u8], &[u8]), active: &Memtable) {
        self.is_used.store(true, Ordering::Relaxed);
        let state = &mut *self.state.write();
        fence(Ordering::SeqCst);
        if state.epoch != seen.epoch || !seen.is_newest {
            return;
        }
        let mut sequence = seen.moment;
        // Existing gaps have no newer values.
        let (mut from, mut is_empty) = (start, true);
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        state.gaps.each_within(bounds, &mut |gap| {
            is_empty = is_empty && !active.has_value_between(from, &gap.start, seen.moment);
            (from, sequence) = (&gap.end[..], sequence.max(gap.sequence));
        });
        if is_empty && !active.has_value_between(from, end, seen.moment) {
            let (start, end) = (Slice::new(start), Slice::new(end));
            state.gaps.put(RangeTombstone { start, end, sequence });
            bound(&mut state.gaps);
        }
    }
}

/// Forgets all gaps if there are too many.
fn bound(gaps: &mut Fragments) {
    if gaps.bytes() > BYTES_MAX {
        *gaps = Fragments::default();
    }
}

/// The entries that a scan has stepped over since the last visible one.
pub(crate) struct Steps<'g> {
    gaps: &'g Gaps,
    seen: &'g SeenGaps,
    active: &'g Memtable,
    forward: bool,
    steps: u64,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl<'g> Steps<'g> {
    pub(crate) fn new(
        gaps: &'g Gaps,
        seen: &'g SeenGaps,
        active: &'g Memtable,
        forward: bool,
    ) -> Self {
        Self { gaps, seen, active, forward, steps: 0, start: Vec::new(), end: Vec::new() }
    }

    /// Steps over a key without a visible entry. Returns the gap that it is in, which may be
    /// skipped.
    pub(crate) fn step(&mut self, key: &[u8]) -> Option<&'g RangeTombstone> {
        let gap = self.seen.over(key);
        let is_first = self.steps == 0;
        if is_first || !self.forward {
            self.start.clear();
            self.start.extend_from_slice(gap.map_or(key, |gap| &gap.start));
        }
        if is_first || self.forward {
            self.end.clear();
            self.end.extend_from_slice(gap.map_or(key, |gap| &gap.end));
            if gap.is_none() {
                self.end.extend_from_slice(NEXT);
            }
        }
        self.steps += if gap.is_some() { GAP_STEPS } else { 1 };
        if gap.is_none() {
            self.gaps.stepped.fetch_add(1, Ordering::Relaxed);
        }
        gap
    }

    /// Ends the steps, at a visible entry or at the end of the scan.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.steps) >= STEPS_MIN {
            self.gaps.add(self.seen, (&self.start, &self.end), self.active);
        }
    }
}
