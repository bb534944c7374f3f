//! On-heap layout of a log-structured merge tree.
//!
//! Purpose: see `docs/format/lsm.md`. Its files have pages of their own.
//! Invariants: all integers are little-endian, so that any bytes are valid objects (S3). Each
//! object has a checksum.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of a head.
pub const HEAD_MAGIC: [u8; 8] = *b"AdaLsm\0\x02";
/// First bytes of a buffer.
pub const BUFFER_MAGIC: [u8; 8] = *b"AdaBuf\0\x02";

/// The head of a tree: its offset names the tree.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Head {
    /// `HEAD_MAGIC`.
    pub magic: [u8; 8],
    /// The identity that all of its files carry.
    pub identity: [u8; 16],
    /// The newest buffer; each names the one before it.
    pub buffer: U64,
    /// The block of the manifest; 0 while there is no file.
    pub manifest: U64,
    /// Checksum of the fields before.
    pub sum: U64,
}

/// Maximum chunks of a buffer: each is a quarter of those before it, so they do not run out.
pub const BUFFER_CHUNKS: usize = 120;

/// The content of a memtable, in the order of arrival.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Buffer {
    /// `BUFFER_MAGIC`.
    pub magic: [u8; 8],
    /// The buffer that was filled before this one and is in no table yet; 0 for none.
    pub older: U64,
    /// Checksum of the fields before and of all chunks.
    pub sum: U64,
    /// Number of chunks, times 2^56, bytes used of the last one, times 2^16, and the lower half of
    /// a checksum of both: this changes with every record.
    pub end: U64,
    /// Offsets of the chunks.
    pub chunks: [U64; BUFFER_CHUNKS],
}

/// Bit position of the bytes in `Buffer::end`: a chunk holds an entry of any size.
pub const END_BYTES_SHIFT: u32 = 16;
/// Bit position of the chunks in it.
pub const END_CHUNKS_SHIFT: u32 = 56;
/// Bytes of the checksum that each record of a buffer begins with.
pub const RECORD_SUM_BYTES: usize = 4;

/// The start of a manifest; `Slot`s of tables and heap offsets of blob records follow.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Manifest {
    /// The largest sequence number that a file of the tree ever had.
    pub sequence_max: U64,
    /// Number of tables.
    pub tables: U32,
    /// Number of blob files.
    pub blobs: U32,
    /// Checksum of the fields before and of what follows.
    pub sum: U64,
}

/// A table in the manifest.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Slot {
    /// Heap offset of its record.
    pub record: U64,
    /// Its level.
    pub level: U32,
    /// Zero.
    pub reserved: U32,
}

/// The properties of a table. The lowest and the highest key follow, and the `BlobUse`s.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TableRecord {
    /// The number of the file.
    pub file: U64,
    /// Its bytes.
    pub file_bytes: U64,
    /// Entries, including tombstones.
    pub entries: U64,
    /// Those that are tombstones.
    pub tombstones: U64,
    /// Range tombstones.
    pub range_tombstones: U64,
    /// The lowest sequence number.
    pub sequence_min: U64,
    /// The highest one.
    pub sequence_max: U64,
    /// Bytes of data blocks before compression.
    pub data_bytes_plain: U64,
    /// Stored bytes of data blocks.
    pub data_bytes_stored: U64,
    /// Bytes of the lowest key, or of the start of the first range if that is lower.
    pub key_min_bytes: U16,
    /// Bytes of the highest key, or of the end of a range that ends higher.
    pub key_max_bytes: U16,
    /// Number of blob files that its entries point into.
    pub blob_uses: U32,
    /// 1 if the highest key is only the end of a range, which does not hold it; else 0.
    pub key_max_is_exclusive: U64,
    /// Checksum of the fields before and of what follows.
    pub sum: U64,
}

/// A reference of a table to a blob file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlobUse {
    /// The number of the blob file.
    pub file: U64,
    /// Entries of the table that point into it.
    pub entries: U64,
    /// Stored bytes of their values.
    pub stored_bytes: U64,
}

/// The properties of a blob file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlobRecord {
    /// The number of the file.
    pub file: U64,
    /// Its bytes.
    pub file_bytes: U64,
    /// Values in it.
    pub values: U64,
    /// Stored bytes of the values.
    pub stored_bytes: U64,
    /// Values that no table points to any more.
    pub stale_values: U64,
    /// Stored bytes of the stale values.
    pub stale_bytes: U64,
    /// Checksum of the fields before.
    pub sum: U64,
}

pub(crate) const HEAD_BUFFER_AT: usize = 24;
pub(crate) const HEAD_MANIFEST_AT: usize = 32;
pub(crate) const HEAD_SUM_AT: usize = 40;
pub(crate) const BUFFER_OLDER_AT: usize = 8;
pub(crate) const BUFFER_SUM_AT: usize = 16;
pub(crate) const BUFFER_END_AT: usize = 24;
pub(crate) const BUFFER_CHUNKS_AT: usize = 32;
pub(crate) const MANIFEST_SUM_AT: usize = 16;
pub(crate) const TABLE_SUM_AT: usize = 88;
pub(crate) const STALE_VALUES_AT: usize = 32;
pub(crate) const STALE_BYTES_AT: usize = 40;
pub(crate) const BLOB_SUM_AT: usize = 48;

const _: () = assert!(size_of::<Head>() == 48);
const _: () = assert!(std::mem::offset_of!(Head, buffer) == HEAD_BUFFER_AT);
const _: () = assert!(std::mem::offset_of!(Head, manifest) == HEAD_MANIFEST_AT);
const _: () = assert!(std::mem::offset_of!(Head, sum) == HEAD_SUM_AT);
const _: () = assert!(size_of::<Buffer>() == 992);
const _: () = assert!(std::mem::offset_of!(Buffer, older) == BUFFER_OLDER_AT);
const _: () = assert!(std::mem::offset_of!(Buffer, sum) == BUFFER_SUM_AT);
const _: () = assert!(std::mem::offset_of!(Buffer, end) == BUFFER_END_AT);
const _: () = assert!(std::mem::offset_of!(Buffer, chunks) == BUFFER_CHUNKS_AT);
const _: () = assert!(size_of::<Manifest>() == 24);
const _: () = assert!(std::mem::offset_of!(Manifest, sum) == MANIFEST_SUM_AT);
const _: () = assert!(size_of::<Slot>() == 16);
const _: () = assert!(size_of::<TableRecord>() == 96);
const _: () = assert!(std::mem::offset_of!(TableRecord, sum) == TABLE_SUM_AT);
const _: () = assert!(size_of::<BlobUse>() == 24);
const _: () = assert!(size_of::<BlobRecord>() == 56);
const _: () = assert!(std::mem::offset_of!(BlobRecord, stale_values) == STALE_VALUES_AT);
const _: () = assert!(std::mem::offset_of!(BlobRecord, stale_bytes) == STALE_BYTES_AT);
const _: () = assert!(std::mem::offset_of!(BlobRecord, sum) == BLOB_SUM_AT);
