//! Hash maps keyed by heap offset, and an insertion-ordered one for transactions.
//!
//! Purpose: entries in insertion order, found by key in O(1), emptied without giving memory back.
//! Most transactions touch fewer than a dozen lines: a linear search finds those, which costs less
//! than hashing; larger maps get an index.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Up to this many entries are searched one by one.
const SCAN_MAX: usize = 12;
/// Bytes of memory that a list keeps for the next transaction.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// An index larger than this is dropped when the transaction ends: emptying it would make every
/// later small transaction pay for the large one.
const INDEX_KEEP_MAX: usize = 1 << 16;

/// Multiplies by a large odd constant (Knuth's multiplicative hashing); keys are offsets, which no
/// attacker chooses.
#[derive(Default)]
pub(crate) struct OffsetHasher(u64);

impl Hasher for OffsetHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ (product >> 32);
    }
}

/// A hash map keyed by heap offsets or page numbers.
pub(crate) type OffsetMap<V> = HashMap<u64, V, BuildHasherDefault<OffsetHasher>>;

/// The insertion-ordered map.
#[derive(Debug)]
pub(crate) struct InsertionMap<V> {
    entries: Vec<(u64, V)>,
    index: OffsetMap<u32>,
}

impl<V> Default for InsertionMap<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), index: OffsetMap::default() }
    }
}

impl<V> InsertionMap<V> {
    /// The index of a key's entry.
    #[inline]
    pub(crate) fn position(&self, key: u64) -> Option<usize> {
        if self.entries.len() <= SCAN_MAX {
            return self.entries.iter().position(|(k, _)| *k == key);
        }
        self.index.get(&key).map(|index| *index as usize)
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<&V> {
        self.position(key).and_then(|position| self.entries.get(position)).map(|(_, value)| value)
    }

    /// The entry at an index, for changing its value.
    #[inline]
    pub(crate) fn entry_mut(&mut self, position: usize) -> Option<&mut (u64, V)> {
        self.entries.get_mut(position)
    }

    /// Adds a key that is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, key: u64, value: V) {
        debug_assert!(self.position(key).is_none(), "a key is added once");
        self.entries.push((key, value));
        if self.entries.len() == SCAN_MAX + 1 {
            self.index.extend(self.entries.iter().zip(0..).map(|((key, _), index)| (*key, index)));
        } else if self.entries.len() > SCAN_MAX {
            self.index.insert(key, (self.entries.len() - 1) as u32);
        }
    }

    /// Whether `count` more keys would make it grow, which takes milliseconds when it is large.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        let (entries, index) = (&self.entries, &self.index);
        entries.capacity() - entries.len() < count || index.capacity() - index.len() < count
    }

    /// Makes room for `count` more keys, and in the index for as many as there are.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.entries.reserve(count);
        self.index.reserve(count.max(self.index.len()));
    }

    /// The entries, in the order in which they were added.
    #[inline]
    pub(crate) fn entries(&self) -> &[(u64, V)] {
        &self.entries
    }

    /// Removes everything, keeping memory for the next transaction.
    pub(crate) fn clear(&mut self) {
        self.forget_index();
        if self.entries.capacity() > INDEX_KEEP_MAX {
            self.entries = Vec::new();
        } else {
            self.entries.clear();
        }
    }

    fn forget_index(&mut self) {
        if self.index.capacity() > INDEX_KEEP_MAX {
            self.index = OffsetMap::default();
        } else if !self.index.is_empty() {
            self.index.clear();
        }
    }
}

/// Frees a list that takes more than a MiB: a finished transaction needs none of it.
#[inline]
pub(crate) fn trim<T>(list: &mut Vec<T>) {
    if list.capacity() > KEPT_BYTES_MAX / size_of::<T>().max(1) {
        *list = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn behaves_like_a_map_while_it_grows() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut keyed = InsertionMap::default();
        let mut model = BTreeMap::new();
        for step in 0..20_000u64 {
            let key = random.u64(..64) * 64;
            if step % 1000 == 999 {
                keyed.clear();
                model.clear();
            } else if let Some(expected) = model.get(&key) {
                assert_eq!(keyed.get(key), Some(expected));
            } else {
                assert_eq!(keyed.get(key), None);
                keyed.insert(key, step);
                model.insert(key, step);
            }
            assert_eq!(keyed.entries().len(), model.len());
        }
    }
}
