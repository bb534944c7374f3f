//! Entries: versions of keys, and the order they are kept in.
//!
//! Purpose: what a memtable holds, a table stores and a merge compares.
//! Invariants: entries are ordered by key, ascending, and those of one key by sequence number,
//! descending: the newest version comes first. There is one entry at most of a key and a sequence
//! number.
//! Thread safety: plain data.

use std::cmp::Ordering;

use adamant_slice::Slice;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// Bytes that a key may have. The empty key is one like any other, below all of them.
pub const KEY_BYTES_MAX: usize = 65_535;
/// Bytes that a value may have that lies in a table: 64 MiB. Longer ones go to blob files, because
/// a block is read as a whole.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
/// The largest sequence number: 62 bits, for tables keep it in one number with the kind.
pub const SEQUENCE_MAX: u64 = (1 << 62) - 1;

/// What an entry says about its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// It has this value.
    Value = 0,
    /// It is absent from this commit on.
    Tombstone = 1,
    /// It has the value that the [`BlobPointer`] leads to.
    Blob = 2,
}

impl EntryKind {
    /// The kind of that number, if there is one.
    #[inline]
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Value),
            1 => Some(Self::Tombstone),
            2 => Some(Self::Blob),
            _ => None,
        }
    }
}

/// What was said about a key by one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Sequence number of the commit.
    pub sequence: u64,
    /// What the value is.
    pub kind: EntryKind,
    /// The value, nothing, or an encoded [`BlobPointer`].
    pub value: Slice,
}

/// One version of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The user's key.
    pub key: Slice,
    /// What was said about it.
    pub version: Version,
}

impl Entry {
    /// Where the entry stands beside another: by key, then the newer one first.
    #[inline]
    pub fn order(&self, other: &Self) -> Ordering {
        let newer = other.version.sequence.cmp(&self.version.sequence);
        self.key.cmp(&other.key).then(newer)
    }
}

/// The hash of a key that filters and hash indexes are made with: XXH3, 64 bits, without a seed.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A key that is searched for in many tables; its hash is computed once.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) sequence_max: u64,
}

impl<'a> Lookup<'a> {
    /// The newest version of the key that is not newer than `sequence_max`.
    #[inline]
    pub fn new(key: &'a [u8], sequence_max: u64) -> Self {
        Self { key, hash: key_hash(key), sequence_max }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }
}

/// All keys from `start` on and below `end` are absent from a commit on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first key.
    pub start: Slice,
    /// The first key beyond them.
    pub end: Slice,
    /// Sequence number of the commit; entries of larger ones are not touched.
    pub sequence: u64,
}

impl RangeTombstone {
    /// Whether it lies over the key, whatever the commit.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        &*self.start <= key && key < &*self.end
    }
}

/// Where a value lies in a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobPointer {
    /// Number of the blob file.
    pub file: u64,
    /// Byte offset of the record in it.
    pub offset: u64,
    /// Bytes of the value as it is stored, which may be compressed.
    pub stored_bytes: u32,
}

impl BlobPointer {
    /// Bytes of an encoded pointer: what a [`Slice`] holds without an allocation.
    pub const BYTES: usize = 20;

    /// File, offset and length, little-endian, one behind the other.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.file.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes
    }

    /// The pointer that these bytes are; `None` if they are not 20.
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

/// Refuses what is no key.
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
        // The first is from the specification of XXH3, the others are what this code wrote first.
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
