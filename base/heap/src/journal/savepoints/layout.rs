//! The persistent layout of savepoints: every durable byte, and nothing volatile.
//!
//! See `docs/format/savepoints.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Name of the directory of savepoints, in that of the store.
pub(crate) const SAVEPOINTS_NAME: &str = "savepoints";
/// First bytes of a savepoint.
pub(crate) const SAVEPOINT_MAGIC: [u8; 8] = *b"ADMNTSVP";
/// First bytes of a file of kept pages.
pub(crate) const KEPT_MAGIC: [u8; 8] = *b"ADMNTKPT";
/// The format version that this code writes.
pub(crate) const SAVEPOINT_VERSION: u32 = 1;
/// The most bytes of the name of a savepoint.
pub(crate) const SAVEPOINT_NAME_BYTES_MAX: usize = 255;

/// Head of a savepoint. What follows begins at the next multiple of a page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct SavepointHeader {
    /// `SAVEPOINT_MAGIC`.
    pub(crate) magic: [u8; 8],
    /// Format version.
    pub(crate) version: U32,
    /// Bytes of the name.
    pub(crate) name_bytes: U32,
    /// Its number, which its file is named after: it needs pages of files with higher numbers.
    pub(crate) number: U64,
    /// UUID of the pool.
    pub(crate) uuid: [u8; 16],
    /// The last commit that it shows.
    pub(crate) sequence: U64,
    /// Data pages of the pool.
    pub(crate) pages: U64,
    /// When it was made: milliseconds since 1970; 0 if that is not known.
    pub(crate) made_ms: U64,
    /// Bytes of what the heap's user keeps with it.
    pub(crate) attached_bytes: U64,
    /// CRC32C of the name, what is attached, and the checksums of the blocks.
    pub(crate) index_checksum: U32,
    /// CRC32C of all bytes before this field.
    pub(crate) checksum: U32,
}

/// Head of a file of kept pages. The pages begin at the next multiple of a page behind the entries.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct KeptHeader {
    /// `KEPT_MAGIC`.
    pub(crate) magic: [u8; 8],
    /// Format version.
    pub(crate) version: U32,
    /// Entries that follow: the heap offset of each page, 8 bytes.
    pub(crate) count: U32,
    /// CRC32C of the bytes before, and of the entries.
    pub(crate) checksum: U32,
}

const _: () = assert!(size_of::<SavepointHeader>() == 80);
const _: () = assert!(size_of::<KeptHeader>() == 20);
