//! The Bloom filter of a memtable.
//!
//! Purpose: a get mostly looks for a key that the active memtable does not have. The index reads
//! a node of each level to tell, the filter one or two lines. It is a blocked Bloom filter as
//! tables have them ([`crate::filter`]), in parts that grow with the arena of the entries, so that
//! no key is ever added twice.
//! Invariants: a key that was added always passes, also after its entry was removed.
//! Thread safety: any number of readers beside one writer. Bits are set before a leaf has the
//! entry, so a thread that may see it sees them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::arena::{CHUNKS, SMALL_CHUNKS};
use super::index_entry::FIRST_WORDS;
use super::rows::Row;
use crate::filter::{line_of, probes_of};

/// Arena words per line. With keys of 20 bytes an entry takes 11 words: 22 bits for each, so a few
/// in ten thousand other keys pass a part. A sixteenth of the arena's memory.
const WORDS_PER_LINE: u32 = 256;
/// Bits that are set for a key.
const PROBES: u8 = 6;

/// Index of the last small chunk.
const LAST_SMALL: usize = SMALL_CHUNKS - 1;
/// Words of all small chunks.
const SMALL_WORDS: u32 = (FIRST_WORDS << SMALL_CHUNKS) - FIRST_WORDS;

/// A cache line of bits.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; 8]);

/// The filter.
#[derive(Debug)]
pub(super) struct KeyFilter {
    /// One part for all small chunks of the arena together, so that a get does not look at a line
    /// for each of them, and one for each other chunk that has entries.
    parts: Row<OnceLock<Box<[Line]>>, 1>,
    /// Index after the last part.
    parts_end: AtomicUsize,
}

impl KeyFilter {
    pub(super) fn new() -> Self {
        Self { parts: Row::new(CHUNKS - LAST_SMALL), parts_end: AtomicUsize::new(0) }
    }

    /// Adds the key with that hash, whose entry lies in a chunk of `words` words. By one thread at
    /// a time.
    pub(super) fn add(&self, hash: u64, (chunk, words): (usize, u32)) {
        let words = if chunk <= LAST_SMALL { SMALL_WORDS } else { words };
        let index = chunk.saturating_sub(LAST_SMALL);
        let Some(part) = self.parts.get_or_make(index) else { return };
        let lines = part.get_or_init(|| {
            let count = words.div_ceil(WORDS_PER_LINE).max(1) as usize;
            std::iter::repeat_with(Line::default).take(count).collect()
        });
        let line = &lines[line_of(hash, lines.len())].0;
        for bit in probes_of(hash, PROBES) {
            let word = &line[bit / 64];
            word.store(word.load(Ordering::Relaxed) | 1 << (bit % 64), Ordering::Relaxed);
        }
        if self.parts_end.load(Ordering::Relaxed) <= index {
            self.parts_end.store(index + 1, Ordering::Release);
        }
    }

    /// Whether a key with that hash may have been added.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        let end = self.parts_end.load(Ordering::Acquire);
        // The last part has half of all keys.
        (0..end).rev().filter_map(|index| self.parts.get(index)?.get()).any(|lines| {
            let line = &lines[line_of(hash, lines.len())].0;
            probes_of(hash, PROBES)
                .all(|bit| line[bit / 64].load(Ordering::Relaxed) & 1 << (bit % 64) != 0)
        })
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> u64 {
        let parts = self.parts.iter().filter_map(OnceLock::get);
        self.parts.bytes() + parts.map(|lines| size_of_val::<[Line]>(lines) as u64).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::key_hash;

    #[test]
    fn every_key_passes_and_few_others() {
        let filter = KeyFilter::new();
        assert!(!filter.may_contain(key_hash(b"absent")));
        // As many keys as chunks of 64, 128, ... words have nodes of 12 words; one chunk has none.
        let mut added = Vec::new();
        for (chunk, words) in (0..14).filter(|chunk| *chunk != 7).map(|chunk| (chunk, 64 << chunk))
        {
            for number in 0..words / 12 {
                let hash = key_hash(format!("{chunk} {number}").as_bytes());
                filter.add(hash, (chunk, words));
                added.push(hash);
            }
        }
        assert!(added.iter().all(|hash| filter.may_contain(*hash)));
        let others = (0..100_000).map(|number| key_hash(format!("other {number}").as_bytes()));
        let passed = others.filter(|hash| filter.may_contain(*hash)).count();
        assert!(passed <= 1_000, "{passed} of 100,000");
        assert_eq!(filter.bytes(), 260_624);
    }
}
