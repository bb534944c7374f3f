//! A small B+ tree: leaves on the heap, the index in memory.
//!
//! Purpose: fills and splits leaves that keep their pairs by a strategy.
//! Invariants: leaves are linked in key order from the one that the heap's root 0 names; all keys
//! of a leaf are below those of the next. An insert, with the split that it may need, is one
//! transaction: the index in memory changes after its commit, and is rebuilt from the leaves when
//! the tree is opened.

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;
use std::ops::Bound;

use adamant_heap::{Durability, Heap, Read, Transaction, Write};
use adamant_trees::slot::KeyHash;

use super::strategy::{LEAF_SLOTS, NEXT_AT, Pair, Strategy, bytes_at};
use crate::harness::error::{Result, ensure};

/// The root that names the first leaf.
const ROOT: usize = 0;

/// The result of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted {
    /// Whether the key was there before.
    pub replaced: bool,
    /// Bytes that a split stored to move pairs, if a leaf was split.
    pub split: Option<u64>,
}

/// A tree by one strategy.
#[derive(Debug)]
pub struct Leaves<S> {
    /// The lowest key of each leaf, or a lower one.
    index: BTreeMap<Vec<u8>, u64>,
    scratch: Vec<u8>,
    strategy: PhantomData<S>,
}

/// A leaf that a split made.
struct New {
    lowest: Vec<u8>,
    leaf: u64,
    stored: u64,
}

impl<S: Strategy> Leaves<S> {
    /// Creates an empty tree in a heap, with one leaf.
    ///
    /// # Errors
    /// The heap's.
    pub fn create(heap: &Heap, durability: Durability) -> Result<Self> {
        let first = heap.transaction(durability, |tx| -> Result<u64> {
            let leaf = tx.reserve_zeroed(S::LEAF_BYTES as u64)?;
            tx.set_root(ROOT, leaf)?;
            Ok(leaf)
        })?;
        Ok(Self::with(BTreeMap::from([(Vec::new(), first)])))
    }

    fn with(index: BTreeMap<Vec<u8>, u64>) -> Self {
        Self { index, scratch: Vec::new(), strategy: PhantomData }
    }

    /// Opens the tree of a heap. O(leaves).
    ///
    /// # Errors
    /// The heap's, and leaves that the tree cannot have written.
    pub fn open(heap: &Heap) -> Result<Self> {
        let view = heap.view()?;
        let mut index = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut next = view.root(ROOT);
        let mut highest: Option<Vec<u8>> = None;
        while next != 0 {
            ensure(seen.insert(next), || "a leaf comes twice".into())?;
            let leaf = view.block(next)?;
            let sorted = sorted::<S, _>(&view, leaf)?;
            let lowest = sorted.first().map_or(&[][..], |(key, _)| key);
            ensure(highest.as_deref().is_none_or(|highest| highest < lowest), || {
                "leaves are out of order".into()
            })?;
            highest = sorted.last().map(|(key, _)| key.to_vec()).or(highest);
            // The first leaf takes all keys below.
            let bound = if index.is_empty() { &[] } else { lowest };
            index.insert(bound.to_vec(), next);
            next = next_of(leaf)?;
        }
        ensure(!index.is_empty(), || "the heap holds no such tree".into())?;
        Ok(Self::with(index))
    }

    /// Number of leaves.
    pub fn leaf_count(&self) -> u64 {
        self.index.len() as u64
    }

    /// Puts a pair, in a transaction that calls `also` before its commit.
    ///
    /// # Errors
    /// The heap's, out of space among them; then nothing has changed.
    pub fn insert(
        &mut self,
        heap: &Heap,
        durability: Durability,
        (key, value): (&[u8], &[u8]),
        also: impl FnOnce(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<Inserted> {
        let pair = Pair { hash: hash_of(key), key, value };
        let leaf = self.leaf_of(key)?;
        let scratch = &mut self.scratch;
        let (replaced, new) = heap.transaction(durability, |tx| -> Result<_> {
            let outcome = insert::<S>(tx, leaf, pair, scratch)?;
            also(tx)?;
            Ok(outcome)
        })?;
        let split = new.as_ref().map(|new| new.stored);
        if let Some(new) = new {
            self.index.insert(new.lowest, new.leaf);
        }
        Ok(Inserted { replaced, split })
    }

    fn leaf_of(&self, key: &[u8]) -> Result<u64> {
        let below =
            self.index.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        Ok(below.map(|(_, leaf)| *leaf).ok_or("no leaf takes the key")?)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The heap's.
    pub fn get<'r, R: Read>(&self, read: &'r R, key: &[u8]) -> Result<Option<&'r [u8]>> {
        let leaf = read.block(self.leaf_of(key)?)?;
        match find::<S, R>(read, leaf, hash_of(key), key)? {
            Some(slot) => S::value(read, leaf, slot).map(Some),
            None => Ok(None),
        }
    }

    /// Hands out all pairs in key order. Returns the number of blocks of leaves and pairs.
    ///
    /// # Errors
    /// Those of `each`; the heap's.
    pub fn visit<R: Read>(
        &self,
        read: &R,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut blocks = self.leaf_count();
        for leaf in self.index.values() {
            let leaf = read.block(*leaf)?;
            for (key, slot) in sorted::<S, R>(read, leaf)? {
                each(key, S::value(read, leaf, slot)?)?;
                blocks += S::blocks(leaf, slot)?;
            }
        }
        Ok(blocks)
    }
}

/// One byte of a key's hash; 0 stands for a free slot.
fn hash_of(key: &[u8]) -> u8 {
    KeyHash::of(key).fingerprint().max(1)
}

fn next_of(leaf: &[u8]) -> Result<u64> {
    let word = bytes_at(leaf, NEXT_AT, 8)?.first_chunk().ok_or("a leaf is too short")?;
    Ok(u64::from_le_bytes(*word))
}

/// The slot of a key.
fn find<S: Strategy, R: Read>(
    read: &R,
    leaf: &[u8],
    hash: u8,
    key: &[u8],
) -> Result<Option<usize>> {
    for slot in (0..LEAF_SLOTS).filter(|slot| S::hash(leaf, *slot) == hash) {
        if S::key(read, leaf, slot)? == key {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

/// Keys and slots of a leaf, by key.
fn sorted<'r, S: Strategy, R: Read>(read: &'r R, leaf: &'r [u8]) -> Result<Vec<(&'r [u8], usize)>> {
    let used = (0..LEAF_SLOTS).filter(|slot| S::hash(leaf, *slot) != 0);
    let keys: Result<Vec<_>> = used.map(|slot| Ok((S::key(read, leaf, slot)?, slot))).collect();
    let mut keys = keys?;
    keys.sort_unstable();
    ensure(keys.is_sorted_by(|left, right| left.0 < right.0), || "a key comes twice".into())?;
    Ok(keys)
}

/// Inserts into the leaf of the key; returns whether the key was there, and the leaf that had to be
/// created for it.
fn insert<S: Strategy>(
    tx: &mut Transaction<'_>,
    leaf: u64,
    pair: Pair<'_>,
    scratch: &mut Vec<u8>,
) -> Result<(bool, Option<New>)> {
    let bytes = tx.block(leaf)?;
    if let Some(slot) = find::<S, _>(tx, bytes, pair.hash, pair.key)? {
        S::replace(tx, leaf, slot, pair)?;
        return Ok((true, None));
    }
    if let Some(slot) = (0..LEAF_SLOTS).find(|slot| S::hash(bytes, *slot) == 0) {
        S::fill(tx, leaf, slot, pair)?;
        return Ok((false, None));
    }
    let new = split::<S>(tx, leaf, scratch)?;
    let target = if pair.key < new.lowest.as_slice() { leaf } else { new.leaf };
    let bytes = tx.block(target)?;
    let slot = (0..LEAF_SLOTS).find(|slot| S::hash(bytes, *slot) == 0);
    S::fill(tx, target, slot.ok_or("a leaf that was split has no room")?, pair)?;
    Ok((false, Some(new)))
}

/// Moves the upper half of a full leaf to a new one after it.
fn split<S: Strategy>(tx: &mut Transaction<'_>, leaf: u64, scratch: &mut Vec<u8>) -> Result<New> {
    let bytes = tx.block(leaf)?;
    let after = next_of(bytes)?;
    let sorted = sorted::<S, _>(tx, bytes)?;
    let upper = &sorted[sorted.len() / 2..];
    let lowest = upper.first().map_or(Vec::new(), |(key, _)| key.to_vec());
    let slots: Vec<usize> = upper.iter().map(|(_, slot)| *slot).collect();
    let new = tx.reserve_zeroed(S::LEAF_BYTES as u64)?;
    let mut stored = 0;
    for slot in slots {
        stored += S::relocate(tx, (leaf, new), slot, scratch)?;
    }
    tx.write(new, NEXT_AT, 8)?.copy_from_slice(&after.to_le_bytes());
    tx.update_u64(leaf, NEXT_AT, new)?;
    Ok(New { lowest, leaf: new, stored })
}
