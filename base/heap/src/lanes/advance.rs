//! Raising the watermark, so that lanes can start over.
//!
//! Purpose: R8: what an entry wrote is durable before the entry is given up.
//! Invariants: the watermark covers an entry only after a fence that followed the flush of all
//! lines it changed, by the same thread. Costs two fences and those flushes, once a lane's length.

use std::sync::atomic::Ordering;

use super::entry::{decode, entry_span};
use super::lane::State;
use super::layout::KIND_COMMIT;
use super::order::NONE;
use super::shared::{Held, Shared};
use crate::image::Image;
use crate::journal::{Entries, Entry};
use crate::ranges::{LINE_BYTES, lines_of};

/// How often a lane that cannot start over yet lets others go first.
const PATIENCE: usize = 64;
/// Lines remembered as flushed: 4 KiB of memory on the stack.
const RECENT_LINES: usize = 512;

/// Lines flushed lately: many records change the same ones.
#[derive(Debug)]
pub(super) struct Recent([u64; RECENT_LINES]);

impl Recent {
    pub(super) fn new() -> Self {
        Self([u64::MAX; RECENT_LINES])
    }

    /// Whether a line, by its heap offset, may not have been flushed yet.
    fn is_new(&mut self, line: u64) -> bool {
        let place = &mut self.0[(line / LINE_BYTES) as usize % RECENT_LINES];
        std::mem::replace(place, line) != line
    }
}

impl Shared {
    /// Begins to take the lines that a lane's records changed to the medium, as far as they were not.
    fn flush_pending(&self, lane: usize, state: &State, image: &Image) {
        let (mapped, start) = (&self.file.mapped, self.file.lane_offset(lane));
        let mut flushed = Recent::new();
        let mut at = state.pending_from;
        while at < state.position {
            let entry = mapped.bytes(start + at, state.position - at);
            let Some((head, changes)) = decode(entry) else {
                debug_assert!(false, "an entry that this process wrote");
                return;
            };
            if head.kind == KIND_COMMIT {
                self.flush_changes(changes, image, &mut flushed);
            }
            let len = changes.as_ptr().addr() + changes.len() - entry.as_ptr().addr();
            at += entry_span(len as u64);
        }
    }

    /// Begins to take the lines that a record changes to the medium.
    pub(super) fn flush_changes(&self, changes: &[u8], image: &Image, flushed: &mut Recent) {
        for change in Entries::new(changes) {
            let (offset, len) = match change {
                Ok(Entry::Bytes { offset, bytes }) => (offset, bytes.len() as u64),
                Ok(Entry::Set { offset, .. } | Entry::Clear { offset, .. }) => (offset, 8),
                // Flushed before the commit.
                Ok(Entry::Direct { .. }) => continue,
                Err(what) => {
                    debug_assert!(false, "a record that this process made: {what}");
                    continue;
                }
            };
            for (line, _) in lines_of(offset, len) {
                if flushed.is_new(line) {
                    image.flush(self.persist.as_ref(), line, LINE_BYTES);
                }
            }
        }
    }

    /// Begins to take what a record names as written in place to the medium.
    #[inline]
    pub(super) fn flush_direct(&self, changes: &[u8], image: &Image) {
        for change in Entries::new(changes) {
            if let Ok(Entry::Direct { offset, len }) = change {
                image.flush(self.persist.as_ref(), offset, len);
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
                state.pending_from = state.position;
                state.oldest = 0;
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
                self.state.pending_from = 0;
                self.shared.large.remove_covered(self.shared.covered());
                return true;
            }
            // Another lane has an older entry in flight, or undo entries that are in force.
            std::thread::yield_now();
        }
        false
    }
}
