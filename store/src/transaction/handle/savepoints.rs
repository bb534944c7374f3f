//! Savepoints of a transaction: writes that are undone, or kept, while it goes on.
//!
//! Purpose: ends the last savepoint by the undo log of the writes since.
//! Invariants: savepoints nest. Those that a closure sets end with it, and it ends none that was
//! set before it. Reads still count as reads.
//! Thread safety: as of the transaction.

use super::{Savepoint, Transaction, Undo};

impl Transaction {
    /// Runs `work`. If it fails, its writes are undone, and the transaction goes on as if it had
    /// not been called. Its reads still count as reads.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples", "7")?;
    /// let refused = transaction.savepoint(|part| {
    ///     part.put(&stock, "pears", "3").map_err(|error| error.to_string())?;
    ///     Err::<(), _>("no pears today".to_string())
    /// });
    /// assert!(refused.is_err());
    /// transaction.commit()?;
    /// assert!(stock.contains("apples")? && !stock.contains("pears")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of `work`.
    pub fn savepoint<T, E>(
        &mut self,
        work: impl FnOnce(&mut Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.set_savepoint();
        let depth = self.savepoints.len();
        let outer = std::mem::replace(&mut self.savepoints_min, depth);
        let result = work(self);
        self.savepoints_min = outer;
        // Savepoints that it has set and not ended end with it.
        self.savepoints.truncate(depth);
        self.end_savepoint(result.is_ok());
        result
    }

    /// Sets a savepoint for [`Transaction::undo_savepoint`]: like [`Transaction::savepoint`],
    /// without a closure. Savepoints nest; the last one set ends first.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// transaction.put(&stock, "apples", "7")?;
    /// transaction.set_savepoint();
    /// transaction.put(&stock, "pears", "3")?;
    /// assert!(transaction.undo_savepoint());
    /// assert!(!transaction.undo_savepoint(), "there was one");
    /// transaction.commit()?;
    /// assert_eq!(stock.len()?, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn set_savepoint(&mut self) {
        let (undo, works) = (self.undo.len(), self.works.len());
        self.savepoints.push(Savepoint { undo, works });
    }

    /// Undoes the writes since the last savepoint, and ends it. False, and nothing is done, if
    /// there is none that was set by [`Transaction::set_savepoint`] in the current scope. Reads
    /// still count as reads.
    pub fn undo_savepoint(&mut self) -> bool {
        self.end_savepoint(false)
    }

    /// Ends the last savepoint and keeps the writes since; false under the same conditions as
    /// [`Transaction::undo_savepoint`].
    pub fn keep_savepoint(&mut self) -> bool {
        self.end_savepoint(true)
    }

    fn end_savepoint(&mut self, keeps: bool) -> bool {
        if self.savepoints.len() <= self.savepoints_min {
            return false;
        }
        let Some(Savepoint { undo, works }) = self.savepoints.pop() else { return false };
        if !keeps {
            self.works.truncate(works);
            for Undo { table, key, before } in self.undo.drain(undo..).rev() {
                let table = &mut self.tables[table];
                table.notes.get_mut().empty.remove(&key);
                match before {
                    Some(value) => table.writes.settle().insert(key, value),
                    // The pre-read may have passed the snapshot's entry there.
                    None => {
                        table.ahead = [None, None];
                        table.writes.settle().remove(&key[..])
                    }
                };
            }
        }
        if self.savepoints.is_empty() {
            self.undo.clear();
        }
        true
    }
}
