//! Desks: where threads work on the heap beside the writer.
//!
//! Purpose: give each thread a shard and the memory of its small commits behind a lock that
//! nobody else wants, so that reserving and publishing scale with the threads.
//! Thread safety: a desk belongs to who has the place of that number at the gate of the image
//! (`gate.rs`): a thread goes to the one that its number says, or where that one is taken, to the
//! next that is free. Locks: places before the arena's (`space.rs`).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::arena::Retired;
use crate::changes::Changes;
use crate::gate::{PLACE_COUNT, Seated};
use crate::journal::RecordBuilder;
use crate::place::Place;
use crate::reservation::{Holder, Shares};
use crate::seat::wait;
use crate::shard::Shard;
use crate::space::Space;

/// Words of the claims: threads that free other blocks rarely meet in one.
const CLAIM_COUNT: usize = 64;
/// Runs that a desk remembers as judged.
const JUDGED_COUNT: usize = 16;
/// Bytes of memory that a desk keeps for its records, of which there may be 32.
const RECORD_BYTES_KEPT: usize = 64 << 10;

/// What one thread at a time works with.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shard: Shard,
    /// `None` once the heap is closed.
    pub(crate) shares: Option<Shares>,
    pub(crate) record: RecordBuilder,
    pub(crate) changes: Changes,
    /// What was freed while others looked: it comes back only after somebody has had the image
    /// exclusively, so that no reference from before is left.
    pub(crate) retired: Vec<(u64, Retired)>,
    /// First pages of runs whose bitmaps the arena knows. It never forgets one: a run that is given
    /// back is known again when it is made again.
    judged: [u64; JUDGED_COUNT],
}

impl Desk {
    /// Whether the run of a block is known to be loaded.
    #[inline]
    pub(crate) fn has_judged(&self, place: Place) -> bool {
        matches!(place, Place::Run { run, .. } if self.judged[run as usize % JUDGED_COUNT] == run)
    }

    /// The run of a block was loaded.
    pub(crate) fn note_judged(&mut self, place: Place) {
        if let Place::Run { run, .. } = place {
            self.judged[run as usize % JUDGED_COUNT] = run;
        }
    }
}

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// All desks of a heap.
#[derive(Debug)]
pub(crate) struct Desks {
    space: Arc<Space>,
    desks: Box<[Padded<UnsafeCell<Desk>>]>,
    /// Blocks that threads are freeing right now; 0 is none.
    claims: [Padded<AtomicU64>; CLAIM_COUNT],
}

// SAFETY: a desk is reached through `AtDesk` alone, of whoever has the place of that number at the
// gate of `space`, which no other gate is taken for: one thread at a time. `Desk` can be sent.
unsafe impl Sync for Desks {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Desk>();
};

/// A desk, taken.
#[derive(Debug)]
pub(crate) struct AtDesk<'h> {
    desk: &'h UnsafeCell<Desk>,
    _seated: Seated<'h>,
}

impl Deref for AtDesk<'_> {
    type Target = Desk;

    #[inline]
    fn deref(&self) -> &Desk {
        // SAFETY: who has the place has the desk, and this borrows it.
        unsafe { &*self.desk.get() }
    }
}

impl DerefMut for AtDesk<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Desk {
        // SAFETY: who has the place has the desk, and this borrows it exclusively.
        unsafe { &mut *self.desk.get() }
    }
}

impl Desks {
    /// Desks of a space whose reservations keep what `holder` makes alive, with empty records as the
    /// journal takes them.
    pub(crate) fn new(
        space: Arc<Space>,
        holder: impl Fn() -> Arc<Holder>,
        record: impl Fn() -> RecordBuilder,
    ) -> Self {
        let desk = || Desk {
            shard: Shard::new(true),
            shares: Some(Shares::new(holder())),
            record: record().keeping(RECORD_BYTES_KEPT),
            changes: Changes::default(),
            retired: Vec::new(),
            judged: [0; JUDGED_COUNT],
        };
        Self {
            space,
            desks: (0..PLACE_COUNT).map(|_| Padded(UnsafeCell::new(desk()))).collect(),
            claims: std::array::from_fn(|_| Padded(AtomicU64::new(0))),
        }
    }

    /// A desk for the thread with that number.
    #[inline]
    pub(crate) fn sit_down(&self, thread: usize) -> AtDesk<'_> {
        self.at(self.space.image.sit(thread))
    }

    /// The same, and the image shared while it is taken.
    #[inline]
    pub(crate) fn enter(&self, thread: usize) -> AtDesk<'_> {
        self.at(self.space.image.enter(thread))
    }

    #[inline]
    fn at<'h>(&'h self, seated: Seated<'h>) -> AtDesk<'h> {
        AtDesk { desk: &self.desks[seated.place()].0, _seated: seated }
    }

    /// All desks, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = AtDesk<'_>> {
        (0..PLACE_COUNT).map(|place| self.at(self.space.image.sit_at(place)))
    }

    /// Those that were ever taken.
    pub(crate) fn used(&self) -> impl Iterator<Item = AtDesk<'_>> {
        (0..self.space.image.places_used()).map(|place| self.at(self.space.image.sit_at(place)))
    }

    /// Claims a block for freeing it; `None` when another thread is at it. Waits for a thread that
    /// frees a block which stands for the same word, about a microsecond. Any number may be asked
    /// for; what is no block has nobody who frees it.
    #[inline]
    pub(crate) fn claim(&self, block: u64) -> Option<Claim<'_>> {
        // 0 is no block, and stands for nobody.
        let block = block.max(1);
        let index = (block / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        let word = &self.claims[index as usize % CLAIM_COUNT].0;
        loop {
            match word.compare_exchange(0, block, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Claim(word)),
                Err(claimed) if claimed == block => return None,
                Err(_) => wait(|| word.load(Ordering::Relaxed) == 0),
            }
        }
    }
}

/// The right to free a block.
#[derive(Debug)]
pub(crate) struct Claim<'d>(&'d AtomicU64);

impl Drop for Claim<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}
