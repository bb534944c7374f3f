//! Keeping the private memory of the image bounded.
//!
//! Purpose: memory that was stored to is the image's own until it is dropped; without this it grows
//! with all that was ever written. Once it comes to three quarters of what an option allows, a
//! thread ends the epoch of stores (`page_state.rs`), has a checkpoint made, and drops what was
//! stored to before, the oldest first, until half is left. Who begins a commit beyond the bound
//! waits until there is less, or until that thread says that nothing more can be dropped.
//! Invariants: R6. Nothing is dropped but by whoever has the turn to write, the image exclusively and
//! the arena's lock, from a piece that no reservation holds; what a record tells of it is covered by a
//! checkpoint that succeeded after the epoch's end; and blocks of which slices are left stay, as
//! a slice may have bytes that were never written, which the file need not have.
//! Thread safety: any thread may wait; one at a time drops. Locks as `state.rs` says.
//!
//! Readers lose nothing: a view and this exclude each other, and what is touched next is read from
//! the system's cache. See docs/decisions/0080-dropped-pages.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use adamant_medium::huge::HUGE_PAGE_BYTES;
use adamant_wire::mutants::is_planted;
use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::image::mapping::Exclusive;
use crate::image::page_state::{PIECE_PAGES, Pages};
use crate::journal::{Opened, Signal, Worker};
use crate::latch::writer_queue::WriterQueue;
use crate::layout::{PAGE_BYTES, ZONE_PAGES};
use crate::memory::huge::Promoter;
use crate::space::borrowed::BorrowedBlocks;
use crate::space::state::Space;
use crate::transaction::scratch::Writer;

/// System calls for one hold of the locks: some 2 us each.
const CALLS_MAX: u32 = 24;
/// Pages dropped in one hold: 0.1 us each.
const PAGES_MAX: u64 = 512;
/// Pieces looked at in one hold: 0.3 us each.
const PIECES_MAX: u32 = 64;
/// Clean pages between two dirty ones that are dropped with them, to spare a call: to find one of
/// them again costs less.
const GAP_PAGES: u64 = 4;
/// Mappings that the image may come to, of the 65,530 that a process has. A piece that becomes the
/// file's again amid memory of its own makes two more.
const MAPPINGS_MAX: u64 = 16_000;
/// Mappings for a piece on a huge page: its own, and what it is in is cut in two.
const HUGE_MAPPINGS: u64 = 2;
/// Huge pages made in one go: some 0.5 ms each, nearly all of it without a lock.
const PROMOTED_MAX: usize = 32;
/// The time between two looks for what is hot.
const PROMOTE_AGAIN: Duration = Duration::from_millis(200);
/// Looks at an image that somebody has, and the time between them, while there is no hurry.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_micros(50);
/// Rounds that a commit waits for. The first may have begun before it.
const ROUNDS: u64 = 2;

/// Figures of the memory of a heap, since it was opened. All but the bound are 0 where it is not
/// bounded.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MemoryStats {
    /// The bound; `u64::MAX`: none.
    pub bytes_max: u64,
    /// Bytes of memory that differ from the pool file's, at most.
    pub dirty_bytes: u64,
    /// Bytes given back.
    pub dropped_bytes: u64,
    /// Commits that waited.
    pub waits: u64,
    /// Bytes of the image that were put on huge pages because they are looked at.
    pub promoted_bytes: u64,
    /// Whether the system gives huge pages, as far as any were asked for.
    pub has_huge_pages: bool,
}

/// Bounds of the memory of a heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Of dirty memory; `u64::MAX`: none.
    pub(crate) memory_bytes_max: u64,
    /// Of memory on huge pages.
    pub(crate) huge_bytes_max: u64,
}

impl Bounds {
    /// Whether stores have to be noted.
    pub(crate) fn are_any(self) -> bool {
        self.memory_bytes_max < u64::MAX || self.huge_bytes_max > 0
    }
}

/// What a round works on.
#[derive(Debug)]
pub(crate) struct EvictionContext {
    space: Arc<Space>,
    journal: Arc<Opened>,
    borrowed: Arc<BorrowedBlocks>,
    writer_queue: Arc<WriterQueue<Writer>>,
    bytes_max: u64,
    huge_bytes_max: u64,
    /// Rounds that ended. The lock is that of `ended`.
    rounds: Mutex<u64>,
    ended: Condvar,
    /// What a round needs; one thread at a time has it.
    tools: Mutex<Tools>,
    /// What the last round found to be kept by reservations and slices.
    kept_bytes: AtomicU64,
    dropped_bytes: AtomicU64,
    waits: AtomicU64,
    promoted_bytes: AtomicU64,
    are_refused: AtomicBool,
}

#[derive(Debug, Default)]
struct Tools {
    /// Heap ranges of blocks that are lent.
    borrowed: Vec<(u64, u64)>,
    /// Mappings that pieces added, at most.
    mappings: u64,
    /// Dirty bytes of this round that were old enough, but that something keeps.
    kept_bytes: u64,
    promoter: Promoter,
}

/// The threads, and what others need of it.
#[derive(Debug)]
pub(crate) struct Evictor {
    signal: Arc<Signal>,
    workers: Mutex<Vec<Worker>>,
    context: Arc<EvictionContext>,
}

/// What one hold may still do.
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
    /// Nothing is dropped yet.
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

    /// Whether there is so much that a round is worth it.
    fn is_high(&self) -> bool {
        self.dirty_bytes() > self.over_bytes() / 4 * 3
    }

    /// Whether commits have to wait.
    fn is_over(&self) -> bool {
        self.dirty_bytes() > self.over_bytes()
    }

    /// The bound, and what is kept beyond it: waiting would not help against that.
    fn over_bytes(&self) -> u64 {
        self.bytes_max.saturating_add(self.kept_bytes.load(Ordering::Relaxed))
    }

    /// Drops what can be dropped until half of the bound is left.
    ///
    /// # Errors
    /// Those of a checkpoint. Nothing is dropped then, nor later.
    fn round(&self, is_stopped: &dyn Fn() -> bool) -> Result<()> {
        let mut tools = self.tools.lock();
        let image = &self.space.image;
        let Some(states) = image.bounded() else { return Ok(()) };
        // What the file does not have cannot be dropped.
        let journal = self.journal.writable()?;
        if self.space.held_bytes() > self.bytes_max / 2 {
            journal.checkpoint_held()?;
        } else {
            journal.checkpoint()?;
        }
        let epoch = states.covered();
        let wanted = self.dirty_bytes().saturating_sub(self.bytes_max / 2);
        tools.kept_bytes = 0;
        let oldest = states.epoch_of_oldest(epoch, wanted, image.pages());
        let mut next = Some(0);
        while let Some(page) = next {
            let had_to_wait = self.is_over();
            if is_stopped() || self.dirty_bytes() <= self.bytes_max / 2 {
                break;
            }
            next = self.drop_some(states, &mut tools, page, oldest)?;
            if had_to_wait && !self.is_over() {
                // Under the lock, so that it cannot fall between somebody's look and its wait.
                let _rounds = self.rounds.lock();
                self.ended.notify_all();
            }
            // Who waits for a turn or for the image gets it between two holds.
            std::thread::yield_now();
        }
        // Where half is left now, it does not matter what keeps the rest.
        let kept = if next.is_none() { tools.kept_bytes } else { 0 };
        self.kept_bytes.store(kept, Ordering::Relaxed);
        Ok(())
    }

    /// Does `work` while nobody else changes anything but what it has reserved; `None` if somebody had
    /// the image for long while there was no hurry.
    fn alone<T>(&self, work: impl FnOnce(&mut Exclusive<'_>) -> T) -> Option<T> {
        for _ in 0..LOOKS {
            let permit = self.writer_queue.wait();
            let image = match self.space.image.try_write() {
                // A commit would wait for the image, too; and there is one that waits for this.
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

    /// Drops pages whose epochs are not above `epoch`, which is covered, from a page on: as many as one
    /// hold allows. Returns where to go on.
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

    /// Drops dirty pages of a piece that the file is behind, from a page of it on. Returns where to
    /// go on.
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
                // SAFETY: nobody stores to them: this has the turn, the image and the arena, and no
                // reservation is in the piece. Views and transactions exclude this, lent blocks were
                // looked for: so nobody has a reference into them either.
                unsafe { image.drop_pages(self.journal.pool().file(), (page, stop), true)? };
                self.note_dropped(states, |states| states.forget(page, stop));
                quota.calls -= 1;
                quota.pages = quota.pages.saturating_sub(stop - page);
            }
            page = stop;
        }
        Ok(if page < end { page } else { piece_end })
    }

    /// Puts the file behind a piece that has memory of its own, if all of it may be dropped.
    fn drop_anonymous(
        &self,
        image: &mut Exclusive<'_>,
        states: &Pages,
        tools: &mut Tools,
        piece: u64,
        epoch: u32,
        quota: &mut Quota,
    ) -> Result<()> {
        // What is beyond the last page is nobody's yet; once it is, the piece has memory of its own again.
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
        // Those that touch it and lie in the same range of the file become one mapping with it.
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

    /// Puts some of what is hot on huge pages, as long as that leaves half of the bound to others.
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
            // Nobody drops pages between the copy and the move.
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

    /// A round is over, whatever became of it: what failed, those who waited meet themselves.
    fn end_round(&self) {
        *self.rounds.lock() += 1;
        self.ended.notify_all();
    }
}

impl Tools {
    /// Whether a block on these pages is lent.
    fn is_lent(&self, start: u64, end: u64) -> bool {
        if is_planted("R6.drops-what-is-lent") {
            return false;
        }
        let (start, end) = (start * PAGE_BYTES, end * PAGE_BYTES);
        let after = self.borrowed.partition_point(|(_, lent_end)| *lent_end <= start);
        self.borrowed.get(after).is_some_and(|(lent_start, _)| *lent_start < end)
    }
}

impl Evictor {
    /// Starts the threads, if memory is bounded and `has_thread` asks for them.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn spawn(context: EvictionContext, has_thread: bool) -> std::io::Result<Self> {
        let (signal, context) = (Arc::new(Signal::default()), Arc::new(context));
        let mut workers = Vec::new();
        if has_thread && context.huge_bytes_max > 0 && context.space.image.bounded().is_some() {
            let its = Arc::clone(&context);
            workers.push(Worker::spawn("adamant-huge", &signal, move |signal| {
                while !signal.is_stopped() {
                    let begun = Instant::now();
                    // What cannot be read now may be the next time; a read that needs it says so.
                    let _ = its.promote(&|| signal.is_stopped());
                    // At most a fifth of a processor, however large the pool.
                    signal.sleep(PROMOTE_AGAIN.max(4 * begun.elapsed()));
                }
            })?);
        }
        if has_thread && context.space.image.bounded().is_some() {
            let its = Arc::clone(&context);
            workers.push(Worker::spawn("adamant-evict", &signal, move |signal| {
                while signal.wait() {
                    signal.lower();
                    // What fails ends writing, which the next commit is told.
                    let _ = its.round(&|| signal.is_stopped());
                    its.end_round();
                }
                // Nobody is to wait for one who is gone.
                *its.rounds.lock() = u64::MAX;
                its.ended.notify_all();
            })?);
        }
        Ok(Self { signal, workers: Mutex::new(workers), context })
    }

    /// Waits while more memory is dirty than may be. To be called before a commit takes any lock.
    #[inline]
    pub(crate) fn wait(&self) {
        if self.context.space.image.bounded().is_some() && self.context.is_high() {
            self.wait_long();
        }
    }

    /// Has the thread give memory back, if there is much to be: after a commit, which may be the
    /// last one for a while.
    #[inline]
    pub(crate) fn remind(&self) {
        if self.context.space.image.bounded().is_some() && self.context.is_high() {
            self.signal.raise();
        }
    }

    #[cold]
    fn wait_long(&self) {
        let context = &*self.context;
        if self.workers.lock().is_empty() {
            // Above the bound only: it is the caller's time.
            if context.is_over() {
                let _ = context.round(&|| false);
                context.end_round();
            }
            return;
        }
        self.signal.raise();
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

    /// Figures.
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

    /// Ends the thread, and waits for that. The caller has no lock of the heap.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        let workers = std::mem::take(&mut *self.workers.lock());
        drop(workers);
    }

    /// In the child of a fork: the thread stayed with the parent.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(std::mem::take(self.workers.get_mut()));
    }
}

#[cfg(test)]
mod tests;
