//! Point reads.

use adamant::Slice;

use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::view::View;

impl Keyspace {
    /// The value of a key. Reads objects, unless memory or a cache has it. A returned value is in
    /// the objects: no failure takes it back.
    ///
    /// ```
    /// # let store = adamant_remote::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.put("Bern", "134,000")?;
    /// assert_eq!(towns.get("Bern")?, Some("134,000".into()));
    /// # Ok::<(), adamant_remote::Error>(())
    /// ```
    ///
    /// # Errors
    /// A keyspace that was dropped, a store that is closed, fenced, damaged or unreachable.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        self.state.check()?;
        View::Now.get(&self.shared, &self.state, key.as_ref())
    }

    /// Passes the value of a key to a closure and returns its result. The closure runs under no
    /// lock.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn get_with<T>(
        &self,
        key: impl AsRef<[u8]>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        Ok(self.get(key)?.map(|value| reader(&value)))
    }

    /// Whether a key has a value. Its value is read anyway.
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(key)?.is_some())
    }
}
