//! Trees of dropped keyspaces: they are freed when no snapshot sees them any more.

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;

use super::OpenStore;
use crate::engine::map::Map;
use crate::guard;

/// Entries of an unseen tree that one commit frees: some 5 milliseconds.
const PIECE_ENTRIES: usize = 16 << 10;

impl OpenStore {
    /// Frees the trees that were kept for snapshots and that none sees any more.
    #[inline]
    pub(crate) fn destroy_unseen(&self) {
        if self.versions.has_unseen() {
            self.destroy_unseen_now();
        }
    }

    #[cold]
    fn destroy_unseen_now(&self) {
        // Otherwise they are freed after a later commit.
        if !guard::is_held(self.number()) && !self.heap.has_writer() {
            let trees = self.versions.take_unseen();
            self.destroy_retired(trees.iter().map(Map::head).collect());
        }
    }

    /// Work that fails here, or comes too late, is left to the next open; a check finds damage.
    pub(crate) fn destroy_retired(&self, heads: Vec<u64>) {
        for head in heads {
            // Chunked, so that neither the log record nor the wait of other threads grows with the
            // tree.
            let thin = |transaction: &mut Transaction<'_>| {
                self.catalogue.thin_retired(transaction, head, PIECE_ENTRIES)
            };
            while let Ok(true) = self.transaction(Durability::Deferred, thin) {}
            let _ = self.transaction(Durability::Deferred, |transaction| {
                self.catalogue.destroy_retired(transaction, head)
            });
        }
        // Files of freed trees are removed now, or by the next open.
        let _ = self.catalogue.lsm_trees().delete_obsolete(&self.heap);
    }
}
