//! Readers beside a writer: a lock that is biased towards those who read.
//!
//! Purpose: a view of the image costs one locked instruction on a cache line that is the thread's own, and
//! a plain store to leave: some 3 ns, however many threads do it at once. Whoever wants the image alone
//! pays for that: it shuts the lock and looks at the slots of all threads.
//! Invariants: while the lock is shut, and `shut` has returned, nobody is inside. A slot is held by one
//! reader at a time; readers that find theirs taken count as one of the crowd, and so does everybody
//! that was let in after waiting. Each opening lets all in who wait by then: so readers wait for one
//! hold of the lock at most, and those who come after it is shut wait for the next opening: so do they
//! not keep a writer out.
//! Thread safety: any thread enters; one at a time shuts and opens, for which `gate.rs` has a lock.
//! Why this is sound, fence by fence: `docs/decisions/0062-reader-biased-lock.md`.

use std::marker::PhantomData;
use std::time::Duration;

use crate::seat::wait;
use crate::sync::{
    AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering,
    in_total_order, nap, sleep,
};

/// Slots of a heap. Of more threads those that meet in one go with the crowd. A writer looks at all that
/// were ever used.
const SLOT_COUNT: usize = if cfg!(loom) { 2 } else { 32 };

/// How often a reader that finds the lock shut looks and lets others run before it sleeps: some 40 us,
/// about what it costs to sleep and be woken, and more than nearly all commits take.
const READER_WAITS: u32 = if cfg!(loom) { 1 } else { 48 };

/// The same of a writer that finds somebody inside.
const WRITER_WAITS: u32 = if cfg!(loom) { 1 } else { 16 };

/// The longest sleep of a writer. A reader that leaves wakes it; but it looks for sleepers without a
/// fence, so one that leaves in the nanoseconds in which the writer lies down may miss it.
const NAP: Duration = Duration::from_millis(1);

/// Anybody enters.
pub(crate) const OPEN: u8 = 0;
/// Readers enter, nobody else: what they see is not what is there, see `before.rs`.
pub(crate) const READERS: u8 = 1;
/// Nobody enters.
pub(crate) const SHUT: u8 = 2;

const FREE: u32 = 0;
const INSIDE: u32 = 1;

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// What readers look at and writers change. Readers of all processors have it in their caches.
#[derive(Debug, Default)]
struct Sign {
    /// `OPEN`, `READERS` or `SHUT`.
    state: AtomicU8,
    /// Whether a writer sleeps until somebody leaves.
    is_watched: AtomicBool,
    /// One past the last slot that was ever held.
    used: AtomicUsize,
}

/// What those who wait share.
#[derive(Debug, Default)]
struct Room {
    /// Readers that sleep until the lock is opened.
    sleepers: u32,
}

/// The lock.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    sign: Padded<Sign>,
    slots: [Padded<AtomicU32>; SLOT_COUNT],
    /// Readers inside that have no slot.
    crowd: Padded<AtomicU32>,
    /// Readers that are to be let in by the next opening. Changed with `room` locked.
    waiting: AtomicU32,
    /// Twice the openings that let somebody in, and one more after one to readers only.
    opening: AtomicU32,
    room: Mutex<Room>,
    opened: Condvar,
    left: Condvar,
}

/// A reader inside; dropping this leaves. As the guard of a mutex it stays on its thread.
#[derive(Debug)]
pub(crate) struct Reading<'r> {
    readers: &'r Readers,
    /// By number; `None`: one of the crowd.
    slot: Option<usize>,
    is_early: bool,
    stays: PhantomData<MutexGuard<'r, ()>>,
}

impl Reading<'_> {
    /// Whether somebody is in the midst of changing things, and readers see what was before.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.is_early
    }
}

impl Drop for Reading<'_> {
    #[inline]
    fn drop(&mut self) {
        let readers = self.readers;
        match self.slot {
            Some(slot) => readers.slots[slot].0.store(FREE, Ordering::Release),
            None => {
                readers.crowd.0.fetch_sub(1, Ordering::Release);
            }
        }
        if readers.sign.0.is_watched.load(Ordering::Relaxed) {
            readers.wake_writer();
        }
    }
}

impl Readers {
    /// Waits until the lock is open, and keeps it from being shut. `thread` is the caller's number.
    #[inline]
    pub(crate) fn enter(&self, thread: usize) -> Reading<'_> {
        let slot = thread % SLOT_COUNT;
        if self.take(slot) {
            in_total_order();
            // The reader is inside before it looks; who shuts looks for readers after shutting.
            let state = self.sign.0.state.load(Ordering::SeqCst);
            let reading = self.reading(Some(slot), state == READERS);
            if state != SHUT {
                return reading;
            }
            drop(reading);
        }
        self.enter_later()
    }

    #[inline]
    fn reading(&self, slot: Option<usize>, is_early: bool) -> Reading<'_> {
        Reading { readers: self, slot, is_early, stays: PhantomData }
    }

    #[inline]
    fn take(&self, slot: usize) -> bool {
        // In the total order too: who does not see the slot as used has shut the lock before.
        if self.sign.0.used.load(Ordering::SeqCst) <= slot {
            self.sign.0.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let word = &self.slots[slot].0;
        word.load(Ordering::Relaxed) == FREE
            && word.compare_exchange(FREE, INSIDE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn enter_later(&self) -> Reading<'_> {
        loop {
            self.crowd.0.fetch_add(1, Ordering::SeqCst);
            in_total_order();
            let state = self.sign.0.state.load(Ordering::SeqCst);
            let reading = self.reading(None, state == READERS);
            if state != SHUT {
                return reading;
            }
            drop(reading);
            if let Some(reading) = self.wait_for_opening() {
                return reading;
            }
        }
    }

    /// Waits to be let in; `None` when the lock is open already.
    fn wait_for_opening(&self) -> Option<Reading<'_>> {
        let before = {
            let _room = self.room.lock();
            self.waiting.fetch_add(1, Ordering::SeqCst);
            in_total_order();
            // Who opens looks for those who wait after opening.
            if self.sign.0.state.load(Ordering::SeqCst) != SHUT {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            self.opening.load(Ordering::Relaxed)
        };
        // After that opening there is no other one before this reader, who was let in by it, has left.
        let let_in = || {
            let opening = self.opening.load(Ordering::Acquire);
            (opening != before).then(|| self.reading(None, opening & 1 != 0))
        };
        for _ in 0..READER_WAITS {
            if let Some(reading) = let_in() {
                return Some(reading);
            }
            wait(|| self.opening.load(Ordering::Relaxed) != before);
        }
        let mut room = self.room.lock();
        room.sleepers += 1;
        loop {
            if let Some(reading) = let_in() {
                room.sleepers -= 1;
                return Some(reading);
            }
            room = sleep(&self.opened, room);
        }
    }

    /// Whether a reader waits for the lock to be opened: a hint.
    #[inline]
    pub(crate) fn are_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Which state the lock is in.
    #[inline]
    pub(crate) fn state(&self) -> u8 {
        self.sign.0.state.load(Ordering::SeqCst)
    }

    /// Keeps readers out from now on, and waits until those inside have left.
    #[inline]
    pub(crate) fn shut(&self) {
        self.sign.0.state.store(SHUT, Ordering::SeqCst);
        in_total_order();
        self.words().for_each(|word| self.wait_for(word));
    }

    /// The same, unless somebody is inside: then it is open as before, and this is false.
    pub(crate) fn try_shut(&self) -> bool {
        self.sign.0.state.store(SHUT, Ordering::SeqCst);
        in_total_order();
        let is_empty = self.words().all(|word| word.load(Ordering::SeqCst) == 0);
        if !is_empty {
            self.open(OPEN);
        }
        is_empty
    }

    /// What is 0 while nobody is inside.
    #[inline]
    fn words(&self) -> impl Iterator<Item = &AtomicU32> {
        let used = self.sign.0.used.load(Ordering::SeqCst);
        self.slots.iter().take(used).chain([&self.crowd]).map(|word| &word.0)
    }

    #[inline]
    fn wait_for(&self, word: &AtomicU32) {
        if word.load(Ordering::SeqCst) > 0 {
            self.wait_long(word);
        }
    }

    #[cold]
    fn wait_long(&self, word: &AtomicU32) {
        for _ in 0..WRITER_WAITS {
            wait(|| word.load(Ordering::Relaxed) == 0);
            if word.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
        let mut room = self.room.lock();
        self.sign.0.is_watched.store(true, Ordering::SeqCst);
        while word.load(Ordering::SeqCst) > 0 {
            room = nap(&self.room, &self.left, room, NAP);
        }
        self.sign.0.is_watched.store(false, Ordering::Relaxed);
        drop(room);
    }

    #[cold]
    fn wake_writer(&self) {
        let _room = self.room.lock();
        self.left.notify_all();
    }

    /// Opens the lock to readers (`READERS`) or to all (`OPEN`), and lets those in who wait.
    #[inline]
    pub(crate) fn open(&self, state: u8) {
        self.sign.0.state.store(state, Ordering::SeqCst);
        in_total_order();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.let_in(state);
        }
    }

    #[cold]
    fn let_in(&self, state: u8) {
        let room = self.room.lock();
        let waiting = self.waiting.swap(0, Ordering::SeqCst);
        if waiting == 0 {
            return;
        }
        // On their behalf: the next one who shuts waits for them, though they may still sleep.
        self.crowd.0.fetch_add(waiting, Ordering::SeqCst);
        let next = (self.opening.load(Ordering::Relaxed) & !1).wrapping_add(2);
        self.opening.store(next | u32::from(state == READERS), Ordering::Release);
        if room.sleepers > 0 {
            self.opened.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::Barrier;
    use std::time::Instant;

    use super::*;

    /// Numbers that only whoever has shut the lock changes, and others read.
    struct Shared {
        readers: Readers,
        /// Who shuts, one at a time.
        writer: Mutex<()>,
        counts: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: the test reads `counts` inside of the lock, and writes it while the lock is shut.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn new() -> Self {
            let (readers, writer) = (Readers::default(), Mutex::default());
            Self { readers, writer, counts: UnsafeCell::new([0; 2]) }
        }

        fn look(&self) -> u64 {
            // SAFETY: nobody has shut the lock, which is what is tested.
            let counts = unsafe { &*self.counts.get() };
            assert_eq!(counts[0], counts[1]);
            counts[0]
        }

        fn change(&self) {
            // SAFETY: this thread has shut the lock, which is what is tested.
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
                        let _reading = shared.readers.enter(thread % (SLOT_COUNT / 2));
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
                            shared.readers.shut();
                        }
                        shared.change();
                        shared.readers.open(if step % 2 == 0 { OPEN } else { READERS });
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
        let readers = Readers::default();
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
        let readers = Readers::default();
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
        let (readers, barrier) = (Readers::default(), Barrier::new(2));
        let (readers, barrier) = (&readers, &barrier);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let reading = readers.enter(1);
                barrier.wait();
                // Long enough for the writer to sleep; it says that it does.
                while !readers.sign.0.is_watched.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                drop(reading);
            });
            barrier.wait();
            readers.shut();
            assert!(!readers.sign.0.is_watched.load(Ordering::Relaxed));
        });
    }

    #[test]
    fn readers_that_waited_are_let_in_by_the_next_opening_however_soon_it_is_shut() {
        let shared = &Shared::new();
        shared.readers.shut();
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
            while shared.readers.waiting.load(Ordering::SeqCst) < 3 {
                assert!(begun.elapsed() < Duration::from_secs(60), "all of them wait");
                std::thread::yield_now();
            }
            assert!(shared.readers.are_waiting());
            shared.change();
            shared.readers.open(READERS);
            shared.readers.shut();
            shared.change();
            assert!(!shared.readers.are_waiting());
            for thread in threads {
                let seen = thread.join().expect("no panic");
                assert_eq!(seen, 1, "what was there when they were let in");
            }
        });
    }
}

/// Every order in which threads can go through the lock, as memory may show it to them.
#[cfg(all(test, loom))]
mod every_order {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;

    /// What is behind the lock: loom tells when somebody looks at it while somebody changes it.
    struct Behind {
        readers: Readers,
        value: UnsafeCell<u32>,
    }

    // SAFETY: that it is looked at and changed as the lock says is what is tested.
    unsafe impl Sync for Behind {}
    // SAFETY: as above.
    unsafe impl Send for Behind {}

    impl Behind {
        fn look(&self) -> u32 {
            // SAFETY: as above; loom looks after it.
            self.value.with(|value| unsafe { *value })
        }

        fn change(&self) {
            // SAFETY: as above; loom looks after it.
            self.value.with_mut(|value| unsafe { *value += 1 });
        }
    }

    fn explore<const N: usize>(threads: [fn(&Behind); N], last: fn(&Behind)) {
        let mut builder = loom::model::Builder::new();
        // Waiting for each other has too many orders for all of them.
        builder.preemption_bound = Some(2);
        builder.check(move || {
            let behind = Behind { readers: Readers::default(), value: UnsafeCell::new(0) };
            let behind = Arc::new(behind);
            let threads = threads.map(|work| {
                let behind = Arc::clone(&behind);
                thread::spawn(move || work(&behind))
            });
            last(&behind);
            for thread in threads {
                thread.join().expect("no panic");
            }
            assert!(behind.readers.try_shut(), "nobody was left inside");
        });
    }

    fn read(behind: &Behind) {
        let _reading = behind.readers.enter(0);
        behind.look();
    }

    fn write(behind: &Behind) {
        behind.readers.shut();
        behind.change();
        behind.readers.open(OPEN);
    }

    fn try_write(behind: &Behind) {
        if behind.readers.try_shut() {
            behind.change();
            behind.readers.open(OPEN);
        }
    }

    #[test]
    fn nobody_reads_while_it_is_shut() {
        explore([read, write], |behind| {
            let _reading = behind.readers.enter(1);
            behind.look();
        });
    }

    #[test]
    fn readers_of_one_slot_keep_writers_out() {
        explore([read, try_write], read);
        explore([read, write], read);
    }

    #[test]
    fn who_waits_is_let_in_between_two_changes() {
        explore([read], |behind| {
            behind.readers.shut();
            behind.change();
            behind.readers.open(READERS);
            behind.readers.shut();
            behind.change();
            behind.readers.open(OPEN);
        });
    }
}
