//! The write stall: wakes the LSM's background threads and throttles writers.
//!
//! Purpose: wakes the threads that flush and merge when a memtable is full, and makes writers wait
//! in proportion to the compaction debt.
//! Invariants: no writer waits under a lock of the store, nor longer than `WAIT_MAX` for each MiB
//! that it wrote, or a few times that if the background is far behind, so that memory is bounded on
//! a slow device, too. No writer waits while the background cannot work.
//! Thread safety: `state` is held for itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Compaction debt, in thousandths of a memtable: from the first value on writers wait; at the
/// second they go no faster than the background.
const DEBT_SOFT: u64 = 2_500;
const DEBT_HARD: u64 = 8_000;
/// How long a writer waits at most, for each so many bytes.
const WAIT_MAX: Duration = Duration::from_millis(5);
const WAIT_BYTES: u64 = 1 << 20;
/// Each memtable of debt beyond `DEBT_HARD` doubles that wait, so many times at most: 4 MiB a
/// second.
const WAIT_DOUBLINGS_MAX: u64 = 5;

#[derive(Debug, Default)]
struct State {
    is_stopped: bool,
    /// Grows with each reason to look for work.
    generation: u64,
    /// Bytes that may be written before a writer waits; below zero after writes beyond it.
    credit: i64,
    /// Writers that wait.
    waiting: usize,
}

/// The write stall of a store's LSM trees.
#[derive(Debug, Default)]
pub(crate) struct WriteStall {
    /// Whether there is work for which no thread was woken.
    is_wanted: AtomicBool,
    /// Bytes of changes that have not been paid for.
    written: AtomicU64,
    /// Compaction debt, in thousandths of a memtable.
    debt: AtomicU64,
    is_failing: AtomicBool,
    /// Whether something was removed since room was made on a full device.
    has_removed: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

impl WriteStall {
    /// Notes a committed change; `is_full`: its memtable is full now. Does not wait.
    pub(crate) fn note(&self, bytes: u64, is_full: bool) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        if is_full {
            self.is_wanted.store(true, Ordering::Release);
        }
    }

    /// Notes that something was removed.
    pub(crate) fn note_removal(&self) {
        if !self.has_removed.load(Ordering::Relaxed) {
            self.has_removed.store(true, Ordering::Release);
        }
    }

    /// Whether something was removed since the last call.
    pub(crate) fn take_removed(&self) -> bool {
        self.has_removed.swap(false, Ordering::AcqRel)
    }

    /// Whether there is work; clears the flag, since the caller does it.
    #[inline]
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Acquire) && self.is_wanted.swap(false, Ordering::AcqRel)
    }

    /// Wakes the threads.
    pub(crate) fn wake(&self) {
        self.state.lock().generation += 1;
        self.changed.notify_all();
    }

    /// Ends the threads, and all waits.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// Whether the threads have to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Whether a writer waits: then a lack of commits is no idle time.
    pub(crate) fn holds_up(&self) -> bool {
        self.state.lock().waiting > 0
    }

    /// Waits for a reason to look for work that is newer than `last`, which it updates, or for so
    /// long; false when the thread has to end.
    pub(crate) fn wait(&self, last: &mut u64, time_max: Option<Duration>) -> bool {
        let until = time_max.map(|time| Instant::now() + time);
        let mut state = self.state.lock();
        while !state.is_stopped && state.generation == *last {
            match until {
                Some(until) if self.changed.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
                None => self.changed.wait(&mut state),
            }
        }
        *last = state.generation;
        !state.is_stopped
    }

    /// Sets the compaction debt, and whether the background is failing.
    pub(crate) fn set_debt(&self, debt: f64, is_failing: bool) {
        self.debt.store((debt * 1_000.0) as u64, Ordering::Release);
        self.is_failing.store(is_failing, Ordering::Release);
        if debt * 1_000.0 < DEBT_SOFT as f64 || is_failing {
            self.state.lock().credit = 0;
            self.changed.notify_all();
        }
    }

    /// The background has read so many bytes: as many may be written, or fewer if the debt is high.
    /// False when the thread has to end.
    pub(crate) fn progress(&self, bytes: u64) -> bool {
        let debt = self.debt.load(Ordering::Acquire).clamp(DEBT_SOFT, DEBT_HARD);
        let share = bytes * (DEBT_HARD - debt) / (DEBT_HARD - DEBT_SOFT);
        let mut state = self.state.lock();
        state.credit = state.credit.saturating_add(share as i64).min(WAIT_BYTES as i64);
        if state.credit >= 0 {
            self.changed.notify_all();
        }
        !state.is_stopped
    }

    /// If the debt is high, waits until the background has done its share for what was written.
    #[inline]
    pub(crate) fn pay(&self) {
        if self.written.load(Ordering::Relaxed) == 0 {
            return;
        }
        let written = self.written.swap(0, Ordering::Relaxed);
        if self.debt.load(Ordering::Acquire) > DEBT_SOFT && !self.is_failing.load(Ordering::Acquire)
        {
            self.wait_for_credit(written);
        }
    }

    #[cold]
    fn wait_for_credit(&self, written: u64) {
        let pieces = u32::try_from(written.div_ceil(WAIT_BYTES)).unwrap_or(u32::MAX);
        let beyond = self.debt.load(Ordering::Acquire).saturating_sub(DEBT_HARD) / 1_000;
        let wait = WAIT_MAX * (1 << beyond.min(WAIT_DOUBLINGS_MAX));
        let until = Instant::now() + wait.saturating_mul(pieces);
        let mut state = self.state.lock();
        state.credit = state.credit.saturating_sub(written as i64);
        state.waiting += 1;
        while state.credit < 0 && !state.is_stopped {
            if self.changed.wait_until(&mut state, until).timed_out() {
                // Unpaid debt is forgiven: the next writer must not wait for it.
                state.credit = 0;
            }
        }
        state.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_writes_waits_for_progress_and_no_longer_than_said() {
        let write_stall = Arc::new(WriteStall::default());
        write_stall.note(1000, false);
        write_stall.pay();
        assert!(!write_stall.take_wanted());
        write_stall.note(1000, true);
        assert!(write_stall.take_wanted() && !write_stall.take_wanted());
        write_stall.set_debt(5.0, false);
        let started = Instant::now();
        write_stall.pay();
        assert!(started.elapsed() >= WAIT_MAX, "nobody made progress");
        write_stall.note(1000, false);
        write_stall.set_debt(10.5, false);
        let started = Instant::now();
        write_stall.pay();
        assert!(started.elapsed() >= 4 * WAIT_MAX, "far behind");
        write_stall.note(1 << 30, false);
        write_stall.set_debt(5.0, false);
        let other = Arc::clone(&write_stall);
        let worker = std::thread::spawn(move || {
            while !other.holds_up() {
                std::thread::yield_now();
            }
            while other.progress(64 << 20) {}
        });
        let started = Instant::now();
        write_stall.pay();
        assert!(started.elapsed() < 512 * WAIT_MAX, "half of the time without progress");
        assert!(!write_stall.holds_up());
        write_stall.stop();
        worker.join().unwrap();
        write_stall.set_debt(9.0, true);
        write_stall.note(1 << 30, false);
        write_stall.pay();
    }

    #[test]
    fn a_reason_is_seen_once_by_each_thread() {
        let write_stall = WriteStall::default();
        let mut last = 0;
        write_stall.wake();
        assert!(write_stall.wait(&mut last, None));
        let some = Some(Duration::from_millis(5));
        assert!(write_stall.wait(&mut last, some), "after a while");
        write_stall.stop();
        assert!(!write_stall.wait(&mut last, None));
    }
}
