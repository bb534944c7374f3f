//! What a transaction frees.
//!
//! Purpose: remember it, one entry for each word of a bitmap: a transaction that frees a hundred
//! thousand neighbours keeps two thousand entries, and the record is made of them as they are.
//! Invariants: an entry has at least one bit.

use crate::class::ClassTable;
use crate::image::Place;
use crate::keyed::Keyed;
use crate::layout::PAGE_BYTES;

/// Blocks of one word of a bitmap, or an extent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Where one of the blocks lies.
    pub(crate) place: Place,
    /// Which blocks of the word; an extent is 1.
    pub(crate) mask: u64,
}

impl Word {
    /// The block at a place alone.
    #[inline]
    pub(crate) fn of(place: Place) -> Self {
        let mask = match place {
            Place::Extent { .. } => 1,
            Place::Run { index, .. } => 1 << (index % 64),
        };
        Self { place, mask }
    }

    /// The blocks: heap offset and place of each.
    pub(crate) fn blocks(self, classes: &ClassTable) -> impl Iterator<Item = (u64, Place)> + '_ {
        let mut left = self.mask;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let bit = u64::from(left.trailing_zeros());
            left &= left - 1;
            match self.place {
                Place::Extent { page, .. } => Some((page * PAGE_BYTES, self.place)),
                Place::Run { run, class, index, bytes, is_open } => {
                    let shape = classes.get(class.into())?;
                    let index = index / 64 * 64 + bit;
                    let block = run * PAGE_BYTES + shape.blocks_start + index * bytes;
                    Some((block, Place::Run { run, class, index, bytes, is_open }))
                }
            }
        })
    }
}

/// What one level of a transaction frees.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    words: Keyed<Word>,
}

impl Freed {
    /// What stands for the word that a block is in. A run has fewer words than bytes, so no other
    /// run or extent has the same.
    fn key(place: Place) -> u64 {
        match place {
            Place::Extent { page, .. } => page * PAGE_BYTES,
            Place::Run { run, index, .. } => run * PAGE_BYTES + index / 64 * 8,
        }
    }

    /// Whether the block at a place is among them.
    #[inline]
    pub(crate) fn contains(&self, place: Place) -> bool {
        let mask = Word::of(place).mask;
        self.words.get(Self::key(place)).is_some_and(|word| word.mask & mask != 0)
    }

    /// Adds the block at a place.
    #[inline]
    pub(crate) fn insert(&mut self, place: Place) {
        let (key, added) = (Self::key(place), Word::of(place));
        match self.words.get_mut(key) {
            Some(word) => word.mask |= added.mask,
            None => self.words.insert(key, added),
        }
    }

    /// Everything, word by word.
    pub(crate) fn words(&self) -> impl Iterator<Item = Word> + '_ {
        self.words.entries().iter().map(|(_, word)| *word)
    }

    /// Whether nothing is freed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words.entries().is_empty()
    }

    /// Takes everything out, word by word.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Word> + '_ {
        self.words.drain().map(|(_, word)| word)
    }

    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }
}
