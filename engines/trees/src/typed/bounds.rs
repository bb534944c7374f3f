//! Bound searches and range visits of typed maps.

use std::ops::{Bound, RangeBounds};

use adamant_heap::Persistent;
use adamant_heap::access::Read;

use crate::error::Result;
use crate::tree::OrderedMap;
use crate::typed::map::{Key, Map};

impl<K: Key, V: Persistent, T: OrderedMap> Map<K, V, T> {
    /// The first pair whose key is not below `key`. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn lower_bound<R: Read>(&self, read: &R, key: &K) -> Result<Option<(K, V)>> {
        self.entries(read, (Bound::Included(key), Bound::Unbounded))?.next().transpose()
    }

    /// The first pair whose key is above `key`. O(log n).
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn upper_bound<R: Read>(&self, read: &R, key: &K) -> Result<Option<(K, V)>> {
        self.entries(read, (Bound::Excluded(key), Bound::Unbounded))?.next().transpose()
    }

    /// Hands the pairs of a range to `each`, from the lowest key up, until it returns an error.
    /// O(log n), then O(1) a pair, amortised.
    ///
    /// # Errors
    /// As [`Map::get`], and those that `each` returns.
    pub fn for_each<R: Read, E: From<crate::error::Error>>(
        &self,
        read: &R,
        range: impl RangeBounds<K>,
        mut each: impl FnMut(K, V) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for pair in self.entries(read, range)? {
            let (key, value) = pair?;
            each(key, value)?;
        }
        Ok(())
    }
}
