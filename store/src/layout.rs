//! The on-disk format of the store's own records in the heap.
//!
//! Purpose: every persistent byte that the store itself keeps in the heap, and nothing volatile:
//! the store's head at the heap's root, the catalogue's entry of each keyspace, and the head of the
//! history of changes. See `docs/format/store.md`, which leads on to what the keyspaces hold.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Which of the heap's roots holds the store's head.
pub const STORE_ROOT: usize = 0;
/// First bytes of the store's head.
pub const STORE_MAGIC: [u8; 8] = *b"AdamStor";
/// The version of the head and of the catalogue's entries that this code writes while no entry has
/// options. A store of format 1 is raised to it with the first entry that records its keyspace's
/// kind.
pub const STORE_FORMAT: u32 = 2;
/// The highest version that this code reads. A store is raised to it with the first entry that has
/// options.
pub const STORE_FORMAT_OPTIONS: u32 = 3;
/// The same of one that has had a history of changes: earlier versions would commit without it.
pub const STORE_FORMAT_CHANGES: u32 = 4;
/// The same of one that has had a keyspace with compressed values: where its entry is lost, values
/// may be stored in either way.
pub const STORE_FORMAT_VALUES: u32 = 5;
/// The same of one that has had a keyspace with a merge operator, which may hold operands.
pub const STORE_FORMAT_MERGE: u32 = 6;
/// The lowest version that this code reads; its entries do not record a kind.
pub const STORE_FORMAT_MIN: u32 = 1;

/// The head of a store: one block, referenced by the heap's root `STORE_ROOT`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct StoreHead {
    /// `STORE_MAGIC`.
    pub magic: [u8; 8],
    /// `STORE_FORMAT_MIN` to `STORE_FORMAT_MERGE`.
    pub format: U32,
    /// The number of the next file of the engine `lsm`; 0 while there was none.
    pub next_file: U32,
    /// The number of the next keyspace; none is given twice.
    pub next_keyspace: U64,
    /// Heap offset of the head of the catalogue, a bplus tree.
    pub catalogue: U64,
}

/// Offset of `next_file` in the head.
pub(crate) const HEAD_NEXT_FILE_AT: usize = 12;

/// The catalogue's entry of a keyspace; its key is the keyspace's name.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct KeyspaceEntry {
    /// The keyspace's number.
    pub id: U64,
    /// Heap offset of the head of its tree.
    pub head: U64,
    /// One of the `ENGINE_` constants.
    pub engine: U16,
    /// Version of the engine's format.
    pub format: U16,
    /// One of the `KIND_` constants.
    pub kind: U16,
    /// Bytes of the type record behind this entry: a `TypesHead` and both names; 0 where no types
    /// are recorded.
    pub types_bytes: U16,
}

/// The type record: the types of a keyspace's keys and values, followed by their names in UTF-8.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct TypesHead {
    /// Version of the encoding of keys.
    pub key_version: U32,
    /// Version of the encoding of values.
    pub value_version: U32,
    /// Bytes of the name of the keys' type, which comes first.
    pub key_name_bytes: U16,
    /// Bytes of the name of the values' type.
    pub value_name_bytes: U16,
}

/// The head of an option of a keyspace, before its value. Options follow the types, in the order of
/// their tags.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct OptionHead {
    /// One of the `OPTION_` constants.
    pub tag: U16,
    /// Bytes of the value.
    pub bytes: U16,
}

/// The compression of each level: for each of the seven two bytes, the method (0 none, 1 LZ4, 2
/// zstd) and the level of zstd, or 0.
pub const OPTION_COMPRESSION: u16 = 1;
/// Bytes of a data block: 4 bytes.
pub const OPTION_BLOCK_BYTES: u16 = 2;
/// Bits of a filter per key: 1 byte.
pub const OPTION_FILTER_BITS: u16 = 3;
/// Whether data blocks have a hash index: 1 byte, 0 or 1.
pub const OPTION_HASH_INDEX: u16 = 4;
/// Minimum bytes of a value that is stored in a blob file: 4 bytes; the largest number stands for
/// only those that no table can hold.
pub const OPTION_BLOB_BYTES_MIN: u16 = 5;

/// The compression of values in a tree, each of which then ends with one of the `VALUE_` bytes: the
/// method (1 LZ4, 2 zstd; 0: new values stay plain), the level of zstd or 0, and in 4 bytes the
/// least bytes of a value that is compressed.
pub const OPTION_VALUES: u16 = 6;
/// The dictionary of that: the heap offset of its block in 8 bytes, and its bytes in 4.
pub const OPTION_DICTIONARY: u16 = 7;

/// The durability of commits that do not set their own: 1 byte, one of the `DURABILITY_` numbers.
pub const OPTION_DURABILITY: u16 = 8;

/// Whether data stays in the block cache after it was read: 1 byte, 0 or 1.
pub const OPTION_CACHES_DATA: u16 = 9;

/// That of the store, as if there were no option.
pub const DURABILITY_STORE: u8 = 0;
/// The device has the commit.
pub const DURABILITY_SYNC: u8 = 1;
/// The system has it.
pub const DURABILITY_BUFFERED: u8 = 2;
/// Memory has it.
pub const DURABILITY_DEFERRED: u8 = 3;
/// The name of the merge operator, in UTF-8: 1 to 32 bytes.
pub const OPTION_MERGE: u16 = 10;

/// The last byte of a stored value that is plain before it.
pub const VALUE_PLAIN: u8 = 0;
/// That of a value compressed by LZ4, behind the bytes of the plain value as a varint.
pub const VALUE_LZ4: u8 = 1;
/// That of a frame of zstd.
pub const VALUE_ZSTD: u8 = 2;
/// That of a frame of zstd that was made with the dictionary of the keyspace.
pub const VALUE_ZSTD_DICTIONARY: u8 = 3;

/// The engine `bplus`.
pub const ENGINE_BPLUS: u16 = 1;
/// The engine `btree`.
pub const ENGINE_BTREE: u16 = 2;
/// The engine `critbit`.
pub const ENGINE_CRITBIT: u16 = 3;
/// The engine `redblack`.
pub const ENGINE_REDBLACK: u16 = 4;
/// The engine `lsm`.
pub const ENGINE_LSM: u16 = 5;

/// A keyspace older than recorded kinds: entries of any kind.
pub const KIND_UNSAID: u16 = 0;
/// Plain entries.
pub const KIND_PLAIN: u16 = 1;
/// Expiring entries: each value is preceded by its deadline.
pub const KIND_EXPIRING: u16 = 2;
/// The deadlines of the keyspace whose name is this one's without `.deadlines`.
pub const KIND_DEADLINES: u16 = 3;
/// The history of changes of the store.
pub const KIND_CHANGES: u16 = 4;
/// Pairs of a multimap: a row's key is a key and one of its values, and its value is empty.
pub const KIND_MULTIMAP: u16 = 5;

/// Bytes of a deadline, before a value of the kind `KIND_EXPIRING` and before the key of a row of
/// the kind `KIND_DEADLINES`.
pub const DEADLINE_BYTES: usize = 8;

/// The head of the history of changes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ChangesHead {
    /// The first commit that is there; that of the next one if there is none.
    pub first: U64,
    /// The number of the next commit.
    pub next: U64,
    /// Bytes of all parts, with their keys.
    pub bytes: U64,
    /// Bytes that they may have.
    pub bytes_max: U64,
}

const _: () = assert!(size_of::<StoreHead>() == 32);
const _: () = assert!(size_of::<ChangesHead>() == 32);
const _: () = assert!(size_of::<KeyspaceEntry>() == 24);
const _: () = assert!(size_of::<TypesHead>() == 12);
const _: () = assert!(size_of::<OptionHead>() == 4);
const _: () = assert!(std::mem::offset_of!(TypesHead, key_name_bytes) == 8);
const _: () = assert!(std::mem::offset_of!(StoreHead, next_file) == HEAD_NEXT_FILE_AT);
const _: () = assert!(std::mem::offset_of!(StoreHead, catalogue) == 24);
const _: () = assert!(std::mem::offset_of!(KeyspaceEntry, engine) == 16);
const _: () = assert!(std::mem::offset_of!(KeyspaceEntry, kind) == 20);
const _: () = assert!(std::mem::offset_of!(KeyspaceEntry, types_bytes) == 22);
