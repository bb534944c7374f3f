//! Transactions that have the one writer's place for themselves.
//!
//! Purpose: for those who prefer waiting to conflicts: a transaction that has the turn to write from its
//! beginning to its end, so that nobody can change what it reads. It reads and writes as any other one.
//! Thread safety: it stays on its thread. Others that write wait, asleep, until it has ended; who reads
//! does not wait. Its thread cannot write beside it, which is an error.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use adamant_heap::HeldWritePermit;

use crate::error::Result;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// A [`Transaction`] beside which nobody else writes: its commit never conflicts. Others that write, the
/// commits of other transactions among them, wait until it is committed or dropped; so it should not take
/// long. Readers and snapshots do not wait.
///
/// ```
/// use adamant::Store;
///
/// let store = Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// let mut only = store.begin_exclusive()?;
/// let apples = only.get(&stock, "apples")?.map_or(0, |value| value[0]);
/// only.insert(&stock, "apples", [apples + 1])?;
/// assert!(stock.insert("pears", "1").is_err(), "this thread would wait for itself");
/// only.commit()?;
/// assert_eq!(stock.get("apples")?, Some([1].into()));
/// # Ok::<(), adamant::Error>(())
/// ```
#[must_use = "others that write wait until it is dropped"]
pub struct ExclusiveTransaction<'s> {
    // Before the turn ends, its snapshot is closed: nothing is kept for it.
    transaction: Transaction,
    turn: HeldWritePermit<'s>,
}

impl Store {
    /// Waits until nobody else writes, and begins a transaction beside which nobody does. See
    /// [`ExclusiveTransaction`].
    ///
    /// # Errors
    /// The store is closed; [`Error::WithinExclusive`](crate::Error::WithinExclusive) if this thread has
    /// one already.
    pub fn begin_exclusive(&self) -> Result<ExclusiveTransaction<'_>> {
        let turn = self.shared.take_write_permit()?;
        let transaction = Transaction::begin(&self.shared, true)?;
        Ok(ExclusiveTransaction { transaction, turn })
    }

    /// As [`Store::begin_exclusive`], if nobody else writes just now; else `None`, at once.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let one = store.begin_exclusive()?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| assert!(store.try_begin_exclusive().unwrap().is_none()));
    /// });
    /// drop(one);
    /// assert!(store.try_begin_exclusive()?.is_some());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::begin_exclusive`].
    pub fn try_begin_exclusive(&self) -> Result<Option<ExclusiveTransaction<'_>>> {
        self.begin_exclusive_within(Duration::ZERO)
    }

    /// As [`Store::begin_exclusive`], unless others write for longer than this; then `None`. Room
    /// in the log, or in memory, is waited for before, by all that write.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use std::time::Duration;
    ///
    /// let stock = store.keyspace("stock")?;
    /// match store.begin_exclusive_within(Duration::from_millis(100))? {
    ///     Some(mut only) => {
    ///         only.insert(&stock, "apples", "1")?;
    ///         only.commit()?;
    ///     }
    ///     None => println!("somebody is at it, come back later"),
    /// }
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::begin_exclusive`].
    pub fn begin_exclusive_within(
        &self,
        longest: Duration,
    ) -> Result<Option<ExclusiveTransaction<'_>>> {
        let Some(turn) = self.shared.take_write_permit_within(longest)? else { return Ok(None) };
        let transaction = Transaction::begin(&self.shared, true)?;
        Ok(Some(ExclusiveTransaction { transaction, turn }))
    }

    /// Runs a closure in an [`ExclusiveTransaction`] and commits it: once, since it never conflicts. On
    /// `Err` nothing of it happened.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let numbers = store.keyspace("numbers")?.typed::<String, u64>()?;
    /// let next = store.exclusive(|tx| {
    ///     let mut numbers = numbers.within(tx);
    ///     let next = numbers.get("next")?.unwrap_or(1);
    ///     numbers.insert("next", &(next + 1))?;
    ///     Ok::<_, Error>(next)
    /// })?;
    /// assert_eq!(next, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the closure returns; as [`Store::begin_exclusive`] and [`ExclusiveTransaction::commit`].
    pub fn exclusive<T, E: From<crate::Error>>(
        &self,
        work: impl FnOnce(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let mut transaction = self.begin_exclusive()?;
        let made = work(&mut transaction)?;
        transaction.commit()?;
        Ok(made)
    }
}

impl ExclusiveTransaction<'_> {
    /// Makes all writes in one commit, lets others write, and returns when it is as durable as asked.
    ///
    /// # Errors
    /// As [`Batch::commit`](crate::Batch::commit);
    /// [`Error::SnapshotExpired`](crate::Error::SnapshotExpired). None of the writes was made.
    pub fn commit(self) -> Result<()> {
        let Self { transaction, turn } = self;
        transaction.commit_or_make_room(Some(turn))
    }

    /// The same, for a caller that makes room itself, and tries again.
    pub(crate) fn commit_once(self) -> Result<()> {
        let Self { transaction, turn } = self;
        transaction.commit_in(Some(turn))
    }
}

impl Deref for ExclusiveTransaction<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl DerefMut for ExclusiveTransaction<'_> {
    fn deref_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }
}

impl fmt::Debug for ExclusiveTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExclusiveTransaction").field(&self.transaction).finish()
    }
}
