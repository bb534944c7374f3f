//! Desks: where threads work on the heap beside the writer.
//!
//! Purpose: give each thread a shard and the memory of its small commits behind a lock that
//! nobody else wants, so that reserving and publishing scale with the threads.
//! Thread safety: a thread goes to the desk that its number says, or where that one is taken, to
//! the next that is free. Locks: after the image's, before the arena's (`space.rs`).

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::arena::Retired;
use crate::changes::Changes;
use crate::journal::RecordBuilder;
use crate::reservation::Holder;
use crate::shard::Shard;

/// Desks of a heap. More threads than that share them.
const DESK_COUNT: usize = 32;
/// Locks of the claims.
const CLAIM_LOCK_COUNT: usize = 16;

/// What one thread at a time works with.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) shard: Shard,
    /// `None` once the heap is closed.
    pub(crate) holder: Option<Arc<Holder>>,
    pub(crate) record: RecordBuilder,
    pub(crate) changes: Changes,
    /// What was freed while others looked: it comes back only after somebody has had the image
    /// exclusively, so that no reference from before is left.
    pub(crate) retired: Vec<(u64, Retired)>,
}

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// All desks of a heap.
#[derive(Debug)]
pub(crate) struct Desks {
    desks: Box<[Padded<Mutex<Desk>>]>,
    /// Blocks that threads are freeing right now.
    claims: [Padded<Mutex<Vec<u64>>>; CLAIM_LOCK_COUNT],
}

impl Desks {
    /// Desks whose reservations keep what `holder` makes alive, with empty records as the journal
    /// takes them.
    pub(crate) fn new(
        holder: impl Fn() -> Arc<Holder>,
        record: impl Fn() -> RecordBuilder,
    ) -> Self {
        let desk = || Desk {
            shard: Shard::new(true),
            holder: Some(holder()),
            record: record(),
            changes: Changes::default(),
            retired: Vec::new(),
        };
        Self {
            desks: (0..DESK_COUNT).map(|_| Padded(Mutex::new(desk()))).collect(),
            claims: std::array::from_fn(|_| Padded(Mutex::default())),
        }
    }

    /// A desk for the thread with a number that no other living thread has.
    #[inline]
    pub(crate) fn sit_down(&self, thread: usize) -> MutexGuard<'_, Desk> {
        // Numbers are addresses, far apart: the upper bits of the product depend on all of them.
        let start = ((thread as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize;
        for step in 0..DESK_COUNT {
            if let Some(desk) = self.desks[(start + step) % DESK_COUNT].0.try_lock() {
                return desk;
            }
        }
        self.desks[start % DESK_COUNT].0.lock()
    }

    /// All desks, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Desk>> {
        self.desks.iter().map(|desk| desk.0.lock())
    }

    /// Claims a block for freeing it; `None` when another thread is at it.
    pub(crate) fn claim(&self, block: u64) -> Option<Claim<'_>> {
        let index = (block / 64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        let claims = &self.claims[index as usize % CLAIM_LOCK_COUNT].0;
        let mut claimed = claims.lock();
        if claimed.contains(&block) {
            return None;
        }
        claimed.push(block);
        Some(Claim { claims, block })
    }
}

/// The right to free a block.
#[derive(Debug)]
pub(crate) struct Claim<'d> {
    claims: &'d Mutex<Vec<u64>>,
    block: u64,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut claimed = self.claims.lock();
        if let Some(at) = claimed.iter().position(|block| *block == self.block) {
            claimed.swap_remove(at);
        }
    }
}
