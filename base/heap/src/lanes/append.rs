//! Appending entries: commits, and the undo entries before them.
//!
//! Purpose: one fence a commit. The lines of fresh blocks and of the entry are flushed, then one
//! fence makes all of them durable. What the record changes in memory is flushed much later.
//! The flushes follow each other without a locked instruction between, which would wait for them.
//! Invariants: a record is applied to memory only after its fence, so nobody can build on what is
//! not durable, and a record whose fence never completed has changed nothing. Whatever can fail
//! comes before the sequence number is taken: from then on the entry will be there (see
//! `recover.rs`: a number that is missing is damage).

use std::sync::atomic::Ordering;

use super::advance::Recent;
use super::entry::{Head, build, entry_bytes_max};
use super::lane::Place;
use super::layout::{KIND_ABORT, KIND_COMMIT, KIND_UNDO};
use super::shared::{Held, Shared};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::journal::{Entries, Entry, RecordBuilder};

/// The blocks that a commit publishes were written in place: how they become durable with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// There are none, or they were flushed and fenced before.
    Durable,
    /// The record's fence is theirs, and the flush before it: the checksum over what the record
    /// names as direct tells recovery whether it completed.
    Shared(u32),
}

/// A record that is durable, and about to be applied to memory. Must be handed to
/// [`Shared::applied`] when that is done.
#[derive(Debug)]
#[must_use = "what is appended is to be applied"]
pub(crate) struct Appended<'j> {
    pub(crate) sequence: u64,
    /// Whether it is in a file of its own.
    is_large: bool,
    held: Held<'j>,
}

/// A transaction that changes bytes in place.
#[derive(Debug)]
pub(crate) struct Undo<'j> {
    held: Held<'j>,
}

impl Shared {
    /// Makes a record durable. O(record), one fence.
    ///
    /// # Errors
    /// As [`Shared::check`]; those of the medium, out of space among them. Then nothing was
    /// appended, and `undo` is as it was.
    // What it returns is moved from hand to hand: as a call, by way of memory, some 5 ns each time.
    #[inline(always)]
    pub(super) fn append<'j>(
        &'j self,
        record: &RecordBuilder,
        fresh: Fresh,
        undo: &mut Option<Undo<'j>>,
        image: &Image,
    ) -> Result<Appended<'j>> {
        let mut held = match undo.take() {
            Some(undo) => undo.held,
            None => self.hold()?,
        };
        let place = match self.poison.check().and_then(|()| held.prepare(record.payload(), image)) {
            Ok(place) => place,
            Err(error) => {
                if held.state.group != 0 {
                    *undo = Some(Undo { held });
                }
                return Err(error);
            }
        };
        let fresh_crc = match fresh {
            Fresh::Durable => None,
            Fresh::Shared(crc) => Some(crc),
        };
        let sequence = held.put(KIND_COMMIT, fresh_crc, record.payload(), place, image);
        let slot = self.order.slot(held.state.index);
        // One writer at a time: no locked instruction is needed.
        let records = slot.records.load(Ordering::Relaxed) + 1;
        slot.records.store(records, Ordering::Relaxed);
        held.state.group = 0;
        Ok(Appended { sequence, is_large: place.large.is_some(), held })
    }

    /// To be told when a record was applied to memory. What it changed goes to the medium before
    /// the watermark covers the record.
    #[inline]
    pub(super) fn applied(&self, appended: Appended<'_>, record: &RecordBuilder, image: &Image) {
        let mut held = appended.held;
        if !held.state.large.is_empty() {
            if appended.is_large {
                let changes = Entries::new(record.payload()).flatten();
                let changed = changes.filter_map(|change| change.range());
                self.flush_ranges(changed, &mut Recent::new(), image);
            }
            held.give_up_large(image);
        }
    }

    /// Begins a transaction that changes bytes in place.
    ///
    /// # Errors
    /// As [`Shared::check`].
    pub(super) fn begin_undo(&self) -> Result<Undo<'_>> {
        Ok(Undo { held: self.hold()? })
    }
}

impl Undo<'_> {
    /// Whether there is an entry of it.
    pub(crate) fn has_entry(&self) -> bool {
        self.held.state.group != 0
    }

    /// Makes old bytes durable, so that the new ones can be written in place. One fence.
    ///
    /// # Errors
    /// Those of the medium, out of space among them. Then nothing was saved.
    pub(crate) fn save(&mut self, old: &RecordBuilder, image: &Image) -> Result<()> {
        let place = self.held.prepare(old.payload(), image)?;
        self.held.put(KIND_UNDO, None, old.payload(), place, image);
        Ok(())
    }

    /// Makes the entries void. The old bytes are back in memory, and durable: flushed and fenced.
    pub(crate) fn abort(mut self, image: &Image) {
        let held = &mut self.held;
        if held.state.group == 0 {
            return;
        }
        match held.prepare(&[], image) {
            Ok(place) => {
                held.put(KIND_ABORT, None, &[], place, image);
                held.state.group = 0;
            }
            // No room for 64 bytes, nor for a file. The entries stay in force: rolling them back
            // once more changes nothing as long as nobody else changes those bytes.
            Err(error) => {
                held.shared.poison.set(error);
                return;
            }
        }
        if !held.state.large.is_empty() {
            held.give_up_large(image);
        }
    }
}

impl Held<'_> {
    /// Finds room for an entry.
    ///
    /// # Errors
    /// `Error::TooLarge`; those of the medium, out of space among them.
    #[inline]
    fn prepare(&mut self, changes: &[u8], image: &Image) -> Result<Place> {
        let needed = entry_bytes_max(changes.len(), self.shared.lanes.len());
        let lane_bytes = self.shared.file.lane_bytes;
        if needed <= lane_bytes - self.state.position {
            return Ok(Place { large: None, at: self.state.position });
        }
        self.prepare_more(needed, image)
    }

    #[cold]
    fn prepare_more(&mut self, needed: u64, image: &Image) -> Result<Place> {
        if needed > u64::from(u32::MAX) {
            return Err(Error::TooLarge { bytes: needed, bytes_max: u32::MAX.into() });
        }
        // What takes more than half of a lane would cost the watermark's fences too often.
        if needed <= self.shared.file.lane_bytes / 2 && self.start_over(image) {
            return Ok(Place { large: None, at: 0 });
        }
        let large = &mut self.state.large;
        if large.last().is_none_or(|last| last.room() < needed) {
            // Twice the last: a long transaction needs few files.
            let bytes = large.last().map_or(0, |last| last.mapped.len() * 2);
            let made = match self.shared.large.take(bytes.max(needed)) {
                Err(error) if error.is_out_of_space() && bytes > needed => {
                    self.shared.large.take(needed)
                }
                made => made,
            };
            large.push(made?);
        }
        let index = large.len() - 1;
        Ok(Place { large: Some(index), at: large[index].position })
    }

    /// Writes an entry to a place with room for it, and fences. Never fails.
    fn put(
        &mut self,
        kind: u8,
        fresh_crc: Option<u32>,
        changes: &[u8],
        place: Place,
        image: &Image,
    ) -> u64 {
        let shared = self.shared;
        let mut head = Head { kind, fresh_crc, ..Head::default() };
        head.sequence = shared.order.begin(self.state.index, &mut head.in_flight);
        if kind == KIND_UNDO && self.state.group == 0 {
            self.state.group = head.sequence;
        }
        head.group = self.state.group;
        let mut ends = std::mem::take(&mut self.state.ends);
        let (whole, before) = build(&mut ends, shared.seed, &head, changes);
        let (mapped, at) = shared.locate(&self.state, place);
        let persist = shared.persist.as_ref();
        mapped.copy(persist, at, &ends[..before]);
        if !whole.is_empty() {
            mapped.copy(persist, at + before as u64, whole);
            mapped.copy(persist, at + (before + whole.len()) as u64, &ends[before..]);
        }
        let span = (ends.len() + whole.len()) as u64;
        self.state.ends = ends;
        // While the entry is on its way there is time for this.
        self.look_through(changes, kind, fresh_crc.is_some(), place, image);
        shared.persist.fence();
        match place.large {
            Some(index) => {
                self.state.large[index].position += span;
                self.state.large[index].newest = head.sequence;
            }
            None => {
                self.state.position = place.at + span;
                self.state.newest = head.sequence;
            }
        }
        if self.state.oldest == 0 {
            self.state.oldest = head.sequence;
        }
        shared.order.end(self.state.index, self.state.oldest);
        let slot = shared.order.slot(self.state.index);
        let bytes = slot.bytes.load(Ordering::Relaxed) + span;
        slot.bytes.store(bytes, Ordering::Relaxed);
        head.sequence
    }

    /// Begins to take the fresh blocks that a record names to the medium, and notes what it changes.
    #[inline]
    fn look_through(
        &mut self,
        changes: &[u8],
        kind: u8,
        has_fresh: bool,
        place: Place,
        image: &Image,
    ) {
        // What a file of its own holds is flushed when that is given up, at once.
        let is_noted = kind == KIND_COMMIT && place.large.is_none();
        if !has_fresh && !is_noted {
            return;
        }
        for change in Entries::new(changes) {
            match change {
                Ok(Entry::Direct { offset, len }) => {
                    if has_fresh {
                        image.flush(self.shared.persist.as_ref(), offset, len);
                    }
                }
                Ok(change) if is_noted => self.state.pending.extend(change.range()),
                Ok(_) => {}
                Err(what) => debug_assert!(false, "a record that this process made: {what}"),
            }
        }
    }

    /// Hands the files of a transaction that has ended to those that wait for the watermark, which
    /// is raised at once if it can be.
    #[cold]
    fn give_up_large(&mut self, image: &Image) {
        self.shared.large.keep(self.state.large.drain(..));
        self.shared.advance(Some(&mut self.state), image);
        self.shared.large.remove_covered(self.shared.covered());
    }
}
