//! Keys: their first bytes as numbers, common prefixes, and whether bounds hold them.
//!
//! Purpose: data structures keep heads of keys, so that most keys need not be read. Every scan asks
//! here where it ends.

use std::ops::{Bound, RangeBounds};

/// Appended to a key, makes its successor: no key lies between these two.
pub const NEXT: &[u8] = &[0];

/// The 8 bytes of a key after `skip` as a number that compares as they do; zeros stand for bytes
/// beyond its end, so that the bytes decide between keys with equal numbers.
#[inline]
pub fn head_of(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes).swap_bytes();
    }
    let head = rest.iter().fold(0, |head, byte| head << 8 | u64::from(*byte));
    head.checked_shl(64 - 8 * rest.len() as u32).unwrap_or(0)
}

/// Whether a key lies below an upper bound.
#[inline]
pub fn is_below(key: &[u8], upper: Bound<&[u8]>) -> bool {
    RangeBounds::<[u8]>::contains(&(Bound::Unbounded, upper), key)
}

/// Whether a key lies above a lower bound.
#[inline]
pub fn is_above(key: &[u8], lower: Bound<&[u8]>) -> bool {
    RangeBounds::<[u8]>::contains(&(lower, Bound::Unbounded), key)
}

/// The lowest key above all that begin with `prefix`: the prefix without its trailing bytes of
/// 0xff, and its last byte one higher. `None` if there is none: every key begins with the empty
/// prefix, and nothing lies above a prefix of bytes 0xff alone. O(length of the prefix).
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Bytes that two strings share at their start, found by words of 8.
#[inline]
pub fn common_len(left: &[u8], right: &[u8]) -> usize {
    let bytes = left.len().min(right.len());
    let (left, right) = (&left[..bytes], &right[..bytes]);
    let (words, left_rest) = left.as_chunks::<8>();
    let (others, right_rest) = right.as_chunks::<8>();
    for (index, (word, other)) in words.iter().zip(others).enumerate() {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return index * 8 + differing.trailing_zeros() as usize / 8;
        }
    }
    let rest = left_rest.iter().zip(right_rest);
    bytes - left_rest.len() + rest.take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_lengths_of_all_lengths() {
        let bytes: Vec<u8> = (0..40).collect();
        for length in 0..40 {
            for differing in 0..=length {
                let mut other = bytes[..length].to_vec();
                if let Some(byte) = other.get_mut(differing) {
                    *byte ^= 0x80;
                }
                assert_eq!(common_len(&bytes, &other), differing);
                assert_eq!(common_len(&other, &bytes), differing);
            }
        }
    }

    #[test]
    fn a_prefix_ends_below_the_first_key_past_it() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((prefix_end(b"\xff"), prefix_end(b"")), (None, None));
    }

    #[test]
    fn heads_are_ordered_as_the_bytes_are() {
        let bytes = [0, 1, 0x7f, 0x80, 0xff, 0, 3, 0xff, 9, 200];
        let keys: Vec<&[u8]> = (0..bytes.len())
            .flat_map(|start| (start..=bytes.len()).map(move |end| start..end))
            .map(|range| &bytes[range])
            .collect();
        for one in &keys {
            for other in &keys {
                let heads = head_of(one, 0).cmp(&head_of(other, 0));
                assert!(heads.is_eq() || heads == one.cmp(other), "{one:?} {other:?}");
            }
        }
        assert_eq!(head_of(&bytes, 2), head_of(&bytes[2..], 0));
        assert_eq!(
            (head_of(&bytes, 9), head_of(&bytes, 10), head_of(&bytes, 11)),
            (200 << 56, 0, 0)
        );
    }
}
