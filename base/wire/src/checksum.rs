//! CRC32C (Castagnoli), which x86-64 and aarch64 compute in hardware.
//!
//! Purpose: the one checksum of every format.
//! Invariants: `crc32c(crc32c(0, a), b) == crc32c(0, ab)`; the checksum of a page of zeros is 0.
//! Thread safety: pure functions.

use std::sync::OnceLock;

/// Bytes of the pages that `page_checksum` is made for.
const PAGE_BYTES: usize = 4096;
/// CRC32C of `PAGE_BYTES` zero bytes.
const ZERO_PAGE_CRC: u32 = 0x98F9_4189;

/// Continues the checksum `seed` (0 to begin) over `bytes`.
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(seed, bytes)
}

/// The checksum of a page: its CRC32C, exclusive-or that of as many zero bytes. So the checksum of
/// a page of zeros is 0, and a hole in the pool has a valid one, because a hole in the checksums
/// reads as zeros too.
pub fn page_checksum(page: &[u8]) -> u32 {
    crc32c(0, page) ^ zeros_crc(page.len())
}

/// CRC32C of `length_bytes` zero bytes.
fn zeros_crc(length_bytes: usize) -> u32 {
    if length_bytes == PAGE_BYTES {
        return ZERO_PAGE_CRC;
    }
    let zeros = [0; PAGE_BYTES];
    let mut crc = 0;
    let mut left = length_bytes;
    while left > 0 {
        let step = left.min(PAGE_BYTES);
        crc = crc32c(crc, &zeros[..step]);
        left -= step;
    }
    crc
}

/// The polynomial of CRC32C, without its highest power, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82F6_3B78;
/// The polynomials 1 and x^8: appending a zero byte multiplies by the latter.
const ONE: u32 = 1 << 31;
const BYTE: u32 = 1 << 23;
/// Bits of a digit of a length, number of digits, and number of values of a digit.
const DIGIT_BITS: usize = 10;
const DIGITS: usize = 4;
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Combines checksums: the effect of bytes on the checksum of those before them, when only their
/// own checksum is known: `crc32c(seed, bytes) == advance.by(seed, bytes.len()) ^ crc32c(0,
/// bytes)`. So the checksum of any range follows from those of the bytes before its start and
/// before its end, in the same time for every length. After `crc32_combine` of zlib (Mark Adler):
/// checksums are polynomials; appending a byte multiplies by x^8, and appending many by a power of
/// it, the product of one stored power for each digit of their number. 16 KiB; making them takes
/// some 150 us, once in a process; a lookup takes 0.03 us a digit.
#[derive(Clone, Copy, Debug)]
pub struct Advance(&'static Powers);

type Powers = [[u32; DIGIT_VALUES]; DIGITS];

impl Advance {
    /// The powers, which are the same for all.
    pub fn new() -> Self {
        static POWERS: OnceLock<Box<Powers>> = OnceLock::new();
        Self(POWERS.get_or_init(Self::powers))
    }

    fn powers() -> Box<Powers> {
        let mut powers = Box::new([[ONE; DIGIT_VALUES]; DIGITS]);
        let mut step = BYTE;
        for digit in powers.iter_mut() {
            for value in 1..DIGIT_VALUES {
                digit[value] = product(digit[value - 1], step);
            }
            step = product(digit[DIGIT_VALUES - 1], step);
        }
        powers
    }

    /// The contribution of the checksum `crc` before `length_bytes` bytes to that after them.
    pub fn by(&self, crc: u32, length_bytes: u32) -> u32 {
        self.0.iter().enumerate().fold(crc, |crc, (place, powers)| {
            match length_bytes as usize >> (place * DIGIT_BITS) & (DIGIT_VALUES - 1) {
                0 => crc,
                value => product(powers[value], crc),
            }
        })
    }
}

impl Default for Advance {
    fn default() -> Self {
        Self::new()
    }
}

/// The product of two polynomials modulo that of CRC32C. Without a branch: no bit is predictable.
fn product(one: u32, other: u32) -> u32 {
    let all_if = |bit: u32| 0_u32.wrapping_sub(bit & 1);
    let (mut sum, mut other) = (0, other);
    for bit in (0..32).rev() {
        sum ^= other & all_if(one >> bit);
        other = other >> 1 ^ (POLYNOMIAL & all_if(other));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        // From RFC 3720, appendix B.4.
        assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
    }

    #[test]
    fn the_checksum_of_a_range_follows_from_those_of_what_is_before() {
        let advance = Advance::new();
        let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(at) >> 3) as u8).collect();
        for (start, end) in
            [(0, 0), (5, 6), (9, 9), (0, 4096), (17, 300), (1, 70_000), (0, 1 << 20)]
        {
            for seed in [0, 1, 0xDEAD_BEEF, u32::MAX] {
                let (before, until) = (crc32c(0, &bytes[..start]), crc32c(0, &bytes[..end]));
                let len = (end - start) as u32;
                let found = advance.by(seed ^ before, len) ^ until;
                assert_eq!(found, crc32c(seed, &bytes[start..end]), "{start}..{end} of {seed:#x}");
            }
        }
    }

    #[test]
    fn a_checksum_continues_over_any_cut() {
        let bytes: Vec<u8> = (0..300).map(|index| index as u8).collect();
        let whole = crc32c(0, &bytes);
        for cut in 0..=bytes.len() {
            assert_eq!(crc32c(crc32c(0, &bytes[..cut]), &bytes[cut..]), whole);
        }
    }

    #[test]
    fn zeros_of_any_length_have_the_sum_zero_and_a_bit_does_not() {
        for length in [0, 1, 512, 4095, 4096, 4097, 10_000] {
            assert_eq!(page_checksum(&vec![0; length]), 0, "length {length}");
        }
        let mut page = vec![0; PAGE_BYTES];
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] = 1 << (bit % 8);
            assert_ne!(page_checksum(&page), 0, "bit {bit}");
            page[bit / 8] = 0;
        }
    }
}
