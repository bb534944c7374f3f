//! Running a transaction again after a conflict, within limits.
//!
//! Purpose: somebody always goes on, but not everybody: a long transaction beside many short ones
//! loses to them time and again. After some attempts it takes its turn to write first, so that it
//! is the last one. Thread safety: as all of a store.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::store::handle::Store;
use crate::transaction::handle::Transaction;

/// Attempts of [`Store::transaction`] before it keeps others from writing.
const EXCLUSIVE_AFTER: u32 = 8;
/// Attempts at most, where it does not.
const ATTEMPTS_MAX: u32 = 100;

/// How often, and how long, [`Store::transaction_with`] tries, set one after the other.
///
/// ```
/// use adamant::{Attempts, Error, Store};
///
/// let store = Store::in_memory()?;
/// let stock = store.keyspace("stock")?;
/// let once = Attempts::new().attempts_max(1);
/// let outcome = store.transaction_with(once, |tx| {
///     tx.get(&stock, "apples")?;
///     stock.insert("apples", "somebody else's")?;
///     tx.insert(&stock, "apples", "mine")
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
    /// The default ones: 8 attempts beside others, and one alone.
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
    /// [`ExclusiveTransaction`](crate::ExclusiveTransaction)'s, which cannot conflict: others that
    /// write wait meanwhile, so the closure may not write to the store but by its transaction, nor
    /// wait for somebody who does. 0 counts as 1; [`Store::exclusive`] makes the first one so.
    /// `None`: never. Default: 8.
    #[must_use]
    pub fn exclusive_after(mut self, attempts: Option<u32>) -> Self {
        self.exclusive_after = attempts;
        self
    }

    /// No attempt begins later than this after the first, and the turn to write is not waited for
    /// longer. `None`: without a limit, which is the default.
    #[must_use]
    pub fn time_max(mut self, time: Option<Duration>) -> Self {
        self.time_max = time;
        self
    }
}

impl Store {
    /// Runs a closure in a serializable transaction and commits it; again, from the start, when
    /// another commit changed what it read. On `Err` nothing of it happened. The closure runs under
    /// no lock, and should have no effects beside the transaction's.
    ///
    /// After 8 attempts it takes its turn to write first, and cannot lose: as
    /// [`Store::transaction_with`] with the default [`Attempts`].
    ///
    /// ```
    /// use adamant::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let accounts = store.keyspace("accounts")?;
    /// accounts.insert("ada", [100])?;
    /// accounts.insert("bob", [0])?;
    /// store.transaction(|tx| {
    ///     let ada = tx.get(&accounts, "ada")?.map_or(0, |value| value[0]);
    ///     let bob = tx.get(&accounts, "bob")?.map_or(0, |value| value[0]);
    ///     tx.insert(&accounts, "ada", [ada - 10])?;
    ///     tx.insert(&accounts, "bob", [bob + 10])?;
    ///     Ok::<_, Error>(())
    /// })?;
    /// assert_eq!(accounts.get("bob")?, Some([10].into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// What the closure returns; those of [`Transaction::commit`] but for conflicts.
    pub fn transaction<T, E: From<Error>>(
        &self,
        work: impl FnMut(&mut Transaction) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.transaction_with(Attempts::new(), work)
    }

    /// As [`Store::transaction`], within limits. [`Transaction::attempt`] tells the closure how
    /// often it was run.
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
    ///     tx.insert(&counts, "visits", [count + 1])?;
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
            // Whoever it lost to has committed: somebody always goes on.
            std::thread::yield_now();
        }
    }

    /// One attempt beside others; the inner error is the conflict that it lost by, or that there
    /// was no room, which was made once.
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

    /// The last attempt, while nobody else writes; `None` if its turn did not come in time.
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
