//! Zstd, where the feature `zstd` is on.
//!
//! Purpose: one frame a call, by contexts that are reused: making one costs more than a block of 4
//! KiB.
//! Thread safety: a compressor belongs to one thread; each thread that decompresses has a context
//! of its own, of some 100 KiB, from its first call until it ends.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

/// Whether this build has it.
pub(super) const IS_BUILT: bool = true;

thread_local! {
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// A compressor; it takes no memory before it is used.
pub(super) struct ZstdCompressor(Option<(i32, Compressor<'static>)>);

impl ZstdCompressor {
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// Compresses to `room`, and returns the bytes that it took; `None` if there is not enough of
    /// it, or no memory.
    pub(super) fn compress(&mut self, plain: &[u8], level: i32, room: &mut [u8]) -> Option<usize> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != level) {
            self.0 = Some((level, Compressor::new(level).ok()?));
        }
        let (_, compressor) = self.0.as_mut()?;
        compressor.compress_to_buffer(plain, room).ok()
    }
}

/// The length that a frame says it restores to.
pub(super) fn content_bytes(stored: &[u8]) -> Option<u64> {
    get_frame_content_size(stored).ok().flatten()
}

/// Decompresses to `plain`, and returns the bytes that it took; `None` if `stored` is no frame, or
/// one that does not fit.
pub(super) fn decompress(stored: &[u8], plain: &mut [u8]) -> Option<usize> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = Decompressor::new().ok();
        }
        decompressor.as_mut()?.decompress_to_buffer(stored, plain).ok()
    })
}
