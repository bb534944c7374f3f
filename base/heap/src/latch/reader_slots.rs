//! Reader slots: a reader-biased lock.
//!
//! Purpose: a view of the image costs one locked instruction on a cache line of its own thread, and
//! a plain store to leave: some 3 ns, however many threads do it at once. The writer pays for that:
//! it closes the lock and looks at the slots of all threads.
//! Brief readers stay for a bounded time; readers that may stay longer say so. A writer that finds
//! a long reader inside admits brief readers until the long one has left, and no other long reader.
//! So a slow closure delays writers, and whatever queues behind them, but no brief reader.
//!
//! Invariants: while the lock is closed, and `shut` has returned, no reader is inside. One reader
//! at a time holds a slot. Readers that find their slot taken count in the overflow, and so does
//! every reader that was admitted after waiting. Each opening admits all readers that wait by then,
//! so a reader waits for one hold of the lock at most. Readers that arrive after the close wait for
//! the next opening, so writers cannot starve. A writer waits for the long readers that were inside
//! when it came, and then for brief ones.
//! Thread safety: any thread enters; one at a time closes and opens, for which `image_latch.rs` has
//! a lock.
//! Why this is sound, fence by fence: `docs/decisions/0062-reader-biased-lock.md`; why there are
//! two kinds of readers: `docs/decisions/0101-long-readers.md`.

#[cfg(all(test, loom))]
mod every_order;
#[cfg(all(test, not(loom)))]
mod tests;

use std::marker::PhantomData;
use std::time::Duration;

use crate::sync::{
    AtomicU8, AtomicU32, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, in_total_order, nap,
    sleep, spin,
};

/// Slots of a heap. With more threads than slots, those that meet in one slot use the overflow. A
/// writer looks at all slots that were ever used.
const SLOT_COUNT: usize = if cfg!(loom) { 2 } else { 32 };

/// Microseconds for which a reader that finds the lock closed spins before it sleeps: less than it
/// costs to sleep and be woken, and more than nearly all commits take. It does not yield: the
/// writer may have lost its processor to another program, and so would the reader.
const READER_SPINS: u32 = if cfg!(loom) { 1 } else { 12 };

/// The same of a writer that finds readers inside.
const WRITER_SPINS: u32 = if cfg!(loom) { 1 } else { 4 };

/// The longest sleep of a writer. A reader that leaves wakes it, but looks for sleepers without a
/// fence; so one that leaves in the nanoseconds in which the writer falls asleep may miss it.
const NAP: Duration = Duration::from_millis(1);

/// All may enter.
pub(crate) const OPEN: u8 = 0;
/// Only readers may enter, and they see the before-images: see `before_images.rs`.
pub(crate) const READERS: u8 = 1;
/// None may enter.
pub(crate) const SHUT: u8 = 2;
/// With `OPEN` or `READERS`: closed to long readers, which a writer waits for.
const BRIEF_ONLY: u8 = 4;

const FREE: u32 = 0;
const INSIDE: u32 = 1;
/// Held by a long reader.
const LONG: u32 = 2;

/// The readers that a sleeping writer waits for: none, long ones, all.
const UNWATCHED: u8 = 0;
const LONG_WATCHED: u8 = 1;
const WATCHED: u8 = 2;

/// How long a reader stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// For a bounded time, some microseconds: it reads, and calls nothing that could take longer.
    Brief,
    /// For as long as the caller's code wants.
    Long,
}

impl Stay {
    /// Whether a lock in that state keeps such readers out.
    #[inline]
    fn is_kept_out(self, state: u8) -> bool {
        let shut = match self {
            Self::Brief => SHUT,
            Self::Long => SHUT | BRIEF_ONLY,
        };
        state & shut != 0
    }

    /// The value of a slot that such a reader holds.
    #[inline]
    fn mark(self) -> u32 {
        match self {
            Self::Brief => INSIDE,
            Self::Long => LONG,
        }
    }
}

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// The state that readers check and writers change. The caches of all processors hold it.
#[derive(Debug, Default)]
struct Sign {
    /// `OPEN` or `READERS`, with or without `BRIEF_ONLY`; or `SHUT`.
    state: AtomicU8,
    /// The readers that a sleeping writer waits for.
    watched: AtomicU8,
    /// One past the last slot that was ever held.
    used: AtomicUsize,
}

/// State that waiting threads share.
#[derive(Debug, Default)]
struct Room {
    /// Readers that sleep until the lock is opened.
    sleepers: u32,
}

/// Reader-slot overflow: readers of one kind that have no slot.
#[derive(Debug, Default)]
struct Crowd {
    /// Readers inside.
    inside: AtomicU32,
    /// Readers that the next opening admits. Changed with `room` locked.
    waiting: AtomicU32,
    /// Twice the number of openings that admitted a reader, plus one if the last was to readers
    /// only.
    opening: AtomicU32,
}

/// The reader-biased lock.
#[derive(Debug, Default)]
pub(crate) struct ReaderSlots {
    sign: Padded<Sign>,
    slots: [Padded<AtomicU32>; SLOT_COUNT],
    brief: Padded<Crowd>,
    long: Padded<Crowd>,
    room: Mutex<Room>,
    opened: Condvar,
    left: Condvar,
}

/// A reader inside; dropping it leaves. Like the guard of a mutex it stays on its thread.
#[derive(Debug)]
pub(crate) struct ReaderGuard<'r> {
    readers: &'r ReaderSlots,
    /// The slot's number; `None`: in the overflow.
    slot: Option<usize>,
    stay: Stay,
    is_early: bool,
    stays: PhantomData<MutexGuard<'r, ()>>,
}

impl ReaderGuard<'_> {
    /// Whether a transaction is changing the image, and readers see before-images.
    #[inline]
    pub(crate) fn is_early(&self) -> bool {
        self.is_early
    }

    /// Whether a writer waits for this reader, as far as is known by now.
    #[inline]
    pub(crate) fn is_waited_for(&self) -> bool {
        self.readers.sign.0.state.load(Ordering::Relaxed) & (SHUT | BRIEF_ONLY) != 0
    }
}

impl Drop for ReaderGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let readers = self.readers;
        match self.slot {
            Some(slot) => readers.slots[slot].0.store(FREE, Ordering::Release),
            None => {
                readers.crowd(self.stay).inside.fetch_sub(1, Ordering::Release);
            }
        }
        let watched = readers.sign.0.watched.load(Ordering::Relaxed);
        if watched != UNWATCHED && (watched == WATCHED || self.stay == Stay::Long) {
            readers.wake_writer();
        }
    }
}

impl ReaderSlots {
    /// Waits until the lock is open, and keeps it from being closed, for a bounded time. `thread`
    /// is the caller's number.
    #[inline]
    pub(crate) fn enter(&self, thread: usize) -> ReaderGuard<'_> {
        self.enter_for(Stay::Brief, thread)
    }

    /// The same, for as long as the caller wants.
    #[inline]
    pub(crate) fn enter_long(&self, thread: usize) -> ReaderGuard<'_> {
        self.enter_for(Stay::Long, thread)
    }

    #[inline]
    fn enter_for(&self, stay: Stay, thread: usize) -> ReaderGuard<'_> {
        let slot = thread % SLOT_COUNT;
        if self.take(slot, stay) {
            in_total_order();
            // The reader is inside before it looks; a writer looks for readers after closing.
            let state = self.sign.0.state.load(Ordering::SeqCst);
            let reading = self.reading(stay, Some(slot), state & READERS != 0);
            if !stay.is_kept_out(state) {
                return reading;
            }
            drop(reading);
        }
        self.enter_later(stay)
    }

    #[inline]
    fn crowd(&self, stay: Stay) -> &Crowd {
        match stay {
            Stay::Brief => &self.brief.0,
            Stay::Long => &self.long.0,
        }
    }

    #[inline]
    fn reading(&self, stay: Stay, slot: Option<usize>, is_early: bool) -> ReaderGuard<'_> {
        ReaderGuard { readers: self, slot, stay, is_early, stays: PhantomData }
    }

    #[inline]
    fn take(&self, slot: usize, stay: Stay) -> bool {
        // In the total order too: a writer that does not see the slot as used has closed the lock
        // before.
        if self.sign.0.used.load(Ordering::SeqCst) <= slot {
            self.sign.0.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let word = &self.slots[slot].0;
        let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
        word.load(Ordering::Relaxed) == FREE
            && word.compare_exchange(FREE, stay.mark(), success, failure).is_ok()
    }

    #[cold]
    fn enter_later(&self, stay: Stay) -> ReaderGuard<'_> {
        loop {
            self.crowd(stay).inside.fetch_add(1, Ordering::SeqCst);
            in_total_order();
            let state = self.sign.0.state.load(Ordering::SeqCst);
            let reading = self.reading(stay, None, state & READERS != 0);
            if !stay.is_kept_out(state) {
                return reading;
            }
            drop(reading);
            if let Some(reading) = self.wait_for_opening(stay) {
                return reading;
            }
        }
    }

    /// Waits to be admitted; `None` when the lock is open already.
    fn wait_for_opening(&self, stay: Stay) -> Option<ReaderGuard<'_>> {
        let crowd = self.crowd(stay);
        let before = {
            let _room = self.room.lock();
            crowd.waiting.fetch_add(1, Ordering::SeqCst);
            in_total_order();
            // A writer that opens the lock looks for waiting readers after opening.
            if !stay.is_kept_out(self.sign.0.state.load(Ordering::SeqCst)) {
                crowd.waiting.fetch_sub(1, Ordering::SeqCst);
                return None;
            }
            crowd.opening.load(Ordering::Relaxed)
        };
        // An opening that happens before this reader, once admitted, has left is to the same
        // readers.
        let opening = || crowd.opening.load(Ordering::Acquire);
        let is_admitted = || opening() != before;
        if !(0..READER_SPINS).any(|_| spin(is_admitted)) {
            let mut room = self.room.lock();
            room.sleepers += 1;
            while !is_admitted() {
                room = sleep(&self.opened, room);
            }
            room.sleepers -= 1;
        }
        Some(self.reading(stay, None, opening() & 1 != 0))
    }

    /// Whether a reader waits for the lock to be opened: a hint.
    #[inline]
    pub(crate) fn are_waiting(&self) -> bool {
        self.brief.0.waiting.load(Ordering::Relaxed) > 0
            || self.long.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Closes the lock to readers, and waits until those inside have left. While a long reader is
    /// inside, brief ones are admitted as before: `state` is the state in which the lock is.
    #[inline]
    pub(crate) fn shut(&self, state: u8) {
        self.say(SHUT);
        if !self.is_empty() {
            self.wait_for_all(state);
        }
    }

    /// The same, unless a reader is inside: then the lock stays open, and this is false.
    pub(crate) fn try_shut(&self) -> bool {
        self.say(SHUT);
        let is_empty = self.is_empty();
        if !is_empty {
            self.open(OPEN);
        }
        is_empty
    }

    #[inline]
    fn say(&self, state: u8) {
        self.sign.0.state.store(state, Ordering::SeqCst);
        in_total_order();
    }

    #[inline]
    fn is_empty(&self) -> bool {
        let slots = self.slots().all(|word| word.load(Ordering::SeqCst) == FREE);
        let crowds = [&self.brief, &self.long];
        slots && crowds.iter().all(|crowd| crowd.0.inside.load(Ordering::SeqCst) == 0)
    }

    /// The slots that were ever used.
    #[inline]
    fn slots(&self) -> impl Iterator<Item = &AtomicU32> {
        let used = self.sign.0.used.load(Ordering::SeqCst);
        self.slots.iter().take(used).map(|word| &word.0)
    }

    fn has_long(&self) -> bool {
        self.slots().any(|word| word.load(Ordering::SeqCst) == LONG)
            || self.long.0.inside.load(Ordering::SeqCst) > 0
    }

    #[cold]
    fn wait_for_all(&self, state: u8) {
        if (0..WRITER_SPINS).any(|_| spin(|| self.is_empty())) {
            return;
        }
        if self.has_long() {
            // Nothing changes until the long reader has left, so readers that will have left by
            // then, or soon after, need not wait. No new long reader is admitted, so this ends.
            self.say(state | BRIEF_ONLY);
            if self.brief.0.waiting.load(Ordering::SeqCst) > 0 {
                self.admit_readers(Stay::Brief, state);
            }
            self.sleep_until(LONG_WATCHED, || !self.has_long());
            self.say(SHUT);
        }
        self.sleep_until(WATCHED, || self.is_empty());
    }

    fn sleep_until(&self, watched: u8, has_happened: impl Fn() -> bool) {
        if has_happened() {
            return;
        }
        let mut room = self.room.lock();
        self.sign.0.watched.store(watched, Ordering::SeqCst);
        while !has_happened() {
            room = nap(&self.room, &self.left, room, NAP);
        }
        self.sign.0.watched.store(UNWATCHED, Ordering::Relaxed);
        drop(room);
    }

    #[cold]
    fn wake_writer(&self) {
        let _room = self.room.lock();
        self.left.notify_all();
    }

    /// Opens the lock to readers (`READERS`) or to all (`OPEN`), and admits those that wait.
    #[inline]
    pub(crate) fn open(&self, state: u8) {
        self.say(state);
        for stay in [Stay::Brief, Stay::Long] {
            if self.crowd(stay).waiting.load(Ordering::SeqCst) > 0 {
                self.admit_readers(stay, state);
            }
        }
    }

    #[cold]
    fn admit_readers(&self, stay: Stay, state: u8) {
        let crowd = self.crowd(stay);
        let room = self.room.lock();
        let waiting = crowd.waiting.swap(0, Ordering::SeqCst);
        if waiting == 0 {
            return;
        }
        // Counted on their behalf: the next writer that closes waits for them, though they may
        // still sleep.
        crowd.inside.fetch_add(waiting, Ordering::SeqCst);
        let next = (crowd.opening.load(Ordering::Relaxed) & !1).wrapping_add(2);
        crowd.opening.store(next | u32::from(state == READERS), Ordering::Release);
        if room.sleepers > 0 {
            self.opened.notify_all();
        }
    }
}
