//! The entries of a memtable's index: copies of keys, and where their values lie.
//!
//! Purpose: a search compares keys without reading the heap.
//! Invariants: an entry does not change after it was made, and is freed with the whole index.
//!
//! ```text
//! entry   value chunk | value at | value length | sequence (2 words) | kind, key length
//!         key, 4 bytes a word, the first byte highest
//! ```
//! Keys are compared 4 bytes at a time, as numbers; the last one is padded with zeros, and of keys
//! that are equal so far the shorter one comes first.

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU32, Ordering};

use adamant_wire::key::head_of;

use super::arena::Arena;
use crate::key::{EntryKind, key_hash};

/// Words of an entry before its key.
const HEAD_WORDS: usize = 6;
/// Words of the arena's first chunk: 256 bytes, because many memtables have only a few entries.
pub(super) const FIRST_WORDS: u32 = 1 << 6;

/// The entries.
pub(super) type Words = Arena<AtomicU32, FIRST_WORDS>;

/// The location of a value in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValuePlace {
    pub(crate) chunk: u32,
    /// Offset in the chunk.
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// A version and the location of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) kind: EntryKind,
    pub(crate) value: ValuePlace,
}

/// A key in the form in which entries are compared with it.
pub(crate) struct SearchKey<'k> {
    bytes: &'k [u8],
    /// Its first 8 words, usually all.
    words: [u32; 8],
}

impl<'k> SearchKey<'k> {
    pub(crate) fn new(bytes: &'k [u8]) -> Self {
        let mut padded = [0; 32];
        let len = bytes.len().min(padded.len());
        padded[..len].copy_from_slice(&bytes[..len]);
        let mut words = [0; 8];
        for (word, part) in words.iter_mut().zip(padded.as_chunks().0) {
            *word = u32::from_le_bytes(*part).swap_bytes();
        }
        Self { bytes, words }
    }

    pub(super) fn hash(&self) -> u64 {
        key_hash(self.bytes)
    }

    fn word(&self, index: usize) -> u32 {
        match self.words.get(index) {
            Some(word) => *word,
            None => (head_of(self.bytes, 4 * index) >> 32) as u32,
        }
    }

    /// The 8 bytes after `skip`.
    #[inline]
    pub(super) fn head(&self, skip: usize) -> u64 {
        head_of(self.bytes, skip)
    }
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexEntry<'i> {
    words: &'i [AtomicU32],
}

impl<'i> IndexEntry<'i> {
    /// The entry at an index of the arena.
    #[inline]
    pub(super) fn at(words: &'i Words, index: u32) -> Self {
        Self { words: words.from(index) }
    }

    /// Makes an entry, which nothing refers to yet, and returns its index; `None` when the arena is
    /// full.
    pub(super) fn make(words: &'i Words, key: &SearchKey<'_>, place: Place) -> Option<u32> {
        let key_words = key.bytes.len().div_ceil(4);
        let index = words.take(u32::try_from(HEAD_WORDS + key_words).ok()?)?;
        let entry = Self::at(words, index);
        let kind = (place.kind as u32) << 24 | key.bytes.len() as u32;
        let (low, high) = (place.sequence as u32, (place.sequence >> 32) as u32);
        let ValuePlace { chunk, at, len } = place.value;
        let head = [chunk, at, len, low, high, kind];
        let key = (0..key_words).map(|at| key.word(at));
        for (word, value) in entry.words.iter().zip(head.into_iter().chain(key)) {
            word.store(value, Ordering::Relaxed);
        }
        Some(index)
    }

    #[inline]
    fn get(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn key_len(&self) -> usize {
        (self.get(5) & 0xffff) as usize
    }

    pub(crate) fn sequence(&self) -> u64 {
        u64::from(self.get(3)) | u64::from(self.get(4)) << 32
    }

    /// The location of its version.
    pub(crate) fn place(&self) -> Place {
        let kind = EntryKind::from_number(u64::from(self.get(5) >> 24));
        Place {
            sequence: self.sequence(),
            kind: kind.unwrap_or(EntryKind::Tombstone),
            value: ValuePlace { chunk: self.get(0), at: self.get(1), len: self.get(2) },
        }
    }

    /// A word of its key; zeros after the end.
    #[inline]
    fn key_word(&self, at: usize) -> u32 {
        if 4 * at < self.key_len() { self.get(HEAD_WORDS + at) } else { 0 }
    }

    /// The 8 bytes of its key after `skip`, as [`head_of`] has them.
    pub(super) fn head(&self, skip: usize) -> u64 {
        let words = (0..3).map(|at| self.key_word(skip / 4 + at));
        let bytes = words.fold(0, |bytes, word| bytes << 32 | u128::from(word));
        (bytes >> (32 - 8 * (skip % 4))) as u64
    }

    /// Length of the start that its key shares with another one.
    pub(super) fn common_len(&self, other: &Self) -> usize {
        let len_max = self.key_len().min(other.key_len());
        let words = (0..len_max.div_ceil(4)).map(|at| self.key_word(at) ^ other.key_word(at));
        let differs = words.enumerate().find(|(_, bits)| *bits != 0);
        differs
            .map_or(len_max, |(at, bits)| (4 * at + bits.leading_zeros() as usize / 8).min(len_max))
    }

    /// Whether it is the same entry.
    pub(crate) fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.words, other.words)
    }

    /// A copy of its key.
    pub(super) fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_to(&mut key);
        key
    }

    /// Appends its key.
    pub(crate) fn key_to(&self, key: &mut Vec<u8>) {
        let end = key.len() + self.key_len();
        for at in 0..self.key_len().div_ceil(4) {
            key.extend_from_slice(&self.key_word(at).swap_bytes().to_le_bytes());
        }
        key.truncate(end);
    }

    /// The order of its key relative to another.
    #[inline]
    pub(crate) fn compare(&self, key: &SearchKey<'_>) -> Order {
        let len = self.key_len();
        let common = len.min(key.bytes.len()).div_ceil(4);
        for at in 0..common {
            let order = self.get(HEAD_WORDS + at).cmp(&key.word(at));
            if order != Order::Equal {
                return order;
            }
        }
        len.cmp(&key.bytes.len())
    }

    /// Whether it comes before the versions of a key up to a sequence number.
    #[inline]
    pub(super) fn is_before(&self, key: &SearchKey<'_>, sequence: u64) -> bool {
        match self.compare(key) {
            Order::Less => true,
            Order::Equal => self.sequence() > sequence,
            Order::Greater => false,
        }
    }
}
