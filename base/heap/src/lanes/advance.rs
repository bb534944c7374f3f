//! Raising the watermark, so that lanes can start over.
//!
//! Purpose: R8: what an entry wrote is durable before the entry is given up.
//! Invariants: the watermark covers an entry only after a fence that followed the flush of all
//! lines it changed, by the same thread. Costs two fences, once a lane's length.

use std::sync::atomic::Ordering;

use super::entry::parse;
use super::lane::{State, thread_number};
use super::order::NONE;
use super::shared::{Held, Shared};
use crate::image::Image;
use crate::journal::{Entries, Entry};

/// How often a lane that cannot start over yet lets others go first.
const PATIENCE: usize = 64;

impl Shared {
    /// Begins to take the lines that a lane's last record changed to the medium, if another thread
    /// did so: only the fence of the same thread covers them.
    pub(super) fn flush_pending(&self, lane: usize, state: &State, image: &Image) {
        let Some(pending) = state.pending.filter(|pending| pending.thread != thread_number())
        else {
            return;
        };
        let (mapped, at) = self.locate(lane, state, pending.place);
        if let Some((_, changes)) = parse(self.seed, mapped.bytes(at, mapped.len())) {
            self.flush_changes(changes, image);
        }
    }

    /// Begins to take the lines that a record changes to the medium.
    #[inline]
    pub(super) fn flush_changes(&self, changes: &[u8], image: &Image) {
        for change in Entries::new(changes) {
            match change {
                Ok(Entry::Bytes { offset, bytes }) => {
                    image.flush(self.persist.as_ref(), offset, bytes.len() as u64);
                }
                Ok(Entry::Set { offset, .. } | Entry::Clear { offset, .. }) => {
                    image.flush(self.persist.as_ref(), offset, 8);
                }
                // Flushed before the commit.
                Ok(Entry::Direct { .. }) => {}
                Err(what) => debug_assert!(false, "a record that this process made: {what}"),
            }
        }
    }

    /// Raises the watermark as far as the lanes that nobody holds, and `own`, allow.
    pub(super) fn advance(&self, own: Option<(usize, &mut State)>, image: &Image) {
        let own_index = own.as_ref().map(|(index, _)| *index);
        let mut others = Vec::new();
        for (index, lane) in self.lanes.iter().enumerate().take(self.order.used()) {
            if Some(index) != own_index
                && let Some(state) = lane.state.try_lock()
            {
                others.push((index, state));
            }
        }
        let states = others.iter_mut().map(|(index, state)| (*index, &mut **state));
        let mut states: Vec<(usize, &mut State)> = states.chain(own).collect();
        for (index, state) in &states {
            self.flush_pending(*index, state, image);
        }
        self.persist.fence();
        for (index, state) in &mut states {
            if state.group == 0 {
                state.pending = None;
                self.order.set_open(*index, NONE);
            }
        }
        let _raising = self.raising.lock();
        let settled = self.order.settled();
        if settled > self.covered() {
            self.file.raise(self.persist.as_ref(), settled);
            self.watermark.store(settled, Ordering::Release);
        }
    }
}

impl Held<'_> {
    /// Starts the ring over, if the watermark can be raised over all that is in it.
    pub(super) fn start_over(&mut self, image: &Image) -> bool {
        if self.state.group != 0 {
            // The transaction's own undo entries are in the way.
            return false;
        }
        for _ in 0..PATIENCE {
            if self.shared.covered() < self.state.newest {
                self.shared.advance(Some((self.index, &mut self.state)), image);
            }
            if self.shared.covered() >= self.state.newest {
                self.state.position = 0;
                self.shared.large.remove_covered(self.shared.covered());
                return true;
            }
            // Another lane has an older entry in flight, or undo entries that are in force.
            std::thread::yield_now();
        }
        false
    }
}
