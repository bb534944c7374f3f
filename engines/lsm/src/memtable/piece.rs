//! Entries that were copied out of a memtable.
//!
//! Purpose: what a scan or a flush takes under one hold of the heap's lock, to go on without it.
//! Invariants: entries lie in the order in which they were added; keys and short values share one
//! allocation.

use adamant_slice::Slice;

use crate::key::{Entry, EntryKind, Version};

/// Values from here on have an allocation of their own, so that one that is kept keeps no others.
const OWN_BYTES_MIN: usize = 2048;

/// Entries, being copied.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    entries: Vec<Copied>,
    own_bytes: usize,
}

#[derive(Debug)]
struct Copied {
    /// Where key and value begin and end in the shared bytes.
    start: usize,
    key_end: usize,
    end: usize,
    sequence: u64,
    kind: EntryKind,
    own: Option<Slice>,
}

impl Piece {
    /// Adds an entry, whose key is written by a closure.
    pub(crate) fn add(
        &mut self,
        key: impl FnOnce(&mut Vec<u8>),
        (sequence, kind): (u64, EntryKind),
        value: &[u8],
    ) {
        let start = self.bytes.len();
        key(&mut self.bytes);
        let key_end = self.bytes.len();
        let own = (value.len() >= OWN_BYTES_MIN).then(|| Slice::new(value));
        match &own {
            Some(own) => self.own_bytes += own.len(),
            None => self.bytes.extend_from_slice(value),
        }
        let end = self.bytes.len();
        self.entries.push(Copied { start, key_end, end, sequence, kind, own });
    }

    /// Entries in it.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of their keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.own_bytes
    }

    /// The entries.
    pub(crate) fn finish(self) -> impl Iterator<Item = Entry> {
        let shared = Slice::from_owner(self.bytes, ..).unwrap_or_default();
        self.entries.into_iter().map(move |copied| Entry {
            key: shared.slice(copied.start..copied.key_end),
            version: Version {
                sequence: copied.sequence,
                kind: copied.kind,
                value: copied.own.unwrap_or_else(|| shared.slice(copied.key_end..copied.end)),
            },
        })
    }
}
