//! The image latch: a reader-writer lock with an exclusive guard that may admit readers.
//!
//! Purpose: views hold the latch shared for as long as they live, as readers (`reader_slots.rs`). A
//! thread that wants the image exclusively takes the mutex and closes the latch to readers. It may
//! admit readers in between: they then see the before-images.
//! Invariants: while a thread holds the image exclusively and has not admitted readers, no other
//! thread is inside; it holds the mutex.
//! Thread safety: any thread.

use crate::latch::reader_slots::{OPEN, READERS, ReaderGuard, ReaderSlots};
use crate::sync::{Mutex, MutexGuard};

/// The image latch.
#[derive(Debug, Default)]
pub(crate) struct ImageLatch {
    /// Held by the thread that has the image exclusively.
    lock: Mutex<()>,
    /// Slots of the readers.
    readers: ReaderSlots,
}

/// The exclusive guard: no other thread holds the image, shared or exclusively.
#[derive(Debug)]
pub(crate) struct ExclusiveLatch<'g> {
    latch: &'g ImageLatch,
    _lock: MutexGuard<'g, ()>,
    /// Whether readers may be inside.
    has_admitted: bool,
}

impl ExclusiveLatch<'_> {
    /// Whether readers wait.
    #[inline]
    pub(crate) fn are_readers_waiting(&self) -> bool {
        self.latch.readers.are_waiting()
    }

    /// Admits readers, but no other writer, until `drain_readers`.
    pub(crate) fn admit_readers(&mut self) {
        if !self.has_admitted {
            self.has_admitted = true;
            self.latch.readers.open(READERS);
        }
    }

    /// Opens the latch to all that wait, and waits until they have left. Only for a caller that has
    /// made no change that other threads must not see.
    pub(crate) fn pause(&mut self) {
        self.latch.readers.open(OPEN);
        self.latch.readers.shut(OPEN);
        self.has_admitted = false;
    }

    /// Waits until the admitted readers have left.
    #[inline]
    pub(crate) fn drain_readers(&mut self) {
        if self.has_admitted {
            self.latch.readers.shut(READERS);
            self.has_admitted = false;
        }
    }
}

impl Drop for ExclusiveLatch<'_> {
    #[inline]
    fn drop(&mut self) {
        self.latch.readers.open(OPEN);
    }
}

impl ImageLatch {
    /// Waits until no thread has the image exclusively, or the thread that has it admits readers.
    /// Holds the latch shared, for a bounded time. `thread` is the caller's number.
    #[inline]
    pub(crate) fn read(&self, thread: usize) -> ReaderGuard<'_> {
        self.readers.enter(thread)
    }

    /// The same, without a time limit: also waits while a writer waits for exclusive access.
    #[inline]
    pub(crate) fn read_long(&self, thread: usize) -> ReaderGuard<'_> {
        self.readers.enter_long(thread)
    }

    /// Waits until no other thread has the image, shared or exclusively.
    #[inline]
    pub(crate) fn write(&self) -> ExclusiveLatch<'_> {
        let alone = ExclusiveLatch { latch: self, _lock: self.lock.lock(), has_admitted: false };
        self.readers.shut(OPEN);
        alone
    }

    /// The same, if no thread has the image now. Never waits.
    pub(crate) fn try_write(&self) -> Option<ExclusiveLatch<'_>> {
        let lock = self.lock.try_lock()?;
        let is_shut = self.readers.try_shut();
        is_shut.then(|| ExclusiveLatch { latch: self, _lock: lock, has_admitted: false })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::UnsafeCell;

    use super::*;

    /// Numbers that only the exclusive holder changes, and others read.
    struct Shared {
        latch: ImageLatch,
        counts: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: the test reads `counts` while it holds the latch shared or under its mutex, and
    // writes it only with the exclusive guard.
    unsafe impl Sync for Shared {}

    #[test]
    fn nobody_is_inside_while_somebody_is_alone() {
        let shared = Shared { latch: ImageLatch::default(), counts: UnsafeCell::new([0; 2]) };
        let shared = &shared;
        let look = || {
            // SAFETY: no thread has the latch exclusively, as the test verifies.
            let counts = unsafe { &*shared.counts.get() };
            assert_eq!(counts[0], counts[1]);
        };
        let change = || {
            // SAFETY: this thread has the latch exclusively, as the test verifies.
            let counts = unsafe { &mut *shared.counts.get() };
            counts[0] += 1;
            std::hint::spin_loop();
            counts[1] += 1;
        };
        std::thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for step in 0..20_000 {
                        let _view = match step % 64 {
                            0 => shared.latch.read_long(thread),
                            _ => shared.latch.read(thread),
                        };
                        look();
                    }
                });
            }
            scope.spawn(move || {
                for step in 0..5_000 {
                    let alone = match step % 2 {
                        0 => Some(shared.latch.write()),
                        _ => shared.latch.try_write(),
                    };
                    if alone.is_some() {
                        change();
                    }
                }
            });
        });
        look();
        assert!(shared.latch.try_write().is_some());
    }
}

/// Every order in which threads can go through the latch, under the memory model.
#[cfg(all(test, loom))]
mod every_order {
    use loom::cell::UnsafeCell;

    use super::*;
    use crate::sync;

    /// The value behind the latch: loom reports a read that overlaps a write.
    struct Behind {
        latch: ImageLatch,
        value: UnsafeCell<u32>,
    }

    // SAFETY: the test verifies that the latch orders all reads and writes of `value`.
    unsafe impl Sync for Behind {}
    // SAFETY: as above.
    unsafe impl Send for Behind {}

    impl Behind {
        fn look(&self) {
            // SAFETY: as above; loom looks after it.
            self.value.with(|value| unsafe { *value });
        }

        fn change(&self) {
            // SAFETY: as above; loom looks after it.
            self.value.with_mut(|value| unsafe { *value += 1 });
        }
    }

    fn explore(threads: [fn(&Behind); 2], last: fn(&Behind)) {
        let make = || Behind { latch: ImageLatch::default(), value: UnsafeCell::new(0) };
        let work = move |behind: &Behind, at| threads.get(at).unwrap_or(&last)(behind);
        sync::explore(3, threads.len(), make, work, |_, _| {});
    }

    fn write(behind: &Behind) {
        let _alone = behind.latch.write();
        behind.change();
    }

    fn try_write(behind: &Behind) {
        let alone = behind.latch.try_write();
        if alone.is_some() {
            behind.change();
        }
    }

    fn read(behind: &Behind) {
        let _shared = behind.latch.read(0);
        behind.look();
    }

    #[test]
    fn one_at_a_time_is_alone_whether_it_waited_or_not() {
        explore([read, write], try_write);
        explore([read, write], write);
    }
}
