//! The evictor: keeps the private memory of the image bounded.
//!
//! Purpose: memory that was stored to stays private to the image until it is evicted; without the
//! evictor it grows with all that was ever written. At three quarters of the bound that an option
//! sets, a thread ends the epoch of stores (`page_state.rs`), has a checkpoint made, and evicts
//! what was stored to before, the oldest first, until half is left. A commit that begins above the
//! bound waits until there is less, or until that thread reports that nothing more can be evicted.
//! Invariants: R6. Pages are evicted only under the writer lock, the image's exclusive lock and the
//! arena's lock, and only from a piece that no reservation holds. A checkpoint that succeeded after
//! the epoch's end covers what a record says of them. Blocks of which slices are left stay, as a
//! slice may have bytes that were never written, which the file need not have.
//! Thread safety: any thread may wait; one at a time evicts. Lock order: see `state.rs`.
//!
//! Readers lose nothing: a view and an eviction exclude each other, and the next touch reads from
//! the system's cache. See docs/decisions/0080-dropped-pages.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_medium::address::huge::HUGE_PAGE_BYTES;
use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::image::mapping::guards::Exclusive;
use crate::image::memory_bounds::Bounds;
use crate::image::page_state::{PIECE_PAGES, Pages};
use crate::journal::{Opened, Signal, Worker, Workers};
use crate::latch::writer_queue::WriterQueue;
use crate::layout::{PAGE_BYTES, ZONE_PAGES};
use crate::memory::huge::Promoter;
use crate::space::borrowed::BorrowedBlocks;
use crate::space::state::Space;
use crate::transaction::scratch::Writer;

/// System calls in one hold of the locks: some 2 us each.
const CALLS_MAX: u32 = 24;
/// Pages evicted in one hold: 0.1 us each.
const PAGES_MAX: u64 = 512;
/// Pieces looked at in one hold: 0.3 us each.
const PIECES_MAX: u32 = 64;
/// Clean pages between two dirty ones that are evicted with them, to spare a call: reading one of
/// them again costs less.
const GAP_PAGES: u64 = 4;
/// The most mappings of the image, of the 65,530 that a process has. A piece that is mapped to the
/// file again amid private memory adds two.
const MAPPINGS_MAX: u64 = 16_000;
/// Mappings for a piece on a huge page: its own, and one for the split of the mapping around it.
const HUGE_MAPPINGS: u64 = 2;
/// Huge pages made in one go: some 0.5 ms each, nearly all of it without a lock.
const PROMOTED_MAX: usize = 32;
/// The time between two searches for hot pieces.
const PROMOTE_AGAIN: Duration = Duration::from_millis(200);
/// Attempts to take an image that is in use, and the pause between them, while there is no hurry.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_micros(50);
/// Rounds that a commit waits for. The first may have begun before it.
const ROUNDS: u64 = 2;

/// Memory figures of a heap since it was opened. All except the bound are 0 if its memory is not
/// bounded.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The bound; `u64::MAX` if there is none.
    pub bytes_max: u64,
    /// Bytes of memory that differ from the pool file's, at most.
    pub dirty_bytes: u64,
    /// Bytes evicted.
    pub dropped_bytes: u64,
    /// Commits that waited.
    pub waits: u64,
    /// Bytes of the image that were put on huge pages because they are hot.
    pub promoted_bytes: u64,
    /// Whether the system gives huge pages, as far as any were asked for.
    pub has_huge_pages: bool,
}

/// The state that a round works on.
#[derive(Debug)]
pub(crate) struct EvictionContext {
    space: Arc<Space>,
    journal: Arc<Opened>,
    borrowed: Arc<BorrowedBlocks>,
    writer_queue: Arc<WriterQueue<Writer>>,
    bytes_max: u64,
    huge_bytes_max: u64,
    /// Rounds that ended. The mutex of the condition `ended`.
    rounds: Mutex<u64>,
    ended: Condvar,
    /// The tools of a round; one thread at a time has them.
    tools: Mutex<Tools>,
    /// Bytes that reservations and slices kept in the last round.
    kept_bytes: AtomicU64,
    dropped_bytes: AtomicU64,
    waits: AtomicU64,
    promoted_bytes: AtomicU64,
    are_refused: AtomicBool,
}

#[derive(Debug, Default)]
struct Tools {
    /// Heap ranges of borrowed blocks.
    borrowed: Vec<(u64, u64)>,
    /// Mappings that pieces added, at most.
    mappings: u64,
    /// Dirty bytes of this round that were old enough, but that something keeps.
    kept_bytes: u64,
    /// The page where the next round begins.
    hand: u64,
    promoter: Promoter,
}

/// The evictor's threads, and the state shared with them.
#[derive(Debug)]
pub(crate) struct Evictor {
    signal: Arc<Signal>,
    pub(crate) workers: Workers,
    context: Arc<EvictionContext>,
}

/// The work that one hold may still do.
struct Quota {
    calls: u32,
    pages: u64,
    pieces: u32,
}

impl Quota {
    fn is_left(&self) -> bool {
        self.calls > 0 && self.pages > 0 && self.pieces > 0
    }
}

impl EvictionContext {
    /// A context that has evicted nothing yet.
    pub(crate) fn new(
        space: &Arc<Space>,
        journal: &Arc<Opened>,
        borrowed: &Arc<BorrowedBlocks>,
        writer_queue: &Arc<WriterQueue<Writer>>,
        bounds: Bounds,
    ) -> Self {
        Self {
            space: Arc::clone(space),
            journal: Arc::clone(journal),
            borrowed: Arc::clone(borrowed),
            writer_queue: Arc::clone(writer_queue),
            bytes_max: bounds.memory_bytes_max,
            huge_bytes_max: bounds.huge_bytes_max,
            rounds: Mutex::new(0),
            ended: Condvar::new(),
            tools: Mutex::default(),
            kept_bytes: AtomicU64::new(0),
            dropped_bytes: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            promoted_bytes: AtomicU64::new(0),
            are_refused: AtomicBool::new(false),
        }
    }

    fn dirty_bytes(&self) -> u64 {
        self.space.image.bounded().map_or(0, Pages::own_bytes)
    }

    /// Whether enough memory is dirty for a round.
    fn is_high(&self) -> bool {
        self.dirty_bytes() > self.over_bytes() / 4 * 3
    }

    /// Whether commits have to wait.
    fn is_over(&self) -> bool {
        self.dirty_bytes() > self.over_bytes()
    }

    /// The bound plus the bytes kept beyond it: waiting would not help against those.
    fn over_bytes(&self) -> u64 {
        self.bytes_max.saturating_add(self.kept_bytes.load(Ordering::Relaxed))
    }

    /// Evicts pages until half of the bound is left, as far as possible.
    ///
    /// # Errors
    /// Those of a checkpoint. Then nothing is evicted, nor later.
    fn round(&self, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        let mut tools = self.tools.lock();
        let image = &self.space.image;
        let Some(states) = image.bounded() else { return Ok(()) };
        if image.is_filled() {
            // Pages that were only read need no checkpoint.
            self.drop_oldest(states, &mut tools, is_stopped)?;
            if self.dirty_bytes() <= self.bytes_max / 2 {
                return Ok(());
            }
        }
        // Only pages that the file has can be evicted.
        let journal = self.journal.writable()?;
        if self.space.held_bytes() > self.bytes_max / 2 {
            journal.checkpoint_held()?;
        } else {
            journal.checkpoint()?;
        }
        self.drop_oldest(states, &mut tools, is_stopped)
    }

    /// Evicts pages that a checkpoint covers until half of the bound is left, as far as possible.
    ///
    /// # Errors
    /// Those of the system.
    fn drop_oldest(
        &self,
        states: &Pages,
        tools: &mut Tools,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let image = &self.space.image;
        let epoch = states.covered();
        let wanted = self.dirty_bytes().saturating_sub(self.bytes_max / 2);
        tools.kept_bytes = 0;
        let oldest = states.epoch_of_oldest(epoch, wanted, image.pages());
        let mut next = Some(tools.hand);
        while let Some(page) = next {
            let had_to_wait = self.is_over();
            if is_stopped() || self.dirty_bytes() <= self.bytes_max / 2 {
                break;
            }
            next = self.drop_some(states, tools, page, oldest)?;
            if had_to_wait && !self.is_over() {
                // Under the lock, so that the wake-up cannot fall between a commit's check and its
                // wait.
                let _rounds = self.rounds.lock();
                self.ended.notify_all();
            }
            // Threads that wait for the writer lock or the image get it between two holds.
            std::thread::yield_now();
        }
        // Pages that were only read are mostly of one age: the next round goes on behind these.
        tools.hand = next.filter(|_| image.is_filled()).unwrap_or(0);
        // If half is left now, it does not matter what keeps the rest.
        let kept = if next.is_none() { tools.kept_bytes } else { 0 };
        self.kept_bytes.store(kept, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `work` while no other thread changes anything except its own reservations; `None` if
    /// the image was in use for long while there was no hurry.
    fn alone<T>(&self, work: impl FnOnce(&mut Exclusive<'_>) -> T) -> Option<T> {
        for _ in 0..LOOKS {
            let permit = self.writer_queue.wait();
            let image = match self.space.image.try_write() {
                // A commit would wait for the image, too; and a commit waits for this.
                None if self.is_over() => Some(self.space.image.write()),
                image => image,
            };
            if let Some(mut image) = image {
                if image.is_given_up() {
                    return None;
                }
                let _arena = self.space.arena();
                return Some(work(&mut image));
            }
            drop(permit);
            std::thread::sleep(LOOK_AGAIN);
        }
        None
    }

    /// Evicts pages from a page on whose epochs are not above `epoch`, which is covered: as many as
    /// one hold allows. Returns where to go on.
    fn drop_some(
        &self,
        states: &Pages,
        tools: &mut Tools,
        page: u64,
        epoch: u32,
    ) -> Result<Option<u64>> {
        let dropped = self.alone(|image| {
            self.borrowed.ranges(&mut tools.borrowed);
            let mut quota = Quota { calls: CALLS_MAX, pages: PAGES_MAX, pieces: PIECES_MAX };
            let mut page = page;
            while quota.is_left() {
                let Some(piece) = states.next_stored(page / PIECE_PAGES, image.pages()) else {
                    return Ok(None);
                };
                page = page.max(piece * PIECE_PAGES);
                page = if states.is_anonymous(piece) {
                    self.drop_anonymous(image, states, tools, piece, epoch, &mut quota)?;
                    (piece + 1) * PIECE_PAGES
                } else {
                    self.drop_runs(image, states, tools, page, epoch, &mut quota)?
                };
                quota.pieces -= 1;
            }
            Ok(Some(page))
        });
        dropped.unwrap_or(Ok(None))
    }

    /// Evicts dirty pages of a file-backed piece, from a page of it on. Returns where to go on.
    fn drop_runs(
        &self,
        image: &mut Exclusive<'_>,
        states: &Pages,
        tools: &mut Tools,
        mut page: u64,
        epoch: u32,
        quota: &mut Quota,
    ) -> Result<u64> {
        let piece_end = (page / PIECE_PAGES + 1) * PIECE_PAGES;
        let end = piece_end.min(image.pages());
        let is_old = |page: u64| (1..=epoch).contains(&states.epoch_if_clean(page));
        let Some(_dropping) = states.start_dropping(page / PIECE_PAGES) else {
            let kept = (page..end).filter(|page| is_old(*page)).count() as u64;
            tools.kept_bytes += kept * PAGE_BYTES;
            return Ok(piece_end);
        };
        while page < end && quota.calls > 0 && quota.pages > 0 {
            if !is_old(page) {
                page += 1;
                continue;
            }
            let mut stop = page + 1;
            let mut looked = stop;
            while looked < end && looked - stop <= GAP_PAGES {
                match states.epoch_of(looked) {
                    0 => {}
                    _ if is_old(looked) => stop = looked + 1,
                    _ => break,
                }
                looked += 1;
            }
            if tools.is_lent(page, stop) {
                tools.kept_bytes += (stop - page) * PAGE_BYTES;
            } else {
                // SAFETY: no thread stores to them: this thread holds the writer lock, the image
                // and the arena, and no reservation is in the piece. Views and transactions exclude
                // this, and borrowed blocks were ruled out: so no reference into the pages exists
                // either.
                unsafe { image.drop_pages(self.journal.pool().file(), (page, stop), true)? };
                self.note_dropped(states, |states| states.forget(page, stop));
                quota.calls -= 1;
                quota.pages = quota.pages.saturating_sub(stop - page);
            }
            page = stop;
        }
        Ok(if page < end { page } else { piece_end })
    }

    /// Maps the file back under an anonymous piece, if all of it may be evicted.
    fn drop_anonymous(
        &self,
        image: &mut Exclusive<'_>,
        states: &Pages,
        tools: &mut Tools,
        piece: u64,
        epoch: u32,
        quota: &mut Quota,
    ) -> Result<()> {
        // Pages beyond the last one are unused; when one is used, the piece becomes anonymous
        // again.
        let (start, end) = (piece * PIECE_PAGES, ((piece + 1) * PIECE_PAGES).min(image.pages()));
        if states.newest_in(piece) > epoch {
            return Ok(());
        }
        let is_lent = tools.is_lent(start, end);
        let dropping = states.start_dropping(piece).filter(|_| !is_lent);
        let Some(dropping) = dropping else {
            tools.kept_bytes += PIECE_PAGES * PAGE_BYTES;
            return Ok(());
        };
        // Neighbours mapped to the same range of the file join into one mapping with it.
        let pieces_per_zone = ZONE_PAGES / PIECE_PAGES;
        let is_mapped = |other: u64| {
            other / pieces_per_zone == piece / pieces_per_zone && !states.is_anonymous(other)
        };
        let was_promoted = tools.promoter.forget(piece);
        let mappings = match (is_mapped(piece.wrapping_sub(1)), is_mapped(piece + 1)) {
            _ if was_promoted => tools.mappings.saturating_sub(HUGE_MAPPINGS),
            (true, true) => tools.mappings.saturating_sub(1),
            (false, false) => tools.mappings + 2,
            _ => tools.mappings,
        };
        if mappings > MAPPINGS_MAX {
            tools.kept_bytes += PIECE_PAGES * PAGE_BYTES;
            return Ok(());
        }
        // SAFETY: as in `drop_runs`.
        unsafe { image.drop_pages(self.journal.pool().file(), (start, end), false)? };
        tools.mappings = mappings;
        self.promoted_bytes.store(tools.promoter.bytes(), Ordering::Relaxed);
        self.note_dropped(states, |states| states.forget_piece(&dropping));
        quota.calls = quota.calls.saturating_sub(4);
        quota.pages = quota.pages.saturating_sub(PIECE_PAGES);
        Ok(())
    }

    fn note_dropped(&self, states: &Pages, forget: impl FnOnce(&Pages)) {
        let before = states.own_bytes();
        forget(states);
        let dropped = before.saturating_sub(states.own_bytes());
        self.dropped_bytes.fetch_add(dropped, Ordering::Relaxed);
    }

    /// Puts hot pieces on huge pages, as long as that leaves half of the bound to others.
    ///
    /// # Errors
    /// Those of the medium.
    fn promote(&self, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        let image = &self.space.image;
        let Some(states) = image.bounded() else { return Ok(()) };
        if !self.has_room(&self.tools.lock()) {
            return Ok(());
        }
        for piece in Promoter::candidates(image, states).into_iter().take(PROMOTED_MAX) {
            // The lock keeps pages from being evicted between the copy and the move.
            let tools = &mut *self.tools.lock();
            if is_stopped() || !self.has_room(tools) || states.is_anonymous(piece) {
                break;
            }
            let is_prepared = tools.promoter.prepare(self.journal.pool().file(), piece)?;
            self.are_refused.store(!is_prepared, Ordering::Relaxed);
            if !is_prepared {
                break;
            }
            let put = self.alone(|image| tools.promoter.put(image, states, piece));
            if put.unwrap_or(Ok(false))? {
                tools.mappings += HUGE_MAPPINGS;
                self.promoted_bytes.store(tools.promoter.bytes(), Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Whether there is room for one more huge page.
    fn has_room(&self, tools: &Tools) -> bool {
        tools.promoter.bytes() + HUGE_PAGE_BYTES <= self.huge_bytes_max
            && self.dirty_bytes() + HUGE_PAGE_BYTES <= self.bytes_max / 2
            && tools.mappings + HUGE_MAPPINGS <= MAPPINGS_MAX
    }

    /// Ends a round, whatever its result: threads that waited meet its failure themselves.
    fn end_round(&self) {
        *self.rounds.lock() += 1;
        self.ended.notify_all();
    }
}

impl Tools {
    /// Whether a block on these pages is borrowed.
    fn is_lent(&self, start: u64, end: u64) -> bool {
        let (start, end) = (start * PAGE_BYTES, end * PAGE_BYTES);
        let after = self.borrowed.partition_point(|(_, lent_end)| *lent_end <= start);
        self.borrowed.get(after).is_some_and(|(lent_start, _)| *lent_start < end)
    }
}

impl Evictor {
    /// Starts the threads, if memory is bounded and `has_thread` asks for them.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn spawn(context: EvictionContext, has_thread: bool) -> std::io::Result<Self> {
        let (signal, context) = (Arc::new(Signal::default()), Arc::new(context));
        let mut workers = Vec::new();
        let is_mapped = !context.space.image.is_filled();
        let is_bounded = context.space.image.bounded().is_some();
        if has_thread && context.huge_bytes_max > 0 && is_mapped && is_bounded {
            let its = Arc::clone(&context);
            workers.push(Worker::spawn("adamant-huge", &signal, move |signal| {
                while !signal.is_stopped() {
                    let begun = Instant::now();
                    // A read error may be gone the next time; a read that needs the page reports
                    // it.
                    let _ = its.promote(&|| signal.is_stopped());
                    // At most a fifth of a processor, however large the pool.
                    signal.sleep(PROMOTE_AGAIN.max(4 * begun.elapsed()));
                }
            })?);
        }
        if has_thread && is_bounded {
            let its = Arc::clone(&context);
            workers.push(Worker::when_raised("adamant-evict", &signal, move |signal| {
                while signal.wait() {
                    signal.lower();
                    // A failure ends writing; the next commit reports it.
                    let _ = its.round(&|| signal.is_stopped());
                    its.end_round();
                }
                // No commit is to wait for a thread that has ended.
                *its.rounds.lock() = u64::MAX;
                its.ended.notify_all();
            }));
        }
        Ok(Self { signal, workers: Workers::new(workers), context })
    }

    /// Waits while more memory is dirty than allowed. Call it before a commit takes any lock.
    #[inline]
    pub(crate) fn wait(&self) {
        if self.context.space.image.bounded().is_some() && self.context.is_high() {
            self.wait_long();
        }
    }

    /// Wakes the thread if much memory is dirty: after a commit, which may be the last one for a
    /// while.
    #[inline]
    pub(crate) fn remind(&self) {
        if self.context.space.image.bounded().is_some() && self.context.is_high() {
            self.signal.raise();
        }
    }

    #[cold]
    fn wait_long(&self) {
        let context = &*self.context;
        self.signal.raise();
        if self.workers.is_empty() || self.signal.is_asleep() {
            // Above the bound only: a round takes the caller's time.
            if context.is_over() {
                let _ = context.round(&|| false);
                context.end_round();
            }
            return;
        }
        if !context.is_over() {
            return;
        }
        context.waits.fetch_add(1, Ordering::Relaxed);
        let mut rounds = context.rounds.lock();
        let enough = rounds.saturating_add(ROUNDS);
        while *rounds < enough && context.is_over() {
            self.signal.raise();
            context.ended.wait(&mut rounds);
        }
    }

    /// The evictor's figures.
    pub(crate) fn stats(&self) -> MemoryStats {
        MemoryStats {
            bytes_max: self.context.bytes_max,
            dirty_bytes: self.context.dirty_bytes(),
            dropped_bytes: self.context.dropped_bytes.load(Ordering::Relaxed),
            waits: self.context.waits.load(Ordering::Relaxed),
            promoted_bytes: self.context.promoted_bytes.load(Ordering::Relaxed),
            has_huge_pages: !self.context.are_refused.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
