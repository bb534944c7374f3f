//! Fixed-width little-endian integers at an offset in a byte slice.
//!
//! Purpose: the one way in which integers of known width are read and written.
//! Invariants: little-endian on every machine; no width depends on the platform.
//! Thread safety: pure functions.

/// The bytes of one integer at `at`, if they all exist.
#[inline]
fn chunk_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The `u32` at byte `at`, or `None` when it does not lie within `bytes`.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    chunk_at(bytes, at).map(u32::from_le_bytes)
}

/// The `u64` at byte `at`, or `None` when it does not lie within `bytes`.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    chunk_at(bytes, at).map(u64::from_le_bytes)
}

/// Appends `value` in 2 bytes.
#[inline]
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` in 4 bytes.
#[inline]
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends `value` in 8 bytes.
#[inline]
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found_at_its_place() {
        let mut out = vec![0xAA];
        put_u16(&mut out, 0x0102);
        put_u32(&mut out, 0x0304_0506);
        put_u64(&mut out, 0x0708_090A_0B0C_0D0E);
        assert_eq!(out[..7], [0xAA, 0x02, 0x01, 0x06, 0x05, 0x04, 0x03]);
        assert_eq!(u32_at(&out, 3), Some(0x0304_0506));
        assert_eq!(u64_at(&out, 7), Some(0x0708_090A_0B0C_0D0E));
    }

    #[test]
    fn places_beyond_the_end_are_none() {
        let bytes = [0; 8];
        assert_eq!(u64_at(&bytes, 0), Some(0));
        assert_eq!(u64_at(&bytes, 1), None);
        assert_eq!(u32_at(&bytes, 5), None);
        assert_eq!(u32_at(&bytes, 9), None);
        assert_eq!(u64_at(&bytes, usize::MAX), None);
    }
}
