//! Scan batches: entries copied out of the heap under one hold of the lock.
//!
//! Purpose: the entries that an iterator has fetched and not yielded. All keys and small values of
//! a batch share one allocation, of which the slices handed out are parts: an allocation for each
//! value would cost more than the walk through the tree.
//! Invariants: entries are in the order in which they were fetched.

use std::sync::Arc;

use adamant_lsm::LaterValue;
use adamant_slice::Slice;

/// Values from this size on get an allocation of their own, so that keeping a small one does not
/// keep large neighbours.
const OWN_BYTES_MIN: usize = 2048;

/// The location of an entry in a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLocation {
    /// First byte of the key in the shared bytes; the value follows.
    start: u32,
    key_len: u32,
    value: ValuePlace,
}

#[derive(Clone, Copy, Debug)]
enum ValuePlace {
    /// Behind the key, of this many bytes.
    Shared(u32),
    /// In `owned`, at this index.
    Owned(u32),
    /// In `later`, at this index.
    Later(u32),
}

/// A value of a batch.
pub(crate) enum Value {
    /// As it was fetched.
    Here(Slice),
    /// A lazy value, at this index.
    Later(Arc<Vec<LaterValue>>, u32),
}

/// Entries fetched and not yielded.
#[derive(Debug, Default)]
pub(crate) struct ScanBatch {
    shared: Slice,
    owned: Vec<Slice>,
    /// Lazy values; `None`: there are none, as mostly.
    later: Option<Arc<Vec<LaterValue>>>,
    places: Vec<EntryLocation>,
    /// The entries before this index were yielded.
    first: usize,
}

impl ScanBatch {
    /// How many entries remain.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.first
    }

    /// Whether none remains.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the entry that was fetched first.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<EntryLocation> {
        let place = self.places.get(self.first).copied()?;
        self.first += 1;
        Some(place)
    }

    /// Takes the entry that was fetched last.
    #[inline]
    pub(crate) fn take_last(&mut self) -> Option<EntryLocation> {
        if self.is_empty() {
            return None;
        }
        self.places.pop()
    }

    /// Drops all entries.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The key of an entry that was taken.
    #[inline]
    pub(crate) fn key(&self, place: EntryLocation) -> Slice {
        let start = place.start as usize;
        self.shared.slice(start..start + place.key_len as usize)
    }

    /// The value of an entry that was taken.
    #[inline]
    pub(crate) fn value(&self, place: EntryLocation) -> Value {
        match place.value {
            ValuePlace::Shared(len) => {
                let key_end = place.start as usize + place.key_len as usize;
                Value::Here(self.shared.slice(key_end..key_end + len as usize))
            }
            ValuePlace::Owned(index) => {
                Value::Here(self.owned.get(index as usize).cloned().unwrap_or_default())
            }
            ValuePlace::Later(index) => Value::Later(self.later.clone().unwrap_or_default(), index),
        }
    }
}

/// Fills a batch.
#[derive(Debug)]
pub(crate) struct Filler {
    bytes: Vec<u8>,
    scan_batch: ScanBatch,
    later: Vec<LaterValue>,
    owned_bytes: usize,
}

impl Filler {
    /// Refills an empty batch with about so many entries, of about so many bytes in all.
    pub(crate) fn new(mut scan_batch: ScanBatch, entries: usize, bytes: usize) -> Self {
        debug_assert!(scan_batch.is_empty(), "what was fetched is yielded first");
        scan_batch.shared = Slice::default();
        scan_batch.owned.clear();
        scan_batch.later = None;
        scan_batch.places.clear();
        scan_batch.places.reserve(entries);
        scan_batch.first = 0;
        Self { bytes: Vec::with_capacity(bytes), scan_batch, later: Vec::new(), owned_bytes: 0 }
    }

    /// Copies an entry.
    #[inline]
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        if value.len() >= OWN_BYTES_MIN {
            self.owned_bytes += value.len();
            return self.add_owned(key, Slice::from(value));
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let value = ValuePlace::Shared(value.len() as u32);
        self.scan_batch.places.push(EntryLocation { start, key_len: key.len() as u32, value });
    }

    /// Adds an entry whose value is a shared slice.
    pub(crate) fn add_shared(&mut self, key: &[u8], value: Slice) {
        if value.len() < OWN_BYTES_MIN {
            return self.add(key, &value);
        }
        self.add_owned(key, value);
    }

    /// Adds an entry with a lazy value.
    pub(crate) fn add_later(&mut self, key: &[u8], value: LaterValue) {
        self.later.push(value);
        self.add_key(key, ValuePlace::Later(self.later.len() as u32 - 1));
    }

    fn add_owned(&mut self, key: &[u8], value: Slice) {
        self.scan_batch.owned.push(value);
        self.add_key(key, ValuePlace::Owned(self.scan_batch.owned.len() as u32 - 1));
    }

    fn add_key(&mut self, key: &[u8], value: ValuePlace) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        self.scan_batch.places.push(EntryLocation { start, key_len: key.len() as u32, value });
    }

    /// Entries copied.
    pub(crate) fn len(&self) -> usize {
        self.scan_batch.places.len()
    }

    /// Bytes copied.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.owned_bytes
    }

    /// The filled batch.
    pub(crate) fn finish(mut self) -> ScanBatch {
        // Taken over without a copy, which would cost as much as filling it did.
        self.scan_batch.shared = Slice::from_owner(self.bytes, ..).unwrap_or_default();
        self.scan_batch.later = (!self.later.is_empty()).then(|| Arc::new(self.later));
        self.scan_batch
    }
}
