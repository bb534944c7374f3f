//! Several views of one transaction at once.
//!
//! Purpose: a view borrows the transaction for as long as it lives. Views of a shared one borrow it
//! for each call instead, so that any number of them can be used in turns.
//! Invariants: a closure that runs inside a call cannot use another view: that is an error, not a
//! panic.
//! Thread safety: as the transaction: one thread at a time.

use std::cell::RefCell;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

use adamant_slice::Slice;

use crate::bounds::{Direction, KeyRange};
use crate::error::{Error, Result};
use crate::keyspace::entry::Shape;
use crate::keyspace::handle::Keyspace;
use crate::transaction::handle::Transaction;
use crate::transaction::iterate::TransactionIter;

/// A [`Transaction`] that several views use in turns, see [`Transaction::share`].
pub struct SharedTransaction<'t> {
    transaction: RefCell<&'t mut Transaction>,
}

impl Transaction {
    /// The transaction, to be used by several views in turns, such as typed keyspaces:
    /// [`TypedKeyspace::within_shared`](crate::typed::TypedKeyspace::within_shared).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let accounts = store.keyspace("accounts")?.typed::<String, i64>()?;
    /// let log = store.keyspace("log")?.typed::<u64, String>()?;
    /// accounts.put("ada", &100)?;
    /// store.transaction(|tx| {
    ///     let tx = tx.share();
    ///     let (accounts, mut log) = (accounts.within_shared(&tx), log.within_shared(&tx));
    ///     // One is written while the other is iterated over.
    ///     for (number, account) in (1..).zip(accounts.iter()) {
    ///         let (name, cents) = account?;
    ///         log.put(&number, &format!("{name} has {cents}"))?;
    ///     }
    ///     Ok::<_, adamant::Error>(())
    /// })?;
    /// assert_eq!(log.get(&1)?, Some("ada has 100".to_string()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn share(&mut self) -> SharedTransaction<'_> {
        SharedTransaction { transaction: RefCell::new(self) }
    }
}

impl SharedTransaction<'_> {
    /// Calls a closure with the transaction, which no view can use until it returns.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// let shared = transaction.share();
    /// shared.with(|tx| tx.put(&stock, "apples", "7"))?;
    /// let within = shared.with(|_| shared.with(|tx| tx.put(&stock, "pears", "3")));
    /// assert!(matches!(within, Err(adamant::Error::Reentrant)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// The closure's error; [`Error::Reentrant`] within a closure that another call runs.
    pub fn with<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        match self.transaction.try_borrow_mut() {
            Ok(mut transaction) => work(&mut transaction),
            Err(_) => Err(Error::Reentrant.into()),
        }
    }
}

impl fmt::Debug for SharedTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedTransaction").field(&self.transaction).finish()
    }
}

/// A transaction as a view uses it: borrowed alone, or shared with other views.
pub trait TransactionAccess {
    /// Calls a closure with the transaction.
    ///
    /// # Errors
    /// The closure's error; [`Error::Reentrant`] as [`SharedTransaction::with`].
    fn access<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T>;
}

impl TransactionAccess for &mut Transaction {
    fn access<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        work(self)
    }
}

impl TransactionAccess for &SharedTransaction<'_> {
    fn access<T>(&mut self, work: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        self.with(work)
    }
}

/// Entries of a keyspace as a shared transaction sees them, by key, from both ends. It borrows the
/// transaction for each step only, and sees what was written before the step: O(log n) each.
///
/// Yielded entries count as read, as those of [`TransactionIter`].
#[must_use = "iterators do nothing unless they are asked"]
pub struct SharedTransactionIter<'s, 't, T = (Slice, Slice)> {
    transaction: &'s SharedTransaction<'t>,
    keyspace: &'s Keyspace,
    /// What is left; `None` at the end.
    range: Option<KeyRange>,
    step: for<'i> fn(TransactionIter<'i>, Direction) -> Option<Result<T>>,
}

/// The next item from an end.
fn next_of<T>(mut entries: impl DoubleEndedIterator<Item = T>, direction: Direction) -> Option<T> {
    match direction {
        Direction::Up => entries.next(),
        Direction::Down => entries.next_back(),
    }
}

impl<'s, 't> SharedTransactionIter<'s, 't> {
    /// The entries in a range of keys; none without one.
    pub(crate) fn new(
        transaction: &'s SharedTransaction<'t>,
        keyspace: &'s Keyspace,
        range: Option<KeyRange>,
    ) -> Self {
        Self {
            transaction,
            keyspace,
            range,
            step: |entries, direction| next_of(entries, direction),
        }
    }

    /// The remaining keys, without their values, like [`TransactionIter::keys`].
    pub fn keys(self) -> SharedTransactionIter<'s, 't, Slice> {
        let Self { transaction, keyspace, range, .. } = self;
        let step = |entries: TransactionIter<'_>, direction| next_of(entries.keys(), direction);
        SharedTransactionIter { transaction, keyspace, range, step }
    }
}

impl<T> SharedTransactionIter<'_, '_, T> {
    fn go(&mut self, direction: Direction) -> Option<Result<T>>
    where
        T: Shape,
    {
        let range = self.range.take()?;
        let step = |transaction: &mut Transaction| {
            let entries = transaction.iter_over(self.keyspace, Some(range.clone()));
            (self.step)(entries, direction).transpose()
        };
        let found = self.transaction.with(step).transpose()?;
        if let Ok(entry) = &found {
            self.range = range.rest(direction, Bound::Excluded(entry.key().clone()));
        }
        Some(found)
    }
}

impl<T: Shape> Iterator for SharedTransactionIter<'_, '_, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        self.go(Direction::Up)
    }
}

impl<T: Shape> DoubleEndedIterator for SharedTransactionIter<'_, '_, T> {
    fn next_back(&mut self) -> Option<Result<T>> {
        self.go(Direction::Down)
    }
}

impl<T: Shape> FusedIterator for SharedTransactionIter<'_, '_, T> {}

impl<T> fmt::Debug for SharedTransactionIter<'_, '_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTransactionIter")
            .field("keyspace", &self.keyspace.name())
            .finish_non_exhaustive()
    }
}
