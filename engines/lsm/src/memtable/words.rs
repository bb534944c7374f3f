//! A grow-only arena of atomic words, with many readers beside one writer.
//!
//! Purpose: holds a skip list; its words never move.
//! Invariants: chunk `n` has `FIRST_WORDS << n` words; a word is handed out once. All memory is
//! freed at once, with the arena.
//! Thread safety: words are atomics. A thread publishes an index to readers by a store with
//! `Release`, after it has stored the words at that index.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::rows::Row;

/// Words of the first chunk: 256 bytes, because many memtables have only a few entries.
const FIRST_WORDS: u32 = 1 << 6;
/// Number of chunks, each twice as large as the one before: 2^32 words in all, 16 GiB.
pub(super) const CHUNKS: usize = 26;
/// Number of chunks in the first 4 KiB.
pub(super) const SMALL_CHUNKS: usize = 4;
/// Words of all of these.
pub(super) const SMALL_WORDS: u32 = (FIRST_WORDS << SMALL_CHUNKS) - FIRST_WORDS;

/// The arena.
#[derive(Debug)]
pub(super) struct Words {
    chunks: Row<OnceLock<Box<[AtomicU32]>>, SMALL_CHUNKS>,
    /// Words handed out. Changed by the writer only.
    used: AtomicU32,
}

impl Words {
    pub(super) fn new() -> Self {
        // Index 0 is never handed out: it stands for none.
        Self { chunks: Row::new(CHUNKS), used: AtomicU32::new(1) }
    }

    /// Hands out consecutive words, which are zero; `None` when the arena is full. By one thread at
    /// a time.
    pub(super) fn take(&self, len: u32) -> Option<u32> {
        let mut start = self.used.load(Ordering::Relaxed);
        loop {
            let (chunk, at) = place(start);
            let words = FIRST_WORDS.checked_shl(chunk as u32).filter(|_| chunk < CHUNKS)?;
            if at.checked_add(len)? <= words {
                self.chunks.get_or_make(chunk)?.get_or_init(|| {
                    std::iter::repeat_with(AtomicU32::default).take(words as usize).collect()
                });
                self.used.store(start + len, Ordering::Relaxed);
                return Some(start);
            }
            // The rest of a chunk that is too small is lost.
            start = start.checked_add(words - at)?;
        }
    }

    /// The words from an index to the end of its chunk; empty if none was handed out there.
    #[inline]
    pub(super) fn from(&self, index: u32) -> &[AtomicU32] {
        let (chunk, at) = place(index);
        let words = self.chunks.get(chunk).and_then(OnceLock::get);
        words.and_then(|words| words.get(at as usize..)).unwrap_or_default()
    }

    /// The chunk of an index, and the words of that chunk.
    pub(super) fn chunk_of(index: u32) -> (usize, u32) {
        let (chunk, _) = place(index);
        (chunk, FIRST_WORDS << chunk)
    }

    /// Bytes of memory taken.
    pub(super) fn bytes(&self) -> u64 {
        let chunks = self.chunks.iter().filter_map(OnceLock::get);
        self.chunks.bytes() + chunks.map(|words| 4 * words.len() as u64).sum::<u64>()
    }
}

/// The chunk of an index, and the position in it.
#[inline]
fn place(index: u32) -> (usize, u32) {
    let past = u64::from(index) + u64::from(FIRST_WORDS);
    let chunk = past.ilog2() - FIRST_WORDS.ilog2();
    (chunk as usize, (past - (u64::from(FIRST_WORDS) << chunk)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_lie_one_behind_the_other() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST_WORDS - 1), (0, FIRST_WORDS - 1));
        assert_eq!(place(FIRST_WORDS), (1, 0));
        assert_eq!(place(3 * FIRST_WORDS - 1), (1, 2 * FIRST_WORDS - 1));
        assert_eq!(place(3 * FIRST_WORDS), (2, 0));
        assert_eq!(place(u32::MAX).0, CHUNKS);
    }

    #[test]
    fn what_is_taken_is_zero_and_apart() {
        let words = Words::new();
        let mut end = 0;
        for len in [3, 1000, 60, 2000, 5000, 1] {
            let start = words.take(len).unwrap();
            assert!(start > end, "{start} is beyond {end}");
            let taken = &words.from(start)[..len as usize];
            assert!(taken.iter().all(|word| word.load(Ordering::Relaxed) == 0));
            taken.iter().for_each(|word| word.store(7, Ordering::Relaxed));
            end = start + len - 1;
        }
        assert!(words.take(u32::MAX).is_none());
        assert!(words.from(u32::MAX).is_empty());
    }
}
