//! Committing a batch.
//!
//! Purpose: a commit sorts outside all locks, applies under the writer lock at memory speed, and
//! waits for the device with no lock held. A large batch is applied chunked: readers run between
//! the chunks and see nothing of it.
//! Invariants: a batch is one heap transaction, hence one log record. An `Err` means that none of
//! it is there, unless the store says that it is poisoned.

use std::borrow::Cow;
use std::cell::RefCell;

use adamant_heap::{HeldWritePermit, Transaction};
use adamant_trees::Operation;

use crate::batch::builder::Batch;
use crate::common::chunked::{Progress, is_large, split_piece};
use crate::common::content::{MoveKind, Step};
use crate::common::shared::KeyVisitor;
use crate::common::state::KeyspaceState;
use crate::engine::map::Map;
use crate::engine::tree::Engine;
use crate::engine::value_codec::PreparedRun;
use crate::error::Result;

/// What a commit is to do.
#[derive(Clone, Copy)]
struct Work<'w> {
    steps: &'w [Step<'w>],
    operations: &'w [Operation<'w>],
    /// The values of each step as they are stored; empty if no keyspace has them compressed.
    ahead: &'w [Option<PreparedRun>],
}

impl<'w> Work<'w> {
    /// The prepared values of a step, from the operation at a position in it.
    fn ahead(&self, step: usize, first: usize) -> Option<(&'w PreparedRun, usize)> {
        self.ahead.get(step)?.as_ref().map(|run| (run, first))
    }
}

impl Batch {
    /// Makes all changes in one commit and returns when it is as durable as asked. O(n log n) in
    /// the operations, O(log of the keyspace) for each.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// let mut batch = store.batch();
    /// for number in 0..100 {
    ///     batch.put(&towns, format!("Village {number}"), "100")?;
    /// }
    /// assert!(towns.is_empty()?, "nothing happens before the commit");
    /// batch.commit()?;
    /// assert_eq!(towns.len()?, 100);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// A keyspace of the batch was dropped, the store is closed, or there is no space: see
    /// [`Error::is_out_of_space`](crate::Error::is_out_of_space). None of the changes was made.
    pub fn commit(mut self) -> Result<()> {
        self.content.sort();
        // Collected before the lock is taken, in one allocation for all keyspaces.
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(self.len());
        let steps = self.content.steps(&mut operations);
        let mut present = Vec::with_capacity(operations.len());
        let is_lsm = || self.keyspaces.iter().any(|state| state.engine() == Engine::Lsm);
        let removes = || operations.iter().all(|operation| operation.value.is_none());
        let work = Work {
            steps: &steps,
            operations: &operations,
            ahead: &self.ahead(&steps, &operations)?,
        };
        match self.commit_steps(None, work, &mut present) {
            Err(error) if is_lsm() && self.shared.makes_room_for(&error, removes()) => {
                self.commit_steps(None, work, &mut present)
            }
            done => done,
        }
    }

    /// Like [`Batch::commit`], with a write permit that was taken before the batch was made: for
    /// changes that depend on what was read under it. The caller makes room and reads again.
    pub(crate) fn commit_in(mut self, permit: HeldWritePermit<'_>) -> Result<()> {
        self.content.sort();
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(self.len());
        let steps = self.content.steps(&mut operations);
        let ahead = self.ahead(&steps, &operations)?;
        let work = Work { steps: &steps, operations: &operations, ahead: &ahead };
        self.commit_steps(Some(permit), work, &mut Vec::new())
    }

    /// The values of each step as its keyspace stores them, before the image is locked.
    fn ahead(
        &self,
        steps: &[Step<'_>],
        operations: &[Operation<'_>],
    ) -> Result<Vec<Option<PreparedRun>>> {
        if self.keyspaces.iter().all(|state| state.codec().is_none()) {
            return Ok(Vec::new());
        }
        let of_step = |step: &Step<'_>| match step {
            Step::Apply { keyspace, operations: range } => {
                let values = operations[range.clone()].iter().map(|operation| operation.value);
                PreparedRun::new(self.keyspaces[*keyspace].codec(), values)
            }
            Step::Merge { .. } | Step::Move { .. } => Ok(None),
        };
        steps.iter().map(of_step).collect()
    }

    fn commit_steps(
        &self,
        permit: Option<HeldWritePermit<'_>>,
        work: Work<'_>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let Work { steps, operations, .. } = work;
        if is_large(operations.len(), self.content.bytes()) {
            return self.commit_chunked(permit, work, present);
        }
        let keys = |each: &mut KeyVisitor<'_>| {
            self.keys(steps, operations).try_for_each(|(state, key)| each(state, key))
        };
        self.shared.change(permit, self.commit_durability(), keys, |transaction| {
            for (index, step) in steps.iter().enumerate() {
                match step {
                    Step::Apply { keyspace, operations: range } => {
                        let map = self.map(transaction, *keyspace)?;
                        let ahead = work.ahead(index, 0);
                        map.apply(transaction, &operations[range.clone()], ahead, present)?;
                    }
                    Step::Merge { keyspace, operations: range } => {
                        self.merge_all(transaction, *keyspace, &operations[range.clone()])?;
                    }
                    Step::Move { kind, source, target } => {
                        self.move_one(transaction, *kind, *source, *target)?;
                    }
                }
            }
            Ok(())
        })
    }

    fn commit_chunked(
        &self,
        permit: Option<HeldWritePermit<'_>>,
        work: Work<'_>,
        present: &mut Vec<bool>,
    ) -> Result<()> {
        let Work { steps, operations, .. } = work;
        let progress = RefCell::new(Progress::new(&self.shared, || self.keys(steps, operations)));
        let body = |transaction: &mut Transaction<'_>| {
            let mut keys = 0;
            for (index, step) in steps.iter().enumerate() {
                match step {
                    Step::Apply { keyspace, operations: range } => {
                        let map = self.map(transaction, *keyspace)?;
                        let mut rest = &operations[range.clone()];
                        while !rest.is_empty() {
                            let (piece, behind) = split_piece(rest);
                            keys += piece.len();
                            progress.borrow_mut().advance(transaction, keys)?;
                            let ahead = work.ahead(index, range.len() - rest.len());
                            map.apply(transaction, piece, ahead, present)?;
                            rest = behind;
                        }
                    }
                    Step::Merge { keyspace, operations: range } => {
                        let mut rest = &operations[range.clone()];
                        while !rest.is_empty() {
                            let (piece, behind) = split_piece(rest);
                            keys += piece.len();
                            progress.borrow_mut().advance(transaction, keys)?;
                            self.merge_all(transaction, *keyspace, piece)?;
                            rest = behind;
                        }
                    }
                    Step::Move { kind, source, target } => {
                        keys += 2;
                        progress.borrow_mut().advance(transaction, keys)?;
                        self.move_one(transaction, *kind, *source, *target)?;
                    }
                }
            }
            self.shared.record_keys(transaction, |each| {
                self.keys(steps, operations).try_for_each(|(state, key)| each(state, key))
            })
        };
        self.shared.chunked_transaction(permit, self.commit_durability(), body, |ending| {
            progress.borrow_mut().finish(ending);
        })?;
        let keys = self.keys(steps, operations);
        keys.for_each(|(state, _)| state.counts().note_writes(1));
        Ok(())
    }

    fn merge_all(
        &self,
        transaction: &mut Transaction<'_>,
        keyspace: usize,
        operands: &[Operation<'_>],
    ) -> Result<()> {
        let map = self.map(transaction, keyspace)?;
        map.merge(transaction, &self.keyspaces[keyspace].name, operands)
    }

    fn move_one(
        &self,
        transaction: &mut Transaction<'_>,
        kind: MoveKind,
        (source, key): (usize, &[u8]),
        (target, new_key): (usize, &[u8]),
    ) -> Result<()> {
        let source = self.map(transaction, source)?;
        let target = self.map(transaction, target)?;
        match kind {
            MoveKind::Move => {
                source.move_to(transaction, key, &target, new_key)?;
            }
            MoveKind::Swap => {
                source.swap(transaction, key, &target, new_key)?;
            }
        }
        Ok(())
    }

    /// The keys that the steps change, with repetitions: one for an operation, two for a move.
    fn keys<'k>(
        &'k self,
        steps: &'k [Step<'k>],
        operations: &'k [Operation<'k>],
    ) -> impl Iterator<Item = (&'k KeyspaceState, &'k [u8])> {
        steps.iter().flat_map(move |step| {
            let (keyspace, operations, ends) = match step {
                Step::Apply { keyspace, operations: range }
                | Step::Merge { keyspace, operations: range } => {
                    (*keyspace, &operations[range.clone()], None)
                }
                Step::Move { source, target, .. } => (0, &operations[..0], Some([source, target])),
            };
            let applied = operations.iter().map(move |operation| (keyspace, operation.key));
            let moved = ends.into_iter().flatten().copied();
            let all = applied.chain(moved);
            all.map(|(keyspace, key)| (&*self.keyspaces[keyspace], key))
        })
    }

    fn map(&self, transaction: &Transaction<'_>, keyspace: usize) -> Result<Cow<'_, Map>> {
        self.keyspaces[keyspace].map(transaction, self.shared.catalogue())
    }
}
