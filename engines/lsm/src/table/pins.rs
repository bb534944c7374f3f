//! Pinned parts: indexes and filters of an open table that stay in memory beside the cache.
//!
//! Purpose: every get needs the filter of its part of the table, and most its index. They are a
//! fiftieth of the data, so blocks of data must not evict them; and what is pinned is found without
//! a look into the cache.
//! Invariants: all tables of a cache together pin no more than its limit, but for what threads read
//! at the moment. A part is read when it is first needed, and given back with its table.
//! Thread safety: shared freely.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use adamant_slice::Slice;

use super::index::{self, Partition};
use crate::block::{Cursor, EntryBlock, Forward, Read};
use crate::cache::Cache;
use crate::error::Result;

/// A pinned part.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) index: EntryBlock,
    /// `None` in a table without filters.
    pub(super) filter: Option<Slice>,
}

/// The parts of a table.
#[derive(Debug)]
pub(super) struct Pins {
    cache: Arc<Cache>,
    /// Each with the offset of its index, which ascend.
    parts: Box<[(u64, OnceLock<Pinned>)]>,
    bytes: AtomicU64,
}

impl Pins {
    /// Of a table with that top of the index; nothing is pinned yet.
    ///
    /// # Errors
    /// `Malformed` if the top names no parts.
    pub(super) fn new(top: Option<&EntryBlock>, cache: &Arc<Cache>) -> Read<Self> {
        let mut parts = Vec::new();
        if let Some(top) = top {
            let mut cursor = Forward::all(top.clone());
            while cursor.advance()? {
                let partition = cursor.read_value(index::partition_at)?;
                parts.push((partition.index.offset, OnceLock::new()));
            }
        }
        Ok(Self { cache: Arc::clone(cache), parts: parts.into(), bytes: AtomicU64::new(0) })
    }

    /// Bytes that are pinned.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The offset of the last part of the index, behind all data.
    pub(super) fn last_index(&self) -> Option<u64> {
        self.parts.last().map(|(offset, _)| *offset)
    }

    /// The part with an index at that offset, if it is pinned.
    #[inline]
    pub(super) fn known(&self, offset: u64) -> Option<&Pinned> {
        self.part(offset)?.get()
    }

    #[inline]
    fn part(&self, offset: u64) -> Option<&OnceLock<Pinned>> {
        let at = self.parts.binary_search_by_key(&offset, |(offset, _)| *offset);
        self.parts.get(at.ok()?).map(|(_, part)| part)
    }

    /// A part, which `read` reads unless it is pinned; `None` if there is no room for it.
    ///
    /// # Errors
    /// Those of `read`; then nothing is pinned.
    #[inline]
    pub(super) fn get(
        &self,
        partition: &Partition,
        read: impl FnOnce() -> Result<Pinned>,
    ) -> Result<Option<&Pinned>> {
        let Some(part) = self.part(partition.index.offset) else { return Ok(None) };
        match part.get() {
            None if self.cache.can_pin() => self.pin(part, read).map(Some),
            pinned => Ok(pinned),
        }
    }

    #[cold]
    fn pin<'p>(
        &self,
        part: &'p OnceLock<Pinned>,
        read: impl FnOnce() -> Result<Pinned>,
    ) -> Result<&'p Pinned> {
        let pinned = read()?;
        let bytes = pinned.index.bytes().len() + pinned.filter.as_ref().map_or(0, Slice::len);
        // Of several threads that have read it, one counts it.
        Ok(part.get_or_init(|| {
            self.cache.pin(bytes as u64);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            pinned
        }))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        self.cache.unpin(self.bytes());
    }
}
