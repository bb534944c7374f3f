//! Key ranges: ranges of a keyspace as ranges of SlateDB's keys.

use std::ops::Bound;

use adamant::{KeyBounds, prefix_end};
use slatedb::bytes::Bytes;

use crate::layout::{entry_key, id_bytes};

/// Two bounds, with the keyspace's number before them.
pub(crate) type Range = (Bound<Bytes>, Bound<Bytes>);

/// All keys with this prefix.
pub(crate) fn of_prefix(prefix: &[u8]) -> Range {
    let end = prefix_end(prefix).map(Bytes::from);
    let start = Bound::Included(Bytes::copy_from_slice(prefix));
    (start, end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The keys of a keyspace within bounds; `None` if there can be none.
pub(crate) fn of_keyspace(id: u32, bounds: &impl KeyBounds) -> Option<Range> {
    let (lower, upper) = bounds.bounds();
    let (all_lower, all_upper) = of_prefix(&id_bytes(id));
    let key = |key: &[u8]| Bytes::from(entry_key(id, key));
    let lower = match lower {
        Bound::Unbounded => all_lower,
        Bound::Included(lower) => Bound::Included(key(lower)),
        Bound::Excluded(lower) => Bound::Excluded(key(lower)),
    };
    let upper = match upper {
        Bound::Unbounded => all_upper,
        Bound::Included(upper) => Bound::Included(key(upper)),
        Bound::Excluded(upper) => Bound::Excluded(key(upper)),
    };
    may_hold_a_key(&lower, &upper).then_some((lower, upper))
}

/// Whether a key could lie between: SlateDB accepts no empty range.
pub(crate) fn may_hold_a_key(lower: &Bound<Bytes>, upper: &Bound<Bytes>) -> bool {
    match (lower, upper) {
        (Bound::Included(lower), Bound::Included(upper)) => lower <= upper,
        (Bound::Included(lower), Bound::Excluded(upper)) => lower < upper,
        (Bound::Excluded(lower), Bound::Included(upper)) => lower < upper,
        // The next key is the lower one and a zero byte.
        (Bound::Excluded(lower), Bound::Excluded(upper)) => {
            lower < upper && upper.strip_prefix(&lower[..]) != Some(&[0])
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_before_the_next_one() {
        let upper = |prefix: &[u8]| of_prefix(prefix).1;
        assert_eq!(upper(b"ab"), Bound::Excluded(Bytes::from_static(b"ac")));
        assert_eq!(upper(b"a\xff\xff"), Bound::Excluded(Bytes::from_static(b"b")));
        assert_eq!(upper(b"\xff"), Bound::Unbounded);
        assert_eq!(upper(&id_bytes(255)), Bound::Excluded(Bytes::from_static(&[0, 0, 1])));
    }

    #[test]
    fn empty_ranges_are_told() {
        assert!(of_keyspace(1, &("b".."a")).is_none());
        assert!(of_keyspace(1, &("a".."a")).is_none());
        assert!(of_keyspace(1, &("a"..="a")).is_some());
        assert!(of_keyspace(1, &(..)).is_some());
        let between = (Bound::Excluded("a"), Bound::Excluded("a\0"));
        assert!(of_keyspace(1, &between).is_none());
    }
}
