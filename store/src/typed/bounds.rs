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
    /// The bounds, encoded.
    fn encoded(&self) -> EncodedBounds;
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for Range<Q> {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Included(encode_key(&self.start)), Bound::Excluded(encode_key(&self.end)))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeInclusive<Q> {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Included(encode_key(self.start())), Bound::Included(encode_key(self.end())))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeFrom<Q> {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Included(encode_key(&self.start)), Bound::Unbounded)
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeTo<Q> {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Unbounded, Bound::Excluded(encode_key(&self.end)))
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for RangeToInclusive<Q> {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Unbounded, Bound::Included(encode_key(&self.end)))
    }
}

impl<K> KeyBoundsFor<K> for RangeFull {
    fn encoded(&self) -> EncodedBounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K, Q: KeyFor<K>> KeyBoundsFor<K> for (Bound<Q>, Bound<Q>) {
    fn encoded(&self) -> EncodedBounds {
        (self.0.as_ref().map(encode_key), self.1.as_ref().map(encode_key))
    }
}
