//! Rank sort of a leaf's entries.
//!
//! Purpose: leaves are unsorted; cursors and splits sort one when they reach it. The position of an
//! entry is the number of keys below its own: counted for all pairs of 32-bit words, four at a time
//! and without a branch, where a sort that compares and swaps mispredicts at every other step.
//! Source: rank (enumeration) sort, Knuth, The Art of Computer Programming 3, 5.2, algorithm C.

use std::ops::Range;

use adamant_heap::access::Read;
use adamant_wire::key::{common_len, head_of};

use super::find::{prefetch_entry, prefetch_leaf};
use super::layout::{LEAF_SLOTS, Leaf};
use crate::error::{Error, Result};
use crate::slot::Entry;

/// Bits of a slot's index, the lowest ones of a word.
const INDEX_BITS: u32 = 6;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const _: () = assert!(LEAF_SLOTS <= 1 << INDEX_BITS);
/// Words are compared as signed numbers, since SSE2 has no other comparison.
const SIGN: u32 = 1 << 31;

/// The order of a leaf's entries. Stays in place and is reloaded for each leaf.
pub(super) struct Sorted<'r> {
    /// The leaf; `None` before the first.
    leaf: Option<&'r Leaf>,
    /// Bits of the key and the slot, with the sign flipped; the first `len` are in use.
    order: [i32; LEAF_SLOTS],
    len: usize,
}

impl<'r> Sorted<'r> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self { leaf: None, order: [i32::MAX; LEAF_SLOTS], len: 0 }
    }

    /// Sorts a leaf by its tags, and reads those entries alone whose tags are equal. Of a leaf that
    /// is tagged by hashes all entries are read, and prefetched first. O(k^2) with a small
    /// constant: some 50 instructions to rank an entry.
    pub(super) fn load<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        prefetch_leaf(read, block);
        let leaf = Leaf::at(read, block)?;
        if !leaf.tagging().is_ordered() {
            leaf.indices().for_each(|index| read.prefetch(leaf.slot(index).entry()));
        }
        self.load_ready(read, block)
    }

    /// As [`Sorted::load`], for a leaf whose entries were prefetched.
    pub(super) fn load_ready<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        self.len = 0;
        let leaf = Leaf::at(read, block)?;
        self.leaf = Some(leaf);
        let mut words = [i32::MAX; LEAF_SLOTS];
        let len = if leaf.tagging().is_ordered() {
            words_of_tags(leaf, &mut words)
        } else {
            words_of_keys(read, leaf, &mut words)?
        };
        self.order = by_rank(&words, len);
        if self.order[..len].windows(2).fold(false, |any, pair| any | is_tie(pair[0], pair[1])) {
            self.untie(read, block, len)?;
        }
        self.len = len;
        Ok(())
    }

    /// Orders entries whose words tie by their whole keys.
    #[cold]
    fn untie<R: Read>(&mut self, read: &'r R, block: u64, len: usize) -> Result<()> {
        let Some(leaf) = self.leaf else { return Ok(()) };
        let mut keys = Vec::with_capacity(len);
        let tie = |left: &i32, right: &i32| is_tie(*left, *right);
        for tied in self.order[..len].chunk_by_mut(tie).filter(|tied| tied.len() > 1) {
            tied.iter().for_each(|word| read.prefetch(leaf.slot(slot_in(*word)).entry()));
            keys.clear();
            for word in &*tied {
                keys.push((Entry::read(read, leaf.slot(slot_in(*word)).entry())?.key, *word));
            }
            keys.sort_unstable();
            if keys.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(Error::Damaged { block, what: "holds a key twice" });
            }
            tied.iter_mut().zip(&keys).for_each(|(word, key)| *word = key.1);
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

    /// Heap offsets of the entries at a range of positions of the key order.
    #[inline]
    pub(super) fn offsets(
        &self,
        positions: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        let leaf = self.leaf;
        let offset = move |word: &i32| leaf.map_or(0, |leaf| leaf.slot(slot_in(*word)).entry());
        self.order[..self.len][positions].iter().map(offset)
    }

    /// Entry at a position of the key order.
    #[inline]
    pub(super) fn entry<R: Read>(&self, read: &'r R, position: usize) -> Result<Entry<'r>> {
        Entry::read(read, self.offsets(position..position + 1).next().unwrap_or(0))
    }

    /// Prefetches the entries at these positions.
    #[inline]
    pub(super) fn prefetch<R: Read>(&self, read: &R, positions: Range<usize>) {
        self.offsets(positions).for_each(|entry| prefetch_entry(read, entry));
    }

    /// How many keys are below `key`, or, with `through`, at or below it. `key` must be one that
    /// the leaf's fences admit. Reads the entries whose tag is that of the key; O(log k).
    pub(super) fn rank<R: Read>(&self, read: &'r R, key: &[u8], through: bool) -> Result<usize> {
        let order = &self.order[..self.len];
        let (mut low, mut high) = match self.leaf.map(|leaf| leaf.tagging()) {
            Some(tagging) if tagging.is_ordered() => {
                let word = word(tagging.ordered_tag(key), 0);
                let low = order.partition_point(|other| *other < word);
                (low, low + order[low..].partition_point(|other| is_tie(*other, word)))
            }
            _ => (0, order.len()),
        };
        while low < high {
            let middle = low + (high - low) / 2;
            let other = self.entry(read, middle)?.key;
            if other < key || through && other == key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

/// The word of a tag.
#[inline]
fn word(tag: u16, index: usize) -> i32 {
    ((u32::from(tag) << 16 | index as u32) ^ SIGN) as i32
}

/// Whether two words differ in nothing but the slot.
#[inline]
fn is_tie(left: i32, right: i32) -> bool {
    (left ^ right) as u32 <= INDEX_MASK
}

/// Fills in the words of the tags; returns their number.
fn words_of_tags(leaf: &Leaf, words: &mut [i32; LEAF_SLOTS]) -> usize {
    let (mut used, mut len) = (leaf.used(), 0);
    while used != 0 {
        let index = used.trailing_zeros() as usize;
        used &= used - 1;
        words[len] = word(leaf.slot(index).tag(), index);
        len += 1;
    }
    len
}

/// The same for a leaf that is tagged by hashes: reads all keys, and takes of each the 26 bits from
/// the first one in which they differ.
fn words_of_keys<R: Read>(read: &R, leaf: &Leaf, words: &mut [i32; LEAF_SLOTS]) -> Result<usize> {
    let mut keys: [&[u8]; LEAF_SLOTS] = [&[]; LEAF_SLOTS];
    let mut heads = [0; LEAF_SLOTS];
    let (mut difference, mut len) = (0, 0);
    for index in leaf.indices() {
        keys[len] = Entry::read(read, leaf.slot(index).entry())?.key;
        heads[len] = head_of(keys[len], 0);
        words[len] = index as i32;
        difference |= heads[len] ^ heads[0];
        len += 1;
    }
    let (keys, heads) = (&keys[..len], &mut heads[..len]);
    let shared = difference.leading_zeros();
    if shared > 32 {
        let skip = match difference {
            0 => prefix_of_all(keys),
            _ => shared as usize / 8,
        };
        heads.iter_mut().zip(keys).for_each(|(head, key)| *head = head_of(key, skip));
        difference = heads.iter().fold(0, |bits, head| bits | head ^ heads[0]);
    }
    let shift = difference.leading_zeros().min(32);
    for (word, head) in words.iter_mut().zip(heads) {
        let bits = (*head << shift >> 32) as u32 & !INDEX_MASK;
        *word = ((bits | *word as u32) ^ SIGN) as i32;
    }
    Ok(len)
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

/// Length of the common prefix of all keys.
fn prefix_of_all(keys: &[&[u8]]) -> usize {
    let first = keys.first().copied().unwrap_or_default();
    // The common prefix can only get shorter: only that much is compared.
    keys.iter().fold(first.len(), |len, key| {
        let shared = &first[..len];
        if key.starts_with(shared) { len } else { common_len(shared, key) }
    })
}
