//! One lane: whose turn it is, and where in it the next entry goes.
//!
//! Invariants: an entry is written only after the fence of the one before it in the lane is
//! complete, and only over entries that the watermark covers.
//! Thread safety: a lane belongs to whoever holds its lock; a transaction with undo entries holds
//! it until it ends.

use super::large::Large;
use crate::seat::Seat;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Which of the lane's large files; `None`: the ring.
    pub(super) large: Option<usize>,
    /// Byte in it.
    pub(super) at: u64,
}

/// What the holder of a lane works with.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Which lane it is.
    pub(super) index: usize,
    /// Where in the ring the next entry goes.
    pub(super) position: u64,
    /// Sequence number of the last entry in the ring; 0 before the first.
    pub(super) newest: u64,
    /// Heap ranges (offset, bytes) that the ring's records changed and that were not flushed. That
    /// waits until the watermark is to be raised: a line that many records change, such as that of
    /// a bitmap, then goes to the medium once, and is not missing from the cache in between. Kept
    /// here because entries bypass the cache: to look at them again would cost some 100 ns each.
    /// Bounded by the bytes of a lane.
    pub(super) pending: Vec<(u64, u64)>,
    /// The oldest entry that is needed; 0 when none is.
    pub(super) oldest: u64,
    /// The first undo entry of the transaction that holds the lane; 0 when it has none.
    pub(super) group: u64,
    /// Files of the transaction that holds the lane.
    pub(super) large: Vec<Large>,
    /// The beginning and the end of an entry; kept for its memory.
    pub(super) ends: Vec<u8>,
}

/// A lane, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Lane {
    pub(super) state: Seat<State>,
}

impl Lane {
    /// The lane with a number.
    pub(super) fn new(index: usize) -> Self {
        Self { state: Seat::new(State { index, ..State::default() }) }
    }
}
