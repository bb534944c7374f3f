//! Compression of blocks, of values in blob files, and of values in trees of the store.
//!
//! LZ4 always, zstd with the feature `zstd`; both bounded by a plain length that is known before
//! anything is allocated.

#[cfg(feature = "zstd")]
mod zstd;
#[cfg(not(feature = "zstd"))]
#[path = "zstd_absent.rs"]
mod zstd;

mod choice;

mod dictionary;

mod codec;

pub use choice::{Compression, Method};
pub(crate) use codec::restore;
pub use codec::{Compressor, Refused, decompress, zstd_plain_bytes};
pub use dictionary::{DICTIONARY_BYTES_MAX, Dictionary, train};
