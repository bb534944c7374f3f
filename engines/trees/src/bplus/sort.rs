//! The entries of a leaf in the order of their keys.
//!
//! Purpose: leaves are unsorted; cursors and splits sort one when they come to it.

use adamant_heap::access::Read;

use super::find::{common_len, head_of, prefetch_entry};
use super::layout::{LEAF_SLOTS, Leaf};
use crate::error::{Error, Result};
use crate::slot::Entry;

/// A leaf's entries, sorted. Lives where its owner puts it and is filled anew for each leaf.
pub(super) struct Sorted<'r> {
    /// By slot; only the used ones mean something.
    entries: [Entry<'r>; LEAF_SLOTS],
    /// Head after the common prefix, and slot; the first `len` are in use.
    order: [(u64, u8); LEAF_SLOTS],
    len: usize,
}

impl<'r> Sorted<'r> {
    /// No entries.
    pub(super) fn new() -> Self {
        Self { entries: [Entry::NONE; LEAF_SLOTS], order: [(0, 0); LEAF_SLOTS], len: 0 }
    }

    /// Loads the entries of a leaf. All are asked for before the first is looked at, and whole
    /// keys are compared only where 8 bytes after the common prefix tie. O(k log k).
    pub(super) fn load<R: Read>(&mut self, read: &'r R, block: u64) -> Result<()> {
        self.len = 0;
        let leaf = Leaf::at(read, block)?;
        prefetch_entries(read, leaf);
        let mut used = leaf.used();
        let mut first: &[u8] = &[];
        let mut prefix_len = 0;
        let mut len = 0;
        while used != 0 {
            let index = used.trailing_zeros() as usize;
            used &= used - 1;
            let entry = Entry::read(read, leaf.slot(index).entry())?;
            if len == 0 {
                first = entry.key;
                prefix_len = first.len();
            }
            // What all share can only get shorter: only that much is compared.
            let shared = &first[..prefix_len];
            if !entry.key.starts_with(shared) {
                prefix_len = common_len(shared, entry.key);
            }
            self.entries[index] = entry;
            self.order[len].1 = index as u8;
            len += 1;
        }
        let (entries, order) = (&self.entries, &mut self.order[..len]);
        for (head, index) in order.iter_mut() {
            *head = head_of(entries[usize::from(*index)].key, prefix_len);
        }
        order.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then_with(|| {
                let (left, right) = (usize::from(left.1), usize::from(right.1));
                entries[left].key.cmp(entries[right].key)
            })
        });
        let tie = |pair: &[(u64, u8)]| {
            pair[0].0 == pair[1].0
                && entries[usize::from(pair[0].1)].key == entries[usize::from(pair[1].1)].key
        };
        if order.windows(2).any(tie) {
            return Err(Error::Damaged { block, what: "holds a key twice" });
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
        usize::from(self.order[..self.len][position].1)
    }

    /// Entry at a position of the key order.
    pub(super) fn entry(&self, position: usize) -> &Entry<'r> {
        &self.entries[self.slot(position)]
    }

    /// How many keys are below `key`, or, with `through`, at or below it.
    pub(super) fn rank(&self, key: &[u8], through: bool) -> usize {
        self.order[..self.len].partition_point(|(_, slot)| {
            let other = self.entries[usize::from(*slot)].key;
            if through { other <= key } else { other < key }
        })
    }
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
