//! Ranges in which nothing is left to see.
//!
//! Purpose: what was removed stays where it was until it is merged with what removed it, and a scan
//! steps over it. That there is nothing is remembered here, of ranges that were removed as such and
//! of what scans have stepped over, so that the next one passes by: the beginning of a queue is
//! found in O(log n), whatever was taken out of it.
//! Invariants: of a gap with a number nobody sees an entry who looks at that moment, or a later
//! one, and no value that is newer lies in it, whether it was committed or not: who writes one cuts
//! it out. What is written while a scan goes on lies in the memtable that was active when it began,
//! or the epoch has changed. Gaps are never stored: to forget one costs time only.
//! Thread safety: any thread.

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use adamant_slice::Slice;
use adamant_wire::key::NEXT;
use adamant_wire::mutants::is_planted;
use parking_lot::RwLock;

use crate::key::RangeTombstone;
use crate::memtable::Memtable;
use crate::sequence::Sequences;
use crate::tombstones::fragments::Fragments;

/// Bytes of memory that the gaps of a tree take at most: then they are forgotten.
const BYTES_MAX: usize = 1 << 20;
/// Removed entries one behind the other that are worth a gap.
const STEPS_MIN: u64 = 32;
/// What a gap that is passed by counts for: so that those that lie side by side become one.
const GAP_STEPS: u64 = 8;

/// The gaps of a tree.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Whether there ever was one: else nobody who writes looks for any.
    is_used: AtomicBool,
    /// Removed entries that scans stepped over since a memtable was frozen.
    stepped: AtomicU64,
    /// Whether these were many when one was frozen, and nothing is merged for that yet.
    is_stepped_over: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    gaps: Fragments,
    /// Grows when the layers of the tree change.
    epoch: u64,
}

/// The gaps as a scan finds them.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    gaps: Fragments,
    epoch: u64,
    /// What the scan looks at.
    moment: u64,
    /// Whether that is the last moment there is. What is newer than an older one may be in tables.
    is_newest: bool,
}

impl Seen {
    /// The gap that a key is in.
    pub(crate) fn over(&self, key: &[u8]) -> Option<&RangeTombstone> {
        self.gaps.over(key).filter(|gap| gap.sequence <= self.moment)
    }
}

impl Gaps {
    /// What a scan that looks at a moment may pass by; `NEWEST` sees what is not committed, too. To
    /// be called under the heap's lock.
    pub(crate) fn seen(&self, moment: u64, sequences: &Sequences) -> Seen {
        let visible = sequences.visible();
        // Who sees what may yet be taken back makes no gaps of it.
        let is_all = moment > visible && sequences.assigned() == visible;
        let moment = if is_all { visible } else { moment };
        let State { gaps, epoch } = &*self.state.read();
        Seen { gaps: gaps.clone(), epoch: *epoch, moment, is_newest: moment == visible }
    }

    /// A value was written. To be called after it is in the memtable.
    pub(crate) fn fill(&self, key: &[u8]) {
        // Either the value is seen by who is about to make a gap, or that there may be one is seen
        // here.
        fence(Ordering::SeqCst);
        if !self.is_used.load(Ordering::Relaxed)
            || self.state.read().gaps.over(key).is_none()
            || is_planted("R9.gaps-hide-what-is-written")
        {
            return;
        }
        let gaps = &mut self.state.write().gaps;
        gaps.cut(key, &[key, NEXT].concat());
        bound(gaps);
    }

    /// Values were written from one key to another.
    pub(crate) fn fill_between(&self, first: &[u8], last: &[u8]) {
        self.state.write().gaps.cut(first, &[last, NEXT].concat());
    }

    /// A range was made empty by who has the turn to write.
    pub(crate) fn empty(&self, range: RangeTombstone) {
        self.is_used.store(true, Ordering::Relaxed);
        let gaps = &mut self.state.write().gaps;
        gaps.put(range);
        bound(gaps);
    }

    /// What was written is taken back.
    pub(crate) fn forget(&self) {
        self.state.write().gaps = Fragments::default();
    }

    /// The layers have changed.
    pub(crate) fn next_epoch(&self) {
        self.state.write().epoch += 1;
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.state.read().gaps.len()
    }

    /// Removed entries that scans stepped over since the last memtable was frozen.
    pub(crate) fn stepped(&self) -> u64 {
        self.stepped.load(Ordering::Relaxed)
    }

    /// A memtable is frozen: what is in it will be merged, soon if so many were stepped over.
    pub(crate) fn begin_to_count(&self, many: u64) {
        if self.stepped.swap(0, Ordering::Relaxed) >= many {
            self.is_stepped_over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether something is to be merged because of what was stepped over; says so once.
    pub(crate) fn take_stepped_over(&self) -> bool {
        self.is_stepped_over.swap(false, Ordering::Relaxed)
    }

    /// Makes a gap of what a scan found nothing in, between two keys, the second excluded; `active`
    /// is the memtable that took what was written when it began. O(entries of that memtable in
    /// between).
    fn add(&self, seen: &Seen, (start, end): (&[u8], &[u8]), active: &Memtable) {
        self.is_used.store(true, Ordering::Relaxed);
        let state = &mut *self.state.write();
        fence(Ordering::SeqCst);
        if state.epoch != seen.epoch || !seen.is_newest {
            return;
        }
        let mut sequence = seen.moment;
        // What is a gap already has no newer values.
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

/// Forgets all if there are too many.
fn bound(gaps: &mut Fragments) {
    if gaps.bytes() > BYTES_MAX {
        *gaps = Fragments::default();
    }
}

/// What a scan has stepped over since the last entry that somebody sees.
pub(crate) struct Steps<'g> {
    gaps: &'g Gaps,
    seen: &'g Seen,
    active: &'g Memtable,
    forward: bool,
    steps: u64,
    start: Vec<u8>,
    end: Vec<u8>,
}

impl<'g> Steps<'g> {
    pub(crate) fn new(gaps: &'g Gaps, seen: &'g Seen, active: &'g Memtable, forward: bool) -> Self {
        Self { gaps, seen, active, forward, steps: 0, start: Vec::new(), end: Vec::new() }
    }

    /// Nothing is seen under a key. The gap that it is in, which may be passed by.
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

    /// Somebody sees an entry, or nothing more comes.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.steps) >= STEPS_MIN {
            self.gaps.add(self.seen, (&self.start, &self.end), self.active);
        }
    }
}
