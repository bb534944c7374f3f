//! Threads that do after a commit what it need not wait for.
//!
//! Purpose: a commit that frees thousands of blocks returns; making them reusable, joining free
//! pages and giving back runs that became empty is done by threads that the heap owns, as many as
//! an option says. Small commits do it themselves: waking a thread costs more.
//! Invariants: nothing on the medium depends on it: what was not done when the process dies is found
//! free by the next opening. Blocks and pages become reusable while the thread has the image
//! exclusively, as everywhere, and a part at a time. No thread waits for the image here: a reader
//! that asks for it twice must not find somebody in between.
//! Thread safety: any thread may wake and stop. Locks: as `state.rs` says.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::journal::{Opened, Signal, Worker};
use crate::space::allocator::BlockAllocator;
use crate::space::borrowed::BorrowedBlocks;
use crate::space::pin::Pins;
use crate::space::state::Space;

/// A commit that leaves fewer words of bitmaps and extents than this does the work itself: some
/// 20 us, what it costs to wake a thread.
const WAITING_MIN: usize = 256;
/// Beyond this many a commit does not trust that a thread will get to it.
const WAITING_MAX: usize = 1 << 20;
/// What a thread takes at a time: readers wait for some 50 us at most.
const STEP: usize = 256;
/// Looks at an image that somebody has, and the time between them; then it is left to the next
/// commit.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// The threads.
#[derive(Debug)]
pub(crate) struct Recyclers {
    signal: Arc<Signal>,
    workers: Mutex<Vec<Worker>>,
}

/// What a thread works on.
#[derive(Debug)]
pub(crate) struct ReclaimContext {
    space: Arc<Space>,
    journal: Arc<Opened>,
    borrowed: Arc<BorrowedBlocks>,
    pins: Arc<Pins>,
}

impl Recyclers {
    /// So many threads, which start when there is work.
    pub(crate) fn new(count: usize, context: impl Fn() -> ReclaimContext) -> Self {
        let signal = Arc::new(Signal::default());
        let mut workers = Vec::with_capacity(count);
        for _ in 0..count {
            let context = context();
            workers.push(Worker::when_raised("adamant-recycler", &signal, move |signal| {
                while signal.wait() {
                    signal.lower();
                    context.work(signal);
                }
            }));
        }
        Self { signal, workers: Mutex::new(workers) }
    }

    /// Has a thread do what waits, if it is worth it; else it is the caller's to do.
    #[inline]
    pub(crate) fn take(&self, waiting: usize) -> bool {
        if !(WAITING_MIN..WAITING_MAX).contains(&waiting) || self.workers.lock().is_empty() {
            return false;
        }
        self.signal.raise();
        true
    }

    /// Ends the threads, and waits for that. The caller has no lock of the heap.
    pub(crate) fn stop(&self) {
        self.signal.stop();
        let workers = std::mem::take(&mut *self.workers.lock());
        drop(workers);
    }

    /// In the child of a fork: the threads stayed with the parent.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(std::mem::take(self.workers.get_mut()));
    }
}

impl ReclaimContext {
    pub(crate) fn new(
        space: &Arc<Space>,
        journal: &Arc<Opened>,
        borrowed: &Arc<BorrowedBlocks>,
        pins: &Arc<Pins>,
    ) -> Self {
        Self {
            space: Arc::clone(space),
            journal: Arc::clone(journal),
            borrowed: Arc::clone(borrowed),
            pins: Arc::clone(pins),
        }
    }

    fn work(&self, signal: &Signal) {
        let allocator =
            BlockAllocator { space: &self.space, journal: &self.journal, borrowed: &self.borrowed };
        let mut looks = 0;
        while looks < LOOKS && self.space.has_waiting() && !signal.is_stopped() {
            if let Some(image) = self.space.image.try_write() {
                if !allocator.recycle_part(&image, self.pins.released(), STEP) {
                    return;
                }
                looks = 0;
            } else {
                looks += 1;
                signal.sleep(LOOK_AGAIN);
            }
        }
    }
}
