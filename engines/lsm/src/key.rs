//! Entries: versions of keys, and their order.
//!
//! Purpose: the unit that a memtable holds, a table stores and a merge compares.
//! Invariants: entries are ordered by key, ascending, and those of one key by sequence number,
//! descending: the newest version comes first. A key has at most one entry per sequence number.
//! Thread safety: plain data.

use std::cmp::Ordering;

use adamant_slice::Slice;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Maximum bytes of a key. The empty key is a valid key, below all others.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Maximum bytes of a value in a table: 64 MiB. Longer ones go to blob files, because a block is
/// read as a whole.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
/// The largest sequence number: 62 bits, because tables store it in one number with the kind.
pub const SEQUENCE_MAX: u64 = (1 << 62) - 1;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key has this value.
    Value = 0,
    /// The key is absent from this commit on.
    Tombstone = 1,
    /// The key has the value that the [`BlobPointer`] points to.
    Blob = 2,
    /// An operand is merged with what the key had before.
    Merge = 3,
}

impl EntryKind {
    /// The kind with that number, if there is one.
    #[inline]
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Value),
            1 => Some(Self::Tombstone),
            2 => Some(Self::Blob),
            3 => Some(Self::Merge),
            _ => None,
        }
    }
}

/// One commit's change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Sequence number of the commit.
    pub sequence: u64,
    /// The kind of entry.
    pub kind: EntryKind,
    /// The value, nothing, an encoded [`BlobPointer`], or a stored operand.
    pub value: Slice,
}

/// One version of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The user's key.
    pub key: Slice,
    /// Its version.
    pub version: Version,
}

impl Entry {
    /// The order of entries: by key, then the newer one first.
    #[inline]
    pub fn order(&self, other: &Self) -> Ordering {
        let newer = other.version.sequence.cmp(&self.version.sequence);
        self.key.cmp(&other.key).then(newer)
    }
}

/// The hash of a key for filters and hash indexes: XXH3, 64 bits, without a seed.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A lookup of a key in many tables; its hash is computed once.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) sequence_max: u64,
}

impl<'a> Lookup<'a> {
    /// Looks up the newest version of the key that is not newer than `sequence_max`.
    #[inline]
    pub fn new(key: &'a [u8], sequence_max: u64) -> Self {
        Self { key, hash: key_hash(key), sequence_max }
    }
}

/// All keys from `start` on and below `end` are absent from a commit on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key.
    pub start: Slice,
    /// The first key after the range.
    pub end: Slice,
    /// Sequence number of the commit; entries with larger ones are not affected.
    pub sequence: u64,
}

impl RangeTombstone {
    /// Whether the range holds the key, whatever the commit.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        &*self.start <= key && key < &*self.end
    }
}

/// The location of a value in a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobPointer {
    /// Number of the blob file.
    pub file: u64,
    /// Byte offset of the record in it.
    pub offset: u64,
    /// Stored bytes of the value, which may be compressed.
    pub stored_bytes: u32,
}

impl BlobPointer {
    /// Bytes of an encoded pointer, which a [`Slice`] holds without an allocation.
    pub const BYTES: usize = 20;

    /// Encodes file, offset and length in that order, little-endian.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes
    }

    /// Decodes a pointer; `None` if the length is not 20.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (file, rest) = bytes.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        Some(Self {
            file: u64::from_le_bytes(*file),
            offset: u64::from_le_bytes(*offset),
            stored_bytes: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// Refuses a key that is too long.
///
/// # Errors
/// `KeyTooLong`.
pub fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { bytes: key.len(), bytes_max: KEY_BYTES_MAX });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_come_back_and_no_other_length_is_one() {
        let pointer = BlobPointer { file: 1 << 40, offset: u64::MAX, stored_bytes: 77 };
        let mut bytes = pointer.to_bytes().to_vec();
        assert_eq!(BlobPointer::from_bytes(&bytes), Some(pointer));
        bytes.push(0);
        assert_eq!(BlobPointer::from_bytes(&bytes), None);
        assert_eq!(BlobPointer::from_bytes(&bytes[..19]), None);
        assert_eq!(BlobPointer::from_bytes(&[]), None);
    }

    #[test]
    fn the_hash_is_the_one_that_is_on_the_media() {
        // The first is from the specification of XXH3, the others from the first version of this
        // code.
        assert_eq!(key_hash(b""), 0x2D06_8005_38D3_94C2);
        assert_eq!(key_hash(b"key"), 0xBBEA_0D63_A051_65E3);
        assert_eq!(key_hash(&[7; 300]), 0x8AEC_4A54_14DA_D453);
    }

    #[test]
    fn newer_versions_come_first() {
        let entry = |key: &[u8], sequence| Entry {
            key: Slice::new(key),
            version: Version { sequence, kind: EntryKind::Tombstone, value: Slice::EMPTY },
        };
        assert_eq!(entry(b"a", 1).order(&entry(b"b", 9)), Ordering::Less);
        assert_eq!(entry(b"a", 2).order(&entry(b"a", 1)), Ordering::Less);
        assert_eq!(entry(b"a", 2).order(&entry(b"a", 2)), Ordering::Equal);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        assert!(check_key(b"").is_ok());
        assert!(matches!(check_key(&[1; 65_536]), Err(Error::KeyTooLong { bytes: 65_536, .. })));
        assert!(check_key(&[1; 65_535]).is_ok());
    }
}
