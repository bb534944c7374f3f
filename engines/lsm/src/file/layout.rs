//! The header of every table and blob file. See `docs/format/table.md` and `docs/format/blob.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct FileHeader {
    /// The kind of file.
    pub(crate) magic: [u8; 8],
    /// Format version of that kind of file.
    pub(crate) version: U32,
    /// Identity of the pool that the file belongs to.
    pub(crate) uuid: [u8; 16],
    /// The file's number, which is also its name.
    pub(crate) number: U64,
    /// CRC32C of all bytes before this field.
    pub(crate) checksum: U32,
}

/// Bytes of a file before its first block or record.
pub(crate) const FILE_HEADER_BYTES: usize = size_of::<FileHeader>();

const _: () = assert!(FILE_HEADER_BYTES == 40);
