//! Exclusive transactions, which hold the writer lock.
//!
//! Purpose: for callers that prefer waiting to conflicts: a transaction that holds the write permit
//! from its beginning to its end, so that no other commit can change what it reads. It reads and
//! writes like any other.
//! Thread safety: it stays on its thread. Other writers sleep until it has ended; readers do not
//! wait. Its thread cannot write beside it; that is an error.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use adamant_heap::HeldWritePermit;

use crate::error::Result;
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// A [`Transaction`] that excludes other writers: its commit never conflicts. Other writers, the
/// commits of other transactions included, wait until it is committed or dropped, so it should be
/// short. Readers and snapshots do not wait.
///
/// ```
/// use adamant::Store;
///
/// let store = Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// let mut only = store.begin_exclusive()?;
/// let apples = only.get(&stock, "apples")?.map_or(0, |value| value[0]);
/// only.put(&stock, "apples", [apples + 1])?;
/// assert!(stock.put("pears", "1").is_err(), "this thread would wait for itself");
/// only.commit()?;
/// assert_eq!(stock.get("apples")?, Some([1].into()));
/// # Ok::<(), adamant::Error>(())
/// ```
#[must_use = "others that write wait until it is dropped"]
pub struct ExclusiveTransaction<'s> {
    // Declared first, so that its snapshot is closed before the permit is released: no old values
    // are kept for it.
    transaction: Transaction,
    permit: HeldWritePermit<'s>,
}

impl Store {
    /// Waits for the writer lock and begins an exclusive transaction. See [`ExclusiveTransaction`].
    ///
    /// # Errors
    /// The store is closed; [`Error::WithinExclusive`](crate::Error::WithinExclusive) if this
    /// thread has one already.
    pub fn begin_exclusive(&self) -> Result<ExclusiveTransaction<'_>> {
        let permit = self.shared.take_write_permit()?;
        let transaction = Transaction::begin(&self.shared, true)?;
        Ok(ExclusiveTransaction { transaction, permit })
    }

    /// Like [`Store::begin_exclusive`] if the writer lock is free; otherwise `None`, at once.
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

    /// Like [`Store::begin_exclusive`], but waits for the writer lock at most this long; then
    /// `None`. Before that it waits, like every writer, for space in the log or in memory.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use std::time::Duration;
    ///
    /// let stock = store.keyspace("stock")?;
    /// match store.begin_exclusive_within(Duration::from_millis(100))? {
    ///     Some(mut only) => {
    ///         only.put(&stock, "apples", "1")?;
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
        let Some(permit) = self.shared.take_write_permit_within(longest)? else { return Ok(None) };
        let transaction = Transaction::begin(&self.shared, true)?;
        Ok(Some(ExclusiveTransaction { transaction, permit }))
    }

    /// Runs a closure in an [`ExclusiveTransaction`] and commits it. The closure runs once, since
    /// the commit never conflicts. On `Err` nothing is changed.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Error;
    ///
    /// let numbers = store.keyspace("numbers")?.typed::<String, u64>()?;
    /// let next = store.exclusive(|tx| {
    ///     let mut numbers = numbers.within(tx);
    ///     let next = numbers.get("next")?.unwrap_or(1);
    ///     numbers.put("next", &(next + 1))?;
    ///     Ok::<_, Error>(next)
    /// })?;
    /// assert_eq!(next, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The closure's error; as [`Store::begin_exclusive`] and [`ExclusiveTransaction::commit`].
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
    /// Makes all writes in one commit, releases the writer lock, and returns when the commit is as
    /// durable as asked.
    ///
    /// # Errors
    /// As [`Batch::commit`](crate::Batch::commit);
    /// [`Error::SnapshotExpired`](crate::Error::SnapshotExpired). None of the writes was made.
    pub fn commit(self) -> Result<()> {
        let Self { transaction, permit } = self;
        transaction.commit_or_make_room(Some(permit))
    }

    /// The same, for a caller that makes room itself and retries.
    pub(crate) fn commit_once(self) -> Result<()> {
        let Self { transaction, permit } = self;
        transaction.commit_in(Some(permit))
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
