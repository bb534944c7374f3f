//! Comparing keys.
//!
//! Purpose: what nodes keep of keys, so that most of them need not be read.

/// The 8 bytes of a key after `skip` as a number that compares as they do; zeros stand for bytes
/// beyond its end.
#[inline]
pub(crate) fn head_of(key: &[u8], skip: usize) -> u64 {
    let rest = key.get(skip..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*bytes).swap_bytes();
    }
    let head = rest.iter().fold(0, |head, byte| head << 8 | u64::from(*byte));
    head.checked_shl(64 - 8 * rest.len() as u32).unwrap_or(0)
}

/// Bytes that two strings share at their start.
#[inline]
pub(crate) fn common_len(left: &[u8], right: &[u8]) -> usize {
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    let same = 8 * words.take_while(|(left, right)| left == right).count();
    let rest = left[same..].iter().zip(&right[same..]);
    same + rest.take_while(|(left, right)| left == right).count()
}
