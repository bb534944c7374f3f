//! Chunked commits of many operations.
//!
//! Purpose: a long commit admits readers between its chunks. These see the store as it was before,
//! by copies that the heap makes of what changes. This file keeps what open snapshots need beside
//! that: the old value of each key, kept before the commit becomes visible.
//! Invariants: before operations are applied, what open snapshots see of all keys up to theirs has
//! been kept. What snapshots see that were opened while the log record was written is kept before
//! the commit becomes visible. All of it has the number that the commit got when it began.
//! Thread safety: everything happens under the heap's exclusive lock.

use adamant_heap::access::Read;
use adamant_heap::{BeforeView, Ending, Transaction};
use adamant_slice::Slice;
use adamant_trees::Operation;

use crate::common::shared::Shared;
use crate::common::state::KeyspaceState;
use crate::error::Result;

/// Operations and bytes from which on a commit is chunked: it takes some 500 us. Below, the copies
/// cost more than readers gain.
const LARGE_OPERATIONS: usize = if cfg!(test) { 4 } else { 1024 };
const LARGE_BYTES: usize = 256 << 10;
/// Operations and bytes of a chunk: some 50 us during which readers wait.
const PIECE_OPERATIONS: usize = if cfg!(test) { 2 } else { 64 };
const PIECE_BYTES: usize = 64 << 10;
/// Keys whose old values are kept under one hold of the lock.
const KEPT_KEYS: usize = if cfg!(test) { 3 } else { 128 };

/// Whether a commit of so many operations, with so many bytes of keys and values, is chunked.
pub(crate) fn is_large(operations: usize, bytes: usize) -> bool {
    operations >= LARGE_OPERATIONS || bytes >= LARGE_BYTES
}

/// How many items make up a chunk, given their bytes: up to a count, and until the bytes reach a
/// bound.
pub(crate) fn piece_len(
    bytes_of_each: impl Iterator<Item = usize>,
    count_max: usize,
    bytes_max: usize,
) -> usize {
    let mut bytes = 0;
    let is_within = |of_this: &usize| {
        let is_within = bytes < bytes_max;
        bytes += of_this;
        is_within
    };
    bytes_of_each.take(count_max).take_while(is_within).count()
}

/// The operations of the next chunk, and the rest.
pub(crate) fn split_piece<'o, 'b>(
    operations: &'o [Operation<'b>],
) -> (&'o [Operation<'b>], &'o [Operation<'b>]) {
    let bytes = operations
        .iter()
        .map(|operation| operation.key.len() + operation.value.map_or(0, <[u8]>::len));
    operations.split_at(piece_len(bytes, PIECE_OPERATIONS, PIECE_BYTES))
}

/// The progress of a chunked commit. `keys` gives the keys that it changes, in that order.
pub(crate) struct Progress<'s, K, I> {
    shared: &'s Shared,
    keys: K,
    /// The commit's number, once it has begun.
    number: Option<u64>,
    /// The keys whose old values were not kept yet, and how many were.
    rest: Option<I>,
    kept: usize,
    /// A snapshot of the commit before, held open from the first foreign snapshot on.
    held: Option<u64>,
    /// Whether snapshots expired because their versions took too much memory.
    is_full: bool,
}

impl<K, I> Drop for Progress<'_, K, I> {
    fn drop(&mut self) {
        if let Some(number) = self.held.take()
            && !self.shared.is_child()
        {
            self.shared.versions().close(number);
            self.shared.destroy_unseen();
        }
    }
}

impl<'s, 'k, K, I> Progress<'s, K, I>
where
    K: Fn() -> I,
    I: Iterator<Item = (&'k KeyspaceState, &'k [u8])>,
{
    /// The progress of a commit that is about to begin.
    pub(crate) fn new(shared: &'s Shared, keys: K) -> Self {
        Self { shared, keys, number: None, rest: None, kept: 0, held: None, is_full: false }
    }

    /// To be called before the operations on the next keys, up to so many in all, are applied.
    /// Admits waiting readers.
    ///
    /// # Errors
    /// Those of looking up keys.
    pub(crate) fn advance(&mut self, transaction: &mut Transaction<'_>, keys: usize) -> Result<()> {
        // From now on, snapshots that admitted readers open are of the commit before.
        self.begin();
        transaction.yield_to_readers();
        while self.shared.versions().any() {
            let is_done = match transaction.earlier() {
                Some(earlier) => self.keep_earlier(&earlier, keys)?,
                // No reader was admitted since, so no snapshot was opened: all but the next keys
                // are kept, and these have not changed.
                None => self.keep(transaction, keys, usize::MAX, |value, _| Ok(value.into()))?,
            };
            if is_done {
                break;
            }
            if !self.is_full {
                transaction.yield_to_readers();
            }
        }
        if self.is_full {
            // From now on nothing may be kept for snapshots that are not open yet.
            transaction.refuse_readers();
        }
        Ok(())
    }

    /// To be called when the commit cannot fail any more and is not visible yet.
    pub(crate) fn finish(&mut self, ending: &mut Ending<'_, '_>) {
        loop {
            // Snapshots may have been opened while the log record was written.
            ending.drain_readers();
            if !self.shared.versions().any() {
                return;
            }
            let kept = match ending.earlier() {
                Some(earlier) => self.keep_earlier(&earlier, usize::MAX),
                None => Ok(true),
            };
            match kept {
                Ok(true) => return,
                Ok(false) if self.is_full => {}
                Ok(false) => {
                    ending.yield_to_readers();
                }
                // Snapshots cannot see what a damaged tree does not give. The commit must not be
                // undone.
                Err(_) => return self.shared.versions().expire_all(),
            }
        }
    }

    fn begin(&mut self) -> u64 {
        *self.number.get_or_insert_with(|| self.shared.versions().begin_chunks())
    }

    fn keep_earlier(&mut self, earlier: &BeforeView<'_>, keys: usize) -> Result<bool> {
        self.keep(earlier, keys, KEPT_KEYS, |value, block| match block {
            Some(block) => Ok(earlier.lend(block, value.len())?),
            None => Ok(value.into()),
        })
    }

    /// Keeps old values of keys up to so many in all, at most so many at once, if a snapshot is
    /// open; returns whether that was all.
    fn keep<R: Read>(
        &mut self,
        heap: &R,
        keys: usize,
        keys_max: usize,
        lend: impl Fn(&[u8], Option<u64>) -> Result<Slice>,
    ) -> Result<bool> {
        let (versions, number) = (self.shared.versions(), self.begin());
        let Some(mut recorder) = versions.resume_recorder(number) else { return Ok(true) };
        if self.held.is_none() {
            self.held = Some(recorder.hold());
        }
        let rest = self.rest.get_or_insert_with(&self.keys);
        let wanted = keys.saturating_sub(self.kept);
        let mut kept = 0;
        for (state, key) in rest.take(wanted.min(keys_max)) {
            let map = state.map(heap, self.shared.catalogue())?;
            if let Some(tree) = map.tree() {
                recorder.keep(heap, (state.id, tree), key, &lend)?;
            }
            kept += 1;
        }
        self.kept += kept;
        self.is_full |= recorder.finish();
        Ok(kept == wanted || kept < keys_max)
    }
}
