//! The writer queue: the lock in front of the writer's state.
//!
//! Purpose: transactions of a microsecond, of many threads that come back at once. A mutex wakes a
//! sleeper with each release, which finds it taken again: eight writers then get a third of what
//! one does. Here a sleeper is woken only when no awake thread is about to take the next permit, or
//! when the others have had their share.
//! Invariants: write permits never overlap. While a thread sleeps, a permit is held or some awake
//! thread will try for the next one: a thread that goes to sleep tries once more after it was
//! counted, and a thread that releases a permit looks for sleepers after that, all in one total
//! order.
//! Thread safety: any thread; a permit is released on the thread that holds it.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use parking_lot::MutexGuard;

use crate::sync::{
    AtomicBool, AtomicU32, Condvar, Mutex, Ordering, in_total_order, is_over, sleep, sleep_until,
    yield_now,
};

/// Attempts at a taken permit before sleeping; with the pauses between them some 20 us, about what
/// it costs to sleep and be woken.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 32 };
/// Spin-loop hints between two attempts: a thread that comes back at once gets a few permits in a
/// row, with its working set still in its cache.
const PAUSES: u32 = if cfg!(loom) { 0 } else { 32 };
/// Spin-loop hints in which others may do the work before a permit is tried for: about a
/// microsecond.
const PATIENCE: u32 = if cfg!(loom) { 0 } else { 64 };
/// Spin-loop hints between two checks whether others have done the work: that takes them less than
/// the time of an attempt.
const PAUSES_DONE: u32 = 4;
/// Spin-loop hints in which the permit's holder may do the work that a sole waiter has handed over:
/// about the length of two permits.
const PATIENCE_ALONE: u32 = if cfg!(loom) { 0 } else { 128 };
/// Attempts of a waiter that has handed work over, which yields between them. In the first
/// `LOOKS_LEAVING` of them it leaves a free permit to the thread that had the last one.
const LOOKS_YIELDING: u32 = if cfg!(loom) { 2 } else { 32 };
const LOOKS_LEAVING: u32 = if cfg!(loom) { 1 } else { 4 };
/// After so many permits a sleeper is woken although others wait awake, about every 0.5 ms: so none
/// sleeps much longer than that for each one before it.
const TURNS_FAIR: u32 = if cfg!(loom) { u32::MAX } else { 256 };

/// The queue, and the value that only the permit's holder touches.
#[derive(Debug)]
pub(crate) struct WriterQueue<T> {
    taken: AtomicBool,
    /// Threads that will try for the next permit by themselves, including those that are waking up.
    awake: AtomicU32,
    asleep: AtomicU32,
    /// Permits that were released while a thread slept.
    ended: AtomicU32,
    /// Sleepers that were told to wake up and have not done so yet.
    woken: Mutex<u32>,
    wake: Condvar,
    /// How often a waiter looks; 0: no thread has waited yet.
    looks: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a permit alone, of which there is one at a time; so sharing
// the queue sends the value from thread to thread, and no more.
unsafe impl<T: Send> Sync for WriterQueue<T> {}

/// A write permit, released by dropping it. Like the guard of a mutex it stays on its thread, and
/// can be shared if the value can.
#[derive(Debug)]
pub(crate) struct WritePermit<'t, T>(&'t WriterQueue<T>, PhantomData<MutexGuard<'t, T>>);

impl<T> Deref for WritePermit<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: there is one permit at a time, and it is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for WritePermit<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one permit at a time, and it is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug)]
enum Slept {
    /// The permit was free by then.
    HasTurn,
    /// It was told to wake up.
    Woken,
    /// The deadline has passed.
    Late,
}

impl<T> WriterQueue<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            awake: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            woken: Mutex::default(),
            wake: Condvar::default(),
            looks: AtomicU32::new(0),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for a permit.
    #[inline]
    pub(crate) fn wait(&self) -> WritePermit<'_, T> {
        if !self.take() {
            self.wait_long(None, || false);
        }
        WritePermit(self, PhantomData)
    }

    /// A permit, if no thread has it.
    #[inline]
    pub(crate) fn try_wait(&self) -> Option<WritePermit<'_, T>> {
        self.take().then(|| WritePermit(self, PhantomData))
    }

    /// Waits for a permit, but not for longer; `None` if others have had it so long.
    pub(crate) fn wait_within(&self, longest: Duration) -> Option<WritePermit<'_, T>> {
        let end = |longest| Some(Instant::now() + longest);
        if self.take() || !longest.is_zero() && self.wait_long(end(longest), || false) {
            return Some(WritePermit(self, PhantomData));
        }
        None
    }

    /// Waits for a permit, or until others have done the work that it was wanted for; `None` then.
    /// The work may be done by the time this has a permit: a sleeper is not woken for that.
    pub(crate) fn wait_unless(&self, is_done: impl Fn() -> bool) -> Option<WritePermit<'_, T>> {
        // The holder of the permit mostly comes back at once: then both do their work for little
        // more than the cost of one.
        for _ in 0..PATIENCE {
            if is_done() {
                return None;
            }
            std::hint::spin_loop();
        }
        if self.take() || self.wait_long(None, is_done) {
            return Some(WritePermit(self, PhantomData));
        }
        None
    }

    /// As [`WriterQueue::wait_unless`], for work that the permit's holder does for all waiters.
    /// While there are more waiters than this one they yield, so that their work is done together.
    /// With `leaves`, a free permit is left for a moment to the thread that had it and mostly comes
    /// back: that thread's cache holds the value behind the permit.
    pub(crate) fn wait_served(
        &self,
        is_done: impl Fn() -> bool,
        is_alone: impl Fn() -> bool,
        leaves: bool,
    ) -> Option<WritePermit<'_, T>> {
        for _ in 0..PATIENCE_ALONE {
            if is_done() {
                return None;
            }
            if !is_alone() {
                break;
            }
            std::hint::spin_loop();
        }
        for look in 0..LOOKS_YIELDING {
            if is_done() {
                return None;
            }
            if !(leaves && look < LOOKS_LEAVING) && self.take() {
                return Some(WritePermit(self, PhantomData));
            }
            yield_now();
        }
        self.wait_long(None, is_done).then(|| WritePermit(self, PhantomData))
    }

    /// For a thread that was awake and gives up: the release of a permit may have counted on it to
    /// take the next one.
    fn wake_in_its_place(&self) {
        in_total_order();
        let is_taken = self.taken.load(Ordering::SeqCst);
        if !is_taken
            && self.asleep.load(Ordering::SeqCst) > 0
            && self.awake.load(Ordering::SeqCst) == 0
        {
            self.wake_one();
        }
    }

    #[inline]
    fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait_long(&self, end: Option<Instant>, is_done: impl Fn() -> bool) -> bool {
        self.awake.fetch_add(1, Ordering::SeqCst);
        let mut is_late = false;
        loop {
            let has_writer = self.look(&is_done);
            if has_writer || is_late || is_done() || end.is_some_and(is_over) {
                self.awake.fetch_sub(1, Ordering::SeqCst);
                if !has_writer {
                    self.wake_in_its_place();
                }
                return has_writer;
            }
            match self.sleep(end) {
                Slept::HasTurn => return true,
                Slept::Woken => {}
                Slept::Late => is_late = true,
            }
        }
    }

    /// Tries for a permit for a while, or until it is not needed.
    fn look(&self, is_done: &impl Fn() -> bool) -> bool {
        let looks = match self.looks.load(Ordering::Relaxed) {
            0 => self.count_looks(),
            looks => looks,
        };
        for _ in 0..looks {
            if self.take() {
                return true;
            }
            for pause in 0..PAUSES {
                if pause % PAUSES_DONE == 0 && is_done() {
                    return false;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    /// How often it is worth looking here. The first waiter asks: the answer takes the system some
    /// 100 microseconds, which opening a store alone should not cost.
    #[cold]
    fn count_looks(&self) -> u32 {
        if cfg!(loom) {
            return LOOKS;
        }
        // With one processor, a thread that spins keeps the one it waits for from running.
        let is_single = std::thread::available_parallelism().is_ok_and(|count| count.get() == 1);
        let looks = if is_single { 1 } else { LOOKS };
        self.looks.store(looks, Ordering::Relaxed);
        looks
    }

    /// Sleeps until woken, or until `end`, after which it counts as awake again; unless it takes
    /// the permit first.
    fn sleep(&self, end: Option<Instant>) -> Slept {
        let mut woken = self.woken.lock();
        self.asleep.fetch_add(1, Ordering::SeqCst);
        self.awake.fetch_sub(1, Ordering::SeqCst);
        in_total_order();
        if self.taken.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
            return Slept::HasTurn;
        }
        while *woken == 0 {
            let is_late;
            (woken, is_late) = match end {
                Some(end) => sleep_until(&self.woken, &self.wake, woken, end),
                None => (sleep(&self.wake, woken), false),
            };
            // No other thread was told to wake up and has not: this one counts as asleep still.
            if is_late && *woken == 0 {
                self.asleep.fetch_sub(1, Ordering::SeqCst);
                self.awake.fetch_add(1, Ordering::SeqCst);
                return Slept::Late;
            }
        }
        *woken -= 1;
        Slept::Woken
    }

    /// Wakes one sleeper, if there still is one.
    #[cold]
    fn wake_one(&self) {
        let mut woken = self.woken.lock();
        if self.asleep.load(Ordering::SeqCst) > 0 {
            self.asleep.fetch_sub(1, Ordering::SeqCst);
            self.awake.fetch_add(1, Ordering::SeqCst);
            *woken += 1;
            self.wake.notify_one();
        }
    }
}

impl<T> Drop for WritePermit<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let writer_queue = self.0;
        writer_queue.taken.store(false, Ordering::SeqCst);
        in_total_order();
        if writer_queue.asleep.load(Ordering::SeqCst) == 0 {
            return;
        }
        let ended = writer_queue.ended.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if writer_queue.awake.load(Ordering::SeqCst) == 0 || ended.is_multiple_of(TURNS_FAIR) {
            writer_queue.wake_one();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn count_on(threads: u64, turns_each: u64, work: impl Fn(u64) + Sync) {
        let writer_queue = WriterQueue::new([0; 2]);
        let barrier = Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (writer_queue, barrier, work) = (&writer_queue, &barrier, &work);
                scope.spawn(move || {
                    barrier.wait();
                    for number in 0..turns_each {
                        let mut counts = writer_queue.wait();
                        counts[0] += 1;
                        work(thread + number);
                        counts[1] += 1;
                        assert_eq!(counts[0], counts[1]);
                    }
                });
            }
        });
        assert_eq!(*writer_queue.wait(), [threads * turns_each; 2]);
        assert!(!writer_queue.taken.into_inner());
        assert_eq!(writer_queue.asleep.into_inner(), 0);
        assert_eq!(writer_queue.awake.into_inner(), 0);
    }

    #[test]
    fn turns_never_overlap_and_nobody_sleeps_for_ever() {
        count_on(8, 20_000, |_| ());
    }

    #[test]
    fn long_turns_put_the_others_to_sleep() {
        count_on(6, 40, |number| {
            if number % 3 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        });
    }

    #[test]
    fn who_gives_up_waiting_leaves_nobody_asleep() {
        let writer_queue = WriterQueue::new(0_u64);
        let (writer_queue, given_up) = (&writer_queue, &AtomicU32::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6 {
                scope.spawn(move || {
                    for number in 0..60 {
                        let longest = Duration::from_micros(50 * (number % 5));
                        let permit = match thread % 2 {
                            0 => Some(writer_queue.wait()),
                            _ => writer_queue.wait_within(longest),
                        };
                        match permit {
                            Some(mut permit) => {
                                *permit += 1;
                                std::thread::sleep(Duration::from_micros(100));
                            }
                            None => drop(given_up.fetch_add(1, Ordering::Relaxed)),
                        }
                    }
                });
            }
        });
        let held = writer_queue.wait();
        assert_eq!(*held + u64::from(given_up.load(Ordering::Relaxed)), 360);
        let begun = Instant::now();
        assert!(writer_queue.wait_within(Duration::ZERO).is_none());
        assert!(writer_queue.wait_within(Duration::from_millis(20)).is_none());
        assert!(begun.elapsed() >= Duration::from_millis(20));
        drop(held);
        assert!(writer_queue.wait_within(Duration::ZERO).is_some());
        assert_eq!(
            writer_queue.asleep.load(Ordering::SeqCst) + writer_queue.awake.load(Ordering::SeqCst),
            0
        );
    }

    #[test]
    fn a_panic_ends_the_turn() {
        let writer_queue = WriterQueue::new(());
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _permit = writer_queue.wait();
            panic!("within a turn");
        }));
        assert!(panic.is_err());
        drop(writer_queue.wait());
    }
}

/// Every order in which threads can take permits, under the memory model.
#[cfg(all(test, loom))]
mod every_order {
    use loom::cell::UnsafeCell;

    use super::*;
    use crate::sync;

    /// The value that the permit's holder changes: loom reports two changes at once, and a deadlock
    /// of sleepers.
    type Counted = WriterQueue<UnsafeCell<u32>>;

    fn explore<const N: usize>(threads: [fn(&Counted) -> bool; N], last: fn(&Counted) -> bool) {
        let make = || Counted::new(UnsafeCell::new(0));
        let work = move |queue: &Counted, at| u32::from(threads.get(at).unwrap_or(&last)(queue));
        sync::explore(2, N, make, work, |writer_queue, had| {
            let had: u32 = had.iter().sum();
            // SAFETY: all others have ended.
            writer_queue.wait().with(|count| assert_eq!(unsafe { *count }, had, "turns"));
            assert_eq!(writer_queue.asleep.load(Ordering::SeqCst), 0, "asleep");
            assert_eq!(writer_queue.awake.load(Ordering::SeqCst), 0, "awake");
            assert_eq!(*writer_queue.woken.lock(), 0, "told to wake up");
        });
    }

    fn change(permit: &WritePermit<'_, UnsafeCell<u32>>) {
        // SAFETY: there is one permit at a time, as the test verifies.
        permit.with_mut(|count| unsafe { *count += 1 });
    }

    fn wait(writer_queue: &Counted) -> bool {
        change(&writer_queue.wait());
        true
    }

    fn wait_within(writer_queue: &Counted) -> bool {
        let permit = writer_queue.wait_within(Duration::from_secs(1));
        permit.as_ref().map(change).is_some()
    }

    #[test]
    fn turns_never_overlap_and_nobody_sleeps_for_ever() {
        explore([wait, wait], wait);
    }

    #[test]
    fn who_gives_up_leaves_nobody_asleep() {
        explore([wait, wait_within], wait);
        explore([wait_within, wait_within], wait);
    }

    #[test]
    fn one_that_comes_back_leaves_nobody_asleep() {
        explore([wait, wait], |writer_queue| {
            drop(writer_queue.wait());
            wait(writer_queue)
        });
    }
}
