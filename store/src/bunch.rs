//! A bunch of entries, copied out of the heap under one hold of the lock.
//!
//! Purpose: what an iterator has fetched and not yielded. All keys and small values of a bunch
//! share one allocation, of which the slices handed out are parts: an allocation for each value
//! would cost more than the walk through the tree.
//! Invariants: entries lie in the order in which they were fetched.

use adamant_slice::Slice;

/// Values from here on get an allocation of their own, so that keeping a small one does not keep
/// large neighbours.
const OWN_BYTES_MIN: usize = 2048;

/// Where an entry lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// First byte of the key in the shared bytes; the value follows.
    start: u32,
    key_len: u32,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// Behind the key, of that many bytes.
    Shared(u32),
    /// In `owned`, at that index.
    Owned(u32),
}

/// Entries fetched and not yielded.
#[derive(Debug, Default)]
pub(crate) struct Bunch {
    shared: Slice,
    owned: Vec<Slice>,
    places: Vec<Place>,
    /// Places before it were yielded.
    first: usize,
}

impl Bunch {
    /// How many entries are left.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.first
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the entry that was fetched first.
    pub(crate) fn take_first(&mut self) -> Option<(Slice, Slice)> {
        let place = self.places.get(self.first).copied()?;
        self.first += 1;
        Some(self.entry(place))
    }

    /// Takes the entry that was fetched last.
    pub(crate) fn take_last(&mut self) -> Option<(Slice, Slice)> {
        if self.is_empty() {
            return None;
        }
        let place = self.places.pop()?;
        Some(self.entry(place))
    }

    /// Lets everything go.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn entry(&self, place: Place) -> (Slice, Slice) {
        let key_end = place.start as usize + place.key_len as usize;
        let key = self.shared.slice(place.start as usize..key_end);
        let value = match place.value {
            Value::Shared(len) => self.shared.slice(key_end..key_end + len as usize),
            Value::Owned(index) => self.owned.get(index as usize).cloned().unwrap_or_default(),
        };
        (key, value)
    }
}

/// Fills a bunch.
#[derive(Debug)]
pub(crate) struct Filler {
    bytes: Vec<u8>,
    bunch: Bunch,
    owned_bytes: usize,
}

impl Filler {
    /// Refills an empty bunch with about so many entries, which have about so many bytes in all.
    pub(crate) fn new(mut bunch: Bunch, entries: usize, bytes: usize) -> Self {
        debug_assert!(bunch.is_empty(), "what was fetched is yielded first");
        bunch.shared = Slice::default();
        bunch.owned.clear();
        bunch.places.clear();
        bunch.places.reserve(entries);
        bunch.first = 0;
        Self { bytes: Vec::with_capacity(bytes), bunch, owned_bytes: 0 }
    }

    /// Copies an entry.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let value = if value.len() < OWN_BYTES_MIN {
            self.bytes.extend_from_slice(value);
            Value::Shared(value.len() as u32)
        } else {
            self.owned_bytes += value.len();
            self.bunch.owned.push(Slice::from(value));
            Value::Owned(self.bunch.owned.len() as u32 - 1)
        };
        self.bunch.places.push(Place { start, key_len: key.len() as u32, value });
    }

    /// Entries copied.
    pub(crate) fn len(&self) -> usize {
        self.bunch.places.len()
    }

    /// Bytes copied.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.owned_bytes
    }

    /// The bunch, filled.
    pub(crate) fn finish(mut self) -> Bunch {
        // Taken over as it is: a copy would cost as much as filling it did.
        self.bunch.shared = Slice::from_owner(self.bytes, ..).unwrap_or_default();
        self.bunch
    }
}
