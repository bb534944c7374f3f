//! Retry limits of transactions after conflicts.
//!
//! Purpose: some transaction always makes progress, but not each one: a long transaction beside
//! many short ones loses to them time and again. After some attempts it takes the writer lock
//! first, so that it cannot lose.
//! Thread safety: as all of a store.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// Attempts of [`Store::transaction`] before it takes the writer lock.
const EXCLUSIVE_AFTER: u32 = 8;
/// The most attempts if it never does.
const ATTEMPTS_MAX: u32 = 100;

/// Retry limits of [`Store::transaction_with`], in the builder style.
///
/// ```
/// use adamant::{Attempts, Error, Store};
///
/// let store = Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// let once = Attempts::new().attempts_max(1);
/// let outcome = store.transaction_with(once, |tx| {
///     tx.get(&stock, "apples")?;
///     stock.put("apples", "somebody else's")?;
///     tx.put(&stock, "apples", "mine")
/// });
/// assert!(outcome.unwrap_err().is_conflict());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    attempts_max: u32,
    exclusive_after: Option<u32>,
    time_max: Option<Duration>,
}

impl Default for Attempts {
    fn default() -> Self {
        let exclusive_after = Some(EXCLUSIVE_AFTER);
        Self { attempts_max: ATTEMPTS_MAX, exclusive_after, time_max: None }
    }
}

impl Attempts {
    /// The default: 8 optimistic attempts, then an exclusive one.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the closure runs at most; 0 counts as 1. Default: 100.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts.max(1);
        self
    }

    /// After how many attempts the next one is an
    /// [`ExclusiveTransaction`](crate::ExclusiveTransaction), which cannot conflict. Other writers
    /// wait meanwhile, so the closure may write to the store only through its transaction, and must
    /// not wait for another writer. 0 counts as 1; to start with an exclusive transaction, use
    /// [`Store::exclusive`]. `None`: never. Default: 8.
    #[must_use]
    pub fn exclusive_after(mut self, attempts: Option<u32>) -> Self {
        self.exclusive_after = attempts;
        self
    }

    /// No attempt begins later than this after the first one began, and none waits longer for the
    /// writer lock. `None`, the default: no limit.
    #[must_use]
    pub fn time_max(mut self, time: Option<Duration>) -> Self {
        self.time_max = time;
        self
    }
}

impl Store {
    /// Runs a closure in a serializable transaction and commits it. If another commit changed what
    /// it read, the closure runs again from the start. On `Err` nothing is changed. The closure
    /// runs under no lock, and should have no effects beside the transaction's.
    ///
    /// After 8 attempts it takes the writer lock first and cannot lose: this is
    /// [`Store::transaction_with`] with the default [`Attempts`].
    ///
    /// ```
    /// use adamant::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let accounts = store.keyspace("accounts")?;
    /// accounts.put("ada", [100])?;
    /// accounts.put("bob", [0])?;
    /// store.transaction(|tx| {
    ///     let ada = tx.get(&accounts, "ada")?.map_or(0, |value| value[0]);
    ///     let bob = tx.get(&accounts, "bob")?.map_or(0, |value| value[0]);
    ///     tx.put(&accounts, "ada", [ada - 10])?;
    ///     tx.put(&accounts, "bob", [bob + 10])?;
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(accounts.get("bob")?, Some([10].into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// The closure's error; those of [`Transaction::commit`] except conflicts.
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.transaction_with(Attempts::new(), work)
    }

    /// Like [`Store::transaction`], within limits. [`Transaction::attempt`] tells the closure which
    /// attempt it is.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use adamant::{Attempts, Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let counts = store.keyspace("counts")?;
    /// let limits = Attempts::new().time_max(Some(Duration::from_secs(2))).exclusive_after(Some(3));
    /// let attempt = store.transaction_with(limits, |tx| {
    ///     let count = tx.get(&counts, "visits")?.map_or(0, |value| value[0]);
    ///     tx.put(&counts, "visits", [count + 1])?;
    ///     Ok::<_, Error>(tx.attempt())
    /// })?;
    /// assert_eq!(attempt, 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::transaction`]; the last [`Error::Conflict`] when a limit is reached.
    pub fn transaction_with<T, E: From<Error>>(
        &self,
        limits: Attempts,
        mut work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let end = limits.time_max.and_then(|time| Instant::now().checked_add(time));
        let (mut attempt, mut has_made_room) = (1, false);
        loop {
            let lost = match self.attempt(attempt, &mut has_made_room, &mut work)? {
                Ok(made) => return Ok(made),
                Err(lost) => lost,
            };
            let is_late = end.is_some_and(|end| Instant::now() >= end);
            if attempt >= limits.attempts_max || is_late {
                return Err(lost.into());
            }
            attempt += 1;
            if limits.exclusive_after.is_some_and(|attempts| attempt > attempts) {
                return self.attempt_alone(attempt, end, work).unwrap_or_else(|| Err(lost.into()));
            }
            // The commit that it lost to is done: some transaction always makes progress.
            std::thread::yield_now();
        }
    }

    /// One optimistic attempt. The inner error is the conflict that it lost by, or a lack of space;
    /// space is made once.
    fn attempt<T, E: From<Error>>(
        &self,
        attempt: u32,
        has_made_room: &mut bool,
        work: &mut impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<Result<T>, E> {
        let mut transaction = self.begin()?;
        transaction.set_attempt(attempt);
        let made = work(&mut transaction)?;
        let removes = transaction.removes_only();
        match transaction.commit_in(None) {
            Ok(()) => Ok(Ok(made)),
            Err(error) if error.is_conflict() => Ok(Err(error)),
            Err(error) if !*has_made_room && self.shared.makes_room_for(&error, removes) => {
                *has_made_room = true;
                Ok(Err(error))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The last attempt, under the writer lock; `None` if it did not get the lock in time.
    fn attempt_alone<T, E: From<Error>>(
        &self,
        attempt: u32,
        end: Option<Instant>,
        mut work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> Option<std::result::Result<T, E>> {
        let begun = match end {
            None => self.begin_exclusive().map(Some),
            Some(end) => self.begin_exclusive_within(end.saturating_duration_since(Instant::now())),
        };
        let mut transaction = match begun.transpose()? {
            Ok(transaction) => transaction,
            Err(error) => return Some(Err(error.into())),
        };
        transaction.set_attempt(attempt);
        let made = work(&mut transaction);
        Some(made.and_then(|made| transaction.commit().map(|()| made).map_err(E::from)))
    }
}
