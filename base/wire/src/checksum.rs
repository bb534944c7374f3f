//! CRC32C (Castagnoli), which x86-64 and aarch64 compute in hardware.
//!
//! Purpose: the one checksum of every format.
//! Invariants: `crc32c(crc32c(0, a), b) == crc32c(0, ab)`; the sum of a page of zeros is 0.
//! Thread safety: pure functions.

/// Bytes of the pages that `page_sum` is made for.
const PAGE_BYTES: usize = 4096;
/// CRC32C of `PAGE_BYTES` zero bytes.
const ZERO_PAGE_CRC: u32 = 0x98F9_4189;

/// Continues the checksum `seed` (0 to begin) over `bytes`.
pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(seed, bytes)
}

/// The sum kept for a page: its CRC32C, exclusive-or that of as many zero bytes. So the sum of a
/// page of zeros is 0, and a hole in the pool has a valid sum, because a hole in the sums reads as
/// zeros too.
pub fn page_sum(page: &[u8]) -> u32 {
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

/// Bits of a length that `Advance` knows.
const LENGTH_BITS: usize = 32;

/// What bytes do to the checksum of those before them, when only their own checksum is known:
/// `crc32c(seed, bytes) == advance.by(seed, bytes.len()) ^ crc32c(0, bytes)`. So the checksum of any
/// range follows from those of what lies before its start and before its end, in the same time for
/// every length. After `crc32_combine` of zlib (Mark Adler): to append a byte is a linear map of the
/// checksum's 32 bits, and the maps of 1, 2, 4, 8 .. bytes are the squares of one another. 4 KiB;
/// making it takes some 20 us, a look-up 0.5 us.
#[derive(Clone, Debug)]
pub struct Advance(Box<[[u32; 32]; LENGTH_BITS]>);

impl Advance {
    /// The maps, which depend on nothing.
    pub fn new() -> Self {
        let mut maps = Box::new([[0; 32]; LENGTH_BITS]);
        let after_nothing = crc32c(0, &[0]);
        for (bit, image) in maps[0].iter_mut().enumerate() {
            *image = crc32c(1 << bit, &[0]) ^ after_nothing;
        }
        for power in 1..LENGTH_BITS {
            let half = maps[power - 1];
            maps[power] = half.map(|image| mapped(&half, image));
        }
        Self(maps)
    }

    /// The part of the checksum of bytes that the one before them has in it.
    pub fn by(&self, crc: u32, length_bytes: u32) -> u32 {
        let is_in = |power: &usize| length_bytes >> power & 1 == 1;
        (0..LENGTH_BITS).filter(is_in).fold(crc, |crc, power| mapped(&self.0[power], crc))
    }
}

impl Default for Advance {
    fn default() -> Self {
        Self::new()
    }
}

/// The image of a vector of bits: the sum of those of its bits.
fn mapped(map: &[u32; 32], vector: u32) -> u32 {
    let is_in = |bit: &usize| vector >> bit & 1 == 1;
    (0..32).filter(is_in).fold(0, |sum, bit| sum ^ map[bit])
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
        let bytes: Vec<u8> = (0..70_000_u32).map(|at| (at.wrapping_mul(at) >> 3) as u8).collect();
        for (start, end) in [(0, 0), (5, 6), (9, 9), (0, 4096), (17, 300), (1, 70_000)] {
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
            assert_eq!(page_sum(&vec![0; length]), 0, "length {length}");
        }
        let mut page = vec![0; PAGE_BYTES];
        for bit in 0..PAGE_BYTES * 8 {
            page[bit / 8] = 1 << (bit % 8);
            assert_ne!(page_sum(&page), 0, "bit {bit}");
            page[bit / 8] = 0;
        }
    }
}
