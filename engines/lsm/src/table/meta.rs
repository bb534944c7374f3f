//! Table metadata.
//!
//! Purpose: counts, bounds and blob references; the writer counts them and stores them in the meta
//! block.
//! Invariants: metadata decoded from any bytes is consistent with their length.
//! Thread safety: plain data.

use std::collections::BTreeMap;

use adamant_slice::Slice;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{BlobReferenceBytes, MetaHead};
use crate::block::{BlockHandle, Malformed, Read};
use crate::key::{BlobPointer, RangeTombstone};

/// The reference of a table to a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobReference {
    /// Number of the blob file.
    pub file: u64,
    /// Number of entries that point into it.
    pub entries: u64,
    /// Sum of the stored bytes of their values.
    pub stored_bytes: u64,
}

/// The properties of a whole table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableMeta {
    /// Its number.
    pub number: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Entries of all kinds, including tombstones.
    pub entries: u64,
    /// Those that are tombstones.
    pub tombstones: u64,
    /// Range tombstones.
    pub range_tombstones: u64,
    /// The smallest key of an entry or start of a range tombstone.
    pub key_min: Slice,
    /// The largest key of an entry or end of a range tombstone.
    pub key_max: Slice,
    /// Whether `key_max` is only the end of a range tombstone, which does not hold it.
    pub key_max_is_exclusive: bool,
    /// The smallest sequence number of an entry or range tombstone.
    pub sequence_min: u64,
    /// The largest.
    pub sequence_max: u64,
    /// Bytes of data blocks before compression.
    pub data_bytes_plain: u64,
    /// Stored bytes of data blocks.
    pub data_bytes_stored: u64,
    /// References to blob files, by number.
    pub blob_references: Vec<BlobReference>,
}

/// Locations of the parts of a table that its index does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// `None` if there are no entries.
    pub(crate) top: Option<BlockHandle>,
    pub(crate) ranges_offset: u64,
    pub(crate) ranges_blocks: u32,
}

/// Counts blob references.
#[derive(Debug, Default)]
pub(crate) struct References(BTreeMap<u64, (u64, u64)>);

impl References {
    pub(crate) fn add(&mut self, pointer: BlobPointer) {
        let (entries, stored_bytes) = self.0.entry(pointer.file).or_default();
        *entries += 1;
        *stored_bytes += u64::from(pointer.stored_bytes);
    }

    pub(crate) fn list(&self) -> Vec<BlobReference> {
        let reference =
            |(&file, &(entries, stored_bytes))| BlobReference { file, entries, stored_bytes };
        self.0.iter().map(reference).collect()
    }
}

impl TableMeta {
    /// Widens the bounds.
    pub(crate) fn cover_sequence(&mut self, sequence: u64) {
        if self.entries + self.range_tombstones == 0 {
            (self.sequence_min, self.sequence_max) = (sequence, sequence);
        }
        self.sequence_min = self.sequence_min.min(sequence);
        self.sequence_max = self.sequence_max.max(sequence);
    }

    /// Counts a range tombstone, after all entries.
    pub(crate) fn cover_range(&mut self, range: &RangeTombstone) {
        let is_first = self.entries + self.range_tombstones == 0;
        self.cover_sequence(range.sequence);
        self.range_tombstones += 1;
        if is_first || range.start < self.key_min {
            self.key_min = range.start.clone();
        }
        if range.end > self.key_max {
            self.key_max = range.end.clone();
            self.key_max_is_exclusive = true;
        }
    }

    /// Whether the table may have an entry or a range tombstone of the key.
    #[inline]
    pub fn covers_key(&self, key: &[u8]) -> bool {
        let below_max =
            if self.key_max_is_exclusive { key < &*self.key_max } else { key <= &*self.key_max };
        below_max && &*self.key_min <= key
    }

    /// Encodes the meta block's payload into `payload`, which it replaces.
    pub(crate) fn encode(&self, places: &Places, payload: &mut Vec<u8>) {
        let top = places.top.unwrap_or_default();
        let head = MetaHead {
            entries: self.entries.into(),
            tombstones: self.tombstones.into(),
            range_tombstones: self.range_tombstones.into(),
            sequence_min: self.sequence_min.into(),
            sequence_max: self.sequence_max.into(),
            data_bytes_plain: self.data_bytes_plain.into(),
            data_bytes_stored: self.data_bytes_stored.into(),
            top_offset: top.offset.into(),
            top_bytes: top.bytes.into(),
            ranges_blocks: places.ranges_blocks.into(),
            ranges_offset: places.ranges_offset.into(),
            key_min_bytes: (self.key_min.len() as u32).into(),
            key_max_bytes: (self.key_max.len() as u32).into(),
            blob_references: (self.blob_references.len() as u32).into(),
            key_max_is_exclusive: self.key_max_is_exclusive.into(),
        };
        payload.clear();
        payload.extend_from_slice(head.as_bytes());
        payload.extend_from_slice(&self.key_min);
        payload.extend_from_slice(&self.key_max);
        for reference in &self.blob_references {
            let bytes = BlobReferenceBytes {
                file: reference.file.into(),
                entries: reference.entries.into(),
                stored_bytes: reference.stored_bytes.into(),
            };
            payload.extend_from_slice(bytes.as_bytes());
        }
    }

    /// Decodes the metadata of a table of that number and length, and the locations.
    ///
    /// # Errors
    /// `Malformed` if the payload has another length than its fields say.
    pub(crate) fn decode(payload: &Slice, number: u64, file_bytes: u64) -> Read<(Self, Places)> {
        const SHORT: Malformed = Malformed("expected keys and references in the meta block");
        let (head, rest) = MetaHead::read_from_prefix(payload).map_err(|_| SHORT)?;
        let start = payload.len() - rest.len();
        let middle = start.saturating_add(head.key_min_bytes.get() as usize);
        let end = middle.saturating_add(head.key_max_bytes.get() as usize);
        let key_min = payload.try_slice(start..middle).ok_or(SHORT)?;
        let key_max = payload.try_slice(middle..end).ok_or(SHORT)?;
        let (references, left) = payload[end..].as_chunks::<{ size_of::<BlobReferenceBytes>() }>();
        if references.len() as u64 != u64::from(head.blob_references.get()) || !left.is_empty() {
            return Err(SHORT);
        }
        let blob_references = references.iter().map(|bytes| {
            let reference: BlobReferenceBytes = zerocopy::transmute!(*bytes);
            BlobReference {
                file: reference.file.get(),
                entries: reference.entries.get(),
                stored_bytes: reference.stored_bytes.get(),
            }
        });
        let meta = Self {
            number,
            file_bytes,
            entries: head.entries.get(),
            tombstones: head.tombstones.get(),
            range_tombstones: head.range_tombstones.get(),
            key_min,
            key_max,
            key_max_is_exclusive: head.key_max_is_exclusive != 0,
            sequence_min: head.sequence_min.get(),
            sequence_max: head.sequence_max.get(),
            data_bytes_plain: head.data_bytes_plain.get(),
            data_bytes_stored: head.data_bytes_stored.get(),
            blob_references: blob_references.collect(),
        };
        let top = BlockHandle { offset: head.top_offset.get(), bytes: head.top_bytes.get() };
        let places = Places {
            top: (top.offset > 0).then_some(top),
            ranges_offset: head.ranges_offset.get(),
            ranges_blocks: head.ranges_blocks.get(),
        };
        Ok((meta, places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_comes_back_and_no_part_of_it_does() {
        let mut references = References::default();
        for (file, stored_bytes) in [(9, 5), (3, 1000), (9, 7)] {
            references.add(BlobPointer { file, offset: 1, stored_bytes });
        }
        let mut meta = TableMeta {
            number: 4,
            file_bytes: 1 << 33,
            key_min: Slice::from(&b"a"[..]),
            key_max: Slice::from(&b"a key that is longer than twenty"[..]),
            key_max_is_exclusive: true,
            blob_references: references.list(),
            ..TableMeta::default()
        };
        meta.cover_sequence(70);
        meta.entries = 1;
        meta.cover_sequence(60);
        meta.cover_sequence(80);
        assert_eq!((meta.sequence_min, meta.sequence_max), (60, 80));
        assert_eq!(
            meta.blob_references,
            [
                BlobReference { file: 3, entries: 1, stored_bytes: 1000 },
                BlobReference { file: 9, entries: 2, stored_bytes: 12 },
            ]
        );
        let top = Some(BlockHandle { offset: 77, bytes: 8 });
        let places = Places { top, ranges_offset: 1 << 40, ranges_blocks: 2 };
        let mut payload = Vec::new();
        meta.encode(&places, &mut payload);
        let payload = Slice::from(payload);
        assert_eq!(TableMeta::decode(&payload, 4, 1 << 33), Ok((meta, places)));
        for bytes in 0..payload.len() {
            assert!(TableMeta::decode(&payload.slice(..bytes), 4, 1).is_err(), "{bytes} bytes");
        }
    }
}
