//! A cursor over the versions of a memtable without their values.
//!
//! Purpose: counts entries. It reads nothing on the heap, so it needs no lock.
//! Invariants: in the index's order, each version that was there all the time exactly once.
//! Thread safety: one thread at a time, beside the writer.

use super::ordered_index::{OrderedIndex, Position};
use crate::key::EntryKind;

/// The cursor.
#[derive(Debug)]
pub(crate) struct KeyWalk<'i> {
    index: &'i OrderedIndex,
    at: Option<Position<'i>>,
    is_begun: bool,
    key: Vec<u8>,
}

impl<'i> KeyWalk<'i> {
    pub(super) fn new(index: &'i OrderedIndex) -> Self {
        Self { index, at: None, is_begun: false, key: Vec::new() }
    }

    /// Goes to the next version; false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        self.at = match &self.at {
            Some(at) => self.index.after(at),
            None if self.is_begun => None,
            None => self.index.first(),
        };
        self.is_begun = true;
        self.key.clear();
        if let Some(at) = &self.at {
            at.key_to(&mut self.key);
        }
        self.at.is_some()
    }

    /// The key of the current version.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Its sequence number and kind.
    pub(crate) fn said(&self) -> (u64, EntryKind) {
        self.at.as_ref().map_or((0, EntryKind::Tombstone), |at| {
            let place = at.place();
            (place.sequence, place.kind)
        })
    }
}
