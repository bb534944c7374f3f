//! The table reader: point reads.
//!
//! Purpose: resolves a key to its version through the top of the index, a filter, a part of the
//! index and a data block.
//! Invariants: meta block, top of the index and range tombstones are in memory while the table is
//! open, and pinned parts of the index and filters; everything else comes through the cache, and
//! was verified when it was read. Content that no writer can have written is an error with its
//! location.
//! Thread safety: immutable, shared freely.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_slice::Slice;

use super::index::{self, Partition};
use super::layout::{FOOTER_BYTES, FOOTER_MAGIC, Footer, TABLE};
use super::meta::{Places, TableMeta};
use super::pins::{Pinned, Pins};
use super::ranges::{self, Ranges};
use super::writer::footer_checksum;
use crate::block::{
    self, BLOCK_HEADER_BYTES, BlockHandle, BlockKind, Cursor, EntryBlock, Forward, Malformed,
};
use crate::cache::{BlockUse, Cache, CachedBlock, CachedFile, Holds};
use crate::error::{Error, Result};
use crate::file::{FILE_HEADER_BYTES, FileKind, Identity};
use crate::filter::Filter;
use crate::key::{Lookup, RangeTombstone, Version};

/// An open table.
#[derive(Debug)]
pub struct Table {
    file: CachedFile,
    meta: TableMeta,
    /// The top of the index and its offset; `None` if there are no entries.
    top: Option<(EntryBlock, u64)>,
    ranges: Ranges,
    pins: Pins,
}

/// The metadata at the end of a table, and the locations of its parts.
pub(super) struct Ending {
    pub(super) meta: TableMeta,
    pub(super) places: Places,
    /// End of the blocks before the meta block.
    pub(super) meta_offset: u64,
}

/// Reads footer and meta block.
///
/// # Errors
/// `Damaged`; those of the storage backend.
pub(super) fn read_ending(file: &dyn File, identity: &Identity) -> Result<Ending> {
    let file_bytes = file.len()?;
    let damaged = |offset, what: String| Error::damaged(file.path(), offset, what);
    let Some(offset) = file_bytes.checked_sub(FOOTER_BYTES as u64) else {
        return Err(damaged(0, format!("expected a table, found {file_bytes} bytes")));
    };
    let mut bytes = [0; FOOTER_BYTES];
    file.read_at(&mut bytes, offset)?;
    let footer: Footer = zerocopy::transmute!(bytes);
    let expected = footer_checksum(identity.seed(), &footer);
    let found = footer.checksum.get();
    let is_sound = found == expected;
    if footer.magic != FOOTER_MAGIC || !is_sound {
        let what = "expected the footer of this table, found other bytes: it was cut or changed";
        return Err(damaged(offset, what.into()));
    }
    if footer.file_bytes.get() != file_bytes {
        let expected = footer.file_bytes.get();
        return Err(damaged(offset, format!("expected {expected} bytes, found {file_bytes}")));
    }
    let handle = BlockHandle { offset: footer.meta_offset.get(), bytes: footer.meta_bytes.get() };
    if handle.offset < FILE_HEADER_BYTES as u64 || handle.end() != offset {
        return Err(damaged(offset, "expected a meta block before the footer".into()));
    }
    let payload = block::read(file, identity.seed(), handle, BlockKind::Meta)?;
    let (meta, places) = TableMeta::decode(&payload, identity.number, file_bytes)
        .map_err(|malformed| damaged(handle.offset, malformed.to_string()))?;
    Ok(Ending { meta, places, meta_offset: handle.offset })
}

impl Table {
    /// Opens the table with that identity in the directory of tables, of a tree that uses the cache
    /// like this.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn open(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        cache: &Arc<Cache>,
        used: &Arc<BlockUse>,
    ) -> Result<Self> {
        let kind = (FileKind::Tables, TABLE);
        let (file, opened) = CachedFile::open(directory, kind, identity, (cache, used))?;
        let (opened, seed) = (&*opened, file.seed);
        let Ending { meta, places, .. } = read_ending(opened, &identity)?;
        let top = match places.top {
            Some(handle) => {
                let payload = block::read(opened, seed, handle, BlockKind::Top)?;
                let block = EntryBlock::new(payload);
                Some((block.map_err(|fault| file.damaged(handle.offset, fault))?, handle.offset))
            }
            None => None,
        };
        let ranges = Ranges::new(read_ranges(opened, seed, &places, &meta)?);
        let (block, offset) = top.as_ref().map_or((None, 0), |(block, at)| (Some(block), *at));
        let pins = Pins::new(block, cache).map_err(|fault| file.damaged(offset, fault))?;
        Ok(Self { file, meta, top, ranges, pins })
    }

    /// Counts, bounds and references.
    pub fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// Bytes of memory of the open table, without what is in the cache.
    pub fn memory_bytes(&self) -> usize {
        let top = self.top.as_ref().map_or(0, |(block, _)| block.bytes().len());
        let range = |range: &RangeTombstone| range.start.len() + range.end.len() + 128;
        size_of::<Self>()
            + self.pins.bytes() as usize
            + top
            + self.range_tombstones().iter().map(range).sum::<usize>()
    }

    /// The newest version of a key that is not newer than `sequence_max`. Its value shares the
    /// memory of the block. Does not look at range tombstones: see [`Table::range_over`].
    ///
    /// # Errors
    /// As [`Table::find`].
    pub fn get(&self, key: &[u8], sequence_max: u64) -> Result<Option<Version>> {
        self.find(&Lookup::new(key, sequence_max))
    }

    /// As [`Table::get`], for a key that is searched for in several tables. Reads three blocks, or
    /// one if a filter excludes the key.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn find(&self, lookup: &Lookup<'_>) -> Result<Option<Version>> {
        let Some(partition) = self.partition_for(lookup)? else { return Ok(None) };
        let pinned = self.pinned(&partition)?;
        if !self.filter_passes((&partition, pinned), lookup)? {
            return Ok(None);
        }
        let (key, sequence_max) = (lookup.key, lookup.sequence_max);
        let damaged = self.damaged(partition.index.offset);
        let cached;
        let index = match pinned {
            Some(pinned) => &pinned.index,
            None => {
                cached = self.entries(partition.index, BlockKind::Index)?;
                &cached
            }
        };
        let Some(found) = index.seek(key, sequence_max).map_err(&damaged)? else {
            return Ok(None);
        };
        let handle = index::handle_at(index.bytes(), found.entry.value()).map_err(&damaged)?;
        let block = self.entries(handle, BlockKind::Data)?;
        block.find(key, lookup.hash, sequence_max).map_err(self.damaged(handle.offset))
    }

    /// The newest range tombstone over the key, up to `sequence_max`.
    #[inline]
    pub fn range_over(&self, key: &[u8], sequence_max: u64) -> Option<&RangeTombstone> {
        self.ranges.over(key, sequence_max)
    }

    /// All range tombstones, by start and then the newest first.
    pub fn range_tombstones(&self) -> &[RangeTombstone] {
        self.ranges.all()
    }

    /// The part of the index that may hold the wanted version, if there is one.
    fn partition_for(&self, lookup: &Lookup<'_>) -> Result<Option<Partition>> {
        let Some((top, offset)) = &self.top else { return Ok(None) };
        if !self.meta.covers_key(lookup.key) || self.meta.sequence_min > lookup.sequence_max {
            return Ok(None);
        }
        let found = top.seek(lookup.key, lookup.sequence_max).map_err(self.damaged(*offset))?;
        let Some(found) = found else { return Ok(None) };
        let partition = index::partition_at(top.bytes(), found.entry.value());
        partition.map(Some).map_err(self.damaged(*offset))
    }

    /// A part of the index and its filter, if there is room to pin them.
    fn pinned(&self, partition: &Partition) -> Result<Option<&Pinned>> {
        self.pins.get(partition, || {
            let Partition { index, filter } = *partition;
            let block = EntryBlock::new(self.read(index, BlockKind::Index)?);
            let index = block.map_err(self.damaged(index.offset))?;
            let filter = filter.map(|handle| self.read(handle, BlockKind::Filter)).transpose()?;
            Ok(Pinned { index, filter })
        })
    }

    fn filter_passes(
        &self,
        (partition, pinned): (&Partition, Option<&Pinned>),
        lookup: &Lookup<'_>,
    ) -> Result<bool> {
        let Some(handle) = partition.filter else { return Ok(true) };
        let cached;
        let payload = match pinned.and_then(|pinned| pinned.filter.as_ref()) {
            Some(filter) => filter,
            None => {
                cached = self.cached_filter(handle)?;
                &cached
            }
        };
        let filter = Filter::new(payload).map_err(self.damaged(handle.offset))?;
        Ok(filter.may_contain(lookup.hash))
    }

    /// A block of the index.
    pub(super) fn index(&self, handle: BlockHandle) -> Result<EntryBlock> {
        match self.pins.known(handle.offset) {
            Some(pinned) => Ok(pinned.index.clone()),
            None => self.entries(handle, BlockKind::Index),
        }
    }

    /// The payload of a filter, from the cache or the file.
    fn cached_filter(&self, handle: BlockHandle) -> Result<Slice> {
        let block = self.file.block(Holds::Index, handle.offset, || {
            Ok(CachedBlock::Bytes(self.read(handle, BlockKind::Filter)?))
        })?;
        match block {
            CachedBlock::Bytes(payload) => Ok(payload),
            CachedBlock::Entries(_) => Err(self.file.damaged(handle.offset, "expected a filter")),
        }
    }

    /// A block of entries, from the cache or the file.
    #[inline]
    pub(super) fn entries(&self, handle: BlockHandle, kind: BlockKind) -> Result<EntryBlock> {
        self.entries_by(handle, kind, || self.read(handle, kind))
    }

    /// A block of entries, from the cache or decoded from the payload that `read` returns.
    #[inline]
    pub(super) fn entries_by(
        &self,
        handle: BlockHandle,
        kind: BlockKind,
        read: impl FnOnce() -> Result<Slice>,
    ) -> Result<EntryBlock> {
        let holds = if kind == BlockKind::Data { Holds::Data } else { Holds::Index };
        let block = self.file.block(holds, handle.offset, || {
            let block = EntryBlock::new(read()?).map_err(self.damaged(handle.offset))?;
            Ok(CachedBlock::Entries(block))
        })?;
        self.entries_of(block, handle)
    }

    /// A block of entries, if it is cached.
    pub(super) fn known_entries(&self, handle: BlockHandle) -> Result<Option<EntryBlock>> {
        let block = self.file.known_block(handle.offset);
        block.map(|block| self.entries_of(block, handle)).transpose()
    }

    #[inline]
    fn entries_of(&self, block: CachedBlock, handle: BlockHandle) -> Result<EntryBlock> {
        match block {
            CachedBlock::Entries(block) => Ok(block),
            CachedBlock::Bytes(_) => {
                Err(self.file.damaged(handle.offset, "expected a block of entries"))
            }
        }
    }

    /// The payload of a block, read alone.
    #[cold]
    pub(super) fn read(&self, handle: BlockHandle, kind: BlockKind) -> Result<Slice> {
        let file = self.file.file()?;
        if handle.end() > self.meta.file_bytes {
            let what = format!("expected a block of {} bytes, found the end", handle.bytes);
            return Err(self.file.damaged(handle.offset, what));
        }
        block::read(&*file, self.file.seed, handle, kind)
    }

    /// Fills `bytes` from an offset of the file.
    pub(super) fn read_into(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(self.file.file()?.read_at(bytes, offset)?)
    }

    /// The payload of a block that was read with others.
    pub(super) fn opened(
        &self,
        frame: &Slice,
        handle: BlockHandle,
        kind: BlockKind,
    ) -> Result<Slice> {
        block::open(frame, self.file.seed, handle.offset, kind)
            .map_err(|fault| fault.at(&self.file.path, handle.offset))
    }

    /// The offset behind the last data block, but for a filter; `None` if there are no entries.
    pub(super) fn data_end(&self) -> Option<u64> {
        self.pins.last_index()
    }

    /// The top of the index, and its offset.
    pub(super) fn top(&self) -> Option<&(EntryBlock, u64)> {
        self.top.as_ref()
    }

    /// Converts a fault in the block at `offset` to an error.
    pub(super) fn damaged(&self, offset: u64) -> impl Fn(Malformed) -> Error {
        move |malformed| self.file.damaged(offset, malformed)
    }
}

/// Reads the adjacent blocks of range tombstones.
fn read_ranges(
    file: &dyn File,
    seed: u32,
    places: &Places,
    meta: &TableMeta,
) -> Result<Vec<RangeTombstone>> {
    let mut found = Vec::new();
    let mut offset = places.ranges_offset;
    for _ in 0..places.ranges_blocks {
        let damaged = |what: &dyn ToString| Error::damaged(file.path(), offset, what.to_string());
        let head = block::read_bytes(file, offset, BLOCK_HEADER_BYTES)?;
        let peeked = block::peek(&head).map_err(|fault| damaged(&fault))?;
        let bytes = peeked.map_or(0, |(_, bytes)| bytes as u32);
        let handle = BlockHandle { offset, bytes };
        if handle.end() > meta.file_bytes {
            return Err(damaged(&"expected a block of range tombstones, found the end"));
        }
        let payload = block::read(file, seed, handle, BlockKind::Ranges)?;
        let block = EntryBlock::new(payload).map_err(|malformed| damaged(&malformed))?;
        let mut cursor = Forward::all(block);
        while cursor.advance().map_err(|malformed| damaged(&malformed))? {
            let range = ranges::range_at(&cursor).map_err(|malformed| damaged(&malformed))?;
            if found.last().is_some_and(|last| ranges::order(last, &range).is_ge()) {
                return Err(damaged(&"expected range tombstones that ascend"));
            }
            found.push(range);
        }
        offset = handle.end();
    }
    if found.len() as u64 != meta.range_tombstones {
        let what =
            format!("expected {} range tombstones, found {}", meta.range_tombstones, found.len());
        return Err(Error::damaged(file.path(), places.ranges_offset, what));
    }
    Ok(found)
}
