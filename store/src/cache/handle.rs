//! The cache: an expiring keyspace and its policy.
//!
//! Purpose: each change asks the policy what has to go, and commits both together.
//! Thread safety: any number of threads. Changes of one cache wait for one another, gets for none.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use adamant_heap::durability::Durability;
use adamant_slice::Slice;
use parking_lot::MutexGuard;

use crate::common::cache_policy::{CachePolicy, CacheStats, bytes_of};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::error::{Error, Result};
use crate::expiring::{Deadline, Expiring};
use crate::layout::DEADLINE_BYTES;
use crate::store::handle::Store;

/// Entries that one commit evicts at most, where no put waits for them: at opening.
const EVICTED_ENTRIES_MAX: usize = 1000;
/// How often room is made on a full device before a put fails.
const ROOMS_MAX: u32 = 8;

/// An expiring keyspace bounded in bytes, see [`crate::cache`]. An entry counts for its key, its
/// value and 64 bytes.
///
/// All handles of a process to one cache share its policy. Other handles to the keyspace
/// ([`Store::expiring`]) read it; what they write the policy does not know before the cache is
/// opened anew, so the bound does not hold for it.
#[derive(Clone)]
pub struct Cache {
    expiring: Expiring,
    policy: Arc<CachePolicy>,
}

impl Store {
    /// The cache with this name and bound, an expiring keyspace, created if there is none. The
    /// bound is not recorded: opening with another one sets it, for all handles. If the entries
    /// have more bytes, some are deleted.
    ///
    /// The first handle reads all entries, O(n), of trees without copying them, and removes those
    /// that have expired by the system's clock. What the policy knew of them before is lost. The
    /// policy takes memory for each key.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let pages = store.cache("pages", 1 << 20)?;
    /// pages.put("index", "<html>", None)?;
    /// assert_eq!(pages.get("index")?, Some("<html>".into()));
    /// assert!(store.cache("pages", 50)?.is_empty()?, "it does not fit");
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::expiring`]; those of reading and deleting entries.
    pub fn cache(&self, name: &str, bytes_max: u64) -> Result<Cache> {
        self.cache_with(name, bytes_max, KeyspaceOptions::new())
    }

    /// Like [`Store::cache`], with options for the keyspace of the entries.
    ///
    /// # Errors
    /// As [`Store::cache`] and [`Store::expiring_with`].
    pub fn cache_with(
        &self,
        name: &str,
        bytes_max: u64,
        options: KeyspaceOptions,
    ) -> Result<Cache> {
        let expiring = self.expiring_with(name, options)?;
        let id = expiring.keyspaces().0.state.id;
        let policy = self.shared.cache_policy(id, bytes_max);
        let cache = Cache { expiring, policy };
        if self.check_writable().is_err_and(|error| error.is_read_only()) {
            return Ok(cache);
        }
        cache.bound(bytes_max)?;
        Ok(cache)
    }
}

impl Cache {
    /// Excludes other changes of the entries. Not for a thread that holds the write permit, for
    /// which another one may wait that has this lock.
    fn write(&self) -> Result<MutexGuard<'_, ()>> {
        self.expiring.store.shared.check_writes()?;
        Ok(self.policy.write())
    }

    /// Builds the policy, unless another handle has, and sets the bound.
    fn bound(&self, bytes_max: u64) -> Result<()> {
        let _writing = self.write()?;
        if self.policy.is_built() {
            let before = self.policy.bytes_max();
            let evicted = self.policy.set_bytes_max(bytes_max);
            for (done, part) in evicted.chunks(EVICTED_ENTRIES_MAX).enumerate() {
                if let Err(error) = self.delete_evicted(part) {
                    self.policy.set_bytes_max(before);
                    self.policy.keep(evicted[done * EVICTED_ENTRIES_MAX..].to_vec());
                    return Err(error);
                }
            }
            return Ok(());
        }
        while self.expiring.remove_expired(EVICTED_ENTRIES_MAX)? > 0 {}
        self.policy.begin(bytes_max);
        let mut evicted = Vec::new();
        self.build(&mut evicted)?;
        for part in evicted.chunks(EVICTED_ENTRIES_MAX) {
            self.delete_evicted(part)?;
        }
        self.policy.end_building();
        Ok(())
    }

    /// Tells the policy of all stored entries.
    fn build(&self, evicted: &mut Vec<(Slice, u64)>) -> Result<()> {
        let bytes_max = self.policy.bytes_max();
        let mut entries = self.expiring.keyspaces().0.iter();
        entries.lend(|key, stored| {
            let bytes = bytes_of(key, stored.len().saturating_sub(DEADLINE_BYTES));
            match bytes > bytes_max {
                true => evicted.push((key.into(), bytes)),
                false => evicted.extend(self.policy.plan(key, bytes).evicted),
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(())
    }

    fn delete_evicted(&self, evicted: &[(Slice, u64)]) -> Result<()> {
        self.expiring
            .change(true, |all| evicted.iter().try_for_each(|(key, _)| all.delete(key)))?;
        self.policy.note_evictions(evicted.len());
        Ok(())
    }

    /// The value of a key that has not expired; a hit keeps the entry for longer. Costs as
    /// [`Expiring::get`], and a short lock of the policy.
    ///
    /// # Errors
    /// As [`Expiring::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let found = self.expiring.get(key.as_ref())?;
        self.policy.note_get(key.as_ref(), found.is_some());
        Ok(found)
    }

    /// The value and the deadline of a key that has not expired. Like [`Cache::get`].
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_with_deadline(
        &self,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Slice, Option<Deadline>)>> {
        let found = self.expiring.get_with_deadline(key.as_ref())?;
        self.policy.note_get(key.as_ref(), found.is_some());
        Ok(found)
    }

    /// Whether there is an entry that has not expired. Counts as no hit.
    ///
    /// # Errors
    /// As [`Expiring::contains`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.expiring.contains(key)
    }

    /// Sets the value and the deadline of a key, and deletes what has to go for it, in one commit:
    /// O(log n) for each. On a full device evicts more, in commits of their own, and tries again.
    ///
    /// # Errors
    /// As [`Expiring::put`]; [`Error::ValueTooLong`] if it alone has more bytes than the bound.
    /// Nothing is changed, but that entries may have been evicted from a full device.
    pub fn put(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let bytes = bytes_of(key, value.len());
        let _writing = self.write()?;
        let bytes_max = self.policy.bytes_max();
        if bytes > bytes_max {
            let bytes_max = bytes_max.saturating_sub(bytes_of(key, 0));
            return Err(Error::ValueTooLong { bytes: value.len() as u64, bytes_max });
        }
        let mut rooms = 0;
        loop {
            let plan = self.policy.plan(key, bytes);
            let done = self.expiring.change(false, |all| {
                plan.evicted.iter().try_for_each(|(key, _)| all.delete(key))?;
                all.put(key, value, deadline)
            });
            let Err(error) = done else {
                self.policy.note_evictions(plan.evicted.len());
                return Ok(());
            };
            self.policy.undo(plan);
            if !error.is_out_of_space() || error.is_poisoned() || rooms == ROOMS_MAX {
                return Err(error);
            }
            if !self.make_room(bytes << rooms)? {
                return Err(error);
            }
            rooms += 1;
        }
    }

    /// Evicts entries from a full device, of about so many bytes; false if there are none.
    fn make_room(&self, bytes: u64) -> Result<bool> {
        let evicted = self.policy.evict(bytes);
        if evicted.is_empty() {
            return Ok(false);
        }
        if let Err(error) = self.delete_evicted(&evicted) {
            self.policy.keep(evicted);
            return Err(error);
        }
        Ok(true)
    }

    /// The value of a key, or else that which the closure makes, which is put. Threads that find
    /// nothing at the same time each make one.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let squares = store.cache("squares", 1 << 20)?;
    /// let square = |number: u32| {
    ///     squares.get_or_insert_with(number.to_le_bytes(), None, || {
    ///         Ok::<_, adamant::Error>((number * number).to_le_bytes())
    ///     })
    /// };
    /// assert_eq!((square(7)?, square(7)?), (49_u32.to_le_bytes().into(), 49_u32.to_le_bytes().into()));
    /// assert_eq!(squares.stats().hits, 1);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of the closure; as [`Cache::get`] and [`Cache::put`].
    pub fn get_or_insert_with<T: AsRef<[u8]>, E: From<Error>>(
        &self,
        key: impl AsRef<[u8]>,
        deadline: Option<Deadline>,
        make: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<Slice, E> {
        let key = key.as_ref();
        if let Some(found) = self.get(key)? {
            return Ok(found);
        }
        let made = make()?;
        self.put(key, made.as_ref(), deadline)?;
        Ok(made.as_ref().into())
    }

    /// Deletes an entry; true if it existed and had not expired.
    ///
    /// # Errors
    /// As [`Expiring::remove`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let _writing = self.write()?;
        let is_removed = self.expiring.remove(key.as_ref())?;
        self.policy.forget(key.as_ref());
        Ok(is_removed)
    }

    /// Deletes an entry, whether it exists or not.
    ///
    /// # Errors
    /// As [`Expiring::delete`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.remove(key).map(drop)
    }

    /// Deletes all entries. Like [`Expiring::clear`].
    ///
    /// # Errors
    /// As [`Expiring::clear`].
    pub fn clear(&self) -> Result<()> {
        let _writing = self.write()?;
        self.expiring.clear()?;
        self.policy.clear();
        Ok(())
    }

    /// Removes expired entries, at most so many; returns how many. Like
    /// [`Expiring::remove_expired`], which the background sweep calls for: without it they stay
    /// until they are evicted.
    ///
    /// # Errors
    /// As [`Expiring::remove_expired`].
    pub fn remove_expired(&self, entries_max: usize) -> Result<u64> {
        let _writing = self.write()?;
        let mut keys = Vec::new();
        for row in self.expiring.keyspaces().1.iter().keys().take(entries_max) {
            keys.push(row?.slice(DEADLINE_BYTES..));
        }
        let removed = self.expiring.remove_expired(entries_max)?;
        let (entries, _) = self.expiring.keyspaces();
        // The first rows are those of what has expired; the rest is there.
        for key in keys {
            if !entries.contains(&key)? {
                self.policy.forget(&key);
            }
        }
        Ok(removed)
    }

    /// The number of entries that have not expired, exactly. Like [`Expiring::len`].
    ///
    /// # Errors
    /// As [`Expiring::len`].
    pub fn len(&self) -> Result<u64> {
        self.expiring.len()
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    /// As [`Expiring::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.expiring.is_empty()
    }

    /// The bytes of its entries, as they count: at most the bound.
    pub fn bytes(&self) -> u64 {
        self.stats().bytes
    }

    /// Figures since it was opened by its first handle.
    pub fn stats(&self) -> CacheStats {
        // A thread that stayed with the parent of a fork may have the lock.
        if self.expiring.store.shared.is_child() {
            return CacheStats::default();
        }
        self.policy.stats()
    }

    /// The keyspace, to read it: what else writes to it is not bounded.
    pub fn expiring(&self) -> &Expiring {
        &self.expiring
    }

    /// The deadline after this duration.
    pub fn after(&self, duration: Duration) -> Deadline {
        self.expiring.after(duration)
    }

    /// The same, with another clock. Like [`Expiring::with_clock`].
    #[must_use]
    pub fn with_clock(&self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { expiring: self.expiring.with_clock(clock), policy: Arc::clone(&self.policy) }
    }

    /// A handle whose commits have this `durability`. [`Durability::Buffered`] suits what can be
    /// made again.
    #[must_use]
    pub fn with_durability(&self, durability: Durability) -> Self {
        let expiring = self.expiring.with_durability(durability);
        Self { expiring, policy: Arc::clone(&self.policy) }
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("expiring", &self.expiring)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
