//! Pace: throttles callers that write to the progress of the running checkpoint (C10).
//!
//! Purpose: a checkpoint gives room in the log at its end, all at once. A caller that came when the
//! log is full would wait for the rest of it, a second on a slow disk; so all callers wait a little
//! before, in proportion to how far the checkpoint is behind.
//! Invariants: no caller waits longer here than `WAITS` says, nor while it holds a lock.
//! Thread safety: any thread; one at a time makes a checkpoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::journal::checkpoints::batch::BATCH_PAGES_MAX;

/// Bytes of log that are ready when a transaction begins: so small ones, such as removes, find room
/// on a full disk.
pub(in crate::journal) const READY_BYTES: u64 = 256 << 10;
/// The wait of a caller when it is just ahead of the checkpoint, so that few puts take a
/// millisecond; and when the room in the log is used up, for disks that take longer than that.
const WAITS: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(10));
/// Of the room in the log when a checkpoint begins, the eighths that callers have at once, so that
/// a burst does not wait, and that they have when it ends.
const ROOM_EIGHTHS: (u64, u64) = (4, 7);

/// Progress of a checkpoint, and the limit that it sets on the log.
#[derive(Debug)]
pub(in crate::journal) struct Pace {
    /// Total appended bytes up to which no caller waits; `u64::MAX` while no checkpoint is made.
    appended_max: AtomicU64,
    /// Total appended bytes when the room is used up.
    room_end: AtomicU64,
    /// Lock of the waiting callers.
    moving: Mutex<()>,
    moved: Condvar,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            appended_max: AtomicU64::new(u64::MAX),
            room_end: AtomicU64::new(u64::MAX),
            moving: Mutex::default(),
            moved: Condvar::default(),
        }
    }
}

impl Pace {
    /// A checkpoint of `pages` pages begins, or continues: `begin` bytes were appended in all when
    /// it did, and `room_bytes` more have room.
    pub(in crate::journal) fn begin(&self, begin: u64, room_bytes: u64, pages: u64) -> Step<'_> {
        let room_bytes = room_bytes.saturating_sub(READY_BYTES);
        self.room_end.store(begin.saturating_add(room_bytes), Ordering::Relaxed);
        let step = Step { pace: self, begin, room_bytes, pages: pages.max(1), pages_done: 0 };
        step.publish();
        step
    }

    /// Waits while more was appended than the running checkpoint allows.
    #[inline]
    pub(in crate::journal) fn wait(&self, appended_bytes: u64) {
        if appended_bytes > self.appended_max.load(Ordering::Relaxed) {
            self.wait_long(appended_bytes);
        }
    }

    /// The longest wait of a caller at that position: longer, the less of the room is left.
    fn wait_max(&self, appended_bytes: u64) -> Duration {
        let allowed = self.appended_max.load(Ordering::Relaxed);
        let room_bytes = self.room_end.load(Ordering::Relaxed).saturating_sub(allowed);
        let used = appended_bytes.saturating_sub(allowed) as f64 / room_bytes.max(1) as f64;
        let (first, last) = WAITS;
        first + (last - first).mul_f64(used.min(1.0))
    }

    #[cold]
    fn wait_long(&self, appended_bytes: u64) {
        let end = Instant::now() + self.wait_max(appended_bytes);
        let mut moving = self.moving.lock();
        while appended_bytes > self.appended_max.load(Ordering::Relaxed) {
            if self.moved.wait_until(&mut moving, end).timed_out() {
                return;
            }
        }
    }

    fn set(&self, appended_max: u64) {
        self.appended_max.store(appended_max, Ordering::Relaxed);
        // Under the lock: else a waiter between its check and its sleep would miss the wake-up.
        drop(self.moving.lock());
        self.moved.notify_all();
    }
}

/// Progress of a running checkpoint.
#[derive(Debug)]
pub(in crate::journal) struct Step<'p> {
    pace: &'p Pace,
    begin: u64,
    room_bytes: u64,
    pages: u64,
    pages_done: u64,
}

impl Step<'_> {
    /// `pages` more pages were written.
    pub(in crate::journal) fn advance(&mut self, pages: u64) {
        self.pages_done += pages;
        self.publish();
    }

    fn publish(&self) {
        // The batch under way counts: it takes a sync, during which no progress is published.
        let done = (self.pages_done + BATCH_PAGES_MAX as u64).min(self.pages);
        let (first, last) = ROOM_EIGHTHS;
        // A log without a limit has all of 64 bits as room.
        let eighths = u128::from(first * self.pages + (last - first) * done);
        let share = u128::from(self.room_bytes) * eighths / u128::from(8 * self.pages);
        self.pace.set(self.begin.saturating_add(share as u64));
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        self.pace.set(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATCH: u64 = BATCH_PAGES_MAX as u64;
    const ROOM_BYTES: u64 = 8 << 20;

    #[test]
    fn the_log_may_be_as_far_as_the_checkpoint() {
        let pace = Pace::default();
        let allowed = || pace.appended_max.load(Ordering::Relaxed);
        assert_eq!(allowed(), u64::MAX, "no checkpoint is made");
        let mut step = pace.begin(1000, ROOM_BYTES + READY_BYTES, 4 * BATCH);
        let (half, quarter) = (ROOM_BYTES / 2, ROOM_BYTES * 3 / 8 / 4);
        assert_eq!(allowed(), 1000 + half + quarter, "the first batch is under way");
        step.advance(BATCH);
        assert_eq!(allowed(), 1000 + half + 2 * quarter);
        step.advance(10 * BATCH);
        assert_eq!(allowed(), 1000 + half + 4 * quarter, "pages became dirty meanwhile");
        drop(step);
        assert_eq!(allowed(), u64::MAX);
    }

    #[test]
    fn small_checkpoints_and_full_logs_are_no_exception() {
        let pace = Pace::default();
        let allowed = || pace.appended_max.load(Ordering::Relaxed);
        let step = pace.begin(5, READY_BYTES / 2, 7);
        assert_eq!(allowed(), 5, "no room");
        drop(step);
        let _step = pace.begin(5, ROOM_BYTES + READY_BYTES, 0);
        assert_eq!(allowed(), 5 + ROOM_BYTES / 8 * 7, "nothing is to be done before the end");
        let _step = pace.begin(u64::MAX - 5, u64::MAX, u64::MAX / 64);
        assert_eq!(allowed(), u64::MAX, "no limit");
    }

    #[test]
    fn the_wait_grows_as_room_is_used() {
        let pace = Pace::default();
        let _step = pace.begin(1000, ROOM_BYTES + READY_BYTES, 0);
        let (allowed, rest) = (1000 + ROOM_BYTES / 8 * 7, ROOM_BYTES / 8);
        assert_eq!(pace.wait_max(allowed), WAITS.0);
        assert_eq!(pace.wait_max(allowed + rest / 2), (WAITS.0 + WAITS.1) / 2);
        assert_eq!(pace.wait_max(allowed + rest), WAITS.1);
        assert_eq!(pace.wait_max(u64::MAX), WAITS.1, "the log went beyond its limit");
    }

    #[test]
    fn a_caller_is_let_go_when_the_checkpoint_ends_or_takes_long() {
        let pace = &Pace::default();
        let step = pace.begin(0, READY_BYTES, 4 * BATCH);
        let start = Instant::now();
        pace.wait(1);
        assert!(start.elapsed() >= WAITS.1, "there is no room");
        std::thread::scope(|scope| {
            scope.spawn(|| (0..20).for_each(|_| pace.wait(1)));
            drop(step);
        });
        pace.wait(u64::MAX);
    }
}
