//! Online compaction of a keyspace.
//!
//! Purpose: removals, and inserts in any order, leave nodes half empty and the entries of a node
//! all over the pool. A tree on the heap is written anew in the order of its keys, in short
//! transactions, between which readers and writers go on; an LSM tree is merged into one run.
//! Invariants: the entries are the same before and after each part, so versions and conflicts have
//! nothing to note. Parts that a crash takes leave the entries where they were before.
//! Thread safety: as all of a keyspace. It ends with the key that was the last when it began, or
//! writers that append could keep it busy for good. What others insert before that and behind the
//! part in progress is compacted with the rest.

use adamant_heap::Transaction;
use adamant_heap::durability::Durability;

use crate::engine::map::Map;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

/// Entries of a part: some 500 us during which readers wait.
const PART_ENTRIES: usize = 512;

impl Keyspace {
    /// Makes the keyspace as small and as fast to read as it can be, while it is used: the nodes of
    /// a tree become full, and entries lie side by side in the order of their keys, which makes
    /// scans up to twice as fast; a keyspace of the engine `lsm` is merged into one sorted run
    /// without obsolete versions.
    ///
    /// A tree is written anew up to its present last key, in parts of some 512 entries or 512 KiB
    /// that end with a node, a commit each; values above 40 KiB stay where they are. Readers and
    /// other writers come in between the parts. The pool may grow by as much as the tree takes,
    /// since what a part leaves behind lies among what later parts, and other keyspaces, have yet
    /// to move; [`Store::shrink`](crate::Store::shrink) gives that back, and
    /// [`Store::compact`](crate::Store::compact) does both. If the disk has no room, entries go to
    /// whatever is free in the pool. O(n log n), some 1 us an entry in `bplus`.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let visits = store.keyspace("visits")?;
    /// visits.extend((0..1000).map(|n| (format!("{n:03}"), "")))?;
    /// visits.retain(.., |key, _| key.ends_with(b"0"))?;
    /// visits.compact()?;
    /// assert_eq!(visits.len()?, 100);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// No space, damage, a keyspace that was dropped, a store that is closed, poisoned or
    /// read-only. Nothing is lost; a part of it may be compacted.
    pub fn compact(&self) -> Result<()> {
        if let Some(tree) = self.map()?.lsm() {
            return self.shared.workers().compact_all(self.name(), tree);
        }
        let Some((last, _)) = self.last()? else { return self.settle() };
        let mut next = Some(Vec::new());
        while let Some(from) = next {
            let part = |transaction: &mut Transaction<'_>| {
                let map = self.state.map(transaction, self.shared.catalogue())?.into_owned();
                // A conversion meanwhile has written all entries anew.
                let Map::Tree(tree) = map else { return Ok(None) };
                transaction.pack();
                let next = tree.tree().compact_part(transaction, &from, PART_ENTRIES)?;
                let next = next.filter(|next| next[..] <= *last);
                if next.is_none() {
                    transaction.end_packing();
                }
                Ok(next)
            };
            next = self.shared.transaction(Durability::Deferred, part)?;
        }
        self.settle()
    }
}
