//! A B+ tree in memory: the ordered index of a memtable.
//!
//! Purpose: the volatile index of a buffer on the heap (Comer, "The ubiquitous B-tree", 1979). Keys
//! are copied into it, so that a search reads nothing else; values are not. Nodes hold 8 bytes of
//! each key side by side, so a search reads a few adjacent lines of each level, where one in a skip
//! list of some hundred thousand entries took 15 to 20 cache misses.
//! Invariants: entries are ordered by key, then by sequence number, the newest first. Entries and
//! nodes are never freed before the index, so a reader that stands on a removed entry finds its
//! way.
//! Thread safety: any number of readers beside one writer. A leaf has a sequence lock, and the
//! inner nodes have one together; a reader that met a change begins again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::index_entry::{IndexEntry, Place, SearchKey, Words};
use super::index_nodes::{
    Changed, InnerNode, InnerNodes, Leaf, Leaves, SLOTS, SequenceLock, Target,
};
use super::key_filter::KeyFilter;

/// Attempts of a reader before it sleeps: some 10 us.
const SPINS: u32 = 200;
/// How long it sleeps then.
const PAUSE: Duration = Duration::from_micros(50);

/// The index.
#[derive(Debug)]
pub(crate) struct OrderedIndex {
    words: Words,
    /// Of the keys of all entries that ever existed.
    filter: KeyFilter,
    leaves: Leaves,
    inner: InnerNodes,
    /// An inner node, or a leaf if there are no levels of these; 0 if it is empty.
    root: AtomicU32,
    /// Levels of inner nodes.
    levels: AtomicU32,
    /// Of the root and all inner nodes.
    splits: SequenceLock,
}

/// An entry, and where it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position<'i> {
    entry: IndexEntry<'i>,
    leaf: &'i Leaf,
    slot: usize,
    /// The number of the leaf's lock.
    begun: u64,
}

impl<'i> std::ops::Deref for Position<'i> {
    type Target = IndexEntry<'i>;

    fn deref(&self) -> &IndexEntry<'i> {
        &self.entry
    }
}

/// A node with room, as the way down to it found it.
struct Way<'i> {
    parent: Option<(&'i InnerNode, usize)>,
    /// Between which entries its own are, or 0.
    bounds: (u32, u32),
}

impl OrderedIndex {
    pub(crate) fn new() -> Self {
        Self {
            words: Words::new(),
            filter: KeyFilter::new(),
            leaves: Leaves::new(),
            inner: InnerNodes::new(),
            root: AtomicU32::new(0),
            levels: AtomicU32::new(0),
            splits: SequenceLock::default(),
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.words.bytes() + self.filter.bytes() + self.leaves.bytes() + self.inner.bytes()
    }

    /// Whether there may be versions of a key with that hash. O(log n), mostly two cache misses.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    /// The first entry that is not before the versions of a key up to a sequence number. O(log n).
    pub(crate) fn seek(&self, key: &SearchKey<'_>, sequence: u64) -> Option<Position<'_>> {
        let target = Some((key, sequence));
        self.read(|| {
            let Some((leaf, begun)) = self.leaf_of(target)? else { return Ok(None) };
            self.at_or_after(leaf, begun, leaf.slots.position(&self.words, target, 0))
        })
    }

    /// The last entry before a target.
    pub(crate) fn last_before(&self, target: Target<'_, '_>) -> Option<Position<'_>> {
        self.read(|| {
            let Some((leaf, begun)) = self.leaf_of(target)? else { return Ok(None) };
            self.just_before(leaf, begun, leaf.slots.position(&self.words, target, 0))
        })
    }

    /// The share of the entries that are before a target, as if all nodes of a level had as many
    /// below them. O(log n).
    pub(crate) fn share_before(&self, key: &SearchKey<'_>, sequence: u64) -> f64 {
        let target = Some((key, sequence));
        self.read(|| {
            let mut node = self.root.load(Ordering::Relaxed);
            if node == 0 {
                return Ok(0.0);
            }
            let (mut before, mut width) = (0.0, 1.0);
            for _ in 0..self.levels.load(Ordering::Relaxed) {
                let inner = self.inner.get(node).ok_or(Changed)?;
                let slot = inner.slot_of(&self.words, target);
                width /= inner.slots.len().max(1) as f64;
                before += slot as f64 * width;
                node = inner.child(slot);
            }
            let leaf = self.leaves.get(node).ok_or(Changed)?;
            let begun = leaf.lock.begin()?;
            let (slot, len) = (leaf.slots.position(&self.words, target, 0), leaf.slots.len());
            leaf.lock.prove(begun)?;
            Ok(before + width * slot as f64 / len.max(1) as f64)
        })
    }

    /// The first entry.
    pub(crate) fn first(&self) -> Option<Position<'_>> {
        self.seek(&SearchKey::new(&[]), u64::MAX)
    }

    /// The entry after another one. O(1), or O(log n) if its leaf has changed.
    pub(crate) fn after<'i>(&'i self, position: &Position<'i>) -> Option<Position<'i>> {
        let Position { leaf, slot, begun, .. } = *position;
        self.at_or_after(leaf, begun, slot + 1).unwrap_or_else(|Changed| {
            let key = position.key();
            self.seek(&SearchKey::new(&key), position.sequence().saturating_sub(1))
        })
    }

    /// The entry before another one. O(1), or O(log n) if its leaf has changed.
    pub(crate) fn before<'i>(&'i self, position: &Position<'i>) -> Option<Position<'i>> {
        let Position { leaf, slot, begun, .. } = *position;
        self.just_before(leaf, begun, slot).unwrap_or_else(|Changed| {
            let key = position.key();
            self.last_before(Some((&SearchKey::new(&key), position.sequence())))
        })
    }

    /// Reads until no split came in between.
    fn read<T>(&self, read: impl Fn() -> Result<T, Changed>) -> T {
        let proven = || {
            let begun = self.splits.begin()?;
            let result = read()?;
            self.splits.prove(begun).map(|()| result)
        };
        let mut attempts = 0;
        loop {
            match proven() {
                Ok(result) => return result,
                Err(Changed) if attempts < SPINS => {
                    attempts += 1;
                    std::hint::spin_loop();
                }
                // The writer may have lost its processor within a change.
                Err(Changed) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// The leaf in which a target belongs, and the number of its lock; `None` if the index is
    /// empty.
    #[inline]
    fn leaf_of(&self, target: Target<'_, '_>) -> Result<Option<(&Leaf, u64)>, Changed> {
        let mut node = self.root.load(Ordering::Relaxed);
        if node == 0 {
            return Ok(None);
        }
        for _ in 0..self.levels.load(Ordering::Relaxed) {
            let inner = self.inner.get(node).ok_or(Changed)?;
            node = inner.child(inner.slot_of(&self.words, target));
        }
        let leaf = self.leaves.get(node).ok_or(Changed)?;
        Ok(Some((leaf, leaf.lock.begin()?)))
    }

    /// The entry in a slot of a leaf, or else the first one after it.
    fn at_or_after<'i>(
        &'i self,
        mut leaf: &'i Leaf,
        mut begun: u64,
        mut slot: usize,
    ) -> Result<Option<Position<'i>>, Changed> {
        loop {
            let (entry, next) = (leaf.slots.entry(slot), leaf.next.load(Ordering::Relaxed));
            let is_there = slot < leaf.slots.len();
            leaf.lock.prove(begun)?;
            if is_there {
                return Ok(Some(self.position(entry, leaf, slot, begun)));
            }
            let Some(next) = self.leaves.get(next) else { return Ok(None) };
            (leaf, begun, slot) = (next, next.lock.begin()?, 0);
        }
    }

    /// The last entry before a slot of a leaf.
    fn just_before<'i>(
        &'i self,
        mut leaf: &'i Leaf,
        mut begun: u64,
        mut slot: usize,
    ) -> Result<Option<Position<'i>>, Changed> {
        loop {
            let before = slot.wrapping_sub(1);
            let (entry, previous) =
                (leaf.slots.entry(before), leaf.previous.load(Ordering::Relaxed));
            leaf.lock.prove(begun)?;
            if slot > 0 {
                return Ok(Some(self.position(entry, leaf, before, begun)));
            }
            let Some(previous) = self.leaves.get(previous) else { return Ok(None) };
            begun = previous.lock.begin()?;
            // Unless that one was split meanwhile: then another leaf lies between these two.
            let next = self.leaves.get(previous.next.load(Ordering::Relaxed)).ok_or(Changed)?;
            slot = previous.slots.len();
            previous.lock.prove(begun)?;
            if !std::ptr::eq(next, leaf) {
                return Err(Changed);
            }
            leaf = previous;
        }
    }

    fn position<'i>(&'i self, entry: u32, leaf: &'i Leaf, slot: usize, begun: u64) -> Position<'i> {
        Position { entry: IndexEntry::at(&self.words, entry), leaf, slot, begun }
    }

    /// Inserts a version and returns its index, or `None` when this is full. Of equal versions the
    /// last inserted is the first. By one thread at a time. O(log n).
    pub(crate) fn insert(&self, key: &[u8], place: Place) -> Option<u32> {
        let search = SearchKey::new(key);
        self.add(Some((&search, place.sequence)), &search, place)
    }

    /// As [`OrderedIndex::insert`], for a version that is after all others.
    pub(super) fn append(&self, key: &[u8], place: Place) -> Option<u32> {
        self.add(None, &SearchKey::new(key), place)
    }

    fn add(&self, target: Target<'_, '_>, key: &SearchKey<'_>, place: Place) -> Option<u32> {
        let entry = IndexEntry::make(&self.words, key, place)?;
        self.filter.add(key.hash(), Words::chunk_of(entry));
        let (leaf, slot) = loop {
            if let Some(found) = self.place_for(target)? {
                break found;
            }
        };
        let _changing = leaf.lock.change();
        leaf.slots.insert(&self.words, slot, entry);
        Some(entry)
    }

    /// The leaf and the slot for an entry to come; `None` if a full node was split on the way down.
    /// So each node that is split has a parent with room.
    fn place_for(&self, target: Target<'_, '_>) -> Option<Option<(&Leaf, usize)>> {
        let mut node = self.root.load(Ordering::Relaxed);
        if node == 0 {
            node = self.leaves.take(1)?;
            self.root.store(node, Ordering::Release);
        }
        let mut way = Way { parent: None, bounds: (0, 0) };
        for _ in 0..self.levels.load(Ordering::Relaxed) {
            let inner = self.inner.get(node)?;
            if inner.slots.is_full() {
                self.split_inner(&way, node, inner)?;
                return Some(None);
            }
            let slot = inner.slot_of(&self.words, target);
            node = inner.child(slot);
            let upper = inner.slots.entry(slot + 1);
            let upper = if slot + 1 < inner.slots.len() { upper } else { way.bounds.1 };
            way = Way { parent: Some((inner, slot)), bounds: (inner.slots.entry(slot), upper) };
        }
        let leaf = self.leaves.get(node)?;
        let slot = leaf.slots.position(&self.words, target, 0);
        if leaf.slots.is_full() {
            self.split_leaf(&way, (node, leaf), slot)?;
            return Some(None);
        }
        Some(Some((leaf, slot)))
    }

    /// Moves the upper half of a leaf to a new one; nothing if the next entry comes behind all
    /// others, so that ascending keys fill their leaves.
    fn split_leaf(&self, way: &Way<'_>, (index, leaf): (u32, &Leaf), slot: usize) -> Option<()> {
        let added = self.leaves.take(1)?;
        let right = self.leaves.get(added)?;
        let parent = self.parent(way, index)?;
        let next = leaf.next.load(Ordering::Relaxed);
        let from = if next == 0 && slot == SLOTS { SLOTS } else { SLOTS / 2 };
        // No entry before this one is on the right, and none after it on the left.
        let bound = leaf.slots.entry(from.min(SLOTS - 1));
        let _splitting = self.splits.change();
        let _changing = leaf.lock.change();
        leaf.slots.split_to(&right.slots, from);
        leaf.slots.set_bounds(&self.words, (way.bounds.0, bound));
        right.slots.set_bounds(&self.words, (bound, way.bounds.1));
        right.next.store(next, Ordering::Relaxed);
        right.previous.store(index, Ordering::Relaxed);
        leaf.next.store(added, Ordering::Relaxed);
        if let Some(next) = self.leaves.get(next) {
            next.previous.store(added, Ordering::Relaxed);
        }
        self.add_child(parent, (bound, added));
        Some(())
    }

    /// Moves the upper half of an inner node to a new one.
    fn split_inner(&self, way: &Way<'_>, index: u32, node: &InnerNode) -> Option<()> {
        let added = self.inner.take(1)?;
        let right = self.inner.get(added)?;
        let parent = self.parent(way, index)?;
        let _splitting = self.splits.change();
        node.split_to(right);
        let bound = right.slots.entry(0);
        node.slots.set_bounds(&self.words, (way.bounds.0, bound));
        right.slots.set_bounds(&self.words, (bound, way.bounds.1));
        self.add_child(parent, (bound, added));
        Some(())
    }

    fn add_child(&self, (parent, slot): (&InnerNode, usize), child: (u32, u32)) {
        parent.insert(&self.words, slot + 1, child);
    }

    /// The parent of a node and its slot there; a new root above the root.
    fn parent<'i>(&'i self, way: &Way<'i>, child: u32) -> Option<(&'i InnerNode, usize)> {
        if let Some(parent) = way.parent {
            return Some(parent);
        }
        let index = self.inner.take(1)?;
        let root = self.inner.get(index)?;
        root.insert(&self.words, 0, (0, child));
        let _splitting = self.splits.change();
        self.root.store(index, Ordering::Relaxed);
        self.levels.fetch_add(1, Ordering::Relaxed);
        Some((root, 0))
    }

    /// Removes the entry with that index; readers that stand on it find their way on. By one thread
    /// at a time.
    pub(crate) fn remove(&self, index: u32) {
        let entry = IndexEntry::at(&self.words, index);
        let key = entry.key();
        let mut at = self.seek(&SearchKey::new(&key), entry.sequence());
        // Several entries may be equal.
        while let Some(found) = at {
            if found.leaf.slots.entry(found.slot) == index {
                let _changing = found.leaf.lock.change();
                found.leaf.slots.remove(found.slot);
                return;
            }
            at = self.after(&found);
        }
    }

    /// Walks backwards from the last entry before a target.
    pub(crate) fn back_from(&self, target: Target<'_, '_>) -> WayBack<'_> {
        WayBack { index: self, at: self.last_before(target) }
    }
}

/// The backward walk through an index, key by key.
#[derive(Debug)]
pub(crate) struct WayBack<'i> {
    index: &'i OrderedIndex,
    /// The oldest version of the next key.
    at: Option<Position<'i>>,
}

impl<'i> WayBack<'i> {
    /// The next key, which replaces `key`, and the newest of its versions up to a sequence number;
    /// false when no key is left.
    pub(crate) fn next(
        &mut self,
        sequence: u64,
        key: &mut Vec<u8>,
        seen: &mut Option<Position<'i>>,
    ) -> bool {
        let Some(oldest) = self.at else { return false };
        key.clear();
        oldest.key_to(key);
        let search = SearchKey::new(key);
        *seen = None;
        while let Some(at) = self.at.filter(|at| at.compare(&search).is_eq()) {
            if at.sequence() <= sequence {
                *seen = Some(at);
            }
            self.at = self.index.before(&at);
        }
        true
    }
}

#[cfg(test)]
mod tests;
