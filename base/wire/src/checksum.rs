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
