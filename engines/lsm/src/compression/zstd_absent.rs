//! What stands for zstd in a build without the feature `zstd`.

/// Whether this build has it.
pub(super) const IS_BUILT: bool = false;

/// Compresses nothing: options that ask for it are refused.
#[derive(Default)]
pub(super) struct ZstdCompressor {}

impl ZstdCompressor {
    pub(super) fn compress(&mut self, _: &[u8], _: i32, _: &mut [u8]) -> Option<usize> {
        None
    }

    pub(super) fn compress_with(
        &mut self,
        _: &[u8],
        _: &PreparedDictionary,
        _: &mut [u8],
    ) -> Option<usize> {
        None
    }
}

/// There is none.
pub(super) struct PreparedDictionary;

impl PreparedDictionary {
    pub(super) fn new(_: &[u8], _: i32) -> Option<Self> {
        None
    }
}

pub(super) fn train<S: AsRef<[u8]>>(_: &[S], _: usize) -> Option<Vec<u8>> {
    None
}

pub(super) fn content_bytes(_: &[u8]) -> Option<u64> {
    None
}

pub(super) fn decompress(_: &[u8], _: &mut [u8], _: Option<&PreparedDictionary>) -> Option<usize> {
    None
}
