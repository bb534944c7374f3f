//! What all parts of an undo journal share.
//!
//! Thread safety: any thread. Lock order: one lane; then, in `advance`, others without waiting;
//! then the watermark's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use adamant_medium::persist::Persist;
use parking_lot::Mutex;

use super::lane::{Lane, Place, State};
use super::lanes_file::LanesFile;
use super::large::LargeFiles;
use super::mapped::Mapped;
use super::order::Order;
use crate::error::{Error, Result};
use crate::journal::Poison;
use crate::seat::Taken;
use crate::thread::thread_number;

/// The lanes of an open heap.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) persist: Arc<dyn Persist>,
    pub(super) file: LanesFile,
    pub(super) lanes: Box<[Lane]>,
    pub(super) order: Order,
    pub(super) large: LargeFiles,
    /// What all checksums of entries begin with.
    pub(super) seed: u32,
    /// The watermark, as it is durable. The lock is held while it is raised.
    pub(super) watermark: AtomicU64,
    pub(super) raising: Mutex<()>,
    pub(super) poison: Poison,
    pub(super) closed: AtomicBool,
    /// Whether there may be a commit beside transactions that shares its fence with what it wrote in
    /// place and that no entry of the transactions proves.
    pub(super) has_unproven: AtomicBool,
}

/// A lane, held.
#[derive(Debug)]
pub(super) struct Held<'j> {
    pub(super) shared: &'j Shared,
    pub(super) state: Taken<'j, State>,
}

impl Shared {
    /// # Errors
    /// `Error::Poisoned`; `Error::Misuse` once closed; `Error::TooLarge` when there are no more
    /// sequence numbers.
    pub(super) fn check(&self) -> Result<()> {
        self.poison.check()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::Misuse { what: "the heap was closed; open it again" });
        }
        if self.order.is_exhausted() {
            let last = self.order.last();
            return Err(Error::TooLarge { bytes: last, bytes_max: super::layout::SEQUENCE_MAX });
        }
        Ok(())
    }

    /// Holds a lane: that of this thread, else a free one, for which it waits.
    ///
    /// # Errors
    /// As [`Shared::check`], asked while the lane is held: `close` takes all lanes.
    #[inline]
    pub(super) fn hold(&self) -> Result<Held<'_>> {
        let (count, number) = (self.lanes.len(), thread_number());
        // A division takes as long as the rest of this.
        let preferred = if number < count { number } else { number % count };
        let held = match self.lanes[preferred].state.try_take() {
            Some(state) => Held { shared: self, state },
            None => self.hold_other(preferred),
        };
        self.check()?;
        Ok(held)
    }

    #[cold]
    fn hold_other(&self, preferred: usize) -> Held<'_> {
        let count = self.lanes.len();
        loop {
            let mut others = (1..=count).map(|step| (preferred + step) % count);
            if let Some(state) = others.find_map(|index| self.lanes[index].state.try_take()) {
                return Held { shared: self, state };
            }
            // Waiting for one of them could be waiting for this thread's own transaction.
            std::thread::yield_now();
        }
    }

    /// The watermark.
    pub(super) fn covered(&self) -> u64 {
        self.watermark.load(Ordering::Acquire)
    }

    /// The file that a place of a lane lies in, and the byte in it.
    pub(super) fn locate<'a>(&'a self, state: &'a State, place: Place) -> (&'a Mapped, u64) {
        match place.large.and_then(|index| state.large.get(index)) {
            Some(large) => (&large.mapped, place.at),
            None => (&self.file.mapped, self.file.lane_offset(state.index) + place.at),
        }
    }

    /// For messages.
    pub(super) fn path(&self) -> &PathBuf {
        self.file.path()
    }
}
