//! Merges of a transaction.
//!
//! Purpose: an operand is kept beside the other writes, merged with what the transaction itself has
//! written under its key, and merged with the rest at the commit.
//! Invariants: a merge reads nothing of the store, so it cannot conflict; a read of its key does.

use super::Transaction;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::merge_operators::check_operand;
use crate::reserved::Written;

impl Transaction {
    /// Merges an operand with the value of a key, by the merge operator of the keyspace: see
    /// [`Keyspace::merge`]. Reads nothing, so it cannot conflict: two transactions that merge with
    /// the same key both commit. A read of the key within the transaction sees what the operand
    /// makes of the value when the transaction began, and counts as a read.
    ///
    /// O(key + operand), and O(log w) in the w writes of the transaction; the commit costs as
    /// [`Keyspace::merge`] for each key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let options = adamant::KeyspaceOptions::new().merge_operator("add");
    /// let visits = store.keyspace_with("visits", options)?;
    /// let (mut one, mut other) = (store.begin()?, store.begin()?);
    /// one.merge(&visits, "home", 1_u64.to_le_bytes())?;
    /// other.merge(&visits, "home", 2_u64.to_le_bytes())?;
    /// one.commit()?;
    /// other.commit()?;
    /// assert_eq!(visits.get("home")?, Some(3_u64.to_le_bytes()[..].into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::put`]; the keyspace has no merge operator, or one that is not registered;
    /// the operator refuses the operand, or fails to merge it with the transaction's own writes.
    /// The commit fails where the operator fails then, as [`Keyspace::merge`].
    pub fn merge(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        keyspace.check_writes()?;
        check_operand(operand)?;
        let table = self.table_to_write(keyspace, key, true)?;
        let operator = keyspace.operator()?;
        operator.check(key, operand)?;
        let written = match self.tables[table].writes.settle().get(key) {
            None => Written::Merged(operand.into()),
            Some(Written::Merged(older)) => {
                Written::Merged(operator.merge(key, Some(older), operand)?)
            }
            Some(own) => {
                let older = own.value(|operand| Ok(operand.clone()))?;
                Written::Value(operator.merge(key, older.as_deref(), operand)?)
            }
        };
        self.write_sorted(table, key.into(), written);
        Ok(())
    }
}
