//! Rows of a multimap: a pair as the key of a row, and ranges of rows.
//!
//! Purpose: the one place that knows how pairs become bytes.
//! Invariants: the key is encoded as a part that another follows, so the rows of a key are exactly
//! those that begin with its encoding, and rows compare as pairs do.

use std::ops::Bound;

use adamant_wire::key::prefix_end;

use crate::bounds::KeyRange;
use crate::error::{Error, Result};
use crate::limits::KEY_BYTES_MAX;
use crate::typed::{Key, KeyBoundsFor, KeyFor, PrefixFor};

/// What all rows of a key begin with.
pub(super) fn start_of<K>(key: &(impl KeyFor<K> + ?Sized)) -> Vec<u8> {
    let mut start = Vec::new();
    key.encode(&mut start);
    start
}

/// The row of a pair.
pub(super) fn row<K, V>(
    key: &(impl KeyFor<K> + ?Sized),
    value: &(impl KeyFor<V> + ?Sized),
) -> Vec<u8> {
    let mut row = start_of(key);
    value.encode_last(&mut row);
    row
}

/// The row of a pair that is to be written.
///
/// # Errors
/// [`Error::PairTooLong`].
pub(super) fn new_row<K, V>(
    key: &(impl KeyFor<K> + ?Sized),
    value: &(impl KeyFor<V> + ?Sized),
) -> Result<Vec<u8>> {
    let row = row(key, value);
    if row.len() > KEY_BYTES_MAX {
        return Err(Error::PairTooLong {
            bytes: row.len() as u64,
            bytes_max: KEY_BYTES_MAX as u64,
        });
    }
    Ok(row)
}

/// The pair of a row of a keyspace.
///
/// # Errors
/// [`Error::Encoding`].
pub(super) fn pair<K: Key, V: Key>(keyspace: &str, row: &[u8]) -> Result<(K, V)> {
    let (key, start) = key(keyspace, row)?;
    Ok((key, value(keyspace, row, start.len())?))
}

/// The key of a row, and the bytes that encode it.
pub(super) fn key<'r, K: Key>(keyspace: &str, row: &'r [u8]) -> Result<(K, &'r [u8])> {
    let mut rest = row;
    let key = K::decode(&mut rest).map_err(|malformed| malformed.error(keyspace, row))?;
    Ok((key, &row[..row.len() - rest.len()]))
}

/// The value of a row, whose key has so many bytes.
pub(super) fn value<V: Key>(keyspace: &str, row: &[u8], start_bytes: usize) -> Result<V> {
    V::decode_last(&row[start_bytes..]).map_err(|malformed| malformed.error(keyspace, row))
}

/// The bound behind all rows that begin with these bytes.
fn behind(start: &[u8]) -> Bound<Vec<u8>> {
    prefix_end(start).map_or(Bound::Unbounded, Bound::Excluded)
}

/// The rows of a key.
pub(super) fn of_key<K>(key: &(impl KeyFor<K> + ?Sized)) -> Option<KeyRange> {
    KeyRange::prefix(&start_of(key))
}

/// The rows of a key with values in a range.
pub(super) fn of_values<K, V>(
    key: &(impl KeyFor<K> + ?Sized),
    values: &impl KeyBoundsFor<V>,
) -> Option<KeyRange> {
    let start = start_of(key);
    let row = |value: Vec<u8>| [&start[..], &value].concat();
    let (lower, upper) = values.encoded();
    let lower = match lower {
        Bound::Unbounded => Bound::Included(start.clone()),
        bound => bound.map(row),
    };
    let upper = match upper {
        Bound::Unbounded => behind(&start),
        bound => bound.map(row),
    };
    KeyRange::new(&(lower, upper))
}

/// The rows of the keys in a range.
pub(super) fn of_keys<K>(keys: &impl KeyBoundsFor<K>) -> Option<KeyRange> {
    let (lower, upper) = keys.encoded_by(|key| start_of(key));
    let lower = match lower {
        Bound::Excluded(start) => Bound::Included(prefix_end(&start)?),
        bound => bound,
    };
    let upper = match upper {
        Bound::Included(start) => behind(&start),
        bound => bound,
    };
    KeyRange::new(&(lower, upper))
}

/// The rows of the keys with a prefix.
pub(super) fn of_prefix<K>(prefix: &(impl PrefixFor<K> + ?Sized)) -> Option<KeyRange> {
    let mut bytes = Vec::new();
    prefix.encode_prefix_of_part(&mut bytes);
    KeyRange::prefix(&bytes)
}
