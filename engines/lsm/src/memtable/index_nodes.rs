//! The nodes of a memtable's index: sorted slots, and the locks by which readers notice changes.
//!
//! Purpose: a search within a node reads adjacent memory, and only rarely an entry.
//! Invariants: slots are sorted by key, then by sequence number, the newest first. All keys that
//! belong into a node begin with the same `skip` bytes.
//! Thread safety: a sequence lock (Boehm, "Can seqlocks get along with programming language memory
//! models?", MSPC 2012). The writer makes its number odd, changes what it guards, and makes it even
//! again; a reader that finds another number than before reads again. All that is guarded is
//! atomic, so what a reader sees meanwhile is wrong at worst.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use zerocopy::FromZeros;

use super::arena::Arena;
use super::index_entry::{IndexEntry, SearchKey, Words};

/// Slots of a node.
pub(super) const SLOTS: usize = 32;

/// The leaves.
pub(super) type Leaves = Arena<Leaf, 1>;
/// The inner nodes.
pub(super) type InnerNodes = Arena<InnerNode, 1>;

/// What a search looks for: the versions of a key up to a sequence number; `None` for the end.
pub(super) type Target<'t, 'k> = Option<(&'t SearchKey<'k>, u64)>;

/// A reader met a change and has to begin again.
#[derive(Debug)]
pub(super) struct Changed;

/// A sequence lock: twice the number of changes of what it guards; odd during one.
#[derive(Debug, Default, FromZeros)]
pub(super) struct SequenceLock(AtomicU64);

impl SequenceLock {
    /// Begins to read.
    #[inline]
    pub(super) fn begin(&self) -> Result<u64, Changed> {
        let begun = self.0.load(Ordering::Acquire);
        if begun.is_multiple_of(2) { Ok(begun) } else { Err(Changed) }
    }

    /// Proves what was read since `begin`.
    #[inline]
    pub(super) fn prove(&self, begun: u64) -> Result<(), Changed> {
        // A load that saw a store behind the fence of `change` makes this load see its number.
        fence(Ordering::Acquire);
        if self.0.load(Ordering::Relaxed) == begun { Ok(()) } else { Err(Changed) }
    }

    /// Begins a change, which ends when the result is dropped. By one thread at a time.
    pub(super) fn change(&self) -> Changing<'_> {
        let number = self.0.load(Ordering::Relaxed);
        self.0.store(number + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        Changing { lock: self, next: number + 2 }
    }
}

/// A change that is under way.
pub(super) struct Changing<'l> {
    lock: &'l SequenceLock,
    next: u64,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.lock.0.store(self.next, Ordering::Release);
    }
}

/// The sorted slots of a node.
#[derive(Debug, FromZeros)]
pub(super) struct Slots {
    /// The 8 bytes of each slot's key after `skip`.
    heads: [AtomicU64; SLOTS],
    /// Its entry.
    entries: [AtomicU32; SLOTS],
    len: AtomicU32,
    skip: AtomicU32,
}

impl Slots {
    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.len.load(Ordering::Relaxed) as usize).min(SLOTS)
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == SLOTS
    }

    /// The entry in a slot; 0 if there is none.
    #[inline]
    pub(super) fn entry(&self, slot: usize) -> u32 {
        self.entries.get(slot).map_or(0, |entry| entry.load(Ordering::Relaxed))
    }

    /// The first slot from `from` on that is not before a target. Compares heads, without branches
    /// so that the loads of several cache lines overlap, and entries only of equal heads.
    #[inline]
    pub(super) fn position(&self, words: &Words, target: Target<'_, '_>, from: usize) -> usize {
        let len = self.len().max(from);
        let Some((key, sequence)) = target else { return len };
        let head = key.head(self.skip.load(Ordering::Relaxed) as usize);
        let (mut start, mut end) = (from, from);
        for other in &self.heads[from..len] {
            let other = other.load(Ordering::Relaxed);
            start += usize::from(other < head);
            end += usize::from(other <= head);
        }
        while start < end {
            let middle = start.midpoint(end);
            if IndexEntry::at(words, self.entry(middle)).is_before(key, sequence) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    /// Puts an entry into a slot; those from there on move up. There must be room.
    pub(super) fn insert(&self, words: &Words, slot: usize, entry: u32) {
        let skip = self.skip.load(Ordering::Relaxed) as usize;
        for at in (slot..self.len()).rev() {
            self.set(at + 1, self.heads[at].load(Ordering::Relaxed), self.entry(at));
        }
        self.set(slot, IndexEntry::at(words, entry).head(skip), entry);
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes an entry out of its slot.
    pub(super) fn remove(&self, slot: usize) {
        let len = self.len();
        for at in slot + 1..len {
            self.set(at - 1, self.heads[at].load(Ordering::Relaxed), self.entry(at));
        }
        self.len.store(len as u32 - 1, Ordering::Relaxed);
    }

    /// Moves the slots from `from` on to an empty node.
    pub(super) fn split_to(&self, right: &Self, from: usize) {
        for at in from..self.len() {
            right.set(at - from, self.heads[at].load(Ordering::Relaxed), self.entry(at));
        }
        right.len.store((self.len() - from) as u32, Ordering::Relaxed);
        right.skip.store(self.skip.load(Ordering::Relaxed), Ordering::Relaxed);
        self.len.store(from as u32, Ordering::Relaxed);
    }

    /// Sets the bounds of the keys that belong here, entries or 0: what they share is skipped.
    pub(super) fn set_bounds(&self, words: &Words, (lower, upper): (u32, u32)) {
        let is_edge = lower == 0 || upper == 0;
        let (lower, upper) = (IndexEntry::at(words, lower), IndexEntry::at(words, upper));
        let skip = if is_edge { 0 } else { lower.common_len(&upper) };
        if skip == self.skip.load(Ordering::Relaxed) as usize {
            return;
        }
        self.skip.store(skip as u32, Ordering::Relaxed);
        for at in 0..self.len() {
            let entry = self.entry(at);
            self.set(at, IndexEntry::at(words, entry).head(skip), entry);
        }
    }

    fn set(&self, slot: usize, head: u64, entry: u32) {
        self.heads[slot].store(head, Ordering::Relaxed);
        self.entries[slot].store(entry, Ordering::Relaxed);
    }
}

/// A leaf: entries.
#[derive(Debug, FromZeros)]
pub(super) struct Leaf {
    pub(super) slots: Slots,
    /// Of its slots and of `next`.
    pub(super) lock: SequenceLock,
    /// The neighbours, or 0.
    pub(super) next: AtomicU32,
    pub(super) previous: AtomicU32,
}

/// An inner node: children, each with the entry that none of its own is before; 0 for the first one
/// of the lowest node of each level.
#[derive(Debug, FromZeros)]
pub(super) struct InnerNode {
    pub(super) slots: Slots,
    pub(super) children: [AtomicU32; SLOTS],
}

impl InnerNode {
    /// The slot of the child in which a target belongs.
    #[inline]
    pub(super) fn slot_of(&self, words: &Words, target: Target<'_, '_>) -> usize {
        self.slots.position(words, target, 1) - 1
    }

    #[inline]
    pub(super) fn child(&self, slot: usize) -> u32 {
        self.children.get(slot).map_or(0, |child| child.load(Ordering::Relaxed))
    }

    /// Puts a child and its lower bound into a slot. There must be room.
    pub(super) fn insert(&self, words: &Words, slot: usize, (bound, child): (u32, u32)) {
        for at in (slot..self.slots.len()).rev() {
            self.children[at + 1].store(self.child(at), Ordering::Relaxed);
        }
        self.children[slot].store(child, Ordering::Relaxed);
        self.slots.insert(words, slot, bound);
    }

    /// Moves the upper half to an empty node.
    pub(super) fn split_to(&self, right: &Self) {
        for at in SLOTS / 2..SLOTS {
            right.children[at - SLOTS / 2].store(self.child(at), Ordering::Relaxed);
        }
        self.slots.split_to(&right.slots, SLOTS / 2);
    }
}
