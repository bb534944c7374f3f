//! On-disk layout of a table, except its blocks. See `docs/format/table.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::file::FileFormat;

/// The kind of tables.
pub(crate) const TABLE: FileFormat =
    FileFormat { magic: *b"ADAMTAB\x01", version: 1, name: "table" };
/// First bytes of the footer.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"ADAMTEND";

/// The last bytes of a table.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Footer {
    /// `FOOTER_MAGIC`.
    pub(crate) magic: [u8; 8],
    /// Bytes of the whole file.
    pub(crate) file_bytes: U64,
    /// Offset of the meta block.
    pub(crate) meta_offset: U64,
    /// Bytes of the meta block.
    pub(crate) meta_bytes: U32,
    /// CRC32C of all bytes before this field, seeded like a block at the footer's place.
    pub(crate) checksum: U32,
}

/// Bytes of the footer.
pub(crate) const FOOTER_BYTES: usize = size_of::<Footer>();

/// The start of the payload of the meta block. The smallest key, the largest key and the blob
/// references follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct MetaHead {
    /// Entries of all kinds.
    pub(crate) entries: U64,
    /// Those that are tombstones.
    pub(crate) tombstones: U64,
    /// Range tombstones.
    pub(crate) range_tombstones: U64,
    /// The smallest sequence number of all of them.
    pub(crate) sequence_min: U64,
    /// The largest.
    pub(crate) sequence_max: U64,
    /// Bytes of the uncompressed payloads of data blocks.
    pub(crate) data_bytes_plain: U64,
    /// Stored bytes of the data blocks.
    pub(crate) data_bytes_stored: U64,
    /// Offset of the top of the index; 0 if there are no entries.
    pub(crate) top_offset: U64,
    /// Bytes of the top.
    pub(crate) top_bytes: U32,
    /// Number of blocks of range tombstones.
    pub(crate) ranges_blocks: U32,
    /// Offset of the first of them; the others follow.
    pub(crate) ranges_offset: U64,
    /// Bytes of the smallest key.
    pub(crate) key_min_bytes: U32,
    /// Bytes of the largest key.
    pub(crate) key_max_bytes: U32,
    /// Number of blob references.
    pub(crate) blob_references: U32,
    /// 1 if the largest key is only the end of a range, which does not hold it; else 0.
    pub(crate) key_max_is_exclusive: u8,
}

/// The reference of a table to a blob file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlobReferenceBytes {
    /// Number of the blob file.
    pub(crate) file: U64,
    /// Number of entries that point into it.
    pub(crate) entries: U64,
    /// Sum of the stored bytes of their values.
    pub(crate) stored_bytes: U64,
}

const _: () = assert!(FOOTER_BYTES == 32);
const _: () = assert!(size_of::<MetaHead>() == 93);
const _: () = assert!(size_of::<BlobReferenceBytes>() == 24);
