//! Blocked Bloom filters over the keys of a part of a table.
//!
//! Purpose: most searches for an absent key end after a look at 64 bytes. All bits of a key lie in
//! one cache line (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007).
//! With 10 bits a key about 1 of 100 absent keys passes; a plain filter passes 0.8, at six times
//! the cache misses.
//! Invariants: a key whose hash was added always passes. The layout is that of
//! `docs/format/table.md`.
//! Thread safety: immutable once built.

use adamant_slice::Slice;

use crate::block::{Malformed, Read};

/// Bytes of a cache line, which holds all bits of a key.
const LINE_BYTES: usize = 64;
/// Maximum bits per key of a filter.
pub(crate) const BITS_PER_KEY_MAX: u32 = 32;
/// Maximum number of bits that are set for a key.
const PROBES_MAX: u8 = 16;
/// Spreads the probes: 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9E37_79B9;

/// A filter to query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter<'a> {
    lines: &'a [u8],
    probes: u8,
}

impl<'a> Filter<'a> {
    /// Takes the payload of a filter block.
    ///
    /// # Errors
    /// `Malformed` if it is no filter.
    #[inline]
    pub(crate) fn new(payload: &'a Slice) -> Read<Self> {
        match payload.as_bytes().split_last() {
            Some((&probes, lines))
                if !lines.is_empty()
                    && lines.len().is_multiple_of(LINE_BYTES)
                    && (1..=PROBES_MAX).contains(&probes) =>
            {
                Ok(Self { lines, probes })
            }
            _ => Err(Malformed("expected a filter of lines of 64 bytes and 1 to 16 probes")),
        }
    }

    /// Whether a key with that hash may have been added.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let start = line_of(hash, self.lines.len() / LINE_BYTES) * LINE_BYTES;
        let line = &self.lines[start..start + LINE_BYTES];
        probes_of(hash, self.probes).all(|bit| line[bit / 8] & 1 << (bit % 8) != 0)
    }
}

/// The line of a key, from the upper half of its hash.
#[inline]
pub(crate) fn line_of(hash: u64, line_count: usize) -> usize {
    (((hash >> 32) * line_count as u64) >> 32) as usize
}

/// The bits of a key in its line, from the lower half of its hash.
#[inline]
pub(crate) fn probes_of(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    let spread = |bits: &u32| Some(bits.wrapping_mul(SPREAD));
    std::iter::successors(Some(hash as u32), spread)
        .take(probes.into())
        .map(|bits| (bits >> 23) as usize)
}

/// Bytes of a filter of `key_count` keys.
pub(crate) fn filter_bytes(key_count: usize, bits_per_key: u32) -> usize {
    let bits = key_count.saturating_mul(bits_per_key as usize);
    bits.div_ceil(LINE_BYTES * 8).max(1) * LINE_BYTES + 1
}

/// Builds the filter of these hashes in `payload`.
pub(crate) fn build(hashes: &[u64], bits_per_key: u32, payload: &mut Vec<u8>) {
    let bytes = filter_bytes(hashes.len(), bits_per_key);
    payload.clear();
    payload.resize(bytes, 0);
    // 0.69 probes per bit would be best if all lines were equally full; they are not.
    let probes = (bits_per_key * 3 / 5).clamp(1, PROBES_MAX.into()) as u8;
    let line_count = bytes / LINE_BYTES;
    for &hash in hashes {
        let start = line_of(hash, line_count) * LINE_BYTES;
        let line = &mut payload[start..start + LINE_BYTES];
        for bit in probes_of(hash, probes) {
            line[bit / 8] |= 1 << (bit % 8);
        }
    }
    payload[bytes - 1] = probes;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::key_hash;

    fn built(keys: &[Vec<u8>], bits_per_key: u32) -> Slice {
        let hashes: Vec<u64> = keys.iter().map(|key| key_hash(key)).collect();
        let mut payload = Vec::new();
        build(&hashes, bits_per_key, &mut payload);
        Slice::from(payload)
    }

    #[test]
    fn every_key_passes_and_few_others() {
        // False positives: at most 1 of `rate_min`.
        for (bits_per_key, rate_min) in [(4, 6), (8, 35), (10, 75), (16, 500), (20, 1200)] {
            for key_count in [1_u32, 10, 1000, 20_000] {
                let keys: Vec<_> = (0..key_count).map(|n| n.to_le_bytes().to_vec()).collect();
                let payload = built(&keys, bits_per_key);
                let filter = Filter::new(&payload).unwrap();
                assert!(keys.iter().all(|key| filter.may_contain(key_hash(key))));
                let absent = 200_000_u32;
                let passed = (0..absent)
                    .filter(|n| filter.may_contain(key_hash(&(n + (1 << 30)).to_le_bytes())))
                    .count();
                let passed_max = absent as usize / rate_min;
                assert!(passed <= passed_max, "{passed} of {absent}: {bits_per_key} {key_count}");
            }
        }
    }

    #[test]
    fn bytes_are_what_the_bits_ask_for() {
        assert_eq!(filter_bytes(0, 10), 65);
        assert_eq!(filter_bytes(51, 10), 65);
        assert_eq!(filter_bytes(52, 10), 129);
        assert_eq!(built(&vec![vec![1]; 52], 10).len(), 129);
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for bytes in [vec![], vec![6], vec![0; 64], vec![0; 65], vec![17; 65], vec![6; 66]] {
            assert!(Filter::new(&Slice::from(bytes)).is_err());
        }
    }
}
