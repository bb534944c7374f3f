//! Committing a batch.
//!
//! Purpose: the flow of a commit: sort outside all locks, apply under the writer's lock at memory
//! speed, wait for the device with no lock held.
//! Invariants: all of a batch is one heap transaction, hence one record of the log; an `Err` means
//! that none of it is there, unless the store says that it is poisoned.

use adamant_trees::Operation;

use crate::batch::Batch;
use crate::error::Result;

impl Batch {
    /// Makes all changes in one commit, and returns when it is as durable as asked.
    /// O(n log n) in the operations, O(log of the keyspace) for each.
    ///
    /// # Errors
    /// A keyspace of the batch was dropped, the store is closed, or there is no space: see
    /// [`Error::is_out_of_space`](crate::Error::is_out_of_space). None of the changes was made.
    pub fn commit(mut self) -> Result<()> {
        self.content.sort();
        // Gathered before the lock is taken, one allocation for all keyspaces.
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(self.len());
        let mut groups = Vec::with_capacity(self.keyspaces.len());
        for (keyspace, group) in self.content.groups() {
            let start = operations.len();
            operations.extend(group);
            groups.push((keyspace, start..operations.len()));
        }
        let mut present = Vec::with_capacity(operations.len());
        self.shared.transaction(self.durability, |transaction| {
            for (keyspace, range) in groups {
                let state = &self.keyspaces[keyspace];
                let tree = state.tree(transaction, self.shared.catalogue())?;
                tree.apply(transaction, &operations[range], &mut present)?;
            }
            Ok(())
        })
    }
}
