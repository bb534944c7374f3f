//! What stands for zstd in a build without the feature `zstd`.

/// Whether this build has it.
pub(super) const IS_BUILT: bool = false;

/// Compresses nothing: options that ask for it are refused.
pub(super) struct ZstdCompressor;

impl ZstdCompressor {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) fn compress(&mut self, _: &[u8], _: i32, _: &mut [u8]) -> Option<usize> {
        None
    }
}

pub(super) fn content_bytes(_: &[u8]) -> Option<u64> {
    None
}

pub(super) fn decompress(_: &[u8], _: &mut [u8]) -> Option<usize> {
    None
}
