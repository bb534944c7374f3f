//! A grow-only arena, with many readers beside one writer.
//!
//! Purpose: holds the index of a memtable; its items never move.
//! Invariants: chunk `n` has `FIRST << n` items; an item is handed out once. A chunk is zeroed by
//! the system, page by page as its items are used: 16 MiB at once are 4,096 page faults.
//! All memory is freed at once, with the arena.
//! Thread safety: items are atomics, or consist of them. A thread publishes an index to readers by
//! a store with `Release`, after it has stored the items at that index.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

use super::rows::Row;

/// Number of chunks, each twice as large as the one before.
pub(super) const CHUNKS: usize = 26;
/// Places for chunks that are in the arena itself.
pub(super) const SMALL_CHUNKS: usize = 4;

/// The arena; its first chunk has `FIRST` items, a power of two.
#[derive(Debug)]
pub(super) struct Arena<T, const FIRST: u32> {
    chunks: Row<OnceLock<Box<[T]>>, SMALL_CHUNKS>,
    /// Items handed out. Changed by the writer only.
    used: AtomicU32,
}

impl<T: FromZeros, const FIRST: u32> Arena<T, FIRST> {
    pub(super) fn new() -> Self {
        Self { chunks: Row::new(CHUNKS), used: AtomicU32::new(0) }
    }

    /// Hands out consecutive items, which are zero, and returns the index of the first, which is
    /// never 0; `None` when the arena is full. By one thread at a time.
    pub(super) fn take(&self, len: u32) -> Option<u32> {
        let mut start = self.used.load(Ordering::Relaxed).checked_add(1)?;
        loop {
            let (chunk, at) = Self::place(start)?;
            let items = FIRST.checked_shl(chunk as u32).filter(|_| chunk < CHUNKS)?;
            if at.checked_add(len)? <= items {
                let chunk = self.chunks.get_or_make(chunk)?;
                if chunk.get().is_none() {
                    let made = <[T]>::new_box_zeroed_with_elems(items as usize).ok()?;
                    chunk.get_or_init(|| made);
                }
                self.used.store(start - 1 + len, Ordering::Relaxed);
                return Some(start);
            }
            // The rest of a chunk that is too small is lost.
            start = start.checked_add(items - at)?;
        }
    }

    /// The items from an index to the end of its chunk; empty if none was handed out there.
    #[inline]
    pub(super) fn from(&self, index: u32) -> &[T] {
        let Some((chunk, at)) = Self::place(index) else { return &[] };
        let items = self.chunks.get(chunk).and_then(OnceLock::get);
        items.and_then(|items| items.get(at as usize..)).unwrap_or_default()
    }

    /// The item at an index; `None` if none was handed out there.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.from(index).first()
    }

    /// The chunk of an index, and the items of that chunk.
    pub(super) fn chunk_of(index: u32) -> (usize, u32) {
        let (chunk, _) = Self::place(index).unwrap_or_default();
        (chunk, FIRST << chunk)
    }

    /// The chunk of an index, and the position in it; `None` for 0.
    #[inline]
    fn place(index: u32) -> Option<(usize, u32)> {
        let past = u64::from(index.checked_sub(1)?) + u64::from(FIRST);
        let chunk = past.ilog2() - FIRST.ilog2();
        Some((chunk as usize, (past - (u64::from(FIRST) << chunk)) as u32))
    }

    /// Bytes of memory used.
    pub(super) fn bytes(&self) -> u64 {
        let used = u64::from(self.used.load(Ordering::Relaxed));
        self.chunks.bytes() + used * size_of::<T>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Words = Arena<AtomicU32, 64>;

    #[test]
    fn indexes_lie_one_behind_the_other() {
        assert_eq!(Words::place(0), None);
        assert_eq!(Words::place(1), Some((0, 0)));
        assert_eq!(Words::place(64), Some((0, 63)));
        assert_eq!(Words::place(65), Some((1, 0)));
        assert_eq!(Words::place(3 * 64 + 1), Some((2, 0)));
        assert_eq!(Words::place(u32::MAX).map(|(chunk, _)| chunk), Some(CHUNKS));
        assert_eq!(Arena::<AtomicU32, 1>::place(4), Some((2, 0)));
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
        assert!(words.from(0).is_empty() && words.from(u32::MAX).is_empty());
    }
}
