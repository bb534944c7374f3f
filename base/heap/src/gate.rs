//! The gate to the image: shared by many, or one thread's alone.
//!
//! Purpose: views hold it shared for as long as they live, as readers (`readers.rs`). Commits without a
//! transaction hold it for a microsecond: each of them has a place to sit, and says there that it is
//! inside. That is the same word that keeps other threads off its place, and no other thread's: one
//! locked instruction where place and lock took four, and no cache line that goes from thread to thread.
//! Whoever wants the image alone has the lock exclusively, shuts the readers' lock, and looks at all
//! places. It may let readers in between, and nobody else: what they see is then what was there before.
//! Invariants: while somebody has the image alone nobody is inside, and the lock is held
//! exclusively. A place is taken by one thread at a time. Who is inside does not wait for the image.
//! Thread safety: any thread. Who enters first says that it is inside, then looks whether the gate
//! is shut; who shuts it looks at the places after that; all in one total order (`SeqCst`).

use crate::readers::{OPEN, READERS, Readers, Reading};
use crate::seat::wait;
use crate::sync::{AtomicU8, AtomicUsize, Ordering, RwLock, RwLockWriteGuard, in_total_order};

/// Places of a heap. More threads than that share them.
pub(crate) const PLACE_COUNT: usize = 32;

/// How often a thread that finds the gate shut lets others run before it sleeps.
const WAITS: u32 = if cfg!(loom) { 1 } else { 16 };

const FREE: u8 = 0;
/// By somebody who does not look at the image.
const TAKEN: u8 = 1;
/// By somebody who holds the image shared.
const INSIDE: u8 = 2;

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// The gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Held exclusively by who has the image alone, and shared for a moment by who has waited for that
    /// to end.
    lock: RwLock<()>,
    /// Where views go through. What it says holds for places too: only while it is open.
    readers: Readers,
    /// One past the last place ever taken: those beyond need no look.
    used: AtomicUsize,
    places: [Padded<AtomicU8>; PLACE_COUNT],
}

/// The image, nobody else's in any way.
#[derive(Debug)]
pub(crate) struct Alone<'g> {
    gate: &'g Gate,
    _lock: RwLockWriteGuard<'g, ()>,
    /// Whether readers may be inside.
    has_let_in: bool,
}

impl Alone<'_> {
    /// Whether readers wait.
    #[inline]
    pub(crate) fn are_readers_waiting(&self) -> bool {
        self.gate.readers.are_waiting()
    }

    /// Lets readers in, and nobody else, until `shut_out`.
    pub(crate) fn let_in(&mut self) {
        if !self.has_let_in {
            self.has_let_in = true;
            self.gate.readers.open(READERS);
        }
    }

    /// Lets all in that wait, and waits until they have left: for who has changed nothing that others
    /// are not to see.
    pub(crate) fn pause(&mut self) {
        self.gate.readers.open(OPEN);
        self.gate.shut();
        self.has_let_in = false;
    }

    /// Waits until those that were let in have left.
    #[inline]
    pub(crate) fn shut_out(&mut self) {
        if self.has_let_in {
            self.gate.readers.shut(READERS);
            self.has_let_in = false;
        }
    }
}

impl Drop for Alone<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.readers.open(OPEN);
    }
}

/// A place, taken: by its number. Dropping this leaves it.
#[derive(Debug)]
pub(crate) struct Seated<'g> {
    gate: &'g Gate,
    place: usize,
}

impl Seated<'_> {
    /// Which place.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

impl Drop for Seated<'_> {
    #[inline]
    fn drop(&mut self) {
        self.gate.places[self.place].0.store(FREE, Ordering::Release);
    }
}

impl Gate {
    /// Waits until nobody has the image alone, or whoever has it lets readers in, and keeps it so,
    /// for a bounded time. `thread` is the caller's number.
    #[inline]
    pub(crate) fn read(&self, thread: usize) -> Reading<'_> {
        self.readers.enter(thread)
    }

    /// The same, for as long as the caller wants: also waits while somebody waits to have it alone.
    #[inline]
    pub(crate) fn read_long(&self, thread: usize) -> Reading<'_> {
        self.readers.enter_long(thread)
    }

    /// Waits until nobody has the image in any way.
    #[inline]
    pub(crate) fn write(&self) -> Alone<'_> {
        let lock = self.lock.write();
        let alone = Alone { gate: self, _lock: lock, has_let_in: false };
        self.shut();
        alone
    }

    #[inline]
    fn shut(&self) {
        self.readers.shut(OPEN);
        for place in self.places.iter().take(self.used.load(Ordering::SeqCst)) {
            while place.0.load(Ordering::SeqCst) == INSIDE {
                wait(|| place.0.load(Ordering::Relaxed) != INSIDE);
            }
        }
    }

    /// The same, if nobody has the image in any way now. Never waits.
    pub(crate) fn try_write(&self) -> Option<Alone<'_>> {
        let lock = self.lock.try_write()?;
        if !self.readers.try_shut() {
            return None;
        }
        let alone = Alone { gate: self, _lock: lock, has_let_in: false };
        let mut used = self.places.iter().take(self.used.load(Ordering::SeqCst));
        let is_empty = used.all(|place| place.0.load(Ordering::SeqCst) != INSIDE);
        is_empty.then_some(alone)
    }

    /// Takes a place, the preferred one if it is free, without looking at the image. Waits while all
    /// are taken.
    #[inline]
    pub(crate) fn sit(&self, preferred: usize) -> Seated<'_> {
        self.take_any(preferred, TAKEN)
    }

    /// One past the last place that was ever taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// Takes the place with a number, waiting for it.
    pub(crate) fn sit_at(&self, place: usize) -> Seated<'_> {
        loop {
            if let Some(seated) = self.take(place, TAKEN) {
                return seated;
            }
            wait(|| self.places[place].0.load(Ordering::Relaxed) == FREE);
        }
    }

    /// Takes a place and the image, shared. Waits while somebody has it alone.
    #[inline]
    pub(crate) fn enter(&self, preferred: usize) -> Seated<'_> {
        let seated = self.take_any(preferred, INSIDE);
        if self.is_open() {
            return seated;
        }
        // Not from the place: who is alone may want it.
        drop(seated);
        self.enter_later(preferred)
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.readers.state() == OPEN
    }

    #[cold]
    fn enter_later(&self, preferred: usize) -> Seated<'_> {
        // Mostly somebody makes freed blocks reusable, some 5 us: less than it takes to sleep.
        for _ in 0..WAITS {
            wait(|| self.is_open());
            let seated = self.take_any(preferred, INSIDE);
            if self.is_open() {
                return seated;
            }
        }
        // The gate is open while this is held, so it is found to be.
        let _open = self.lock.read();
        self.take_any(preferred, INSIDE)
    }

    #[inline]
    fn take_any(&self, preferred: usize, state: u8) -> Seated<'_> {
        let preferred = preferred % PLACE_COUNT;
        match self.take(preferred, state) {
            Some(seated) => seated,
            None => self.take_other(preferred, state),
        }
    }

    #[cold]
    fn take_other(&self, preferred: usize, state: u8) -> Seated<'_> {
        loop {
            let mut others = (1..=PLACE_COUNT).map(|step| (preferred + step) % PLACE_COUNT);
            if let Some(seated) = others.find_map(|place| self.take(place, state)) {
                return seated;
            }
            wait(|| self.places[preferred].0.load(Ordering::Relaxed) == FREE);
        }
    }

    #[inline]
    fn take(&self, place: usize, state: u8) -> Option<Seated<'_>> {
        // In that total order too: who does not see the place as used has shut the gate before.
        if self.used.load(Ordering::SeqCst) <= place {
            self.used.fetch_max(place + 1, Ordering::SeqCst);
        }
        let word = &self.places[place].0;
        let is_free = word.load(Ordering::Relaxed) == FREE
            && word.compare_exchange(FREE, state, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        in_total_order();
        // Not `then_some`: one that is made and dropped would leave a place that is another's.
        is_free.then(|| Seated { gate: self, place })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::UnsafeCell;

    use super::*;

    /// Numbers that only whoever is alone changes, and others read.
    struct Shared {
        gate: Gate,
        counts: UnsafeCell<[u64; 2]>,
    }

    // SAFETY: the test reads `counts` inside of the gate or under its lock, and writes it alone.
    unsafe impl Sync for Shared {}

    #[test]
    fn nobody_is_inside_while_somebody_is_alone() {
        let shared = Shared { gate: Gate::default(), counts: UnsafeCell::new([0; 2]) };
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
                        let seated = shared.gate.enter(thread % 2);
                        look();
                        assert!(seated.place() < PLACE_COUNT);
                        drop(seated);
                        if step % 64 == 0 {
                            let _view = shared.gate.read(thread);
                            look();
                        }
                    }
                });
            }
            scope.spawn(move || {
                for step in 0..5_000 {
                    let alone = match step % 2 {
                        0 => Some(shared.gate.write()),
                        _ => shared.gate.try_write(),
                    };
                    if alone.is_some() {
                        change();
                    }
                }
            });
        });
        look();
        assert!(shared.gate.try_write().is_some());
    }

    #[test]
    fn a_place_is_one_threads_and_others_are_given_when_it_is_taken() {
        let gate = Gate::default();
        let seated: Vec<_> = (0..PLACE_COUNT).map(|_| gate.sit(7)).collect();
        let mut places: Vec<usize> = seated.iter().map(Seated::place).collect();
        assert_eq!(places[0], 7);
        places.sort_unstable();
        assert!(places.into_iter().eq(0..PLACE_COUNT));
        assert!(gate.take(3, INSIDE).is_none());
        assert!(gate.try_write().is_some(), "nobody of them looks at the image");
        drop(seated);
        let inside = gate.enter(3);
        assert!(gate.try_write().is_none());
        drop(inside);
        assert_eq!(gate.sit_at(3).place(), 3);
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
        gate: Gate,
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
            let behind = Arc::new(Behind { gate: Gate::default(), value: UnsafeCell::new(0) });
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

    fn enter(behind: &Behind) {
        let _seated = behind.gate.enter(0);
        behind.look();
    }

    fn write(behind: &Behind) {
        let _alone = behind.gate.write();
        behind.change();
    }

    fn try_write(behind: &Behind) {
        let alone = behind.gate.try_write();
        if alone.is_some() {
            behind.change();
        }
    }

    fn read(behind: &Behind) {
        let _shared = behind.gate.read(0);
        behind.look();
    }

    #[test]
    fn nobody_enters_while_somebody_is_alone() {
        explore([enter, write], |behind| {
            let _seated = behind.gate.enter(1);
            behind.look();
        });
    }

    #[test]
    fn one_at_a_time_is_alone_whether_it_waited_or_not() {
        explore([enter, write], try_write);
        explore([read, write], try_write);
    }
}
