//! Moves of values between keys of typed maps.
//!
//! Purpose: [`Moves`] for [`Map`]: the same operations, with keys of the map's type. Both maps have
//! the same types of keys and values, but may use different trees.

use adamant_heap::Persistent;
use adamant_heap::access::Write;

use crate::error::Result;
use crate::moves::{Moved, Moves};
use crate::tree::OrderedMap;
use crate::typed::map::{Key, Map};

impl<K: Key, V: Persistent, T: OrderedMap> Map<K, V, T> {
    /// Moves the value of a key to another key, where it replaces any existing value. O(log n).
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's, out of space among them.
    pub fn rename<W: Write>(&self, tx: &mut W, key: &K, new_key: &K) -> Result<Moved> {
        self.move_to(tx, key, self, new_key)
    }

    /// Moves the value of a key to a key of a map on the same heap, where it replaces any existing
    /// value. O(log n), whatever the size of the value.
    ///
    /// # Errors
    /// As [`Map::rename`].
    pub fn move_to<W: Write, U: OrderedMap>(
        &self,
        tx: &mut W,
        key: &K,
        target: &Map<K, V, U>,
        new_key: &K,
    ) -> Result<Moved> {
        let (source, target) = (self.tree(tx)?, target.tree(tx)?);
        source.move_to(tx, key.to_key().as_ref(), &target, new_key.to_key().as_ref())
    }

    /// Swaps the values of two keys, the other of which may be of another map on the same heap;
    /// false, and nothing is changed, unless both are there. O(log n), whatever the size of the
    /// values.
    ///
    /// # Errors
    /// As [`Map::rename`].
    pub fn swap<W: Write, U: OrderedMap>(
        &self,
        tx: &mut W,
        key: &K,
        other: &Map<K, V, U>,
        other_key: &K,
    ) -> Result<bool> {
        let (left, right) = (self.tree(tx)?, other.tree(tx)?);
        left.swap(tx, key.to_key().as_ref(), &right, other_key.to_key().as_ref())
    }
}
