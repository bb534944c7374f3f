//! A two-part array: the first elements inline, the others allocated on demand.
//!
//! Purpose: a large memtable has a hundred chunks and more; thousands of small ones should not pay
//! for as many elements.
//! Invariants: an element never moves.
//! Thread safety: as of the elements.

use std::sync::OnceLock;

/// The array: the first elements are inline, the others are allocated when one of them is used.
#[derive(Debug)]
pub(super) struct Row<T, const NEAR: usize> {
    near: [T; NEAR],
    far: OnceLock<Box<[T]>>,
    /// Number of all elements.
    len: usize,
}

impl<T: Default, const NEAR: usize> Row<T, NEAR> {
    /// An array of `len` elements.
    pub(super) fn new(len: usize) -> Self {
        Self { near: std::array::from_fn(|_| T::default()), far: OnceLock::new(), len }
    }

    /// An element; `None` if the index is out of range, or the element was never used.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(NEAR) {
            None => self.near.get(index),
            Some(index) => self.far.get()?.get(index),
        }
    }

    /// An element that is to be used; `None` if the index is out of range.
    pub(super) fn get_or_make(&self, index: usize) -> Option<&T> {
        match index.checked_sub(NEAR) {
            None => self.near.get(index),
            Some(far) if index < self.len => {
                let make = || (NEAR..self.len).map(|_| T::default()).collect();
                self.far.get_or_init(make).get(far)
            }
            Some(_) => None,
        }
    }

    /// All elements that may have been used.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.near.iter().chain(self.far.get().into_iter().flatten())
    }

    /// Bytes of allocated memory.
    pub(super) fn bytes(&self) -> u64 {
        self.far.get().map_or(0, |far| size_of_val::<[T]>(far) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn places_beyond_the_first_few_take_memory_when_they_are_used() {
        let row = Row::<AtomicU32, 2>::new(5);
        assert_eq!(row.iter().count(), 2);
        assert!(row.get(1).is_some() && row.get(2).is_none() && row.bytes() == 0);
        assert!(row.get_or_make(5).is_none() && row.bytes() == 0, "there is no such place");
        for index in 0..5 {
            row.get_or_make(index).unwrap().store(index as u32, Ordering::Relaxed);
        }
        assert!(row.get(5).is_none() && row.get(usize::MAX).is_none());
        let numbers = row.iter().map(|place| place.load(Ordering::Relaxed));
        assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(row.bytes(), 12);
    }
}
