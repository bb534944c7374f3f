//! Compression of blocks and values.
//!
//! Purpose: LZ4's block format without a frame; lengths and checksums are our own.
//! Invariants: data that does not shrink by an eighth is stored uncompressed. The decompressed
//! length is known in advance and bounds the output.
//! Thread safety: a compressor belongs to one thread; the rest is pure functions.

use std::fmt;

use adamant_slice::{Builder, Slice};
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// How bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None = 0,
    /// By LZ4, where that saves an eighth.
    Lz4 = 1,
}

impl Compression {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// Maximum input for LZ4's table of 16-bit positions.
const SMALL_BYTES_MAX: usize = u16::MAX as usize - 1;

/// A compressor that reuses its memory.
pub(crate) struct Compressor {
    small: CompressTable,
    large: Option<CompressTable>,
    output: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self { small: CompressTable::small(), large: None, output: Vec::new() }
    }

    /// The bytes to store for `plain`, and their compression.
    pub(crate) fn compress<'a>(
        &'a mut self,
        plain: &'a [u8],
        compression: Compression,
    ) -> (&'a [u8], Compression) {
        if compression == Compression::None {
            return (plain, Compression::None);
        }
        let output_bytes = get_maximum_output_size(plain.len());
        if self.output.len() < output_bytes {
            self.output.resize(output_bytes, 0);
        }
        let table = if plain.len() <= SMALL_BYTES_MAX {
            &mut self.small
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        // The output has room for any result, so this cannot fail; if it did, storing plain bytes
        // would be correct.
        match compress_into_with_table(plain, &mut self.output, table) {
            Ok(bytes) if bytes + plain.len() / 8 < plain.len() => {
                (&self.output[..bytes], Compression::Lz4)
            }
            _ => (plain, Compression::None),
        }
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("output_bytes", &self.output.len()).finish()
    }
}

/// Decompresses `stored` by LZ4 to `plain_bytes` bytes; `None` if `stored` does not decompress to
/// as many.
pub(crate) fn decompress(stored: &[u8], plain_bytes: usize) -> Option<Slice> {
    // One byte of LZ4 expands to 255 at most: a larger claim is false, so nothing is allocated.
    if plain_bytes / 255 > stored.len() {
        return None;
    }
    let mut plain = Builder::zeroed(plain_bytes).ok()?;
    let bytes = decompress_into(stored, &mut plain).ok()?;
    (bytes == plain_bytes).then(|| plain.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_back() {
        let mut compressor = Compressor::new();
        for bytes in [0, 1, 100, 4096, 65_534, 65_535, 1 << 20, 5000] {
            let plain: Vec<u8> = (0..bytes).map(|index| (index / 7 % 13) as u8).collect();
            let (stored, how) = compressor.compress(&plain, Compression::Lz4);
            match how {
                Compression::None => assert_eq!(stored, plain),
                Compression::Lz4 => {
                    assert!(stored.len() < plain.len());
                    assert_eq!(decompress(stored, bytes).unwrap(), plain);
                    assert_eq!(decompress(stored, bytes + 1), None);
                    assert_eq!(decompress(stored, bytes - 1), None);
                    assert_eq!(decompress(stored, 1 << 31), None);
                }
            }
            assert_eq!(how == Compression::Lz4, bytes >= 100, "{bytes} bytes");
        }
    }

    #[test]
    fn what_does_not_shrink_is_kept_as_it_is() {
        let mut random = fastrand::Rng::with_seed(1);
        let plain: Vec<u8> = (0..10_000).map(|_| random.u8(..)).collect();
        let mut compressor = Compressor::new();
        assert_eq!(compressor.compress(&plain, Compression::Lz4), (&plain[..], Compression::None));
        assert_eq!(compressor.compress(&[0; 99], Compression::None).1, Compression::None);
    }
}
