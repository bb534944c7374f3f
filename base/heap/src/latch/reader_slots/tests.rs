use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::time::Instant;

use super::*;

/// Numbers that only the thread that has closed the lock changes, and others read.
struct Shared {
    readers: ReaderSlots,
    /// Serialises the threads that close the lock.
    writer: Mutex<()>,
    counts: UnsafeCell<[u64; 2]>,
}

// SAFETY: the test reads `counts` inside the lock, and writes it while the lock is closed.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Self {
        let (readers, writer) = (ReaderSlots::default(), Mutex::default());
        Self { readers, writer, counts: UnsafeCell::new([0; 2]) }
    }

    fn look(&self) -> u64 {
        // SAFETY: no thread has closed the lock, as the test verifies.
        let counts = unsafe { &*self.counts.get() };
        assert_eq!(counts[0], counts[1]);
        counts[0]
    }

    fn change(&self) {
        // SAFETY: this thread has closed the lock, as the test verifies.
        let counts = unsafe { &mut *self.counts.get() };
        counts[0] += 1;
        std::hint::spin_loop();
        counts[1] += 1;
    }
}

#[test]
fn nobody_reads_while_it_is_shut_with_more_threads_than_slots_too() {
    let shared = &Shared::new();
    let threads = SLOT_COUNT + 4;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for step in 0..2_000 {
                    let thread = thread % (SLOT_COUNT / 2);
                    let _reading = match step % 5 {
                        0 => shared.readers.enter_long(thread),
                        _ => shared.readers.enter(thread),
                    };
                    shared.look();
                    if step % 64 == thread {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for step in 0..2_000 {
                    let _writer = shared.writer.lock();
                    if step % 3 == 0 && !shared.readers.try_shut() {
                        continue;
                    }
                    if step % 3 > 0 {
                        shared.readers.shut(OPEN);
                    }
                    shared.change();
                    if step % 2 > 0 {
                        shared.readers.open(READERS);
                        shared.readers.shut(READERS);
                        shared.change();
                    }
                    shared.readers.open(OPEN);
                }
            });
        }
    });
    shared.look();
    shared.readers.open(OPEN);
    assert!(shared.readers.try_shut(), "nobody was left inside");
}

#[test]
fn readers_of_one_slot_go_with_the_crowd_and_the_nested_too() {
    let readers = ReaderSlots::default();
    let (one, other) = (readers.enter(3), readers.enter(3));
    assert_eq!((one.slot, other.slot), (Some(3), None));
    assert!(!readers.try_shut());
    drop(one);
    assert!(!readers.try_shut(), "the other one is still inside");
    drop(other);
    assert!(readers.try_shut());
}

#[test]
fn a_panic_and_the_end_of_a_thread_leave_nothing_inside() {
    let readers = ReaderSlots::default();
    let readers = &readers;
    let panicked = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _reading = readers.enter(0);
            let _crowd = readers.enter(0);
            panic!("while inside");
        });
        thread.join().is_err()
    });
    assert!(panicked && readers.try_shut());
}

#[test]
fn a_writer_sleeps_until_the_last_reader_leaves_and_is_woken() {
    let (readers, barrier) = (ReaderSlots::default(), Barrier::new(2));
    let (readers, barrier) = (&readers, &barrier);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reading = readers.enter(1);
            barrier.wait();
            // Long enough for the writer to sleep; it says that it does.
            while readers.sign.0.watched.load(Ordering::Relaxed) != WATCHED {
                std::thread::yield_now();
            }
            drop(reading);
        });
        barrier.wait();
        readers.shut(OPEN);
        assert_eq!(readers.sign.0.watched.load(Ordering::Relaxed), UNWATCHED);
    });
}

/// A regression: one reader looked at a value for 300 ms, in a closure, and a writer came; for
/// 237 ms no other thread could read anything.
#[test]
fn brief_readers_come_in_while_a_writer_waits_for_a_long_one_and_long_ones_wait() {
    let shared = &Shared::new();
    let readers = &shared.readers;
    let wait_until = |has_happened: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !has_happened() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it happens");
            std::thread::yield_now();
        }
    };
    let (long, early) = (readers.enter_long(0), readers.enter_long(0));
    assert_eq!((long.slot, early.slot), (Some(0), None), "with a slot and in the crowd");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            readers.shut(OPEN);
            shared.change();
            readers.open(READERS);
            readers.shut(READERS);
            shared.change();
            readers.open(OPEN);
        });
        wait_until(&|| readers.sign.0.state.load(Ordering::SeqCst) == BRIEF_ONLY);
        let later = scope.spawn(|| {
            let later = readers.enter_long(1);
            assert!(later.is_early(), "let in by the first opening");
            shared.look()
        });
        wait_until(&|| readers.long.0.waiting.load(Ordering::SeqCst) == 1);
        for left in [Some(long), Some(early), None] {
            for _ in 0..if left.is_some() { 1_000 } else { 0 } {
                let brief = readers.enter(1);
                assert!(!brief.is_early());
                assert_eq!(shared.look(), 0, "the writer waits");
            }
            assert!(left.as_ref().is_none_or(ReaderGuard::is_waited_for));
            drop(left);
        }
        assert_eq!(later.join().expect("no panic"), 1, "what was there when it was let in");
        writer.join().expect("no panic");
    });
    assert_eq!(shared.look(), 2);
    assert!(readers.try_shut(), "nobody was left inside");
}

#[test]
fn readers_that_waited_are_let_in_by_the_next_opening_however_soon_it_is_shut() {
    let shared = &Shared::new();
    shared.readers.shut(OPEN);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || {
                    let reading = shared.readers.enter(thread);
                    assert!(reading.is_early());
                    shared.look()
                })
            })
            .collect();
        let begun = Instant::now();
        while shared.readers.brief.0.waiting.load(Ordering::SeqCst) < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "all of them wait");
            std::thread::yield_now();
        }
        assert!(shared.readers.are_waiting());
        shared.change();
        shared.readers.open(READERS);
        shared.readers.shut(READERS);
        shared.change();
        assert!(!shared.readers.are_waiting());
        for thread in threads {
            let seen = thread.join().expect("no panic");
            assert_eq!(seen, 1, "what was there when they were let in");
        }
    });
}
