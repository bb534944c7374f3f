//! Raising the watermark, so that lanes can start over.
//!
//! Purpose: R8: what an entry wrote is durable before the entry is given up.
//! Invariants: the watermark covers an entry only after a fence that followed the flush of all
//! lines it changed, by the same thread. Costs two fences and those flushes, once a lane's length.

use adamant_wire::mutants::is_planted;
use std::sync::atomic::Ordering;

use super::lane::State;
use super::order::NONE;
use super::shared::{Held, Shared};
use crate::image::Image;
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
    /// Begins to take the lines of heap ranges to the medium, each once.
    pub(super) fn flush_ranges(
        &self,
        ranges: impl Iterator<Item = (u64, u64)>,
        flushed: &mut Recent,
        image: &Image,
    ) {
        for (offset, len) in ranges {
            // Lines next to each other go by one call.
            let (mut start, mut end) = (0, 0);
            for (line, _) in lines_of(offset, len).filter(|(line, _)| flushed.is_new(*line)) {
                if line != end {
                    self.flush_lines(start, end, image);
                    start = line;
                }
                end = line + LINE_BYTES;
            }
            self.flush_lines(start, end, image);
        }
    }

    fn flush_lines(&self, start: u64, end: u64, image: &Image) {
        if start < end {
            image.flush(self.persist.as_ref(), start, end - start);
        }
    }

    /// Raises the watermark as far as the lanes that nobody holds, and `own`, allow.
    pub(super) fn advance(&self, own: Option<&mut State>, image: &Image) {
        let own_index = own.as_ref().map(|own| own.index);
        let mut others = Vec::new();
        for (index, lane) in self.lanes.iter().enumerate().take(self.order.used()) {
            if Some(index) != own_index
                && let Some(state) = lane.state.try_take()
            {
                others.push(state);
            }
        }
        let states = others.iter_mut().map(|state| &mut **state);
        let mut states: Vec<&mut State> = states.chain(own).collect();
        let mut flushed = Recent::new();
        let is_left = is_planted("R8.covers-before-memory-is-durable");
        for state in states.iter().filter(|_| !is_left) {
            self.flush_ranges(state.pending.iter().copied(), &mut flushed, image);
        }
        self.persist.fence();
        for state in &mut states {
            if state.group == 0 {
                state.pending.clear();
                state.oldest = 0;
                self.order.set_open(state.index, NONE);
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
                self.shared.advance(Some(&mut self.state), image);
            }
            let may_start = is_planted("R8.starts-over-before-it-is-covered");
            if self.shared.covered() >= self.state.newest || may_start {
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
