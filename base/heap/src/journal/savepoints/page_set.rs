//! A set of pages, a bit each.
//!
//! Thread safety: none of its own.

use crate::layout::{PAGE_BYTES, TABLE_BASE};

/// A set of pages, by heap offset.
#[derive(Debug, Default)]
pub(in crate::journal) struct PageSet {
    data: Vec<u64>,
    tables: Vec<u64>,
}

impl PageSet {
    fn bit(page: u64) -> (bool, usize, u64) {
        let base = if page < TABLE_BASE { 0 } else { TABLE_BASE };
        let number = (page - base) / PAGE_BYTES;
        (base == 0, (number / 64) as usize, 1 << (number % 64))
    }

    /// Whether it has a page.
    pub(in crate::journal) fn has(&self, page: u64) -> bool {
        let (is_data, word, bit) = Self::bit(page);
        let words = if is_data { &self.data } else { &self.tables };
        words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds a page.
    pub(in crate::journal) fn add(&mut self, page: u64) {
        let (is_data, word, bit) = Self::bit(page);
        let words = if is_data { &mut self.data } else { &mut self.tables };
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= bit;
    }
}
