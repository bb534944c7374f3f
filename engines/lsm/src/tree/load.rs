//! Loads: ascending pairs that are written directly to tables.
//!
//! Purpose: bulk loads without the log and without memtables.
//! Invariants: no memtable has a key of the range, as tables are older than memtables. Files that
//! no commit names are removed once a sync says that none does.
//! Thread safety: the holder of the write permit; the tables are written by several threads.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::Transaction;
use adamant_slice::Slice;

use super::Lsm;
use super::undo::UndoGuard;
use crate::compact::{LoadPlace, Outcome, load};
use crate::error::Result;
use crate::level_compression::LEVELS;
use crate::version::tree_version::TreeVersion;

impl Lsm {
    /// Writes pairs whose keys ascend strictly directly to tables, as part of a transaction. They
    /// replace existing pairs. Does nothing and returns false if memtables have a key between the
    /// first and the last of them, because tables are older than memtables. If the transaction is
    /// undone, the next [`delete_obsolete`](crate::TreeContext::delete_obsolete) removes the files.
    ///
    /// # Errors
    /// `NotAscending`; those of keys, the storage backend and the heap. Then the transaction must
    /// be undone.
    pub fn load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        heap: &mut Transaction<'_>,
        pairs: &[(K, V)],
    ) -> Result<bool> {
        if pairs.is_empty() {
            return Ok(true);
        }
        match self.prepare_load_on(&self.tree_version_now(), pairs, 1)? {
            Some(load) => load.commit(heap).map(|()| true),
            None => Ok(false),
        }
    }

    /// The first part of [`Lsm::load`], which waits for the device. The holder of the write permit
    /// calls it under no lock, and then calls [`Load::commit`] with the same permit. `None` where
    /// `load` does nothing. So many threads write the tables, each some of them.
    ///
    /// # Errors
    /// As [`Lsm::load`].
    pub fn prepare_load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        pairs: &[(K, V)],
        threads: usize,
    ) -> Result<Option<Load>> {
        self.prepare_load_on(&self.tree_version(), pairs, threads)
    }

    fn prepare_load_on<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        tree_version: &TreeVersion,
        pairs: &[(K, V)],
        threads: usize,
    ) -> Result<Option<Load>> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(None);
        };
        let bounds = (Bound::Included(first.as_ref()), Bound::Included(last.as_ref()));
        if tree_version.are_in_memtables(bounds) {
            return Ok(None);
        }
        let level = if tree_version.are_in_tables(bounds) { 0 } else { LEVELS - 1 };
        let sequence = self.context.sequences().assign();
        let (options, place) = (self.options(), LoadPlace { level, sequence, threads });
        let outcome = load((&self.context, &options), tree_version, &place, pairs)?;
        let keys = (Slice::new(first.as_ref()), Slice::new(last.as_ref()));
        Ok(Some(Load { tree: Arc::clone(self), outcome, level, sequence, keys }))
    }
}

/// Pairs that are in tables, and in no tree yet.
#[derive(Debug)]
pub struct Load {
    tree: Arc<Lsm>,
    outcome: Outcome,
    level: usize,
    sequence: u64,
    /// The first and the last key.
    keys: (Slice, Slice),
}

impl Load {
    /// Makes them part of the tree with the transaction.
    ///
    /// # Errors
    /// Those of the heap. Then the transaction must be undone.
    pub fn commit(self, heap: &mut Transaction<'_>) -> Result<()> {
        let Self { tree, outcome, level, sequence, keys: (first, last) } = self;
        // If the edit fails the transaction is undone: nothing names the files.
        if !tree.edit(heap, outcome.edit(level))? {
            return Ok(());
        }
        let sequences = Arc::clone(tree.context.sequences());
        let unnamed = UndoGuard::new(outcome, Outcome::doom);
        heap.on_commit(move |_| {
            unnamed.resolve(Outcome::keep);
            tree.gaps.fill_between(&first, &last);
            sequences.show(sequence);
        });
        Ok(())
    }
}
