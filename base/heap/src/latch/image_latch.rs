//! The gate to the image: shared by many, or one thread's alone.
//!
//! Purpose: views hold it shared for as long as they live, as readers (`reader_slots.rs`). Whoever
//! wants the image alone has the lock, and shuts the readers' one. It may let readers in between:
//! what they see is then what was there before.
//! Invariants: while somebody has the image alone nobody is inside, and the lock is held.
//! Thread safety: any thread.

use crate::latch::reader_slots::{OPEN, READERS, ReaderGuard, ReaderSlots};
use crate::sync::{Mutex, MutexGuard};

/// The gate.
#[derive(Debug, Default)]
pub(crate) struct ImageLatch {
    /// Held by who has the image alone.
    lock: Mutex<()>,
    /// Where views go through.
    readers: ReaderSlots,
}

/// The image, nobody else's in any way.
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

    /// Lets readers in, and nobody else, until `drain_readers`.
    pub(crate) fn admit_readers(&mut self) {
        if !self.has_admitted {
            self.has_admitted = true;
            self.latch.readers.open(READERS);
        }
    }

    /// Lets all in that wait, and waits until they have left: for who has changed nothing that
    /// others are not to see.
    pub(crate) fn pause(&mut self) {
        self.latch.readers.open(OPEN);
        self.latch.readers.shut(OPEN);
        self.has_admitted = false;
    }

    /// Waits until those that were let in have left.
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
    /// Waits until nobody has the image alone, or whoever has it lets readers in, and keeps it so,
    /// for a bounded time. `thread` is the caller's number.
    #[inline]
    pub(crate) fn read(&self, thread: usize) -> ReaderGuard<'_> {
        self.readers.enter(thread)
    }

    /// The same, for as long as the caller wants: also waits while somebody waits to have it alone.
    #[inline]
    pub(crate) fn read_long(&self, thread: usize) -> ReaderGuard<'_> {
        self.readers.enter_long(thread)
    }

    /// Waits until nobody has the image in any way.
    #[inline]
    pub(crate) fn write(&self) -> ExclusiveLatch<'_> {
        let alone = ExclusiveLatch { latch: self, _lock: self.lock.lock(), has_admitted: false };
        self.readers.shut(OPEN);
        alone
    }

    /// The same, if nobody has the image in any way now. Never waits.
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

    /// Numbers that only whoever is alone changes, and others read.
    struct Shared {
        latch: ImageLatch,
        counts: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: the test reads `counts` inside of the gate or under its lock, and writes it alone.
    unsafe impl Sync for Shared {}

    #[test]
    fn nobody_is_inside_while_somebody_is_alone() {
        let shared = Shared { latch: ImageLatch::default(), counts: UnsafeCell::new([0; 2]) };
        let shared = &shared;
        let look = || {
            // SAFETY: nobody is alone, which is what is tested.
            let counts = unsafe { &*shared.counts.get() };
            assert_eq!(counts[0], counts[1]);
        };
        let change = || {
            // SAFETY: this thread is alone, which is what is tested.
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

/// Every order in which threads can go through the gate, as memory may show it to them.
#[cfg(all(test, loom))]
mod every_order {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// What is behind the gate: loom tells when somebody looks at it while somebody changes it.
    struct Behind {
        latch: ImageLatch,
        value: UnsafeCell<u32>,
    }

    // SAFETY: that it is looked at and changed as the gate says is what is tested.
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
        let mut builder = loom::model::Builder::new();
        // Waiting for each other has too many orders for all of them.
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let behind =
                Arc::new(Behind { latch: ImageLatch::default(), value: UnsafeCell::new(0) });
            let threads = threads.map(|work| {
                let behind = Arc::clone(&behind);
                thread::spawn(move || work(&behind))
            });
            last(&behind);
            for thread in threads {
                thread.join().expect("no panic");
            }
        });
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
