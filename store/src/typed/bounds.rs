//! Ranges of typed keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::key::{KeyFor, encode_key};

/// A lower and an upper bound, as bytes.
pub type EncodedBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Ranges of keys of type `K`: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, and pairs of
/// [`Bound`]s.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use std::ops::Bound;
///
/// let days = store.keyspace("days")?.typed::<u32, ()>()?;
/// for day in [1, 2, 300] {
///     days.put(&day, &())?;
/// }
/// assert_eq!(days.range(2..).count(), 2);
/// assert_eq!(days.range((Bound::Excluded(1), Bound::Included(2))).count(), 1);
/// # Ok::<(), adamant::Error>(())
/// ```
pub trait KeyBoundsFor<K> {
    /// The bounds, each encoded by a function.
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds;

    /// The bounds, encoded as whole keys.
    fn encoded(&self) -> EncodedBounds {
        self.encoded_by(|key| encode_key(key))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for Range<Q> {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Included(encode(&self.start)), Bound::Excluded(encode(&self.end)))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeInclusive<Q> {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Included(encode(self.start())), Bound::Included(encode(self.end())))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeFrom<Q> {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Included(encode(&self.start)), Bound::Unbounded)
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeTo<Q> {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Unbounded, Bound::Excluded(encode(&self.end)))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeToInclusive<Q> {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Unbounded, Bound::Included(encode(&self.end)))
    }
}

impl<K> KeyBoundsFor<K> for RangeFull {
    fn encoded_by(&self, _: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for (Bound<Q>, Bound<Q>) {
    fn encoded_by(&self, encode: fn(&dyn KeyFor<K>) -> Vec<u8>) -> EncodedBounds {
        (self.0.as_ref().map(|key| encode(key)), self.1.as_ref().map(|key| encode(key)))
    }
}
