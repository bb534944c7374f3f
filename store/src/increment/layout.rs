//! On-disk layout of an increment. See `docs/format/increment.md`.
//!
//! Purpose: every durable byte of the file `increment`, and nothing volatile.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Name of the file, which makes a directory an increment.
pub(crate) const INCREMENT_NAME: &str = "increment";
/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"ADMNTINC";
/// The format version that this code writes.
pub const VERSION: u32 = 1;
/// Bytes of a block of the pool file, and of a slot, where the file keeps one.
pub const BLOCK_BYTES: u64 = 4096;
/// The slot of a run of zeros, which takes none.
pub const ZERO_SLOT: u64 = u64::MAX;

/// Identity of a link of a chain: a full backup or an increment. Another one shows that the link is
/// another backup, or was changed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct LinkIdentity {
    /// UUID of the pool of a full backup; of an increment its own.
    pub uuid: [u8; 16],
    /// Number of the newest checkpoint of a full backup; of an increment 0.
    pub checkpoint: U64,
    /// Number of the commit that it shows.
    pub sequence: U64,
    /// CRC32C of the head of a full backup's pool; of an increment that of its header.
    pub checksum: U32,
}

/// The start of the file. Zeros follow, up to the first slot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// `MAGIC`.
    pub magic: [u8; 8],
    /// Format version.
    pub version: U32,
    /// Bytes of a block.
    pub block_bytes: U32,
    /// Random identity of this increment.
    pub uuid: [u8; 16],
    /// The link that this is the difference from.
    pub parent: LinkIdentity,
    /// Number of the commit that this shows.
    pub sequence: U64,
    /// Blocks of the pool file.
    pub blocks: U64,
    /// Slots in this file.
    pub slots: U64,
    /// Runs of blocks in the index.
    pub runs: U64,
    /// Files of LSM trees in the index.
    pub files: U64,
    /// Bytes of the parent's name in the index.
    pub name_bytes: U32,
    /// CRC32C of the index.
    pub index_checksum: U32,
    /// CRC32C of all bytes before this field.
    pub checksum: U32,
}

/// Consecutive blocks of the pool file that differ from the parent's, or are zero.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RunEntry {
    /// The first block.
    pub first: U64,
    /// Number of blocks, at least 1.
    pub count: U64,
    /// Slot of the first block, the others follow; or `ZERO_SLOT`.
    pub slot: U64,
}

/// A file of an LSM tree.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FileEntry {
    /// Its number, which is its name.
    pub number: U64,
    /// Its bytes.
    pub bytes: U64,
    /// 0: a table, 1: a blob file.
    pub folder: u8,
    /// 1: it is in this directory, 0: it is the parent's.
    pub is_here: u8,
}

const _: () = assert!(size_of::<LinkIdentity>() == 36);
const _: () = assert!(size_of::<Header>() == 120);
const _: () = assert!(size_of::<RunEntry>() == 24);
const _: () = assert!(size_of::<FileEntry>() == 18);
