//! Batches of entries copied out of a memtable.
//!
//! Purpose: a scan or a flush copies a batch under one hold of the heap's lock, and goes on without
//! it.
//! Invariants: entries lie in the order in which they were added; keys and short values share one
//! allocation.

use adamant_slice::Slice;

use crate::key::{Entry, EntryKind, Version};

/// Values of this size or more have an allocation of their own, so that holding one does not hold
/// others.
const OWN_BYTES_MIN: usize = 2048;

/// How much a scan copies out of a memtable under one hold of the heap's lock.
#[derive(Clone, Copy, Debug)]
pub struct CopyLimits {
    /// Approximate number of entries.
    pub entries_max: usize,
    /// Approximate bytes.
    pub bytes_max: usize,
    /// Whether to copy values. A scan without them reads no value, and hands on entries without
    /// bytes.
    pub with_values: bool,
}

/// A batch of copied entries.
#[derive(Debug, Default)]
pub(crate) struct CopiedEntries {
    bytes: Vec<u8>,
    entries: Vec<Copied>,
    own_bytes: usize,
}

#[derive(Debug)]
struct Copied {
    /// Range of key and value in the shared bytes.
    start: usize,
    key_end: usize,
    end: usize,
    sequence: u64,
    kind: EntryKind,
    own: Option<Slice>,
}

impl CopiedEntries {
    /// Adds an entry; the closure writes its key.
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

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of their keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.own_bytes
    }

    /// Converts the batch to entries.
    pub(crate) fn finish(self) -> impl Iterator<Item = Entry> {
        let mut walk = self.walk();
        std::iter::from_fn(move || {
            walk.advance().then(|| Entry { key: walk.key_slice(), version: walk.version() })
        })
    }

    /// A cursor over the batch.
    pub(crate) fn walk(self) -> CopiedWalk {
        let shared = Slice::from_owner(self.bytes, ..).unwrap_or_default();
        CopiedWalk { shared, entries: self.entries, next: 0 }
    }
}

/// A cursor over a batch.
#[derive(Debug)]
pub(crate) struct CopiedWalk {
    shared: Slice,
    entries: Vec<Copied>,
    /// Index of the next entry.
    next: usize,
}

impl CopiedWalk {
    /// Truncates the batch at the first entry whose key is not within.
    pub(crate) fn end_where(&mut self, is_within: impl Fn(&[u8]) -> bool) {
        let shared = &self.shared;
        let end = self.entries.partition_point(|one| is_within(&shared[one.start..one.key_end]));
        self.entries.truncate(end);
    }

    /// Goes to the next entry; false if there is none.
    #[inline]
    pub(crate) fn advance(&mut self) -> bool {
        self.next += 1;
        self.next <= self.entries.len()
    }

    /// The current entry.
    #[inline]
    fn at(&self) -> &Copied {
        &self.entries[self.next - 1]
    }

    /// Its key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let at = self.at();
        &self.shared[at.start..at.key_end]
    }

    fn key_slice(&self) -> Slice {
        let at = self.at();
        self.shared.slice(at.start..at.key_end)
    }

    /// Its sequence number and kind.
    #[inline]
    pub(crate) fn said(&self) -> (u64, EntryKind) {
        let at = self.at();
        (at.sequence, at.kind)
    }

    /// Its value, borrowed.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let at = self.at();
        at.own.as_deref().unwrap_or_else(|| &self.shared[at.key_end..at.end])
    }

    /// Its version; shares the memory of the batch.
    pub(crate) fn version(&self) -> Version {
        let at = self.at();
        let own = at.own.clone();
        let value = own.unwrap_or_else(|| self.shared.slice(at.key_end..at.end));
        Version { sequence: at.sequence, kind: at.kind, value }
    }
}
