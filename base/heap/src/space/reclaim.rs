//! Background reclaim threads: make freed blocks reusable after a commit.
//!
//! Purpose: a commit that frees thousands of blocks returns at once. Threads that the heap owns, as
//! many as an option says, make the blocks reusable, join free pages and free runs that became
//! empty. Small commits do it themselves: waking a thread costs more.
//! Invariants: nothing on the medium depends on it: after a crash the next opening finds the rest
//! free. Blocks and pages become reusable a part at a time, while the thread has the image
//! exclusively, as everywhere. No thread waits for the image here: otherwise a reader that takes it
//! twice could deadlock with a waiting thread between the two.
//! Thread safety: any thread may wake and stop. Lock order: see `state.rs`.

use std::sync::Arc;
use std::time::Duration;

use crate::journal::{Opened, Signal, Worker, Workers};
use crate::space::allocator::BlockAllocator;
use crate::space::borrowed::BorrowedBlocks;
use crate::space::pin::Pins;
use crate::space::state::Space;

/// A commit that leaves fewer words of bitmaps and extents than this does the work itself: some 20
/// us, what it costs to wake a thread.
const WAITING_MIN: usize = 256;
/// With more than this waiting, a commit does not rely on a thread to catch up.
const WAITING_MAX: usize = 1 << 20;
/// Words and extents that a thread takes at a time: readers wait for some 50 us at most.
const STEP: usize = 256;
/// Attempts to take an image that is in use, and the pause between them. Then the work is left to
/// the next commit.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// The reclaim threads of a heap.
#[derive(Debug)]
pub(crate) struct Recyclers {
    signal: Arc<Signal>,
    pub(crate) workers: Workers,
}

/// The state that a thread works on.
#[derive(Debug)]
pub(crate) struct ReclaimContext {
    space: Arc<Space>,
    journal: Arc<Opened>,
    borrowed: Arc<BorrowedBlocks>,
    pins: Arc<Pins>,
}

impl Recyclers {
    /// `count` threads, which start when there is work.
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
        Self { signal, workers: Workers::new(workers) }
    }

    /// Wakes a thread for the waiting work if that is worth it; false leaves the work to the
    /// caller.
    #[inline]
    pub(crate) fn take(&self, waiting: usize) -> bool {
        if !(WAITING_MIN..WAITING_MAX).contains(&waiting) || self.workers.is_empty() {
            return false;
        }
        self.signal.raise();
        true
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
