//! The one order of all entries, over all lanes.
//!
//! Purpose: give out sequence numbers, and tell which of them are in flight (their fence may not
//! be complete) and which are settled (applied durably, or void).
//! Invariants: a lane announces that it takes a number before it takes one, and says what it still
//! needs before it says that its fence is complete. Both are released by the increment of `next`,
//! so who has a number sees the state of all lanes with lower ones, or a later state.
//! Thread safety: any thread; a slot is written by who has its lane.
use adamant_wire::mutants::is_planted;

use super::layout::SEQUENCE_MAX;
use crate::sync::{AtomicU64, Ordering, yield_now};

/// No entry is in flight; nothing is needed.
pub(super) const NONE: u64 = u64::MAX;
/// A number is being taken.
const ANNOUNCED: u64 = u64::MAX - 1;

/// Looks at a number that is being taken before others get to run. Under loom nothing happens between
/// two of them.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 64 };

/// What others see of a lane. Two cache lines, because processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Slot {
    /// The entry whose fence is not complete.
    in_flight: AtomicU64,
    /// The oldest entry that is not settled.
    open: AtomicU64,
    /// Records appended, and bytes of entries.
    pub(super) records: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// On lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Next(AtomicU64);

/// Sequence numbers and the slots of all lanes.
#[derive(Debug)]
pub(super) struct Order {
    /// The last number given out.
    next: Next,
    /// One past the last lane ever used: those beyond need no look.
    used: AtomicU64,
    slots: Box<[Slot]>,
}

impl Order {
    /// Of that many lanes; the last number given out was `last`.
    pub(super) fn new(lanes: usize, last: u64) -> Self {
        let slot = || Slot {
            in_flight: AtomicU64::new(NONE),
            open: AtomicU64::new(NONE),
            records: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let slots = (0..lanes).map(|_| slot()).collect();
        Self { next: Next(AtomicU64::new(last)), used: AtomicU64::new(0), slots }
    }

    /// Goes on from a higher number. To be called before the first entry.
    pub(super) fn skip_to(&self, last: u64) {
        self.next.0.store(last, Ordering::Release);
    }

    /// The last number given out.
    pub(super) fn last(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// Whether numbers are left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.last() + self.slots.len() as u64 >= SEQUENCE_MAX
    }

    /// Lanes that were ever used, at most.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire) as usize
    }

    pub(super) fn slot(&self, lane: usize) -> &Slot {
        &self.slots[lane]
    }

    /// Takes the next number for a lane, and names those below it that are in flight.
    pub(super) fn begin(&self, lane: usize, in_flight: &mut Vec<u64>) -> u64 {
        if self.used.load(Ordering::Relaxed) <= lane as u64 {
            self.used.fetch_max(lane as u64 + 1, Ordering::AcqRel);
        }
        let slot = &self.slots[lane];
        slot.in_flight.store(ANNOUNCED, Ordering::Relaxed);
        let sequence = self.next.0.fetch_add(1, Ordering::AcqRel) + 1;
        slot.in_flight.store(sequence, Ordering::Release);
        in_flight.clear();
        for (other, slot) in self.slots.iter().enumerate().take(self.used()) {
            let found = if other == lane { NONE } else { number_in(&slot.in_flight) };
            if found < sequence && !is_planted("R8.names-nobody-in-flight") {
                in_flight.push(found);
            }
        }
        sequence
    }

    /// The fence of a lane's entry is complete; `open` is the oldest that is not settled in it.
    pub(super) fn end(&self, lane: usize, open: u64) {
        let slot = &self.slots[lane];
        slot.open.store(open, Ordering::Release);
        slot.in_flight.store(NONE, Ordering::Release);
    }

    /// The oldest entry of a lane that is not settled changes.
    pub(super) fn set_open(&self, lane: usize, open: u64) {
        self.slots[lane].open.store(open, Ordering::Release);
    }

    /// The highest number up to which all entries are settled.
    pub(super) fn settled(&self) -> u64 {
        let mut settled = self.last();
        for slot in self.slots.iter().take(self.used()) {
            let in_flight = number_in(&slot.in_flight);
            let open = slot.open.load(Ordering::Acquire);
            let open = if is_planted("R8.open-entries-are-settled") { NONE } else { open };
            settled = settled.min(in_flight.min(open) - 1);
        }
        settled
    }

    /// Sums over all lanes.
    pub(super) fn sum(&self, of: fn(&Slot) -> &AtomicU64) -> u64 {
        self.slots.iter().map(|slot| of(slot).load(Ordering::Relaxed)).sum()
    }
}

/// The number in a slot; waits for one that is being taken, which is a matter of two instructions
/// and a cache line's way unless their thread lost the processor.
#[inline]
fn number_in(slot: &AtomicU64) -> u64 {
    match slot.load(Ordering::Acquire) {
        ANNOUNCED => number_after(slot),
        number => number,
    }
}

#[cold]
fn number_after(slot: &AtomicU64) -> u64 {
    let mut looks = 0;
    loop {
        match slot.load(Ordering::Acquire) {
            ANNOUNCED if looks < LOOKS => {
                looks += 1;
                std::hint::spin_loop();
            }
            ANNOUNCED => yield_now(),
            number => return number,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_named_and_what_is_open_is_not_settled() {
        let order = Order::new(4, 10);
        let mut named = Vec::new();
        assert_eq!(order.settled(), 10);
        assert_eq!(order.begin(2, &mut named), 11);
        assert_eq!((named.len(), order.settled()), (0, 10));
        assert_eq!(order.begin(0, &mut named), 12);
        assert_eq!(named, [11]);
        order.end(2, 11);
        assert_eq!(order.settled(), 10, "its application is not durable");
        order.set_open(2, NONE);
        assert_eq!(order.settled(), 11);
        order.end(0, NONE);
        assert_eq!(order.settled(), 12);
        assert_eq!(order.begin(1, &mut named), 13);
        assert!(named.is_empty());
    }

    #[test]
    fn threads_get_different_numbers_and_name_only_lower_ones() {
        let order = Order::new(4, 0);
        let taken = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|lane| {
                    let order = &order;
                    scope.spawn(move || {
                        let (mut named, mut taken) = (Vec::new(), Vec::new());
                        for _ in 0..5000 {
                            let sequence = order.begin(lane, &mut named);
                            assert!(named.iter().all(|other| *other < sequence));
                            assert!(order.settled() < sequence);
                            order.end(lane, NONE);
                            taken.push(sequence);
                        }
                        taken
                    })
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        let mut taken: Vec<u64> = taken;
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(1..=20_000));
        assert_eq!(order.settled(), 20_000);
    }
}

/// Every order in which threads can get there, as memory may show it to them.
#[cfg(all(test, loom))]
mod every_order {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// An order, and what threads did beside it: with the weakest ordering, so that only `Order`
    /// can make it seen.
    struct Place {
        order: Order,
        number: [AtomicU64; 2],
        fenced: [AtomicU64; 2],
        applied: [AtomicU64; 2],
    }

    impl Place {
        fn new() -> Arc<Self> {
            let words = || [AtomicU64::new(0), AtomicU64::new(0)];
            let order = Order::new(2, 0);
            Arc::new(Self { order, number: words(), fenced: words(), applied: words() })
        }

        /// An entry of a lane up to the end of its fence; returns its number.
        fn append(&self, lane: usize, named: &mut Vec<u64>) -> u64 {
            let sequence = self.order.begin(lane, named);
            self.number[lane].store(sequence, Ordering::Relaxed);
            self.fenced[lane].store(1, Ordering::Relaxed);
            self.order.end(lane, sequence);
            sequence
        }

        /// Its application is durable.
        fn settle(&self, lane: usize) {
            self.applied[lane].store(1, Ordering::Relaxed);
            self.order.set_open(lane, NONE);
        }
    }

    #[test]
    fn a_lower_number_is_named_or_its_fence_is_seen() {
        loom::model(|| {
            let place = Place::new();
            let other = Arc::clone(&place);
            let thread = thread::spawn(move || {
                other.append(1, &mut Vec::new());
            });
            let mut named = Vec::new();
            let sequence = place.order.begin(0, &mut named);
            // The other lane has the other one of 1 and 2.
            if sequence == 2 && named.is_empty() {
                assert_eq!(place.fenced[1].load(Ordering::Relaxed), 1, "1 is not in flight");
            }
            place.order.end(0, NONE);
            thread.join().expect("no panic");
        });
    }

    #[test]
    fn what_is_settled_is_seen_to_be_applied() {
        let mut builder = loom::model::Builder::new();
        // Waiting for a number that is being taken has too many orders for all of them.
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let place = Place::new();
            let threads = [0, 1].map(|lane| {
                let place = Arc::clone(&place);
                thread::spawn(move || {
                    place.append(lane, &mut Vec::new());
                    place.settle(lane);
                })
            });
            let settled = place.order.settled();
            for lane in 0..2 {
                let number = place.number[lane].load(Ordering::Relaxed);
                let is_applied = place.applied[lane].load(Ordering::Relaxed) == 1;
                assert!(number == 0 || number > settled || is_applied, "{number} of {settled}");
            }
            let applied = place.applied.iter().map(|word| word.load(Ordering::Relaxed));
            assert!(applied.sum::<u64>() >= settled, "{settled} entries are settled");
            for thread in threads {
                thread.join().expect("no panic");
            }
            assert_eq!(place.order.settled(), 2);
        });
    }
}
