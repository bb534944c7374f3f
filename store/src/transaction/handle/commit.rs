//! Committing a transaction.
//!
//! Purpose: validates the reads and applies the writes. Large transactions are applied chunked:
//! readers run between the chunks and see nothing of it.
//! Invariants: keys are announced in the order in which they are written. An `Err` means that
//! nothing was written, unless the store says that it is poisoned.

use std::cell::RefCell;
use std::sync::Arc;

use adamant_heap::durability::Durability;
use adamant_heap::{HeldWritePermit, Transaction as HeapTransaction, events};
use adamant_trees::Operation;
use tracing::debug;

use super::{Table, Transaction};
use crate::common::chunked::{Progress, is_large, split_piece};
use crate::common::shared::changes::note_writes;
use crate::common::shared::{KeyVisitor, Shared};
use crate::common::state::KeyspaceState;
use crate::engine::value_codec::PreparedRun;
use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::transaction::writes::Writes;

impl Transaction {
    /// Makes all writes in one commit, unless something that was read has changed, and returns when
    /// the commit is as durable as asked. A transaction without writes never conflicts; it returns
    /// when what it has read is as durable: at once, unless others have committed with less
    /// durability.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples", "7")?;
    /// transaction.commit()?;
    /// assert_eq!(stock.get("apples")?, Some("7".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Conflict`], [`Error::SnapshotExpired`]; otherwise as
    /// [`Batch::commit`](crate::Batch::commit). None of the writes was made.
    pub fn commit(self) -> Result<()> {
        self.commit_or_make_room(None)
    }

    /// If there is no room for a transaction that only removes, makes some. The caller has to run
    /// the transaction again, since by then it would read another state.
    pub(crate) fn commit_or_make_room(mut self, permit: Option<HeldWritePermit<'_>>) -> Result<()> {
        let (shared, removes) = (Arc::clone(self.snapshot.shared()), self.removes_only());
        let done = self.commit_in(permit);
        if let (Err(error), true) = (&done, removes) {
            shared.makes_room_for(error, true);
        }
        done
    }

    /// Whether all its writes are removes.
    pub(crate) fn removes_only(&mut self) -> bool {
        self.prepare();
        let removes = |table: &Table| {
            table.writes.reserved().next().is_none()
                && table.writes.operands().next().is_none()
                && table.writes.operations().all(|operation| operation.value.is_none())
        };
        self.works.is_empty() && self.tables.iter().all(removes)
    }

    /// Sorts the writes, and ends the pre-reads, which keep the snapshot open.
    fn prepare(&mut self) {
        for index in 0..self.tables.len() {
            self.end_popping(index);
            let table = &mut self.tables[index];
            table.writes.prepare();
            table.ahead = [None, None];
        }
    }

    /// The same, under a writer lock taken before the transaction began: then nothing can have
    /// changed.
    pub(crate) fn commit_in(mut self, permit: Option<HeldWritePermit<'_>>) -> Result<()> {
        self.prepare();
        let works = std::mem::take(&mut self.works);
        if works.is_empty() && self.tables.iter().all(|table| table.writes.len() == 0) {
            // Other writers need not wait for the device with it.
            drop(permit);
            return self.snapshot.shared().settle(self.commit_durability(false));
        }
        // Its reads were not recorded: a caller has swapped the transaction out of its exclusive
        // one, which held the writer lock.
        if let (true, None, Some(table)) = (self.is_alone, &permit, self.tables.first()) {
            return Err(Error::Conflict { keyspace: table.keyspace.name().into() });
        }
        let durability = self.commit_durability(!works.is_empty());
        let number = self.snapshot.shared().number();
        let work = |transaction: &mut HeapTransaction<'_>| {
            // A use of the store in there gets an error, where it would wait for itself.
            let _guard = Guard::new(number);
            works.into_iter().try_for_each(|work| work(transaction)).map_err(Error::from)
        };
        let shared = self.snapshot.shared();
        let check = |transaction: &mut HeapTransaction<'_>| self.validate(shared, transaction);
        let ahead = self.ahead()?;
        if self.is_large() {
            return self.commit_chunked((permit, durability), &ahead, check, work);
        }
        let keys = |each: &mut KeyVisitor<'_>| self.each_key(each);
        // Its own snapshot needs no old values of what it writes.
        let lends = shared.versions().are_several();
        shared.change_after(permit, durability, lends, keys, check, |transaction| {
            self.apply(shared, transaction, &ahead, |_, operations| {
                Ok(operations.split_at(operations.len()))
            })?;
            work(transaction)?;
            shared.record_keys(transaction, keys)
        })
    }

    /// The values of each table as its keyspace stores them, before the image is locked.
    fn ahead(&self) -> Result<Vec<Option<PreparedRun>>> {
        let of_table = |table: &Table| {
            let values = table.writes.operations().map(|operation| operation.value);
            PreparedRun::new(table.keyspace.state.codec(), values)
        };
        self.tables.iter().map(of_table).collect()
    }

    fn is_large(&self) -> bool {
        let writes = || self.tables.iter().map(|table| &table.writes);
        is_large(writes().map(Writes::len).sum(), writes().map(Writes::copied_bytes).sum())
    }

    fn commit_chunked(
        &self,
        (permit, durability): (Option<HeldWritePermit<'_>>, Durability),
        ahead: &[Option<PreparedRun>],
        check: impl FnOnce(&mut HeapTransaction<'_>) -> Result<()>,
        work: impl FnOnce(&mut HeapTransaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let shared = self.snapshot.shared();
        let progress = RefCell::new(Progress::new(shared, || self.keys()));
        let body = |transaction: &mut HeapTransaction<'_>| {
            check(transaction)?;
            let mut keys = 0;
            self.apply(shared, transaction, ahead, |transaction, operations| {
                let (piece, behind) = split_piece(operations);
                keys += piece.len();
                progress.borrow_mut().advance(transaction, keys)?;
                Ok((piece, behind))
            })?;
            work(transaction)?;
            shared.record_keys(transaction, |each| self.each_key(each))
        };
        shared.chunked_transaction(permit, durability, body, |ending| {
            progress.borrow_mut().finish(ending);
        })?;
        note_writes(|each| self.each_key(each));
        Ok(())
    }

    fn each_key(&self, each: &mut KeyVisitor<'_>) -> Result<()> {
        self.keys().try_for_each(|(state, key)| each(state, key))
    }

    /// All keys that it writes, in the order of `apply`.
    fn keys(&self) -> impl Iterator<Item = (&KeyspaceState, &[u8])> {
        self.tables.iter().flat_map(|table| {
            let operations = table.writes.operations().map(|operation| operation.key);
            let operands = table.writes.operands().map(|operand| operand.key);
            let reserved = table.writes.reserved().map(|(key, _)| &key[..]);
            let keys = operations.chain(operands).chain(reserved);
            keys.map(|key| (&*table.keyspace.state, key))
        })
    }

    /// Validates the reads against later commits, and closes the snapshot: from here on no old
    /// values are kept for it.
    fn validate(&self, shared: &Shared, transaction: &HeapTransaction<'_>) -> Result<()> {
        for table in &self.tables {
            let (id, notes) = (table.keyspace.state.id, table.notes.borrow());
            let read = &notes.read;
            let number = self.snapshot.number();
            let mut changed = shared.versions().has_changed(number, id, read)?;
            // A keyspace that was dropped since has changed.
            let map = table.keyspace.state.map(transaction, shared.catalogue())?;
            if !changed && map.lsm().is_some() {
                changed = read.has_changed(&map, shared.versions().moment_of(number))?;
            }
            if changed {
                shared.metrics().conflict();
                debug!(target: events::TRANSACTION, keyspace = table.keyspace.name(), "conflict");
                return Err(Error::Conflict { keyspace: table.keyspace.name().into() });
            }
        }
        self.snapshot.close();
        Ok(())
    }

    /// Applies the writes; `split` says how many operations come next.
    fn apply(
        &self,
        shared: &Shared,
        transaction: &mut HeapTransaction<'_>,
        ahead: &[Option<PreparedRun>],
        mut split: impl for<'o, 'b> FnMut(
            &mut HeapTransaction<'_>,
            &'o [Operation<'b>],
        ) -> Result<(&'o [Operation<'b>], &'o [Operation<'b>])>,
    ) -> Result<()> {
        let mut present = Vec::new();
        for (table, ahead) in self.tables.iter().zip(ahead) {
            let operations: Vec<Operation<'_>> = table.writes.operations().collect();
            let map = table.keyspace.state.map(transaction, shared.catalogue())?;
            let mut rest = &operations[..];
            while !rest.is_empty() {
                let (piece, behind) = split(transaction, rest)?;
                let ahead = ahead.as_ref().map(|run| (run, operations.len() - rest.len()));
                map.apply(transaction, piece, ahead, &mut present)?;
                rest = behind;
            }
            let operands: Vec<Operation<'_>> = table.writes.operands().collect();
            let mut rest = &operands[..];
            while !rest.is_empty() {
                let (piece, behind) = split(transaction, rest)?;
                map.merge(transaction, table.keyspace.name(), piece)?;
                rest = behind;
            }
            for (key, value) in table.writes.reserved() {
                split(transaction, &[Operation { key, value: None }])?;
                if let Some(value) = value.take() {
                    map.put_reserved(transaction, key, value)?;
                }
            }
        }
        Ok(())
    }
}
