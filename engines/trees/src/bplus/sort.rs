//! Rank sort of a leaf's entries.
//!
//! Purpose: leaves are unsorted; cursors and splits sort one when they reach it. The position of an
//! entry is the number of keys below its own: counted for all pairs of 32-bit words, four at a time
//! and without a branch, where a sort that compares and swaps mispredicts at every other step.
//! Source: rank (enumeration) sort, Knuth, The Art of Computer Programming 3, 5.2, algorithm C.

use std::ops::Range;

use adamant_heap::access::Read;
use adamant_wire::key::{common_len, head_of};

use super::find::prefetch_leaf;
use super::layout::{LEAF_SLOTS, Leaf};
use crate::error::{Error, Result};
use crate::slot::Entry;

/// Bits of a slot's index, the lowest ones of a word.
const INDEX_BITS: u32 = 6;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const _: () = assert!(LEAF_SLOTS <= 1 << INDEX_BITS);
/// Words are compared as signed numbers, since SSE2 has no other comparison.
const SIGN: u32 = 1 << 31;

/// A leaf's entries, sorted. Stays in place and is reloaded for each leaf.
pub(super) struct Sorted<'r> {
    /// By slot; only those of used slots are valid.
    entries: [Entry<'r>; LEAF_SLOTS],
    /// 26 bits of the key and the slot, with the sign flipped; the first `len` are in use.
    order: [i32; LEAF_SLOTS],
    len: usize,
}

impl<'r> Sorted<'r> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self { entries: [Entry::NONE; LEAF_SLOTS], order: [i32::MAX; LEAF_SLOTS], len: 0 }
    }

    /// Prefetches the first lines of a leaf's entries, where their keys begin, then loads them.
    /// O(k^2) with a small constant: some 50 instructions to rank an entry.
    pub(super) fn load<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        prefetch_leaf(read, block);
        let leaf = Leaf::at(read, block)?;
        let mut used = leaf.used();
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            used &= used - 1;
            read.prefetch(leaf.slot(index).entry());
        }
        self.load_ready(read, block)
    }

    /// As [`Sorted::load`], for a leaf whose entries were prefetched.
    pub(super) fn load_ready<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        self.len = 0;
        let leaf = Leaf::at(read, block)?;
        let mut used = leaf.used();
        let mut heads = [0; LEAF_SLOTS];
        let mut words = [i32::MAX; LEAF_SLOTS];
        let (mut difference, mut len) = (0, 0);
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            used &= used - 1;
            let entry = Entry::read(read, leaf.slot(index).entry())?;
            let head = head_of(entry.key, 0);
            self.entries[index] = entry;
            heads[len] = head;
            words[len] = index as i32;
            difference |= head ^ heads[0];
            len += 1;
        }
        let words = &mut words;
        self.shape_words(&mut heads[..len], &mut words[..len], difference);
        self.order = by_rank(words, len);
        let is_tie = |pair: &[i32]| ((pair[0] ^ pair[1]) as u32) <= INDEX_MASK;
        if self.order[..len].windows(2).fold(false, |any, pair| any | is_tie(pair)) {
            self.untie(block, len)?;
        }
        self.len = len;
        Ok(())
    }

    /// Stores above each word's index the 26 bits of its key from the first one in which the keys
    /// differ. `heads` are those of the keys, `difference` has the bits in which they differ.
    fn shape_words(&self, heads: &mut [u64], words: &mut [i32], mut difference: u64) {
        let shared = difference.leading_zeros();
        if shared > 32 {
            let skip = match difference {
                0 => prefix_of_all(&self.entries, words),
                _ => shared as usize / 8,
            };
            difference = 0;
            for (head, word) in heads.iter_mut().zip(&*words) {
                *head = head_of(self.entries[slot_in(*word)].key, skip);
            }
            difference = heads.iter().fold(difference, |bits, head| bits | head ^ heads[0]);
        }
        let shift = difference.leading_zeros().min(32);
        for (word, head) in words.iter_mut().zip(heads) {
            let bits = (*head << shift >> 32) as u32 & !INDEX_MASK;
            *word = ((bits | *word as u32) ^ SIGN) as i32;
        }
    }

    /// Orders entries whose words tie by their whole keys.
    #[cold]
    fn untie(&mut self, block: u64, len: usize) -> Result<()> {
        let key = |word: i32| self.entries[slot_in(word)].key;
        let is_tie = |left: &i32, right: &i32| ((left ^ right) as u32) <= INDEX_MASK;
        for tied in self.order[..len].chunk_by_mut(is_tie).filter(|tied| tied.len() > 1) {
            tied.sort_unstable_by(|left, right| key(*left).cmp(key(*right)));
            if tied.windows(2).any(|pair| key(pair[0]) == key(pair[1])) {
                return Err(Error::Damaged { block, what: "holds a key twice" });
            }
        }
        Ok(())
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Slot of the entry at a position of the key order.
    pub(super) fn slot(&self, position: usize) -> usize {
        slot_in(self.order[..self.len][position])
    }

    /// Entry at a position of the key order.
    #[inline]
    pub(super) fn entry(&self, position: usize) -> &Entry<'r> {
        &self.entries[self.slot(position)]
    }

    /// Entries at a range of positions of the key order.
    #[inline]
    pub(super) fn entries(
        &self,
        positions: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &Entry<'r>> + ExactSizeIterator {
        self.order[positions].iter().map(|word| &self.entries[slot_in(*word)])
    }

    /// How many keys are below `key`, or, with `through`, at or below it.
    pub(super) fn rank(&self, key: &[u8], through: bool) -> usize {
        self.order[..self.len].partition_point(|word| {
            let other = self.entries[slot_in(*word)].key;
            if through { other <= key } else { other < key }
        })
    }
}

/// The first `len` words, which are distinct, in their order. The others are `i32::MAX`.
fn by_rank(words: &[i32; LEAF_SLOTS], len: usize) -> [i32; LEAF_SLOTS] {
    let used = &words[..len];
    let mut ranks = [0; LEAF_SLOTS];
    for other in used {
        // Includes unused words: a constant count compiles to straight vector code.
        for (rank, word) in ranks.iter_mut().zip(words) {
            *rank += i32::from(*word > *other);
        }
    }
    let mut sorted = [i32::MAX; LEAF_SLOTS];
    for (word, rank) in used.iter().zip(ranks) {
        sorted[(rank as usize).min(LEAF_SLOTS - 1)] = *word;
    }
    sorted
}

/// The slot of a word of the order. The clamp is for the compiler: no word is out of range.
#[inline]
fn slot_in(word: i32) -> usize {
    ((word as u32 & INDEX_MASK) as usize).min(LEAF_SLOTS - 1)
}

/// Length of the common prefix of the keys of all slots in `order`.
fn prefix_of_all(entries: &[Entry<'_>; LEAF_SLOTS], order: &[i32]) -> usize {
    let mut keys = order.iter().map(|word| entries[slot_in(*word)].key);
    let first = keys.next().unwrap_or_default();
    // The common prefix can only get shorter: only that much is compared.
    keys.fold(first.len(), |len, key| {
        let shared = &first[..len];
        if key.starts_with(shared) { len } else { common_len(shared, key) }
    })
}
