//! Sharded counters: counts on paths that many threads take at once.
//!
//! Purpose: a count costs some twenty instructions, none of them locked, on a cache line of the
//! thread's own. One counter for all threads would cost each of them a transfer of its line, some
//! 50 ns, which is as much as a lookup.
//! Invariants: every add is in the sum of the adds before it. Of the threads that live at the same
//! time, no two have the same slot, except the last one, which those share that found no other;
//! only there are adds locked. Slots are for all counters of the process, and are given back when
//! their thread ends.
//! Thread safety: any thread. A sum is right for adds that happened before it.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots of a counter.
const SLOTS: usize = 16;
/// The slot of all threads that have none of their own.
const SHARED: usize = SLOTS - 1;
/// Counts from which on threads count apart.
const FEW_MAX: u64 = 256;
/// The mark of a thread that has not asked yet.
const UNKNOWN: usize = usize::MAX;

/// The slots that threads have, one bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The slot of a thread.
struct Slot(Cell<usize>);

impl Drop for Slot {
    fn drop(&mut self) {
        if self.0.get() < SHARED {
            // The next owner sees all counts of this one.
            TAKEN.fetch_and(!(1 << self.0.get()), Ordering::Release);
        }
    }
}

thread_local!(static SLOT: Slot = const { Slot(Cell::new(UNKNOWN)) });

/// The slot of the calling thread.
#[inline]
fn slot() -> usize {
    // A thread that ends has given its own back.
    let known = SLOT.try_with(|slot| match slot.0.get() {
        UNKNOWN => take_slot(slot),
        known => known,
    });
    known.unwrap_or(SHARED)
}

#[cold]
fn take_slot(slot: &Slot) -> usize {
    let free = |taken: u32| {
        let first = taken.trailing_ones();
        (first < SHARED as u32).then_some(taken | 1 << first)
    };
    let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, free);
    let number = taken.map_or(SHARED, |taken| taken.trailing_ones() as usize);
    slot.0.set(number);
    number
}

/// A cache line of one thread.
#[derive(Debug)]
#[repr(align(64))]
struct Line<const N: usize>([AtomicU64; N]);

/// Counters that are counted together, up to eight. They take 1 KiB from 256 counts on: a
/// program may have thousands of keyspaces, and most of them are hardly used.
pub struct Counters<const N: usize> {
    /// The first counts, of all threads.
    few: [AtomicU64; N],
    lines: OnceLock<Box<[Line<N>; SLOTS]>>,
}

impl<const N: usize> Counters<N> {
    /// All of them at zero.
    pub const fn new() -> Self {
        Self { few: [const { AtomicU64::new(0) }; N], lines: OnceLock::new() }
    }

    /// Adds to the counter of this index.
    #[inline]
    pub fn add(&self, index: usize, count: u64) {
        let Some(lines) = self.lines.get() else { return self.add_few(index, count) };
        let slot = slot();
        let word = &lines[slot].0[index];
        if slot < SHARED {
            // No other thread stores here.
            word.store(word.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
        } else {
            word.fetch_add(count, Ordering::Relaxed);
        }
    }

    #[cold]
    fn add_few(&self, index: usize, count: u64) {
        let before = self.few[index].fetch_add(count, Ordering::Relaxed);
        if before.saturating_add(count) >= FEW_MAX {
            let line = |_| Line(std::array::from_fn(|_| AtomicU64::new(0)));
            self.lines.get_or_init(|| Box::new(std::array::from_fn(line)));
        }
    }

    /// The counts of all threads.
    pub fn sums(&self) -> [u64; N] {
        let lines = self.lines.get().into_iter().flat_map(|lines| lines.iter());
        let few = std::array::from_fn(|index| self.few[index].load(Ordering::Relaxed));
        lines.fold(few, |sums: [u64; N], line| {
            std::array::from_fn(|index| {
                sums[index].wrapping_add(line.0[index].load(Ordering::Relaxed))
            })
        })
    }
}

impl<const N: usize> Default for Counters<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for Counters<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Counters").field(&self.sums()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;

    use super::*;

    const ADDS: u64 = if cfg!(miri) { 50 } else { 20_000 };

    #[test]
    fn few_counts_take_no_memory_of_their_own() {
        let counters = Counters::<3>::new();
        (1..FEW_MAX).for_each(|_| counters.add(1, 1));
        assert!(counters.lines.get().is_none());
        counters.add(2, 2 * FEW_MAX);
        assert!(counters.lines.get().is_some());
        counters.add(1, 1);
        assert_eq!(counters.sums(), [0, FEW_MAX, 2 * FEW_MAX]);
    }

    /// More threads than slots, all at once, and others after them in the same slots.
    #[test]
    fn no_count_is_lost() {
        let counters = Arc::new(Counters::<2>::new());
        assert_eq!(counters.sums(), [0, 0]);
        for round in 1..=3 {
            let threads = 2 * SLOTS;
            let all_run = Arc::new(Barrier::new(threads));
            let run = |_| {
                let (counters, all_run) = (Arc::clone(&counters), Arc::clone(&all_run));
                thread::spawn(move || {
                    let own = slot();
                    // From here to there all of them live.
                    all_run.wait();
                    for _ in 0..ADDS {
                        counters.add(0, 1);
                        counters.add(1, 3);
                    }
                    all_run.wait();
                    own
                })
            };
            let running: Vec<_> = (0..threads).map(run).collect();
            let mut slots: Vec<_> = running.into_iter().map(|it| it.join().unwrap()).collect();
            slots.retain(|slot| *slot < SHARED);
            slots.sort_unstable();
            assert!(slots.windows(2).all(|two| two[0] != two[1]), "{slots:?}");
            let adds = round * threads as u64 * ADDS;
            assert_eq!(counters.sums(), [adds, 3 * adds]);
        }
    }
}
