//! Variable-length integers: LEB128, seven bits a byte, low bits first.
//!
//! Purpose: counts, lengths and deltas, which are mostly small: 1 byte below 128, 2 below 16,384,
//! 10 at most.
//! Invariants: `take` reads back what `put` wrote; it also takes encodings with needless zero
//! groups, but none longer than `VARINT_BYTES_MAX` and none of a value beyond 64 bits.
//! Thread safety: pure functions.

/// Bytes of the longest encoding of a `u64`.
pub const VARINT_BYTES_MAX: usize = 10;

/// Appends `value`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes `value` into `out` from `at` on and returns where it ends.
///
/// # Panics
/// If there is no room for it.
#[inline]
pub fn put_in(out: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        out[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Takes one value off the front of `input`; `None`, and `input` untouched, when it is truncated,
/// longer than `VARINT_BYTES_MAX` or beyond 64 bits.
#[inline]
pub fn take(input: &mut &[u8]) -> Option<u64> {
    // Nearly all lengths take one byte or two, and they are read for every entry of a scan.
    match **input {
        [first, ref rest @ ..] if first < 0x80 => {
            *input = rest;
            Some(u64::from(first))
        }
        [first, second, ref rest @ ..] if second < 0x80 => {
            *input = rest;
            Some(u64::from(first & 0x7F) | u64::from(second) << 7)
        }
        _ => take_long(input),
    }
}

fn take_long(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for (index, &byte) in input.iter().take(VARINT_BYTES_MAX).enumerate() {
        let bits = u64::from(byte & 0x7F);
        // The tenth byte has room for one bit: nine groups of seven are 63.
        if index == VARINT_BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    None
}

/// Bytes that `put` appends for `value`: 1 to 10.
pub fn len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Maps signed to unsigned so that small magnitudes stay small: 0, -1, 1, -2 become 0, 1, 2, 3.
#[inline]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of `zigzag`.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<u64> {
        let mut values = vec![0, u64::MAX];
        for shift in 0..64 {
            let power = 1_u64 << shift;
            values.extend([power - 1, power, power + 1]);
        }
        let mut random = fastrand::Rng::with_seed(7);
        values.extend((0..10_000).map(|_| random.u64(..) >> random.u32(0..64)));
        values
    }

    #[test]
    fn values_come_back_and_take_the_length_foretold() {
        for value in samples() {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out.len(), len(value), "value {value}");
            out.push(0xFF);
            let mut input = &out[..];
            assert_eq!(take(&mut input), Some(value));
            assert_eq!(input, [0xFF]);
            let mut same = [0; 3 + VARINT_BYTES_MAX];
            let end = put_in(&mut same, 3, value);
            assert_eq!(same[3..end], out[..out.len() - 1]);
        }
    }

    #[test]
    fn every_truncation_is_none_and_takes_nothing() {
        for value in samples() {
            let mut out = Vec::new();
            put(&mut out, value);
            for cut in 0..out.len() {
                let mut input = &out[..cut];
                assert_eq!(take(&mut input), None);
                assert_eq!(input.len(), cut);
            }
        }
    }

    #[test]
    fn needless_groups_are_taken_and_overlong_or_overflowing_ones_are_not() {
        let mut input: &[u8] = &[0x81, 0x80, 0x00];
        assert_eq!(take(&mut input), Some(1));
        assert!(input.is_empty());
        for last in 2..=0x7F {
            let mut bytes = [0xFF_u8; 10];
            bytes[9] = last;
            assert_eq!(take(&mut &bytes[..]), None);
        }
        let mut overlong = [0x80_u8; 11];
        overlong[10] = 0;
        assert_eq!(take(&mut &overlong[..]), None);
    }

    #[test]
    fn zigzag_keeps_small_magnitudes_small_and_comes_back() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        for value in samples() {
            assert_eq!(zigzag(unzigzag(value)), value);
            assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
        }
    }
}
