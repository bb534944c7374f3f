//! On-disk layout of a blob file, except its header. See `docs/format/blob.md`.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::file::FileFormat;

/// The kind of blob files.
pub(crate) const BLOB: FileFormat =
    FileFormat { magic: *b"ADAMBLB\x01", version: 1, name: "blob file" };
/// First bytes of the footer.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"ADAMBEND";

/// The header of a record, before its key and value.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RecordHeader {
    /// CRC32C of the rest of the header, key and stored value, seeded with pool, file and offset.
    pub(crate) checksum: U32,
    /// Bytes of the stored value.
    pub(crate) stored_bytes: U32,
    /// Bytes of the uncompressed value.
    pub(crate) plain_bytes: U32,
    /// Bytes of the key.
    pub(crate) key_bytes: U16,
    /// A `Compression`.
    pub(crate) compression: u8,
}

/// Bytes of a record before its key.
pub(crate) const RECORD_HEADER_BYTES: usize = size_of::<RecordHeader>();

/// The last bytes of a blob file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlobFooter {
    /// `FOOTER_MAGIC`.
    pub(crate) magic: [u8; 8],
    /// Bytes of the whole file.
    pub(crate) file_bytes: U64,
    /// Number of values.
    pub(crate) values: U64,
    /// Sum of their stored bytes.
    pub(crate) stored_bytes: U64,
    /// CRC32C of all bytes before this field, seeded with pool and file.
    pub(crate) checksum: U32,
}

/// Bytes of the footer.
pub(crate) const BLOB_FOOTER_BYTES: usize = size_of::<BlobFooter>();

const _: () = assert!(RECORD_HEADER_BYTES == 15);
const _: () = assert!(BLOB_FOOTER_BYTES == 36);
