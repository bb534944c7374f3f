//! The table writer.
//!
//! Purpose: writes entries in order to blocks, and the index and filters over them.
//! Invariants: memory is bounded by a block of each kind and the range tombstones, however large
//! the table. A table is valid once it was finished and its directory synced.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_slice::Slice;
use adamant_wire::checksum::crc32c;
use zerocopy::IntoBytes;

use super::index::{self, Partition};
use super::layout::{FOOTER_BYTES, FOOTER_MAGIC, Footer, TABLE};
use super::meta::{Places, References, TableMeta};
use super::ranges;
use crate::block::{BlockHandle, BlockKind, EntriesWriter, Sealer};
use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::file::{FileWriter, Identity};
use crate::filter::{self, BITS_PER_KEY_MAX};
use crate::key::{
    BlobPointer, Entry, EntryKind, RangeTombstone, SEQUENCE_MAX, VALUE_BYTES_MAX, check_key,
    key_hash,
};
use crate::merge_operator::{NOT_OPERAND, decode};

/// Minimum and maximum target size of a block.
pub(crate) const BLOCK_BYTES: (usize, usize) = (64, 8 << 20);
/// Restart interval of index blocks: separators share long prefixes, and every search begins in
/// one. With 4 an index of names takes 0.47 % of the data, with whole keys alone 0.78 %, with 16
/// 0.39 %.
const INDEX_RESTART_INTERVAL: usize = 4;
/// That of range tombstones: they are held in memory, where whole keys take no more than in the
/// file.
const RANGES_RESTART_INTERVAL: usize = 1;
/// Bytes of a block of range tombstones.
const RANGES_BYTES: usize = 64 << 10;
/// Maximum ratio of a filter's size to the index of its keys' blocks.
const FILTER_FACTOR: usize = 4;

/// How a table is written. Readers do not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// Target bytes of a data block, before compression.
    pub block_bytes: usize,
    /// Entries from one whole key to the next; 256 at most.
    pub restart_interval: usize,
    /// Whether data blocks have a hash index: it takes 1.3 bytes a key, and a search in a block
    /// takes one look.
    pub hash_index: bool,
    /// The compression of data blocks and index blocks.
    pub compression: Compression,
    /// Filter bits per key, 32 at most; 0 for none.
    pub filter_bits_per_key: u32,
    /// Target bytes of a part of the index; the filter of its keys takes four times that at most.
    pub partition_bytes: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            block_bytes: 4096,
            restart_interval: 16,
            hash_index: false,
            compression: Compression::None,
            filter_bits_per_key: 10,
            partition_bytes: 4096,
        }
    }
}

/// Writes a table.
#[derive(Debug)]
pub struct TableWriter {
    file: FileWriter,
    identity: Identity,
    options: TableOptions,
    sealer: Sealer,
    data: EntriesWriter,
    index: EntriesWriter,
    top: EntriesWriter,
    /// Of the keys in `data` and in the blocks that `index` names.
    filter_hashes: Vec<u64>,
    ranges: Vec<RangeTombstone>,
    references: References,
    meta: TableMeta,
    last_key: Vec<u8>,
    last_sequence: u64,
    /// Buffers for payloads, separators, and values of the index.
    payload: Vec<u8>,
    scratch: Vec<u8>,
    value: Vec<u8>,
}

impl TableWriter {
    /// Begins the table with that identity in the directory of tables.
    ///
    /// # Errors
    /// `Unsupported` if a table with that number exists; those of the storage backend.
    pub fn create(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        options: TableOptions,
    ) -> Result<Self> {
        let options = TableOptions {
            block_bytes: options.block_bytes.clamp(BLOCK_BYTES.0, BLOCK_BYTES.1),
            filter_bits_per_key: options.filter_bits_per_key.min(BITS_PER_KEY_MAX),
            partition_bytes: options.partition_bytes.clamp(BLOCK_BYTES.0, BLOCK_BYTES.1),
            ..options
        };
        Ok(Self {
            file: FileWriter::create(directory, identity, TABLE)?,
            identity,
            options,
            sealer: Sealer::new(identity.seed()),
            data: EntriesWriter::new(options.restart_interval, options.hash_index),
            index: EntriesWriter::new(INDEX_RESTART_INTERVAL, false),
            top: EntriesWriter::new(INDEX_RESTART_INTERVAL, false),
            filter_hashes: Vec::new(),
            ranges: Vec::new(),
            references: References::default(),
            meta: TableMeta { number: identity.number, ..TableMeta::default() },
            last_key: Vec::new(),
            last_sequence: 0,
            payload: Vec::new(),
            scratch: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.meta.entries == 0 && self.ranges.is_empty()
    }

    /// Approximate bytes of the file so far; serves to decide when to begin another.
    pub fn file_bytes(&self) -> u64 {
        self.file.offset() + self.waiting_bytes()
    }

    /// Those of them that are not compressed yet.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.data.payload_bytes() as u64
    }

    /// Writes the entries so far, before one with that key, which is above theirs.
    ///
    /// # Errors
    /// As [`TableWriter::add`].
    pub(crate) fn cut_before(&mut self, key: &[u8]) -> Result<()> {
        if self.data.is_empty() { Ok(()) } else { self.cut_block(Some(key)) }
    }

    /// The key that was added last.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// As [`TableWriter::add_parts`].
    pub fn add(&mut self, entry: &Entry) -> Result<()> {
        let version = &entry.version;
        self.add_parts(&entry.key, version.sequence, version.kind, &version.value)
    }

    /// Adds an entry by its parts. The `value` of a tombstone is empty, that of a blob an encoded
    /// [`BlobPointer`].
    ///
    /// # Errors
    /// `NotAscending` if the entry is not after the previous one; those of keys, values and
    /// sequence numbers; those of the storage backend, after which the writer can only be dropped.
    pub fn add_parts(
        &mut self,
        key: &[u8],
        sequence: u64,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<()> {
        let pointer = self.verify(key, sequence, kind, value)?;
        let is_new_key = key != self.last_key;
        if !self.data.is_empty()
            && self.data.payload_bytes() + key.len() + value.len() > self.options.block_bytes
        {
            self.cut_block(Some(key))?;
        }
        let hash = key_hash(key);
        if self.options.filter_bits_per_key > 0 && (is_new_key || self.filter_hashes.is_empty()) {
            self.filter_hashes.push(hash);
        }
        self.data.add(key, hash, sequence, kind, value);
        if self.meta.entries == 0 {
            self.meta.key_min = Slice::new(key);
        }
        self.meta.cover_sequence(sequence);
        self.meta.entries += 1;
        self.meta.tombstones += u64::from(kind == EntryKind::Tombstone);
        if let Some(pointer) = pointer {
            self.references.add(pointer);
        }
        if is_new_key {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
        self.last_sequence = sequence;
        Ok(())
    }

    /// Refuses an invalid entry, or one that is not after the last one.
    fn verify(
        &self,
        key: &[u8],
        sequence: u64,
        kind: EntryKind,
        value: &[u8],
    ) -> Result<Option<BlobPointer>> {
        check_key(key)?;
        check_sequence(sequence)?;
        let is_behind = self.meta.entries == 0
            || key > &*self.last_key
            || (key == self.last_key && sequence < self.last_sequence);
        if !is_behind {
            let (file, position) = (self.file.path().into(), self.meta.entries);
            return Err(Error::NotAscending { file, position });
        }
        let pointer = match kind {
            EntryKind::Blob => BlobPointer::from_bytes(value),
            _ => None,
        };
        let bytes_max = match kind {
            EntryKind::Value => VALUE_BYTES_MAX,
            EntryKind::Tombstone => 0,
            EntryKind::Blob if pointer.is_some() => BlobPointer::BYTES,
            EntryKind::Blob => return Err(Error::NotPointer { bytes: value.len() }),
            EntryKind::Merge if decode(sequence, value).is_some() => VALUE_BYTES_MAX,
            EntryKind::Merge => return Err(Error::NotOperand { what: NOT_OPERAND }),
        };
        if value.len() > bytes_max {
            let (bytes, bytes_max) = (value.len() as u64, bytes_max as u64);
            return Err(Error::ValueTooLong { bytes, bytes_max });
        }
        Ok(pointer)
    }

    /// Adds a range tombstone; in any order, and for any keys.
    ///
    /// # Errors
    /// `RangeEmpty`; those of keys and sequence numbers.
    pub fn add_range_tombstone(&mut self, range: RangeTombstone) -> Result<()> {
        check_key(&range.start)?;
        check_key(&range.end)?;
        check_sequence(range.sequence)?;
        if range.start >= range.end {
            return Err(Error::RangeEmpty);
        }
        self.ranges.push(range);
        Ok(())
    }

    /// Writes the data block. `next` is the key of the next entry.
    fn cut_block(&mut self, next: Option<&[u8]>) -> Result<()> {
        self.data.finish(&mut self.payload);
        let handle = self.seal(BlockKind::Data, self.options.compression);
        self.meta.data_bytes_plain += self.payload.len() as u64;
        self.meta.data_bytes_stored += u64::from(handle.bytes);
        let (separator, sequence) =
            index::separator(&self.last_key, self.last_sequence, next, &mut self.scratch);
        self.value.clear();
        index::put_handle(&mut self.value, handle);
        self.index.add(separator, 0, sequence, EntryKind::Value, &self.value);
        let partition_bytes = self.options.partition_bytes;
        let filter_bytes =
            filter::filter_bytes(self.filter_hashes.len(), self.options.filter_bits_per_key);
        if next.is_none()
            || self.index.payload_bytes() >= partition_bytes
            || filter_bytes >= partition_bytes * FILTER_FACTOR
        {
            let separator = separator.to_vec();
            self.cut_partition(&separator, sequence)?;
        }
        self.file.flush_full()
    }

    /// Writes the index block and the filter of its keys.
    fn cut_partition(&mut self, separator: &[u8], sequence: u64) -> Result<()> {
        let mut filter = None;
        if self.options.filter_bits_per_key > 0 {
            let bits_per_key = self.options.filter_bits_per_key;
            filter::build(&self.filter_hashes, bits_per_key, &mut self.payload);
            self.filter_hashes.clear();
            filter = Some(self.seal(BlockKind::Filter, Compression::None));
        }
        self.index.finish(&mut self.payload);
        let index = self.seal(BlockKind::Index, self.options.compression);
        self.value.clear();
        index::put_partition(&mut self.value, &Partition { index, filter });
        self.top.add(separator, 0, sequence, EntryKind::Value, &self.value);
        Ok(())
    }

    /// Appends a block of `payload` to the file.
    fn seal(&mut self, kind: BlockKind, compression: Compression) -> BlockHandle {
        let offset = self.file.offset();
        self.sealer.seal(self.file.piece(), offset, kind, compression, &self.payload)
    }

    /// Completes the table: makes it durable and gives it its name. The name is durable once the
    /// directory was synced, which is left to the caller, because it may have written several
    /// files.
    ///
    /// # Errors
    /// `TableEmpty` if nothing was added; those of the storage backend. Then the file is removed.
    pub fn finish(mut self) -> Result<TableMeta> {
        if self.is_empty() {
            return Err(Error::TableEmpty);
        }
        if !self.data.is_empty() {
            self.cut_block(None)?;
        } else if !self.index.is_empty() {
            // The last block was written before an entry that went to another table.
            let separator = self.index.last_key().to_vec();
            self.cut_partition(&separator, 0)?;
        }
        self.meta.key_max = Slice::new(&self.last_key);
        let ranges_offset = self.file.offset();
        let mut places = Places { top: None, ranges_offset, ranges_blocks: 0 };
        self.put_ranges(&mut places)?;
        if !self.top.is_empty() {
            self.top.finish(&mut self.payload);
            places.top = Some(self.seal(BlockKind::Top, self.options.compression));
        }
        self.meta.blob_references = self.references.list();
        self.meta.encode(&places, &mut self.payload);
        let meta = self.seal(BlockKind::Meta, Compression::None);
        let footer = footer(self.identity.seed(), meta);
        self.file.piece().extend_from_slice(footer.as_bytes());
        self.meta.file_bytes = self.file.finish()?;
        Ok(self.meta)
    }

    /// Writes the range tombstones in order, and widens the bounds of keys.
    fn put_ranges(&mut self, places: &mut Places) -> Result<()> {
        let mut ranges = std::mem::take(&mut self.ranges);
        // Of two that begin with the same key in the same commit the longer one includes the other.
        ranges.sort_by(|left, right| ranges::order(left, right).then(right.end.cmp(&left.end)));
        ranges.dedup_by(|next, kept| ranges::order(next, kept).is_eq());
        let mut block = EntriesWriter::new(RANGES_RESTART_INTERVAL, false);
        for (position, range) in ranges.iter().enumerate() {
            self.meta.cover_range(range);
            block.add(&range.start, 0, range.sequence, EntryKind::Value, &range.end);
            if block.payload_bytes() >= RANGES_BYTES || position + 1 == ranges.len() {
                block.finish(&mut self.payload);
                self.seal(BlockKind::Ranges, self.options.compression);
                places.ranges_blocks += 1;
                self.file.flush_full()?;
            }
        }
        Ok(())
    }
}

/// The footer after the meta block.
fn footer(seed: u32, meta: BlockHandle) -> Footer {
    let mut footer = Footer {
        magic: FOOTER_MAGIC,
        file_bytes: (meta.end() + FOOTER_BYTES as u64).into(),
        meta_offset: meta.offset.into(),
        meta_bytes: meta.bytes.into(),
        checksum: 0.into(),
    };
    footer.checksum = footer_checksum(seed, &footer).into();
    footer
}

/// The checksum of a footer at the end of a file of the length that it says.
pub(super) fn footer_checksum(seed: u32, footer: &Footer) -> u32 {
    let bytes = footer.as_bytes();
    crc32c(seed, &bytes[..bytes.len() - size_of::<u32>()])
}

fn check_sequence(sequence: u64) -> Result<()> {
    if sequence > SEQUENCE_MAX {
        return Err(Error::SequenceTooLarge { sequence, sequence_max: SEQUENCE_MAX });
    }
    Ok(())
}
