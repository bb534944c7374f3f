//! Atomic read-modify-write of one key: commits of their own, which cannot conflict.
//!
//! Purpose: `insert_unique`, `compare_and_swap`, and based on it `fetch_update` and `update_fetch`,
//! whose closures run under no lock.

use adamant_heap::Transaction;
use adamant_slice::Slice;

use crate::common::shared::KeyVisitor;
use crate::engine::value_codec::{Found, Prepared};
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::limits::{check_key, check_value};

/// The result of a comparison: `Err` holds the value found instead of the expected one.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// let locks = store.keyspace("locks")?;
/// locks.put("door", "ada")?;
/// let found = locks.compare_and_swap("door", None::<&str>, Some("bob"))?;
/// assert_eq!(found, Err(Some("ada".into())), "it was expected to have none");
/// # Ok::<(), adamant::Error>(())
/// ```
pub type Swapped = std::result::Result<(), Option<Slice>>;

impl Keyspace {
    /// Sets the value of a key that has none; false, and nothing is changed, if it has one.
    /// O(log n) and one commit.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let names = store.keyspace("names")?;
    /// assert!(names.insert_unique("ada", "1")?);
    /// assert!(!names.insert_unique("ada", "2")?);
    /// assert_eq!(names.get("ada")?, Some("1".into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn insert_unique(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        let swapped = self.compare_and_swap(key, None::<&[u8]>, Some(value))?;
        Ok(swapped.is_ok())
    }

    /// Sets (`Some`) or removes (`None`) the value of a key if its value is the expected one;
    /// `None` expects no value. Otherwise changes nothing and returns what it found. O(log n) and
    /// one commit.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let locks = store.keyspace("locks")?;
    /// assert_eq!(locks.compare_and_swap("door", None::<&str>, Some("ada"))?, Ok(()));
    /// let taken = locks.compare_and_swap("door", None::<&str>, Some("bob"))?;
    /// assert_eq!(taken, Err(Some("ada".into())));
    /// assert_eq!(locks.compare_and_swap("door", Some("ada"), None::<&str>)?, Ok(()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<impl AsRef<[u8]>>,
        value: Option<impl AsRef<[u8]>>,
    ) -> Result<Swapped> {
        let key = key.as_ref();
        let (expected, value) =
            (expected.as_ref().map(AsRef::as_ref), value.as_ref().map(AsRef::as_ref));
        check_key(key)?;
        check_value(value.unwrap_or_default())?;
        let prepared = value.map(|value| Prepared::new(value, self.state.codec())).transpose()?;
        self.with_room(value.is_none(), || {
            self.check_writes()?;
            let shared = &self.shared;
            let keys = |each: &mut KeyVisitor<'_>| each(&self.state, key);
            let swap = |transaction: &mut Transaction<'_>| {
                let map = self.state.map(transaction, shared.catalogue())?;
                let found = map.find(transaction, key)?;
                if found.as_deref() != expected {
                    return Ok(Err(found.map(Found::into_slice)));
                }
                match &prepared {
                    Some(value) => map.put(transaction, key, value)?,
                    None => map.write(transaction, key, None)?,
                }
                // Only now: a value that stays is no change.
                shared.record_keys(transaction, keys)?;
                Ok(Ok(()))
            };
            shared.change_recorded(None, self.durability(), keys, swap)
        })
    }

    /// Sets the value of a key to what a closure makes of it, or removes it (`None`); returns the
    /// value before. The closure runs under no lock, and again if the value changes meanwhile.
    ///
    /// ```
    /// let store = adamant::Store::in_memory()?;
    /// let visits = store.keyspace("visits")?;
    /// let more = |count: Option<&[u8]>| Some([count.map_or(1, |count| count[0] + 1)]);
    /// assert_eq!(visits.fetch_update("today", more)?, None);
    /// assert_eq!(visits.fetch_update("today", more)?, Some([1].into()));
    /// assert_eq!(visits.update_fetch("today", more)?, Some([3].into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn fetch_update<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<Slice>> {
        Ok(self.update(key.as_ref(), update)?.0)
    }

    /// Like [`Keyspace::fetch_update`]; returns the value after.
    ///
    /// # Errors
    /// As [`Keyspace::put`].
    pub fn update_fetch<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<Option<Slice>> {
        Ok(self.update(key.as_ref(), update)?.1.map(|value| Slice::from(value.as_ref())))
    }

    fn update<V: AsRef<[u8]>>(
        &self,
        key: &[u8],
        mut update: impl FnMut(Option<&[u8]>) -> Option<V>,
    ) -> Result<(Option<Slice>, Option<V>)> {
        let mut found = self.get(key)?;
        loop {
            let value = update(found.as_deref());
            match self.compare_and_swap(key, found.as_deref(), value.as_ref())? {
                Ok(()) => return Ok((found, value)),
                Err(now) => found = now,
            }
        }
    }
}
