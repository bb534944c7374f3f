//! Committing a batch.
//!
//! Purpose: the flow of a commit: sort outside all locks, apply under the writer's lock at memory
//! speed, wait for the device with no lock held.
//! Invariants: all of a batch is one heap transaction, hence one record of the log; an `Err` means
//! that none of it is there, unless the store says that it is poisoned.

use adamant_heap::Transaction;
use adamant_trees::Operation;

use crate::batch::Batch;
use crate::content::{MoveKind, Step};
use crate::engine::Tree;
use crate::error::Result;
use crate::shared::KeyVisitor;

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
        let steps = self.content.steps(&mut operations);
        let mut present = Vec::with_capacity(operations.len());
        let keys = |each: &mut KeyVisitor<'_>| self.each_key(&steps, &operations, each);
        self.shared.change(self.durability, keys, |transaction| {
            for step in &steps {
                match step {
                    Step::Apply { keyspace, operations: range } => {
                        let tree = self.tree(transaction, *keyspace)?;
                        tree.apply(transaction, &operations[range.clone()], &mut present)?;
                    }
                    Step::Move { kind, source: (source, key), target: (target, new_key) } => {
                        let source = self.tree(transaction, *source)?;
                        let target = self.tree(transaction, *target)?;
                        match kind {
                            MoveKind::Move => {
                                source.move_to(transaction, key, &target, new_key)?;
                            }
                            MoveKind::Swap => {
                                source.swap(transaction, key, &target, new_key)?;
                            }
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// All keys that the steps change, each as often as they do.
    fn each_key(
        &self,
        steps: &[Step<'_>],
        operations: &[Operation<'_>],
        each: &mut KeyVisitor<'_>,
    ) -> Result<()> {
        for step in steps {
            match step {
                Step::Apply { keyspace, operations: range } => {
                    let state = &self.keyspaces[*keyspace];
                    let operations = &operations[range.clone()];
                    operations.iter().try_for_each(|operation| each(state, operation.key))?;
                }
                Step::Move { source, target, .. } => {
                    for (keyspace, key) in [source, target] {
                        each(&self.keyspaces[*keyspace], key)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn tree(&self, transaction: &Transaction<'_>, keyspace: usize) -> Result<Tree> {
        self.keyspaces[keyspace].tree(transaction, self.shared.catalogue())
    }
}
