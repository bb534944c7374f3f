//! An LSM tree as a keyspace.
//!
//! Purpose: reads and writes of one LSM tree, with errors that name the keyspace, and notifications
//! of the background workers.
//! Invariants: the workers are notified with the commit, not before.
//! Thread safety: as of the tree: reading takes a view or a transaction, writing a transaction.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_heap::{Transaction, View};
use adamant_lsm::{CopyLimits, Error as LsmError, Glance, Lsm, LsmCheck, LsmChecking, NEWEST};
use adamant_slice::Slice;
use adamant_trees::Pair;
use adamant_wire::key::{NEXT, prefix_end};

use crate::engine::lsm_trees::LsmTrees;
use crate::engine::write_stall::WriteStall;
use crate::error::{Error, Result};
use crate::limits::KEY_BYTES_MAX;

/// Bytes that a scan copies out of each memtable under one hold of the lock.
pub(crate) const COPIED_BYTES: usize = 64 << 10;

/// An LSM tree, and the name of its keyspace for messages.
#[derive(Clone, Debug)]
pub(crate) struct LsmMap {
    pub(crate) tree: Arc<Lsm>,
    pub(crate) name: Arc<str>,
    write_stall: Arc<WriteStall>,
}

impl LsmMap {
    pub(crate) fn new(lsm_trees: &LsmTrees, tree: Arc<Lsm>, name: &str) -> Self {
        Self { tree, name: name.into(), write_stall: Arc::clone(lsm_trees.write_stall()) }
    }

    pub(crate) fn wrong(&self) -> impl Fn(LsmError) -> Error {
        Error::of_lsm(&self.name)
    }

    /// The last complete moment.
    pub(crate) fn visible(&self) -> u64 {
        self.tree.context().sequences().visible()
    }

    pub(crate) fn find<R: Read>(&self, heap: &R, key: &[u8], at: u64) -> Result<Option<Slice>> {
        self.tree.look(heap, key, at).and_then(|look| look.finish(key)).map_err(self.wrong())
    }

    /// Pre-reads what a change of a key needs, before the writer lock is taken; `with_value`: the
    /// value too, not only whether the key exists.
    pub(crate) fn pre_read(&self, view: View<'_>, key: &[u8], with_value: bool) -> Result<PreRead> {
        let glance = self.tree.glance();
        let look = glance.look(&view, key);
        drop(view);
        let found = look.and_then(|look| match with_value {
            true => look.finish(key),
            false => Ok(look.is_there(key)?.then(Slice::default)),
        });
        Ok(PreRead { tree: Arc::clone(&self.tree), glance, found: found.map_err(self.wrong())? })
    }

    /// The value as seen by a transaction without changes yet: the pre-read one, unless another
    /// commit came between.
    pub(crate) fn find_pre_read(
        &self,
        heap: &Transaction<'_>,
        key: &[u8],
        pre_read: Option<PreRead>,
    ) -> Result<Option<Slice>> {
        let at = (Bound::Included(key), Bound::Included(key));
        let holds = |seen: &PreRead| {
            Arc::ptr_eq(&seen.tree, &self.tree) && self.tree.is_as_seen(&seen.glance, at)
        };
        match pre_read.filter(holds) {
            Some(seen) => Ok(seen.found),
            None => self.find(heap, key, NEWEST),
        }
    }

    pub(crate) fn write<'w>(
        &self,
        heap: &mut Transaction<'_>,
        changes: impl IntoIterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> Result<()> {
        let (mut bytes, mut removes) = (0, false);
        let counted = changes.into_iter().inspect(|(key, value)| {
            bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
            removes |= value.is_none();
        });
        self.tree.write(heap, counted).map_err(self.wrong())?;
        self.note(heap, bytes, removes);
        Ok(())
    }

    /// Merges operands with what their keys have. Keys ascend, and may repeat.
    pub(crate) fn merge<'w>(
        &self,
        heap: &mut Transaction<'_>,
        operands: impl IntoIterator<Item = (&'w [u8], &'w [u8])>,
    ) -> Result<()> {
        let mut bytes = 0;
        let counted = operands.into_iter().inspect(|(key, operand)| {
            bytes += (key.len() + operand.len()) as u64;
        });
        self.tree.merge(heap, counted).map_err(self.wrong())?;
        self.note(heap, bytes, false);
        Ok(())
    }

    /// Notifies the workers of so many bytes, with the commit.
    fn note(&self, heap: &mut Transaction<'_>, bytes: u64, removes: bool) {
        let (tree, write_stall) = (Arc::clone(&self.tree), Arc::clone(&self.write_stall));
        heap.on_commit(move |_| {
            write_stall.note(bytes, tree.is_full());
            if removes {
                write_stall.note_removal();
            }
        });
    }

    /// Removes all keys within bounds by one range tombstone; without an upper bound those up to
    /// `last`, if there is one. O(log n).
    pub(crate) fn remove_range(
        &self,
        heap: &mut Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        last: Option<Slice>,
    ) -> Result<()> {
        let start = match range.0 {
            Bound::Unbounded => Some(Vec::new()),
            Bound::Included(key) => Some(key.to_vec()),
            Bound::Excluded(key) => next_key(key),
        };
        let last = match range.1 {
            Bound::Excluded(key) => {
                return self.remove_between(heap, start, Some(key.to_vec()), key);
            }
            Bound::Included(key) => Some(Slice::from(key)),
            Bound::Unbounded => last,
        };
        match last {
            Some(last) => self.remove_between(heap, start, next_key(&last), &last),
            None => Ok(()),
        }
    }

    /// Removes the keys from `start` on and below `end`; without `end`, up to `last`, the highest
    /// key.
    fn remove_between(
        &self,
        heap: &mut Transaction<'_>,
        start: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
        last: &[u8],
    ) -> Result<()> {
        let Some(start) = start else { return Ok(()) };
        if end.is_none() {
            self.write(heap, [(last, None)])?;
        }
        let end = end.as_deref().unwrap_or(last);
        if start[..] >= *end {
            return Ok(());
        }
        self.tree.remove_range(heap, &start, end).map_err(self.wrong())?;
        self.note(heap, (start.len() + end.len()) as u64, true);
        Ok(())
    }

    /// How many of these keys, in ascending order, have a value. Reads only if some may: a load
    /// behind all existing keys pays nothing.
    pub(crate) fn count_there(&self, heap: &Transaction<'_>, pairs: &[Pair<'_>]) -> Result<u64> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(0);
        };
        if !self.tree.may_hold((Bound::Included(*first), Bound::Included(*last))) {
            return Ok(0);
        }
        let mut count = 0;
        for (key, _) in pairs {
            let look = self.tree.look(heap, key, NEWEST);
            let is_there = look.and_then(|look| look.is_there(key));
            count += u64::from(is_there.map_err(self.wrong())?);
        }
        Ok(count)
    }

    /// Begins a check of the tree; the findings in the heap are known at once.
    pub(crate) fn check<R: Read>(&self, heap: &R) -> Result<LsmCheck> {
        self.tree.check(heap).map_err(self.wrong())
    }

    /// The same until a transaction waits for the view; `None` if there is more.
    pub(crate) fn check_part(
        &self,
        view: &View<'_>,
        checking: &mut LsmChecking,
    ) -> Result<Option<LsmCheck>> {
        let is_wanted = || view.is_waited_for();
        self.tree.check_part(view, checking, &is_wanted).map_err(self.wrong())
    }

    /// Calls a closure with the first entries of a range, at most so many, as of a moment; with or
    /// without their values.
    fn first<R: Read, T>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        (entries_max, with_values): (usize, bool),
        mut reader: impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let limits = CopyLimits { entries_max, bytes_max: COPIED_BYTES, with_values };
        let walked = self.tree.walk(heap, range, true, at, limits, |key, value| {
            found.push(reader(key, value));
            let is_full = found.len() >= entries_max;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        walked.map_err(self.wrong())?;
        Ok(found)
    }

    /// The first entries of a range, at most so many, as of a moment.
    pub(crate) fn entries<R: Read>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<(Slice, Slice)>> {
        let pair = |key: &[u8], value: &[u8]| (Slice::from(key), Slice::from(value));
        self.first(heap, at, range, (entries_max, true), pair)
    }

    /// The first keys of a range, at most so many, as of a moment.
    pub(crate) fn keys<R: Read>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<Slice>> {
        self.first(heap, at, range, (entries_max, false), |key, _| Slice::from(key))
    }
}

/// A pre-read of a key in an LSM tree, made before the writer lock is taken, so that a writer does
/// not wait for the device under it.
pub(crate) struct PreRead {
    tree: Arc<Lsm>,
    glance: Glance,
    found: Option<Slice>,
}

/// The lowest key above another one; `None` above the highest of all.
fn next_key(key: &[u8]) -> Option<Vec<u8>> {
    let mut next = key.to_vec();
    if next.len() < KEY_BYTES_MAX {
        next.extend_from_slice(NEXT);
        return Some(next);
    }
    // No key is longer, so the next key does not begin with this one.
    prefix_end(key)
}
