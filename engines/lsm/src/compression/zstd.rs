//! Zstd, where the feature `zstd` is on.
//!
//! Purpose: one frame a call, by contexts that are reused: making one costs more than a block of 4
//! KiB.
//! Thread safety: a compressor belongs to one thread; each thread that decompresses has a context
//! of its own, of some 100 KiB, from its first call until it ends. Dictionaries are shared.

use std::cell::RefCell;
use std::sync::OnceLock;

use zstd::bulk::Compressor;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, get_frame_content_size};

/// Whether this build has it.
pub(super) const IS_BUILT: bool = true;

thread_local! {
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// A compressor; it takes no memory before it is used.
#[derive(Default)]
pub(super) struct ZstdCompressor {
    alone: Option<(i32, Compressor<'static>)>,
    with_dictionary: Option<CCtx<'static>>,
}

impl ZstdCompressor {
    /// Compresses to `room`, and returns the bytes that it took; `None` if there is not enough of
    /// it, or no memory.
    pub(super) fn compress(&mut self, plain: &[u8], level: i32, room: &mut [u8]) -> Option<usize> {
        if self.alone.as_ref().is_none_or(|(known, _)| *known != level) {
            self.alone = Some((level, Compressor::new(level).ok()?));
        }
        let (_, compressor) = self.alone.as_mut()?;
        compressor.compress_to_buffer(plain, room).ok()
    }

    /// The same with a dictionary, which the frame names.
    pub(super) fn compress_with(
        &mut self,
        plain: &[u8],
        dictionary: &PreparedDictionary,
        room: &mut [u8],
    ) -> Option<usize> {
        if self.with_dictionary.is_none() {
            self.with_dictionary = CCtx::try_create();
        }
        let context = self.with_dictionary.as_mut()?;
        context.compress_using_cdict(room, plain, dictionary.to_compress()?).ok()
    }
}

/// A dictionary as zstd works with it.
pub(super) struct PreparedDictionary {
    bytes: Box<[u8]>,
    level: i32,
    to_decompress: DDict<'static>,
    /// Made by the first write: it takes some ms, and as much memory as the level does.
    to_compress: OnceLock<Option<CDict<'static>>>,
}

impl PreparedDictionary {
    /// `None` if the bytes are none that zstd takes, or there is no memory.
    pub(super) fn new(bytes: &[u8], level: i32) -> Option<Self> {
        let to_decompress = DDict::try_create(bytes)?;
        let to_compress = OnceLock::new();
        Some(Self { bytes: bytes.into(), level, to_decompress, to_compress })
    }

    fn to_compress(&self) -> Option<&CDict<'static>> {
        let make = || CDict::try_create(&self.bytes, self.level);
        self.to_compress.get_or_init(make).as_ref()
    }
}

/// Trains a dictionary; `None` if zstd makes none of these samples.
pub(super) fn train<S: AsRef<[u8]>>(samples: &[S], bytes_max: usize) -> Option<Vec<u8>> {
    zstd::dict::from_samples(samples, bytes_max).ok().filter(|bytes| !bytes.is_empty())
}

/// The length that a frame says it restores to.
pub(super) fn content_bytes(stored: &[u8]) -> Option<u64> {
    get_frame_content_size(stored).ok().flatten()
}

/// Decompresses to `plain`, and returns the bytes that it took; `None` if `stored` is no frame, one
/// that does not fit, or one that needs another dictionary.
pub(super) fn decompress(
    stored: &[u8],
    plain: &mut [u8],
    dictionary: Option<&PreparedDictionary>,
) -> Option<usize> {
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = DCtx::try_create();
        }
        let context = decompressor.as_mut()?;
        let done = match dictionary {
            None => context.decompress(plain, stored),
            Some(dictionary) => {
                context.decompress_using_ddict(plain, stored, &dictionary.to_decompress)
            }
        };
        done.ok()
    })
}
