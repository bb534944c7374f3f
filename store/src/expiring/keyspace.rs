//! The expiring keyspace: a keyspace with deadlines.
//!
//! Purpose: each call is a transaction over both keyspaces, or a read of one entry.
//! Thread safety: as keyspaces: any number of threads.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adamant_heap::durability::Durability;
use adamant_slice::Slice;

use super::deadline::{Deadline, deadline_of, row, split};
use super::entries::Living;
use super::sweep;
use crate::bounds::KeyBounds;
use crate::clock::{Clock, system_millis};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::common::sweeper::SweptPair;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::iterate::Iter;
use crate::keyspace::list::{Ending, Halves};
use crate::kind::KeyspaceKind;
use crate::layout::DEADLINE_BYTES;
use crate::limits::KEY_BYTES_MAX;
use crate::store::handle::Store;

/// An ordered map whose entries may have a [`Deadline`], see [`crate::expiring`]. Keys have up to
/// 65,527 bytes, values up to 4 GiB - 9.
///
/// Only this type writes the two keyspaces: [`Store::keyspace`] refuses them.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use std::time::Duration;
///
/// let cache = store.expiring("cache")?;
/// cache.put("page", "<html>", Some(cache.after(Duration::from_secs(300))))?;
/// let (page, end) = cache.get_with_deadline("page")?.expect("it was just put there");
/// assert_eq!(&page[..], b"<html>");
/// assert!(end > Some(cache.after(Duration::from_secs(200))));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone)]
pub struct Expiring {
    pub(crate) store: Store,
    pub(super) entries: Keyspace,
    pub(super) deadlines: Keyspace,
    clock: Clock,
}

impl Store {
    /// The expiring keyspace with this name, created if there is none, and the one beside it that
    /// holds its deadlines in order, `NAME.deadlines`. The two are made, renamed, exchanged and
    /// dropped together, by the name of the first.
    ///
    /// Keyspaces of versions that did not record kinds are read through once, O(n).
    ///
    /// # Errors
    /// As [`Store::keyspace`]; [`Error::NotExpiring`] if a keyspace with one of the names has other
    /// entries.
    pub fn expiring(&self, name: &str) -> Result<Expiring> {
        self.expiring_with(name, KeyspaceOptions::new())
    }

    /// Like [`Store::expiring`], with options; deadlines use the default engine.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::{Engine, KeyspaceOptions};
    ///
    /// let visits = store.expiring_with("visits", KeyspaceOptions::new().engine(Engine::Lsm))?;
    /// visits.put("ada", "home", Some(visits.after(std::time::Duration::from_secs(60))))?;
    /// let (entries, deadlines) = visits.keyspaces();
    /// assert_eq!((entries.engine(), deadlines.name()), (Engine::Lsm, "visits.deadlines"));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::expiring`] and [`Store::keyspace_with`].
    pub fn expiring_with(&self, name: &str, options: KeyspaceOptions) -> Result<Expiring> {
        let kept = "expiring entries, whose values begin with their deadlines";
        options.check_without_merge(name, kept)?;
        loop {
            match self.shared.open_ending(name)? {
                Ending::Absent => {
                    self.shared.create_ending(None, name, options.of_new(name)?)?;
                    self.shared.workers().start()?;
                }
                found => {
                    if let Some(expiring) = self.expiring_of(found, name, options)? {
                        return Ok(expiring);
                    }
                }
            }
        }
    }

    /// Opens an existing expiring keyspace.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// assert!(store.open_expiring("cache").is_err());
    /// store.expiring("cache")?;
    /// assert!(store.open_expiring("cache")?.is_empty()?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownKeyspace`] if there is none with this name; otherwise as
    /// [`Store::expiring`].
    pub fn open_expiring(&self, name: &str) -> Result<Expiring> {
        loop {
            let found = match self.shared.open_ending(name)? {
                Ending::Absent | Ending::Unsaid(None, _) => {
                    return Err(Error::UnknownKeyspace { name: name.into() });
                }
                found => found,
            };
            if let Some(expiring) = self.expiring_of(found, name, KeyspaceOptions::new())? {
                return Ok(expiring);
            }
        }
    }

    /// Makes a handle of what was found; `None` to search again.
    fn expiring_of(
        &self,
        found: Ending,
        name: &str,
        options: KeyspaceOptions,
    ) -> Result<Option<Expiring>> {
        let halves = match found {
            Ending::Both(halves) => Some(halves),
            Ending::Unsaid(..) => self.insert_entry(name, options)?,
            Ending::Absent => None,
        };
        let Some((entries, deadlines)) = halves else { return Ok(None) };
        options.give(&self.shared, &entries)?;
        let pair = SweptPair { entries: Arc::clone(&entries), deadlines: Arc::clone(&deadlines) };
        sweep::watch(&self.shared, pair);
        let lent = |state| Keyspace::lent(&self.shared, state);
        let (entries, deadlines) = (lent(entries), lent(deadlines));
        let clock: Clock = Arc::new(system_millis);
        Ok(Some(Expiring { store: self.clone(), entries, deadlines, clock }))
    }

    /// Finds out whether keyspaces without recorded kinds hold expiring entries and their
    /// deadlines, and records that in the catalogue. In a read-only store the halves are used as
    /// they are.
    fn insert_entry(&self, name: &str, options: KeyspaceOptions) -> Result<Option<Halves>> {
        let is_read_only = self.check_writable().is_err_and(|error| error.is_read_only());
        // No other commit changes them while they are read.
        let permit = if is_read_only { None } else { Some(self.shared.take_write_permit()?) };
        let Ending::Unsaid(entries, deadlines) = self.shared.open_ending(name)? else {
            return Ok(None);
        };
        let keyspace = |state: &Arc<_>| Keyspace::lent(&self.shared, Arc::clone(state));
        let looked_at = (entries.as_ref().map(keyspace), deadlines.as_ref().map(keyspace));
        if !belong_together(looked_at)? {
            return Err(Error::NotExpiring { name: name.into() });
        }
        if is_read_only {
            return match (entries, deadlines) {
                (Some(entries), Some(deadlines)) => Ok(Some((entries, deadlines))),
                _ => Err(Error::UnknownKeyspace { name: name.into() }),
            };
        }
        self.shared.create_ending(permit, name, options.of_new(name)?)?;
        Ok(None)
    }

    /// Drops an expiring keyspace with its deadlines; false if there is none with this name.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// store.expiring("cache")?.put("page", "<html>", None)?;
    /// assert!(store.drop_expiring("cache")?);
    /// assert!(store.keyspaces()?.is_empty());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::drop_keyspace`]; [`Error::NotExpiring`].
    pub fn drop_expiring(&self, name: &str) -> Result<bool> {
        match self.open_expiring(name) {
            // The thread that dropped it may not have waited for the device; a call that finds
            // nothing must.
            Err(Error::UnknownKeyspace { .. }) => {
                self.shared.settle(Durability::Sync).map(|()| false)
            }
            opened => {
                opened?;
                // The name may be another keyspace's by now.
                self.shared.drop_keyspace(name, Some(KeyspaceKind::Expiring))
            }
        }
    }

    /// Like [`Store::swap_keyspaces`], for two expiring keyspaces.
    ///
    /// # Errors
    /// As [`Store::swap_keyspaces`]; [`Error::NotExpiring`].
    pub fn swap_expiring(&self, name: &str, other_name: &str) -> Result<()> {
        self.shared.exchange_keyspaces(name, other_name, Some(KeyspaceKind::Expiring))
    }
}

/// Whether one keyspace has expiring entries, and the other one exactly their deadlines.
fn belong_together((entries, deadlines): (Option<Keyspace>, Option<Keyspace>)) -> Result<bool> {
    let mut rows = 0;
    for entry in entries.iter().flat_map(Keyspace::iter) {
        let (key, stored) = entry?;
        let Some(deadlines) = &deadlines else { return Ok(false) };
        let Ok(deadline) = deadline_of(deadlines.name(), &stored) else { return Ok(false) };
        if let Some(deadline) = deadline {
            if key.len() > KEY_BYTES_MAX - DEADLINE_BYTES
                || !deadlines.contains(row(deadline, &key))?
            {
                return Ok(false);
            }
            rows += 1;
        }
    }
    Ok(deadlines.map_or(Ok(0), |deadlines| deadlines.len())? == rows)
}

impl Expiring {
    /// The same, with another clock: for tests, or for a better clock. It returns the milliseconds
    /// since 1970 and should not go back. The background sweep goes by the system's clock: a store
    /// whose deadlines have passed by that one, and not by this one, is opened with
    /// [`Options::sweep_expired`](crate::Options::sweep_expired) off.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Deadline;
    ///
    /// let codes = store.expiring("codes")?;
    /// codes.put("door", "4711", Some(Deadline::from_millis(4_000_000_000_000)))?;
    /// assert!(codes.with_clock(|| 3_999_999_999_999).contains("door")?);
    /// assert!(!codes.with_clock(|| 4_000_000_000_000).contains("door")?);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[must_use]
    pub fn with_clock(&self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self.clone() }
    }

    /// A handle to the same keyspace whose own commits have this `durability`. A transaction has
    /// its own.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let cache = store.expiring("cache")?.with_durability(adamant::Durability::Buffered);
    /// cache.put("page", "<html>", None)?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        Self { entries: self.entries.with_durability(durability), ..self.clone() }
    }

    /// The durability of its own commits.
    pub(super) fn durability(&self) -> Durability {
        self.entries.durability()
    }

    /// The keyspaces of the entries and of their deadlines, for inspection: sizes, snapshots,
    /// checks.
    pub fn keyspaces(&self) -> (&Keyspace, &Keyspace) {
        (&self.entries, &self.deadlines)
    }

    /// Milliseconds since 1970, by the clock.
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    /// The deadline after this duration.
    pub fn after(&self, duration: Duration) -> Deadline {
        Deadline::after(self.now(), duration)
    }

    /// The value of a key that has not expired. Costs as [`Keyspace::get`], O(log n), and copies
    /// nothing that it would not.
    ///
    /// # Errors
    /// As [`Keyspace::get`]; [`Error::Encoding`] if the entry was not written by this type.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        Ok(self.get_with_deadline(key)?.map(|(value, _)| value))
    }

    /// The value and the deadline of a key that has not expired.
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn get_with_deadline(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        self.living(self.entries.get(key)?)
    }

    /// Whether there is an entry that has not expired. Copies no value.
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let found =
            self.entries.get_briefly(key, |stored| deadline_of(self.entries.name(), stored))?;
        let Some(deadline) = found.transpose()? else { return Ok(false) };
        Ok(deadline.is_none_or(|deadline| !deadline.is_over(self.now())))
    }

    /// All entries that have not expired now, by key, from both ends. Like [`Keyspace::iter`].
    pub fn iter(&self) -> Living<Iter> {
        self.living_of(self.entries.iter())
    }

    /// Those in a range of keys. Like [`Keyspace::range`].
    pub fn range(&self, range: impl KeyBounds) -> Living<Iter> {
        self.living_of(self.entries.range(range))
    }

    /// Those whose keys start with `prefix`. Like [`Keyspace::prefix`].
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let sessions = store.expiring("sessions")?;
    /// for token in ["ada/1", "ada/2", "bob/1"] {
    ///     sessions.put(token, "", Some(sessions.after(std::time::Duration::from_secs(60))))?;
    /// }
    /// assert_eq!(sessions.prefix("ada/").count(), 2);
    /// assert_eq!(sessions.range("ada/2"..).count(), 2);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Living<Iter> {
        self.living_of(self.entries.prefix(prefix))
    }

    /// The number of entries that have not expired, exactly. Like [`Keyspace::len`], plus O(log n)
    /// for each expired entry that was not removed yet.
    ///
    /// # Errors
    /// As [`Keyspace::len`].
    pub fn len(&self) -> Result<u64> {
        self.at(&self.store.snapshot()?).len()
    }

    /// Whether there are no entries. Like [`Expiring::len`].
    ///
    /// # Errors
    /// As [`Expiring::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.iter().next().transpose()?.is_none())
    }

    /// The earliest deadline, which may have passed; `None` if no entry has one. O(log n).
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Deadline;
    ///
    /// let sessions = store.expiring("sessions")?;
    /// assert_eq!(sessions.next_deadline()?, None);
    /// sessions.put("ada", "", Some(Deadline::from_millis(4_000_000_002_000)))?;
    /// sessions.put("bob", "", Some(Deadline::from_millis(4_000_000_001_000)))?;
    /// assert_eq!(sessions.next_deadline()?, Some(Deadline::from_millis(4_000_000_001_000)));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::first`].
    pub fn next_deadline(&self) -> Result<Option<Deadline>> {
        let Some((row, _)) = self.deadlines.first()? else { return Ok(None) };
        deadline_of(self.deadlines.name(), &row)
    }

    /// The entry from a stored value, unless it has expired.
    fn living(&self, stored: Option<Slice>) -> Result<Option<(Slice, Option<Deadline>)>> {
        self.living_at(stored, || self.now())
    }

    /// Like [`Expiring::living`], with a clock that is read only if there is a deadline: a call of
    /// 20 to 50 ns.
    pub(super) fn living_at(
        &self,
        stored: Option<Slice>,
        now: impl FnOnce() -> u64,
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        let Some(stored) = stored else { return Ok(None) };
        let (value, deadline) = split(self.entries.name(), &stored)?;
        let is_over = deadline.is_some_and(|deadline| deadline.is_over(now()));
        Ok((!is_over).then_some((value, deadline)))
    }

    fn living_of(&self, entries: Iter) -> Living<Iter> {
        Living::new(entries, self.entries.name(), self.now())
    }
}

impl fmt::Debug for Expiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expiring").field("entries", &self.entries).finish_non_exhaustive()
    }
}
