//! On-disk layout of a block. See `docs/format/table.md`.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::key::VALUE_BYTES_MAX;

/// The header of a block, before its payload.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockHeader {
    /// CRC32C of the rest of the header and the stored payload, seeded with pool, file and offset.
    pub(crate) checksum: U32,
    /// Bytes of the stored payload.
    pub(crate) stored_bytes: U32,
    /// Bytes of the uncompressed payload.
    pub(crate) plain_bytes: U32,
    /// A `BlockKind`.
    pub(crate) kind: u8,
    /// A `Compression`.
    pub(crate) compression: u8,
}

/// Bytes of a block before its payload.
pub(crate) const BLOCK_HEADER_BYTES: usize = size_of::<BlockHeader>();
/// Maximum bytes of a payload: a block with only the largest value, plus a margin.
pub(crate) const PAYLOAD_BYTES_MAX: usize = VALUE_BYTES_MAX + (16 << 20);

/// The role of a block in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    /// Entries.
    Data = 1,
    /// Separators and locations of data blocks.
    Index = 2,
    /// A Bloom filter over the keys of the data blocks that one index block names.
    Filter = 3,
    /// Range tombstones.
    Ranges = 4,
    /// Separators and locations of index blocks and filters.
    Top = 5,
    /// Counts, bounds and locations.
    Meta = 6,
}

impl BlockKind {
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Data),
            2 => Some(Self::Index),
            3 => Some(Self::Filter),
            4 => Some(Self::Ranges),
            5 => Some(Self::Top),
            6 => Some(Self::Meta),
            _ => None,
        }
    }
}

/// The tail of a payload of entries, which says where the entries end.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct EntriesTail {
    /// Number of restarts; at least 1.
    pub(crate) restart_count: U32,
    /// Number of buckets of the hash index; 0 if there is none.
    pub(crate) bucket_count: U16,
    /// Bytes of a restart: 2 or 4.
    pub(crate) restart_width: u8,
}

/// Bytes of the tail.
pub(crate) const ENTRIES_TAIL_BYTES: usize = size_of::<EntriesTail>();
/// Maximum number of entries from one restart to the next.
pub(crate) const RESTART_INTERVAL_MAX: usize = 256;
/// A bucket of no key.
pub(crate) const BUCKET_EMPTY: u8 = 255;
/// A bucket of keys of several restarts.
pub(crate) const BUCKET_SHARED: u8 = 254;
/// Maximum number of restarts of a block with a hash index.
pub(crate) const BUCKET_RESTARTS_MAX: usize = 254;

const _: () = assert!(BLOCK_HEADER_BYTES == 14);
const _: () = assert!(ENTRIES_TAIL_BYTES == 7);
const _: () = assert!(PAYLOAD_BYTES_MAX < u32::MAX as usize);
