//! Key ranges from C.
//!
//! Invariants: `Bounds` are the intersection of all parts of a range.

use std::ops::Bound;

use adamant::prefix_end;

use crate::border::failure::Result;
use crate::border::pointers::{In, Range, Slice};

/// All keys that start with these bytes.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_range_prefix(prefix: Slice) -> Range {
    Range { prefix, ..Range::ALL }
}

/// All keys from `lower` on that are below `upper`; NULL bytes are no bound.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_range_between(lower: Slice, upper: Slice) -> Range {
    Range { lower, upper, ..Range::ALL }
}

/// A bound of keys.
pub(crate) type KeyBound = Bound<Vec<u8>>;

/// Two bounds of keys.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) lower: KeyBound,
    pub(crate) upper: KeyBound,
}

impl Bounds {
    /// The bounds of a range; all keys for null.
    pub(crate) fn of(range: &In<Range>) -> Result<Self> {
        let Some(range) = range.range()? else {
            return Ok(Self { lower: Bound::Unbounded, upper: Bound::Unbounded });
        };
        let lower = bound(&range.lower, range.lower_excluded == 0)?;
        let upper = bound(&range.upper, range.upper_included != 0)?;
        let prefix = range.prefix.bytes()?;
        let first = Bound::Included(prefix.to_vec());
        let past = prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        Ok(Self { lower: later(lower, first), upper: earlier(upper, past) })
    }

    /// The bounds for the store.
    pub(crate) fn pair(&self) -> (KeyBound, KeyBound) {
        (self.lower.clone(), self.upper.clone())
    }
}

fn bound(key: &Slice, is_included: bool) -> Result<KeyBound> {
    if key.is_none() {
        return Ok(Bound::Unbounded);
    }
    let key = key.bytes()?.to_vec();
    Ok(if is_included { Bound::Included(key) } else { Bound::Excluded(key) })
}

/// The narrower of two lower bounds.
pub(crate) fn later(one: KeyBound, other: KeyBound) -> KeyBound {
    match (rank_of_lower(&one), rank_of_lower(&other)) {
        (a, b) if a >= b => one,
        _ => other,
    }
}

/// The narrower of two upper bounds.
pub(crate) fn earlier(one: KeyBound, other: KeyBound) -> KeyBound {
    match (&one, &other) {
        (_, Bound::Unbounded) => one,
        (Bound::Unbounded, _) => other,
        (Bound::Included(a), Bound::Excluded(b)) => {
            if a < b {
                one
            } else {
                other
            }
        }
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
            if a <= b { one } else { other }
        }
    }
}

/// The order of lower bounds: none first, then by key, an included key before an excluded one.
fn rank_of_lower(bound: &KeyBound) -> Option<(&[u8], bool)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(key) => Some((key, false)),
        Bound::Excluded(key) => Some((key, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(bounds: &Bounds, key: &[u8]) -> bool {
        use std::ops::RangeBounds;
        bounds.pair().contains(&key.to_vec())
    }

    /// Compares each combination of parts with its meaning, key by key.
    #[test]
    fn a_range_is_what_its_parts_have_in_common() {
        let words: [&[u8]; 7] = [b"", b"a", b"ab", b"a\xff", b"b", b"\xff", b"\xff\xff"];
        // SAFETY: the words outlive the ranges.
        let slice = |word: &[u8]| unsafe { Slice::new(word.as_ptr(), word.len()) };
        for at in 0..words.len().pow(3) {
            let (prefix, lower) = (words[at % 7], words[at / 7 % 7]);
            let upper = words[at / 49];
            for flags in 0..4 {
                let (lower_excluded, upper_included) = (flags & 1, flags >> 1);
                let range = Range {
                    prefix: slice(prefix),
                    lower: slice(lower),
                    upper: slice(upper),
                    lower_excluded,
                    upper_included,
                };
                // SAFETY: a range of our own.
                let bounds = Bounds::of(&unsafe { In::new(&range) }).unwrap();
                for key in words {
                    let above = if lower_excluded == 0 { key >= lower } else { key > lower };
                    let below = if upper_included == 0 { key < upper } else { key <= upper };
                    let expected = key.starts_with(prefix) && above && below;
                    assert_eq!(holds(&bounds, key), expected, "{key:?} in {range:?}");
                }
            }
        }
    }
}
