//! Compressing and decompressing bytes whose plain length is known.
//!
//! Purpose: LZ4's block format without a frame, and frames of zstd without a checksum; lengths and
//! checksums are our own.
//! Invariants: data that does not shrink by an eighth is stored uncompressed. The decompressed
//! length is known in advance and bounds the output.
//! Thread safety: a compressor belongs to one thread; the rest is pure functions.

use std::fmt;

use adamant_slice::{Builder, Slice};
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use super::choice::{Compression, Method};
use super::dictionary::Dictionary;
use super::zstd::{self, ZstdCompressor};

/// Maximum input for LZ4's table of 16-bit positions.
const SMALL_BYTES_MAX: usize = u16::MAX as usize - 1;

/// A compressor that reuses its memory.
///
/// ```
/// use adamant_lsm::Compression;
/// use adamant_lsm::compression::{Compressor, Method, decompress};
///
/// let mut compressor = Compressor::new();
/// let (stored, method) = compressor.compress(&[7; 1000], Compression::Lz4);
/// assert!(stored.len() < 100 && method == Method::Lz4);
/// assert_eq!(decompress(method, stored, 1000, None).unwrap(), [7; 1000]);
/// ```
pub struct Compressor {
    small: CompressTable,
    large: Option<CompressTable>,
    zstd: ZstdCompressor,
    output: Vec<u8>,
}

impl Default for Compressor {
    fn default() -> Self {
        Self::new()
    }
}

impl Compressor {
    /// One that has compressed nothing yet.
    pub fn new() -> Self {
        let (small, zstd) = (CompressTable::small(), ZstdCompressor::default());
        Self { small, large: None, zstd, output: Vec::new() }
    }

    /// Bytes that it keeps for the next output.
    pub fn kept_bytes(&self) -> usize {
        self.output.len()
    }

    /// The bytes to store for `plain` by zstd with a dictionary; `None` if that does not save an
    /// eighth.
    pub fn compress_with(&mut self, plain: &[u8], dictionary: &Dictionary) -> Option<&[u8]> {
        let kept_bytes_max = kept_bytes_max(plain);
        self.make_room(kept_bytes_max);
        let room = &mut self.output[..kept_bytes_max];
        let bytes = self.zstd.compress_with(plain, dictionary.prepared(), room)?;
        Some(&self.output[..bytes])
    }

    /// The bytes to store for `plain`, and how they are stored.
    pub fn compress<'a>(
        &'a mut self,
        plain: &'a [u8],
        compression: Compression,
    ) -> (&'a [u8], Method) {
        let (bytes, method) = match compression {
            Compression::None => (None, Method::None),
            Compression::Lz4 => (self.by_lz4(plain), Method::Lz4),
            // Zstd gives up as soon as more room would be needed than what is kept may take.
            Compression::Zstd(level) => {
                self.make_room(kept_bytes_max(plain));
                let room = &mut self.output[..kept_bytes_max(plain)];
                (self.zstd.compress(plain, level.into(), room), Method::Zstd)
            }
        };
        // A compressor that fails is no reason to fail: plain bytes are correct.
        match bytes {
            Some(bytes) if bytes <= kept_bytes_max(plain) => (&self.output[..bytes], method),
            _ => (plain, Method::None),
        }
    }

    fn by_lz4(&mut self, plain: &[u8]) -> Option<usize> {
        self.make_room(get_maximum_output_size(plain.len()));
        let table = if plain.len() <= SMALL_BYTES_MAX {
            &mut self.small
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        compress_into_with_table(plain, &mut self.output, table).ok()
    }

    fn make_room(&mut self, bytes: usize) {
        if self.output.len() < bytes {
            self.output.resize(bytes, 0);
        }
    }
}

/// Bytes that the compressed form of `plain` may have to be stored: an eighth less.
fn kept_bytes_max(plain: &[u8]) -> usize {
    (plain.len() - plain.len() / 8).saturating_sub(1)
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("output_bytes", &self.output.len()).finish()
    }
}

/// Why bytes cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// They are not what was stored.
    Malformed,
    /// They may be fine: this build is without the feature `zstd`.
    NotBuilt,
}

/// Restores `stored` to `plain_bytes` bytes. What is not compressed shares its memory.
pub(crate) fn restore(
    method: Method,
    stored: Slice,
    plain_bytes: usize,
) -> std::result::Result<Slice, Refused> {
    match method {
        Method::None if stored.len() == plain_bytes => Ok(stored),
        method => decompress(method, &stored, plain_bytes, None),
    }
}

/// Decompresses `stored` to `plain_bytes` bytes, with the dictionary that was used. Allocates only
/// lengths that can be true, so a wrong length takes no memory.
///
/// # Errors
/// The bytes do not decompress to as many; zstd is not built in.
pub fn decompress(
    method: Method,
    stored: &[u8],
    plain_bytes: usize,
    dictionary: Option<&Dictionary>,
) -> std::result::Result<Slice, Refused> {
    let plain = match method {
        Method::None => (stored.len() == plain_bytes).then(|| Slice::from(stored)),
        Method::Lz4 => decompress_lz4(stored, plain_bytes),
        Method::Zstd if !zstd::IS_BUILT => return Err(Refused::NotBuilt),
        Method::Zstd => decompress_zstd(stored, plain_bytes, dictionary),
    };
    plain.ok_or(Refused::Malformed)
}

/// The length that a frame of zstd says it decompresses to; `None` if it is none, or zstd is not
/// built in.
pub fn zstd_plain_bytes(stored: &[u8]) -> Option<u64> {
    zstd::content_bytes(stored)
}

/// As [`decompress`], by LZ4.
fn decompress_lz4(stored: &[u8], plain_bytes: usize) -> Option<Slice> {
    // One byte of LZ4 expands to 255 at most: a larger claim is false, so nothing is allocated.
    if plain_bytes / 255 > stored.len() {
        return None;
    }
    let mut plain = Builder::zeroed(plain_bytes).ok()?;
    let bytes = decompress_into(stored, &mut plain).ok()?;
    (bytes == plain_bytes).then(|| plain.freeze())
}

/// Bytes that a block within a frame of zstd takes at least, if it is not empty, and bytes that it
/// expands to at most.
const ZSTD_BLOCK_BYTES: (usize, usize) = (4, 128 << 10);

/// As [`decompress`], by zstd. A frame also says itself how long it is.
fn decompress_zstd(
    stored: &[u8],
    plain_bytes: usize,
    dictionary: Option<&Dictionary>,
) -> Option<Slice> {
    let blocks_max = stored.len() / ZSTD_BLOCK_BYTES.0;
    if plain_bytes.div_ceil(ZSTD_BLOCK_BYTES.1) > blocks_max
        || zstd::content_bytes(stored) != Some(plain_bytes as u64)
    {
        return None;
    }
    let mut plain = Builder::zeroed(plain_bytes).ok()?;
    let bytes = zstd::decompress(stored, &mut plain, dictionary.map(Dictionary::prepared))?;
    (bytes == plain_bytes).then(|| plain.freeze())
}

#[cfg(test)]
mod tests {
    use super::super::dictionary::train;
    use super::*;

    fn restored(method: Method, stored: &[u8], plain_bytes: usize) -> Option<Slice> {
        restore(method, Slice::new(stored), plain_bytes).ok()
    }

    /// Those that this build has.
    fn built() -> impl Iterator<Item = (Compression, Method)> {
        let all = [1, 3, 9, 22].map(|level| (Compression::Zstd(level), Method::Zstd));
        let all = [(Compression::Lz4, Method::Lz4)].into_iter().chain(all);
        all.filter(|(compression, _)| compression.is_built())
    }

    #[test]
    fn what_was_compressed_comes_back() {
        let mut compressor = Compressor::new();
        for (compression, method) in built() {
            for bytes in [0, 1, 100, 4096, 65_534, 65_535, 131_073, 1 << 20, 5000] {
                let plain: Vec<u8> = (0..bytes).map(|index| (index / 7 % 13) as u8).collect();
                let (stored, how) = compressor.compress(&plain, compression);
                assert_eq!(restored(how, stored, bytes).unwrap(), plain);
                assert_eq!(how == method, bytes >= 100, "{compression}, {bytes} bytes");
                if how == Method::None {
                    assert_eq!(stored, plain);
                    continue;
                }
                assert!(stored.len() < plain.len());
                for wrong in [bytes + 1, bytes - 1, 1 << 31, 0, usize::MAX] {
                    assert_eq!(restored(how, stored, wrong), None, "{compression}, {wrong} bytes");
                }
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_kept_as_it_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let plain: Vec<u8> = (0..10_000).map(|_| random.u8(..)).collect();
        let mut compressor = Compressor::new();
        for (compression, _) in built() {
            assert_eq!(compressor.compress(&plain, compression), (&plain[..], Method::None));
        }
        assert_eq!(compressor.compress(&[0; 99], Compression::None).1, Method::None);
    }

    /// Bytes that are not zstd's, or of which some were changed, may decompress to other bytes, but
    /// never to another length, and never take memory for a length that cannot be true.
    #[test]
    fn changed_bytes_of_zstd_are_refused_or_have_the_right_length() {
        let plain: Vec<u8> = (0..3000_u32).flat_map(|n| (n / 3 * 7).to_le_bytes()).collect();
        let mut compressor = Compressor::new();
        let (stored, method) = compressor.compress(&plain, Compression::zstd());
        let mut stored = stored.to_vec();
        if method != Method::Zstd {
            assert_eq!(restore(Method::Zstd, Slice::new(b"x"), 5), Err(Refused::NotBuilt));
            return;
        }
        for at in 0..stored.len() {
            for change in [1, 0x80, 0xFF] {
                stored[at] ^= change;
                if let Some(found) = restored(method, &stored, plain.len()) {
                    assert_eq!(found.len(), plain.len());
                }
                stored[at] ^= change;
            }
            assert_eq!(restored(method, &stored[..at], plain.len()), None);
        }
        for end in [&[0][..], b"more", &stored.clone()] {
            assert_eq!(restored(method, &[&stored, end].concat(), plain.len()), None);
        }
    }

    fn samples() -> Vec<Vec<u8>> {
        let sample =
            |n: u32| format!("name: crate-{n}; license: MIT OR Apache-2.0; year: {}", n % 9);
        (0..2000).map(|n| sample(n).into_bytes()).collect()
    }

    #[test]
    fn short_values_shrink_with_a_dictionary_and_need_it_to_come_back() {
        let trained = train(&samples(), 4096);
        if !Compression::zstd().is_built() {
            assert!(trained.unwrap_err().to_string().contains("without the feature zstd"));
            return;
        }
        let dictionary = Dictionary::new(&trained.unwrap(), Compression::zstd()).unwrap();
        let other = Dictionary::new(&train(&samples()[..900], 512).unwrap(), Compression::Zstd(9));
        let other = other.unwrap();
        let mut compressor = Compressor::new();
        for plain in samples().iter().step_by(97) {
            let (alone, _) = compressor.compress(plain, Compression::zstd());
            let alone = alone.len();
            let stored = compressor.compress_with(plain, &dictionary).unwrap().to_vec();
            assert!(stored.len() < alone, "{} of {alone} bytes", stored.len());
            let come_back = |dictionary, plain_bytes| {
                decompress(Method::Zstd, &stored, plain_bytes, dictionary)
            };
            assert_eq!(come_back(Some(&dictionary), plain.len()).unwrap(), *plain);
            assert_eq!(come_back(None, plain.len()), Err(Refused::Malformed));
            assert_eq!(come_back(Some(&other), plain.len()), Err(Refused::Malformed));
            assert_eq!(come_back(Some(&dictionary), plain.len() + 1), Err(Refused::Malformed));
        }
    }
}
