//! Changes of a keyspace's map.
//!
//! Purpose: single changes, moves, batches and loads, in any engine. Between two trees on the heap
//! entries move, if one decodes what the other stores; otherwise they are copied.
//! Invariants: calls that report whether a key existed have looked it up; the others have not.
//! Thread safety: all in a transaction (exclusive lock), except the pre-read before it.

use std::ops::Bound;

use adamant_heap::{Transaction, View};
use adamant_slice::Slice;
use adamant_trees::{Moved, MovedPart, Operation, Pair};

use crate::engine::lsm_keyspace::PreRead;
use crate::engine::map::Map;
use crate::engine::tree::FILL_PAIRS;
use crate::engine::value_codec::{Found, Prepared, PreparedRun};
use crate::error::Result;
use crate::reserved::ReservedValue;

impl Map {
    /// Pre-reads what a change of a key needs, before the writer lock is taken; `with_value`: the
    /// value too, not only whether the key exists. Nothing for a tree on the heap, which finds it
    /// under the lock.
    pub(crate) fn pre_read(
        &self,
        view: View<'_>,
        key: &[u8],
        with_value: bool,
    ) -> Result<Option<PreRead>> {
        match self {
            Self::Tree(_) => Ok(None),
            Self::Lsm(lsm) => lsm.pre_read(view, key, with_value).map(Some),
        }
    }

    /// Sets the value of a key; true if the key had one, which an LSM tree has to look up if it was
    /// not pre-read.
    pub(crate) fn insert(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: &Prepared<'_>,
        pre_read: Option<PreRead>,
    ) -> Result<bool> {
        match self {
            Self::Tree(tree) => tree.insert(heap, key, value),
            Self::Lsm(lsm) => {
                let was_there = lsm.find_pre_read(heap, key, pre_read)?.is_some();
                lsm.write(heap, [(key, Some(value.plain()))])?;
                Ok(was_there)
            }
        }
    }

    /// Removes a key; true if it existed. Like [`Map::insert`].
    pub(crate) fn remove(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        pre_read: Option<PreRead>,
    ) -> Result<bool> {
        match self {
            Self::Tree(tree) => tree.tree().remove(heap, key),
            Self::Lsm(lsm) => {
                let was_there = lsm.find_pre_read(heap, key, pre_read)?.is_some();
                if was_there {
                    lsm.write(heap, [(key, None)])?;
                }
                Ok(was_there)
            }
        }
    }

    /// Removes a key and returns its value, which must be pre-read with its value or not at all.
    pub(crate) fn take(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        pre_read: Option<PreRead>,
    ) -> Result<Option<Slice>> {
        let found = match self {
            Self::Tree(tree) => tree.find(heap, key)?.map(Found::into_slice),
            Self::Lsm(lsm) => lsm.find_pre_read(heap, key, pre_read)?,
        };
        if found.is_some() {
            self.write(heap, key, None)?;
        }
        Ok(found)
    }

    /// Sets the value of a key, without looking it up.
    #[inline]
    pub(crate) fn put(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: &Prepared<'_>,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.insert(heap, key, value).map(|_| ()),
            Self::Lsm(lsm) => lsm.write(heap, [(key, Some(value.plain()))]),
        }
    }

    /// Sets or removes the value of a key, without looking it up.
    pub(crate) fn write(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        match (self, value) {
            (_, Some(value)) => self.put(heap, key, &value.into()),
            (Self::Tree(tree), None) => tree.tree().remove(heap, key).map(|_| ()),
            (Self::Lsm(lsm), None) => lsm.write(heap, [(key, None)]),
        }
    }

    /// Merges operands with what their keys have, in the keyspace with this name. Keys ascend, and
    /// may repeat. O(log n) for each; an LSM tree reads no file for it.
    pub(crate) fn merge(
        &self,
        heap: &mut Transaction<'_>,
        name: &str,
        operands: &[Operation<'_>],
    ) -> Result<()> {
        let operands =
            operands.iter().filter_map(|operation| Some((operation.key, operation.value?)));
        let tree = match self {
            Self::Lsm(lsm) => return lsm.merge(heap, operands),
            Self::Tree(tree) => tree,
        };
        let operator = self.operator(name)?;
        for (key, operand) in operands {
            operator.check(key, operand)?;
            let older = tree.find(heap, key)?;
            let merged = operator.merge(key, older.as_deref(), operand)?;
            drop(older);
            tree.insert(heap, key, &merged[..].into())?;
        }
        Ok(())
    }

    /// Sets the value of a key to one allocated in place. In a tree it stays there, unless it is so
    /// short that its entry holds it, or the tree has values compressed: then this happens here,
    /// since which keyspace the value is for was not known before.
    pub(crate) fn put_reserved(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: ReservedValue,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) if tree.takes_blocks_of(value.len()) => {
                let bytes = value.len();
                let block = heap.publish(value.into_reservation())?;
                tree.tree().insert_block(heap, key, block, bytes)
            }
            _ => self.write(heap, key, Some(&value)),
        }
    }

    /// Moves the entry of a key to a key of a map of the same heap, which may be this one.
    pub(crate) fn move_to(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        target: &Self,
        new_key: &[u8],
    ) -> Result<Moved> {
        if let (Self::Tree(source), Self::Tree(target)) = (self, target)
            && target.takes_from(source)
        {
            return source.tree().move_to(heap, key, target.tree(), new_key);
        }
        let Some(value) = self.find(heap, key)?.map(Found::into_slice) else {
            return Ok(Moved::Absent);
        };
        let is_same = self.head() == target.head() && key == new_key;
        if !is_same {
            self.write(heap, key, None)?;
        }
        let replaced = target.insert(heap, new_key, &value[..].into(), None)?;
        Ok(if replaced && !is_same { Moved::Replaced } else { Moved::Placed })
    }

    /// Swaps the values of two keys; false if one of them does not exist.
    pub(crate) fn swap(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        other: &Self,
        other_key: &[u8],
    ) -> Result<bool> {
        if let (Self::Tree(one), Self::Tree(other)) = (self, other)
            && one.takes_from(other)
            && other.takes_from(one)
        {
            return one.tree().swap(heap, key, other.tree(), other_key);
        }
        let Some(value) = self.find(heap, key)?.map(Found::into_slice) else { return Ok(false) };
        let Some(other_value) = other.find(heap, other_key)?.map(Found::into_slice) else {
            return Ok(false);
        };
        self.write(heap, key, Some(&other_value))?;
        other.write(heap, other_key, Some(&value))?;
        Ok(true)
    }

    /// Moves the first entries of a range, about so many, to another map of the same heap.
    pub(crate) fn move_range(
        &self,
        heap: &mut Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        target: &Self,
        entries_max: usize,
    ) -> Result<MovedPart> {
        if let (Self::Tree(source), Self::Tree(target)) = (self, target)
            && target.takes_from(source)
        {
            return source.tree().move_range(heap, range, target.tree(), entries_max);
        }
        if self.head() == target.head() {
            return Ok(MovedPart::default());
        }
        let entries = self.entries(heap, range, entries_max)?;
        let mut piece = MovedPart::default();
        for (key, value) in &entries {
            self.write(heap, key, None)?;
            piece.replaced += u64::from(target.insert(heap, key, &value[..].into(), None)?);
            piece.moved += 1;
        }
        let is_full = entries.len() >= entries_max;
        piece.last = entries.last().filter(|_| is_full).map(|(key, _)| key.to_vec());
        Ok(piece)
    }

    /// Fills this empty map with copies of all entries of another, as it stores values itself. The
    /// other stays as it is: snapshots may see it. O(n log n).
    pub(crate) fn copy_all(&self, heap: &mut Transaction<'_>, source: &Self) -> Result<()> {
        let mut lower = Bound::Unbounded;
        loop {
            let range = (lower.as_ref().map(|key: &Slice| &key[..]), Bound::Unbounded);
            let entries = source.entries(heap, range, FILL_PAIRS)?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            let pairs: Vec<Pair<'_>> =
                entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            self.load_sorted(heap, &pairs, None)?;
            lower = Bound::Excluded(last.clone());
        }
    }

    /// Applies the changes of a batch, whose keys are strictly ascending. `ahead`: as for
    /// `TreeMap::apply`. `present` is scratch space.
    pub(crate) fn apply(
        &self,
        heap: &mut Transaction<'_>,
        operations: &[Operation<'_>],
        ahead: Option<(&PreparedRun, usize)>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.apply(heap, operations, ahead, present),
            Self::Lsm(lsm) => {
                let changes = operations.iter().map(|operation| (operation.key, operation.value));
                lsm.write(heap, changes)
            }
        }
    }

    /// Inserts pairs with strictly ascending keys; returns how many replaced one. `ahead`: as for
    /// `TreeMap::apply`.
    pub(crate) fn load_sorted(
        &self,
        heap: &mut Transaction<'_>,
        pairs: &[Pair<'_>],
        ahead: Option<&PreparedRun>,
    ) -> Result<u64> {
        match self {
            Self::Tree(tree) => tree.load_sorted(heap, pairs, ahead),
            Self::Lsm(lsm) => {
                let replaced = lsm.count_there(heap, pairs)?;
                lsm.write(heap, pairs.iter().map(|&(key, value)| (key, Some(value))))?;
                Ok(replaced)
            }
        }
    }
}
