//! Every persistent byte of a block, and nothing volatile. See `docs/format/table.md`.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::key::VALUE_BYTES_MAX;

/// What stands before the payload of a block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct BlockHeader {
    /// CRC32C of the rest of the header and the stored payload, seeded with pool, file and offset.
    pub(crate) checksum: U32,
    /// Bytes of the payload as it is stored.
    pub(crate) stored_bytes: U32,
    /// Bytes of the payload.
    pub(crate) plain_bytes: U32,
    /// A `BlockKind`.
    pub(crate) kind: u8,
    /// A `Compression`.
    pub(crate) compression: u8,
}

/// Bytes of a block before its payload.
pub(crate) const BLOCK_HEADER_BYTES: usize = size_of::<BlockHeader>();
/// Bytes of the largest payload: that of a block with the largest value alone, and to spare.
pub(crate) const PAYLOAD_BYTES_MAX: usize = VALUE_BYTES_MAX + (16 << 20);

/// What a block is to its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    /// Entries.
    Data = 1,
    /// Where blocks of data are.
    Index = 2,
    /// A Bloom filter over the keys of the blocks that one block of the index names.
    Filter = 3,
    /// Range tombstones.
    Ranges = 4,
    /// Where blocks of the index and filters are.
    Top = 5,
    /// Counts, bounds and places.
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

/// What stands at the end of a payload that holds entries: it says where these end.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct EntriesTail {
    /// How many restarts there are; at least 1.
    pub(crate) restart_count: U32,
    /// How many buckets the hash index has; 0 if there is none.
    pub(crate) bucket_count: U16,
    /// Bytes of a restart: 2 or 4.
    pub(crate) restart_width: u8,
}

/// Bytes of the tail.
pub(crate) const ENTRIES_TAIL_BYTES: usize = size_of::<EntriesTail>();
/// Entries from one restart to the next, at most.
pub(crate) const RESTART_INTERVAL_MAX: usize = 256;
/// A bucket that no key of the block falls into.
pub(crate) const BUCKET_EMPTY: u8 = 255;
/// A bucket that keys of several restarts fall into.
pub(crate) const BUCKET_SHARED: u8 = 254;
/// Restarts that a block with a hash index may have.
pub(crate) const BUCKET_RESTARTS_MAX: usize = 254;

const _: () = assert!(BLOCK_HEADER_BYTES == 14);
const _: () = assert!(ENTRIES_TAIL_BYTES == 7);
const _: () = assert!(PAYLOAD_BYTES_MAX < u32::MAX as usize);
