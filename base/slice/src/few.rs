//! Short byte strings: copies and comparisons without calls of `memcpy` and `memcmp`.
//!
//! Purpose: copies and comparisons of short strings by words that overlap. A call costs 2 to 4 ns,
//! as much as everything else that is done with 20 bytes.
//! Thread safety: pure functions.

use core::ptr;

/// Bytes of a string that is kept inline.
pub(crate) const FEW_BYTES_MAX: usize = 20;
/// From this length on the library's functions win: they have wider registers.
const CALL_BYTES_MIN: usize = 65;

#[inline]
fn number(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// At most `FEW_BYTES_MAX` bytes, padded with zeros: the first 4, and the other 16 as words in the
/// order of memory.
///
/// Loads at the start and at the end of the string overlap; the bytes that the last one repeats are
/// shifted out.
#[inline]
pub(crate) fn few_bytes(bytes: &[u8]) -> ([u8; 4], [u64; 2]) {
    let len = bytes.len();
    debug_assert!(len <= FEW_BYTES_MAX, "more bytes have no place");
    let (first, last): (u64, u64);
    let mut third = 0;
    if let (Some(start), Some(end)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        first = number(start);
        if let (Some(start), Some(end)) = (bytes.first_chunk::<16>(), bytes.last_chunk::<4>()) {
            let [_, _, _, _, _, _, _, _, second @ ..] = *start;
            last = number(&second);
            third = u64::from(u32::from_le_bytes(*end)) >> (8 * (20 - len.min(20)));
        } else {
            // 8 to 15: shifted in two steps, because a shift by 64 is none.
            last = number(end) >> 8 >> (8 * (15 - len));
        }
    } else if let (Some(start), Some(end)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let end = u64::from(u32::from_le_bytes(*end)) >> (8 * (8 - len));
        first = u64::from(u32::from_le_bytes(*start)) | end << 32;
        last = 0;
    } else if let (Some(&start), Some(&end)) = (bytes.first(), bytes.last()) {
        // 1 to 3 bytes: the first, the middle and the last one, which may be the same.
        let middle = len / 2;
        let all = u32::from(start)
            | u32::from(bytes[middle]) << (8 * middle)
            | u32::from(end) << (8 * (len - 1));
        first = u64::from(all);
        last = 0;
    } else {
        return ([0; 4], [0; 2]);
    }
    let prefix = (first as u32).to_le_bytes();
    let rest = [(first >> 32 | last << 32).to_le(), (last >> 32 | third << 32).to_le()];
    (prefix, rest)
}

/// Copies `bytes`, more than `FEW_BYTES_MAX`.
///
/// # Safety
/// As many bytes from `to` on can be written, and do not overlap `bytes`.
#[inline]
pub(crate) unsafe fn copy_many(bytes: &[u8], to: *mut u8) {
    let len = bytes.len();
    let from = bytes.as_ptr();
    if !(16..CALL_BYTES_MIN).contains(&len) {
        // SAFETY: the caller's promise.
        unsafe { ptr::copy_nonoverlapping(from, to, len) };
        return;
    }
    if len > 32 {
        // SAFETY: the caller's promise, for 33 to 64 bytes.
        unsafe { copy_ends::<32>(from, to, len) };
    } else {
        // SAFETY: the caller's promise, for 16 to 32 bytes.
        unsafe { copy_ends::<16>(from, to, len) };
    }
}

/// Copies the first and the last `N` of `len` bytes: all of them, if there are at most `2 * N`.
///
/// # Safety
/// As `ptr::copy_nonoverlapping` of `len` bytes, which are at least `N`.
#[inline]
unsafe fn copy_ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: `N` is at most `len`.
    unsafe { ptr::copy_nonoverlapping(from, to, N) };
    // SAFETY: as above.
    let from_end = unsafe { from.add(len - N) };
    // SAFETY: as above.
    let to_end = unsafe { to.add(len - N) };
    // SAFETY: the last `N` of the bytes.
    unsafe { ptr::copy_nonoverlapping(from_end, to_end, N) };
}

/// Whether two strings of the same length, more than `FEW_BYTES_MAX`, are equal.
#[inline]
pub(crate) fn equal(left: &[u8], right: &[u8]) -> bool {
    debug_assert_eq!(left.len(), right.len(), "different lengths are known to differ");
    match left.len() {
        16..=32 => equal_ends::<16>(left, right),
        33..CALL_BYTES_MIN => equal_ends::<32>(left, right),
        _ => left == right,
    }
}

/// Whether the first and the last `N` bytes are equal: all, if there are `N` to `2 * N`.
#[inline]
fn equal_ends<const N: usize>(left: &[u8], right: &[u8]) -> bool {
    left.first_chunk::<N>() == right.first_chunk::<N>()
        && left.last_chunk::<N>() == right.last_chunk::<N>()
}
