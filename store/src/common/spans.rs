//! Interval sets of keys.
//!
//! Purpose: the keys that a transaction has read, and those that it knows to be empty: both grow at
//! an end, one key after the other, and stay one interval.
//! Invariants: intervals do not overlap and do not touch. Each begins with a key (the empty one is
//! below all) and ends before another, or has no end.
//! Thread safety: none of its own.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use adamant_slice::Slice;
use adamant_wire::key::NEXT;

use crate::bounds::{Direction, KeyRange, cut_lower, cut_upper};

/// An interval: its first key, and the key before which it ends.
type Span<'s> = (&'s Slice, &'s Option<Slice>);

/// A set of keys, as disjoint intervals.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    /// The end of each interval, by its first key.
    spans: BTreeMap<Slice, Option<Slice>>,
}

/// The key that follows this one.
pub(crate) fn after(key: &[u8]) -> Slice {
    Slice::fused(key, NEXT)
}

/// The first key within a lower bound.
pub(crate) fn start_of(lower: Bound<&[u8]>) -> Slice {
    match lower {
        Unbounded => Slice::default(),
        Included(key) => key.into(),
        Excluded(key) => after(key),
    }
}

/// The first key beyond an upper bound.
pub(crate) fn end_of(upper: Bound<&[u8]>) -> Option<Slice> {
    match upper {
        Unbounded => None,
        Included(key) => Some(after(key)),
        Excluded(key) => Some(key.into()),
    }
}

/// The inverse of [`start_of`]. No key is longer than `KEY_BYTES_MAX`.
pub(crate) fn lower(start: &[u8]) -> Bound<&[u8]> {
    cut_lower(Included(start))
}

/// The inverse of [`end_of`].
pub(crate) fn upper(end: Option<&[u8]>) -> Bound<&[u8]> {
    end.map_or(Unbounded, |end| cut_upper(Excluded(end)))
}

impl Spans {
    /// Whether there is no key.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many intervals there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Adds the keys from `start` on and before `end`. O(log n), plus the intervals that it merges,
    /// amortised over the calls that added them.
    pub(crate) fn insert(&mut self, mut start: Slice, mut end: Option<Slice>) {
        if end.as_ref().is_some_and(|end| *end <= start) {
            return;
        }
        if let Some((first, last)) = self.spans.range::<Slice, _>(..=&start).next_back()
            && last.as_ref().is_none_or(|last| *last >= start)
        {
            if last.is_none() || end.is_some() && *last >= end {
                return;
            }
            start = first.clone();
        }
        while let Some((first, last)) =
            self.spans.range::<Slice, _>((Excluded(&start), Unbounded)).next()
            && end.as_ref().is_none_or(|end| first <= end)
        {
            let first = first.clone();
            end = further(last.clone(), end);
            self.spans.remove(&first);
        }
        self.spans.insert(start, end);
    }

    /// Removes a key. O(log n).
    pub(crate) fn remove(&mut self, key: &[u8]) {
        let Some((start, end)) = self.over(key) else { return };
        let (start, end) = (start.clone(), end.clone());
        let next = after(key);
        if start[..] == *key {
            self.spans.remove(&start);
        } else {
            self.spans.insert(start, Some(key.into()));
        }
        if end.as_ref() != Some(&next) {
            self.spans.insert(next, end);
        }
    }

    /// The interval that holds a key.
    pub(crate) fn over(&self, key: &[u8]) -> Option<Span<'_>> {
        let bounds = (Unbounded, Included(key));
        let span = self.spans.range::<[u8], _>(bounds).next_back()?;
        span.1.as_ref().is_none_or(|end| end[..] > *key).then_some(span)
    }

    /// The interval that holds the keys just below this one; `None`: the highest keys of all.
    pub(crate) fn before(&self, end: Option<&[u8]>) -> Option<Span<'_>> {
        let bounds = (Unbounded, end.map_or(Unbounded, Excluded));
        let span = self.spans.range::<[u8], _>(bounds).next_back()?;
        let reaches = match (span.1, end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(last), Some(end)) => last[..] >= *end,
        };
        reaches.then_some(span)
    }

    /// Whether a key is in the set, or adjacent to it.
    pub(crate) fn touches(&self, key: &[u8]) -> bool {
        if self.is_empty() {
            return false;
        }
        let next = after(key);
        let near = self.spans.range::<[u8], _>((Unbounded, Included(&next[..])));
        near.clone().next_back().is_some_and(|(start, end)| {
            start[..] == next[..] || end.as_ref().is_none_or(|end| end[..] >= *key)
        })
    }

    /// A range without those of its keys that the set holds at both ends, or at one of them (0: the
    /// low one); `None` if nothing is left.
    pub(crate) fn narrowed(&self, range: &KeyRange, at: Option<usize>) -> Option<KeyRange> {
        let mut left = range.clone();
        if self.is_empty() {
            return Some(left);
        }
        let (low, high) = range.bounds();
        if at != Some(1)
            && let Some((_, end)) = self.over(&start_of(low))
        {
            left = left.rest(Direction::Up, lower(end.as_ref()?).map(Slice::from))?;
        }
        if at != Some(0)
            && let Some((start, _)) = self.before(end_of(high).as_deref())
        {
            if start.is_empty() {
                return None;
            }
            left = left.rest(Direction::Down, upper(Some(start)).map(Slice::from))?;
        }
        Some(left)
    }

    /// All intervals, as bounds.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = (Bound<&[u8]>, Bound<&[u8]>)> {
        self.spans.iter().map(|(start, end)| (lower(start), upper(end.as_deref())))
    }

    /// Adds the keys of a range.
    pub(crate) fn insert_range(&mut self, range: &KeyRange) {
        let (lower, upper) = range.bounds();
        self.insert(start_of(lower), end_of(upper));
    }
}

/// The higher one.
fn further(one: Option<Slice>, other: Option<Slice>) -> Option<Slice> {
    Some(one?.max(other?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::KEY_BYTES_MAX;

    /// For each key of one byte, whether the set holds it.
    fn held(spans: &Spans) -> Vec<bool> {
        (0..=255_u8).map(|key| spans.over(&[key]).is_some()).collect()
    }

    #[test]
    fn spans_hold_what_was_put_in_and_not_taken_out() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..40 {
            let mut spans = Spans::default();
            let mut model = vec![false; 256];
            for _ in 0..120 {
                let (one, other) = (random.u8(..), random.u8(..));
                let low = one.min(other);
                let high = one.max(other).min(low.saturating_add(40));
                match random.u8(..5) {
                    0 => {
                        spans.insert([low].into(), None);
                        model[usize::from(low)..].fill(true);
                        spans.remove(&[high.max(low)]);
                        model[usize::from(high.max(low))] = false;
                    }
                    1 | 2 => {
                        spans.remove(&[one]);
                        model[usize::from(one)] = false;
                    }
                    3 => {
                        spans.insert([low].into(), Some([high].into()));
                        model[usize::from(low)..usize::from(high.max(low))].fill(true);
                    }
                    _ => {
                        spans.insert([one].into(), Some(after(&[one])));
                        model[usize::from(one)] = true;
                    }
                }
                assert_eq!(held(&spans), model);
                for key in 0..=255_u8 {
                    let end = if key == 0 { None } else { Some(&[key][..]) };
                    if let Some((start, last)) = spans.before(end) {
                        assert!(end.is_none_or(|end| start[..] < *end));
                        assert!(
                            last.is_none() || end.is_some_and(|end| last.as_deref() >= Some(end))
                        );
                    }
                    assert!(!model[usize::from(key)] || spans.touches(&[key]));
                }
                let ends: Vec<_> = spans.spans.iter().collect();
                for pair in ends.windows(2) {
                    assert!(pair[0].1.as_ref().is_some_and(|end| end < pair[1].0), "apart");
                }
            }
        }
    }

    #[test]
    fn what_grows_at_an_end_is_one_interval() {
        let mut spans = Spans::default();
        for key in 0..100_u8 {
            spans.insert([key].into(), Some(after(&[key])));
            // Between two of them only added keys are in the set.
            assert_eq!(spans.len(), usize::from(key) + 1);
        }
        let mut spans = Spans::default();
        for key in 0..100_u8 {
            spans.insert(Slice::default(), Some(after(&[key])));
        }
        assert_eq!(spans.len(), 1);
        assert_eq!(spans.bounds().next().map(|(lower, _)| lower), Some(Unbounded));
    }

    #[test]
    fn the_longest_key_has_no_bound_that_is_longer() {
        let longest = vec![7; KEY_BYTES_MAX];
        let mut spans = Spans::default();
        spans.insert(after(&longest), None);
        assert_eq!(spans.bounds().next(), Some((Excluded(&longest[..]), Unbounded)));
        let mut spans = Spans::default();
        spans.insert(Slice::default(), Some(after(&longest)));
        assert_eq!(spans.bounds().next(), Some((Unbounded, Included(&longest[..]))));
    }
}
