//! Key ranges: what callers may give, owned bounds, and prefixes.
//!
//! Purpose: turns any range that a caller gives into two bounds, inclusive or exclusive: engines
//! know no others, so another kind of range is added here alone. `KeyBounds` exists because
//! `std::ops::RangeBounds` cannot infer the type of the keys: callers would have to spell it out.
//! Invariants: a bound is no longer than a key can be; a range whose bounds are out of order is
//! `None`.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use adamant_slice::Slice;
use adamant_wire::key::prefix_end;

use crate::limits::KEY_BYTES_MAX;

/// A range of keys, as [`Keyspace::range`](crate::Keyspace::range) takes it: `a..b`, `a..=b`,
/// `a..`, `..b`, `..=b`, `..`, and pairs of [`Bound`]s, of anything that is bytes.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use std::ops::Bound;
///
/// let days = store.keyspace("days")?;
/// days.extend([("2026-03-01", ""), ("2026-03-02", ""), ("2026-04-01", "")])?;
/// assert_eq!(days.range("2026-03".."2026-04").count(), 2);
/// assert_eq!(days.range(..=b"2026-03-01".to_vec()).count(), 1);
/// let after = (Bound::Excluded("2026-03-01"), Bound::Unbounded);
/// assert_eq!(days.range(after).count(), 2);
/// # Ok::<(), adamant::Error>(())
/// ```
pub trait KeyBounds {
    /// The lower and the upper bound.
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl<K: AsRef<[u8]>> KeyBounds for Range<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start().as_ref()), Bound::Included(self.end().as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeFrom<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Included(self.start.as_ref()), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeTo<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Excluded(self.end.as_ref()))
    }
}

impl<K: AsRef<[u8]>> KeyBounds for RangeToInclusive<K> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Included(self.end.as_ref()))
    }
}

impl KeyBounds for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyBounds for (Bound<K>, Bound<K>) {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0.as_ref().map(AsRef::as_ref), self.1.as_ref().map(AsRef::as_ref))
    }
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Ascending.
    Up,
    /// Descending.
    Down,
}

/// Two bounds in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyRange {
    pub(crate) lower: Bound<Slice>,
    pub(crate) upper: Bound<Slice>,
}

impl KeyRange {
    /// All keys.
    pub(crate) fn all() -> Self {
        Self { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// The keys within the bounds; `None` if the range is empty, as `"b".."a"` is.
    pub(crate) fn new(bounds: &impl KeyBounds) -> Option<Self> {
        let (lower, upper) = bounds.bounds();
        if upper == Bound::Excluded(&[]) {
            return None;
        }
        let (lower, upper) = (cut_lower(lower).map(Slice::from), cut_upper(upper).map(Slice::from));
        let range = Self { lower, upper };
        range.may_hold_a_key().then_some(range)
    }

    /// The keys with this prefix; `None` if the prefix is longer than a key.
    pub(crate) fn prefix(prefix: &[u8]) -> Option<Self> {
        if prefix.is_empty() {
            return Some(Self::all());
        }
        if prefix.len() > KEY_BYTES_MAX {
            return None;
        }
        let end = prefix_end(prefix).map(|end| Bound::Excluded(Slice::from(end.as_slice())));
        let lower = Bound::Included(Slice::from(prefix));
        Some(Self { lower, upper: end.unwrap_or(Bound::Unbounded) })
    }

    /// The bounds.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.lower.as_ref().map(|key| &key[..]), self.upper.as_ref().map(|key| &key[..]))
    }

    /// The rest of the range after a scan in a direction has reached a bound; `None` if empty.
    pub(crate) fn rest(mut self, direction: Direction, bound: Bound<Slice>) -> Option<Self> {
        match direction {
            Direction::Up => self.lower = bound,
            Direction::Down => self.upper = bound,
        }
        self.may_hold_a_key().then_some(self)
    }

    /// Whether a key lies between the bounds.
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        use std::ops::RangeBounds;
        RangeBounds::<[u8]>::contains(&self.bounds(), key)
    }

    /// Whether a key could lie between the bounds.
    fn may_hold_a_key(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
            (Bound::Included(lower), Bound::Included(upper)) => lower[..] <= upper[..],
            (Bound::Included(lower) | Bound::Excluded(lower), Bound::Excluded(upper))
            | (Bound::Excluded(lower), Bound::Included(upper)) => lower[..] < upper[..],
        }
    }
}

/// A lower bound, cut to the length of a key. The empty key is the lowest of all. A bound that is
/// too long to be a key excludes its first `KEY_BYTES_MAX` bytes: no key lies between the two.
pub(crate) fn cut_lower(bound: Bound<&[u8]>) -> Bound<&[u8]> {
    match bound {
        Bound::Included([]) => Bound::Unbounded,
        Bound::Included(key) | Bound::Excluded(key) if key.len() > KEY_BYTES_MAX => {
            Bound::Excluded(&key[..KEY_BYTES_MAX])
        }
        bound => bound,
    }
}

/// As [`cut_lower`], from above.
pub(crate) fn cut_upper(bound: Bound<&[u8]>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) if key.len() > KEY_BYTES_MAX => {
            Bound::Included(&key[..KEY_BYTES_MAX])
        }
        bound => bound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(range: &Option<KeyRange>, key: &[u8]) -> bool {
        let Some(range) = range else { return false };
        let lower = match &range.lower {
            Bound::Included(bound) => key >= &bound[..],
            Bound::Excluded(bound) => key > &bound[..],
            Bound::Unbounded => true,
        };
        let upper = match &range.upper {
            Bound::Included(bound) => key <= &bound[..],
            Bound::Excluded(bound) => key < &bound[..],
            Bound::Unbounded => true,
        };
        lower && upper
    }

    #[test]
    fn a_prefix_holds_exactly_the_keys_that_start_with_it() {
        let parts: [&[u8]; 7] = [b"", b"a", b"a\xff", b"\xff", b"\xff\xff", b"b\x00", b"\xffa"];
        let keys: [&[u8]; 9] = [
            b"a",
            b"a\xff",
            b"a\xff\xff",
            b"b",
            b"b\x00",
            b"b\x00x",
            b"\xff",
            b"\xff\xff\xff",
            b"\xffa",
        ];
        for prefix in parts {
            let range = KeyRange::prefix(prefix);
            for key in keys {
                assert_eq!(holds(&range, key), key.starts_with(prefix), "{prefix:?} {key:?}");
            }
        }
        assert!(KeyRange::prefix(&vec![1; KEY_BYTES_MAX + 1]).is_none());
    }

    #[test]
    fn inverted_and_empty_ranges_hold_nothing() {
        assert!(KeyRange::new(&("b".."a")).is_none());
        assert!(KeyRange::new(&("a".."a")).is_none());
        assert!(KeyRange::new(&(.."")).is_none());
        assert!(KeyRange::new(&("a"..="a")).is_some());
        assert!(KeyRange::new(&(Bound::Excluded("a"), Bound::Included("a"))).is_none());
        assert!(holds(&KeyRange::new(&(""..)), b"\x00"));
    }

    #[test]
    fn bounds_that_are_too_long_for_a_key_compare_as_they_should() {
        let full = vec![b'm'; KEY_BYTES_MAX];
        let long = vec![b'm'; KEY_BYTES_MAX + 9];
        let mut next = full.clone();
        next[KEY_BYTES_MAX - 1] += 1;
        for key in [b"m".to_vec(), full, next, b"n".to_vec()] {
            assert_eq!(holds(&KeyRange::new(&(&long..)), &key), key >= long);
            assert_eq!(holds(&KeyRange::new(&(..&long)), &key), key < long);
            assert_eq!(holds(&KeyRange::new(&(..=&long)), &key), key <= long);
        }
    }
}
