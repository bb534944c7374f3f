//! The entries of a leaf in the order of their keys.
//!
//! Purpose: leaves are unsorted; cursors and splits sort one when they come to it.

use adamant_heap::access::Read;

use super::find::{common_len, head_of, prefetch_entry};
use super::layout::{LEAF_SLOTS, Leaf};
use crate::error::{Error, Result};
use crate::slot::Entry;

/// Bits of a slot's index, which take the place of the lowest bits of its head.
const INDEX_BITS: u32 = 6;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const _: () = assert!(LEAF_SLOTS <= 1 << INDEX_BITS);

/// A leaf's entries, sorted. Lives where its owner puts it and is filled anew for each leaf.
pub(super) struct Sorted<'r> {
    /// By slot; only the used ones mean something.
    entries: [Entry<'r>; LEAF_SLOTS],
    /// Upper 58 bits of the head after the common prefix, and slot; the first `len` are in use.
    order: [u64; LEAF_SLOTS],
    len: usize,
}

impl<'r> Sorted<'r> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self { entries: [Entry::NONE; LEAF_SLOTS], order: [0; LEAF_SLOTS], len: 0 }
    }

    /// Loads the entries of a leaf. All are asked for before the first is looked at. Single words
    /// are sorted: whole keys are compared only if some of these tie. O(k log k), some 10 ns an
    /// entry.
    pub(super) fn load<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        self.len = 0;
        let leaf = Leaf::at(read, block)?;
        prefetch_entries(read, leaf);
        let mut used = leaf.used();
        let (mut first, mut difference, mut len) = (0, 0, 0);
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            used &= used - 1;
            let entry = Entry::read(read, leaf.slot(index).entry())?;
            let head = head_of(entry.key, 0);
            if len == 0 {
                first = head;
            }
            difference |= head ^ first;
            self.entries[index] = entry;
            self.order[len] = index as u64;
            len += 1;
        }
        let (entries, order) = (&self.entries, &mut self.order[..len]);
        let skip = match difference {
            0 => prefix_of_all(entries, order),
            _ => difference.leading_zeros() as usize / 8,
        };
        for word in order.iter_mut() {
            *word |= head_of(entries[slot_in(*word)].key, skip) & !INDEX_MASK;
        }
        sort_words(order);
        if order.windows(2).any(|pair| (pair[0] ^ pair[1]) & !INDEX_MASK == 0) {
            let key = |word: u64| entries[slot_in(word)].key;
            order.sort_unstable_by(|left, right| key(*left).cmp(key(*right)));
            if order.windows(2).any(|pair| key(pair[0]) == key(pair[1])) {
                return Err(Error::Damaged { block, what: "holds a key twice" });
            }
        }
        self.len = len;
        Ok(())
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Slot of the entry at a position of the key order.
    pub(super) fn slot(&self, position: usize) -> usize {
        slot_in(self.order[..self.len][position])
    }

    /// Entry at a position of the key order.
    pub(super) fn entry(&self, position: usize) -> &Entry<'r> {
        &self.entries[self.slot(position)]
    }

    /// How many keys are below `key`, or, with `through`, at or below it.
    pub(super) fn rank(&self, key: &[u8], through: bool) -> usize {
        self.order[..self.len].partition_point(|word| {
            let other = self.entries[slot_in(*word)].key;
            if through { other <= key } else { other < key }
        })
    }
}

/// Sorts up to 48 words: halves of up to 24, which the standard library sorts without the
/// partitions that it needs beyond 32, then merged. A third of the instructions of one call.
fn sort_words(words: &mut [u64]) {
    let (left, right) = words.split_at_mut(words.len() / 2);
    left.sort_unstable();
    right.sort_unstable();
    let mut merged = [0; LEAF_SLOTS];
    let (mut from_left, mut from_right) = (0, 0);
    for word in &mut merged[..left.len() + right.len()] {
        // Whichever side is used up counts as endless; the choice needs no jump.
        let one = left.get(from_left).copied().unwrap_or(u64::MAX);
        let other = right.get(from_right).copied().unwrap_or(u64::MAX);
        let take_left = one <= other;
        *word = if take_left { one } else { other };
        from_left += usize::from(take_left);
        from_right += usize::from(!take_left);
    }
    let len = words.len();
    words.copy_from_slice(&merged[..len]);
}

/// The slot of a word of the order. A word out of range cannot be: it would be the last slot.
#[inline]
fn slot_in(word: u64) -> usize {
    ((word & INDEX_MASK) as usize).min(LEAF_SLOTS - 1)
}

/// Bytes that the keys of all slots in `order` share at their start.
fn prefix_of_all(entries: &[Entry<'_>; LEAF_SLOTS], order: &[u64]) -> usize {
    let mut keys = order.iter().map(|word| entries[slot_in(*word)].key);
    let first = keys.next().unwrap_or_default();
    // What all share can only get shorter: only that much is compared.
    keys.fold(first.len(), |len, key| {
        let shared = &first[..len];
        if key.starts_with(shared) { len } else { common_len(shared, key) }
    })
}

/// Asks for the entries of a leaf.
pub(super) fn prefetch_entries<R: Read>(read: &R, leaf: &Leaf) {
    let mut used = leaf.used();
    while used != 0 {
        let index = used.trailing_zeros() as usize;
        used &= used - 1;
        prefetch_entry(read, leaf.slot(index).entry());
    }
}
