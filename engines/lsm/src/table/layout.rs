//! Every persistent byte of a table that no block holds by itself. See `docs/format/table.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::file::FileKind;

/// What tables begin with.
pub(crate) const TABLE: FileKind = FileKind { magic: *b"ADAMTAB\x01", version: 1, name: "table" };
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
    /// Where the meta block lies.
    pub(crate) meta_offset: U64,
    /// Its bytes.
    pub(crate) meta_bytes: U32,
    /// CRC32C of all bytes before this field, seeded like a block at the footer's place.
    pub(crate) checksum: U32,
}

/// Bytes of the footer.
pub(crate) const FOOTER_BYTES: usize = size_of::<Footer>();

/// The start of the payload of the meta block. Behind it: the smallest key, the largest key, blob
/// references.
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
    /// Bytes of the payloads of data blocks.
    pub(crate) data_bytes_plain: U64,
    /// Bytes of the data blocks in the file.
    pub(crate) data_bytes_stored: U64,
    /// Where the top of the index lies; 0 if there are no entries.
    pub(crate) top_offset: U64,
    /// Its bytes.
    pub(crate) top_bytes: U32,
    /// How many blocks of range tombstones there are.
    pub(crate) ranges_blocks: U32,
    /// Where the first of them lies; the others follow.
    pub(crate) ranges_offset: U64,
    /// Bytes of the smallest key.
    pub(crate) key_min_bytes: U32,
    /// Bytes of the largest key.
    pub(crate) key_max_bytes: U32,
    /// How many blob references there are.
    pub(crate) blob_references: U32,
    /// 1 if the largest key is only the end of a range, which does not hold it; else 0.
    pub(crate) key_max_is_exclusive: u8,
}

/// How much of a blob file the entries of the table point to.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlobReferenceBytes {
    /// Number of the blob file.
    pub(crate) file: U64,
    /// How many entries point into it.
    pub(crate) entries: U64,
    /// Sum of the stored bytes of their values.
    pub(crate) stored_bytes: U64,
}

const _: () = assert!(FOOTER_BYTES == 32);
const _: () = assert!(size_of::<MetaHead>() == 93);
const _: () = assert!(size_of::<BlobReferenceBytes>() == 24);
