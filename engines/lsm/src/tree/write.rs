//! Writes to a tree: they go to the active memtable, as part of a transaction.
//!
//! Purpose: values, tombstones, range tombstones and merge operands.
//! Invariants: what is written gets a sequence number of its own, and is visible with the commit.
//! Values are refused while a memtable waits for room; removals are not (R5).
//! Thread safety: the holder of the write permit.

use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_medium::error::Error as MediumError;
use adamant_slice::Slice;

use super::Lsm;
use super::undo::UndoGuard;
use crate::error::{Error, Result};
use crate::file::FileKind;
use crate::key::{EntryKind, RangeTombstone, check_key};
use crate::memtable::{Change, Memtable, Said};

impl Lsm {
    /// Sets values, or removes keys; each key at most once in a call.
    ///
    /// # Errors
    /// Those of keys, and of the heap. Then the transaction, or the savepoint, must be undone.
    pub fn write<'w>(
        &self,
        heap: &mut Transaction<'_>,
        changes: impl IntoIterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> Result<()> {
        let has_room = !self.is_short();
        self.change(heap, |heap, change| {
            for (key, value) in changes {
                check_key(key)?;
                if value.is_some() && !has_room {
                    return Err(self.no_room(change.memtable()));
                }
                let kind = if value.is_some() { EntryKind::Value } else { EntryKind::Tombstone };
                change.write(heap, Said::Entry(kind), (key, value.unwrap_or_default()))?;
                if value.is_some() {
                    self.gaps.fill(key);
                }
            }
            Ok(())
        })
    }

    /// Appends operands to keys, which the tree's operator merges with what the keys have: no table
    /// is read. Keys ascend, and may repeat. An operand is merged at once with those of its key in
    /// the active memtable that are at most twice as long: so a key has as many of them there as
    /// its bytes have bits, and one if its operands do not grow.
    ///
    /// # Errors
    /// `NoOperator`; `MergeFailed` if the operator refuses the operand; as [`Lsm::write`].
    pub fn merge<'w>(
        &self,
        heap: &mut Transaction<'_>,
        operands: impl IntoIterator<Item = (&'w [u8], &'w [u8])>,
    ) -> Result<()> {
        let (has_room, operator) = (!self.is_short(), self.operator()?);
        let mut last: Option<&[u8]> = None;
        let mut operands = operands.into_iter().peekable();
        while operands.peek().is_some() {
            self.change(heap, |heap, change| {
                // A change has one entry of a key.
                while let Some((key, operand)) = operands.next_if(|(key, _)| last != Some(*key)) {
                    check_key(key)?;
                    operator.check(key, operand)?;
                    if !has_room {
                        return Err(self.no_room(change.memtable()));
                    }
                    let (kind, value) = change.absorb(heap, &operator, key, operand)?;
                    change.write(heap, Said::Entry(kind), (key, &value))?;
                    self.gaps.fill(key);
                    last = Some(key);
                }
                Ok(())
            })?;
            last = None;
        }
        Ok(())
    }

    /// Removes all keys from `start` on and below `end`, whatever their number: O(1).
    ///
    /// # Errors
    /// `RangeEmpty`; as [`Lsm::write`].
    pub fn remove_range(&self, heap: &mut Transaction<'_>, start: &[u8], end: &[u8]) -> Result<()> {
        check_key(start)?;
        check_key(end)?;
        if start >= end {
            return Err(Error::RangeEmpty);
        }
        let gap = UndoGuard::new(Arc::clone(&self.gaps), |gaps| gaps.forget());
        self.change(heap, |heap, change| {
            change.write(heap, Said::Range, (start, end))?;
            let (start, end, sequence) = (Slice::new(start), Slice::new(end), change.sequence());
            self.gaps.empty(RangeTombstone { start, end, sequence });
            Ok(())
        })?;
        heap.on_commit(move |_| gap.resolve(drop));
        Ok(())
    }

    /// Makes a change of the active memtable under a number of its own; it is visible with the
    /// commit.
    fn change(
        &self,
        heap: &mut Transaction<'_>,
        work: impl FnOnce(&mut Transaction<'_>, &mut Change) -> Result<()>,
    ) -> Result<()> {
        let active = Arc::clone(&self.current.load().active);
        let mut change = Change::begin(heap, &active, self.context.sequences())?;
        work(heap, &mut change)?;
        let undo = change.finish(heap)?;
        heap.on_commit(move |_| undo.commit());
        Ok(())
    }

    fn no_room(&self, active: &Memtable) -> Error {
        Error::Medium(MediumError::OutOfSpace {
            operation: "write to tables what memtables hold in",
            path: self.context.directory(FileKind::Tables).path().into(),
            bytes: active.bytes(),
            source: std::io::ErrorKind::StorageFull.into(),
        })
    }
}
