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

impl Lsm {
    /// Writes pairs whose keys ascend strictly directly to tables, which replace existing pairs
    /// from [`Load::commit`] on. The holder of the write permit calls it under no lock, as it waits
    /// for the device, and then commits with the same permit. `None` if there are no pairs, or if
    /// memtables have a key between the first and the last of them, because tables are older than
    /// memtables. So many threads write the tables, each some of them.
    ///
    /// # Errors
    /// `NotAscending`; those of keys and the storage backend.
    pub fn prepare_load<K: AsRef<[u8]> + Sync, V: AsRef<[u8]> + Sync>(
        self: &Arc<Self>,
        pairs: &[(K, V)],
        threads: usize,
    ) -> Result<Option<Load>> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(None);
        };
        let bounds = (Bound::Included(first.as_ref()), Bound::Included(last.as_ref()));
        let tree_version = self.tree_version();
        if tree_version.are_in_memtables(bounds) {
            return Ok(None);
        }
        let level = if tree_version.are_in_tables(bounds) { 0 } else { LEVELS - 1 };
        let sequence = self.context.sequences().assign();
        let (options, place) = (self.options(), LoadPlace { level, sequence, threads });
        let outcome = load((&self.context, &options), &tree_version, &place, pairs)?;
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
    /// Makes them part of the tree with the transaction. If that is undone, the next
    /// [`delete_obsolete`](crate::TreeContext::delete_obsolete) removes the files.
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
