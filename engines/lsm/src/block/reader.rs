//! The block reader: search in a payload of entries.
//!
//! Purpose: finds an entry by the hash index, if there is one, or by binary search over the
//! restarts; from there it goes entry by entry and compares only the bytes that keys do not share.
//! Invariants: any bytes are safe to read: a payload that no writer can have written is
//! `Malformed`. Every step goes forward, so every search ends.
//! Thread safety: immutable, shared freely.

use std::cmp::Ordering;

use adamant_slice::Slice;
use zerocopy::FromBytes;

use super::entry::{
    EntryAt, Malformed, NO_ENTRY, Read, behind, bucket_of, decode, key_order, lengths, whole_key,
};
use super::layout::{BUCKET_EMPTY, BUCKET_SHARED, ENTRIES_TAIL_BYTES, EntriesTail};
use crate::key::Version;

/// A payload of entries.
#[derive(Clone, Debug)]
pub(crate) struct EntryBlock {
    bytes: Slice,
    /// Start of the restarts, which is the end of the entries.
    entries_bytes: u32,
    restart_count: u32,
    bucket_count: u16,
    is_wide: bool,
}

/// The first entry at or after the search target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) entry: EntryAt,
    /// Whether the entry has exactly the key.
    pub(crate) is_key: bool,
}

impl EntryBlock {
    /// Takes a payload; decodes only its tail.
    ///
    /// # Errors
    /// `Malformed` if restarts and buckets do not fit.
    pub(crate) fn new(bytes: Slice) -> Read<Self> {
        let Ok((_, tail)) = EntriesTail::read_from_suffix(&bytes) else {
            return Err(Malformed("expected a payload of entries with its tail, found less"));
        };
        let restart_count = tail.restart_count.get();
        let bucket_count = tail.bucket_count.get();
        let is_wide = match tail.restart_width {
            2 => false,
            4 => true,
            _ => return Err(Malformed("expected restarts of 2 or 4 bytes")),
        };
        let restarts_bytes = u64::from(restart_count) * u64::from(tail.restart_width);
        let behind = restarts_bytes + u64::from(bucket_count) + ENTRIES_TAIL_BYTES as u64;
        let entries_bytes = (bytes.len() as u64).checked_sub(behind).filter(|&bytes| bytes > 0);
        let Some(entries_bytes) = entries_bytes.filter(|_| restart_count > 0) else {
            return Err(Malformed(
                "expected entries and their restarts, found a payload too short",
            ));
        };
        let entries_bytes = entries_bytes as u32;
        Ok(Self { bytes, entries_bytes, restart_count, bucket_count, is_wide })
    }

    /// The whole payload.
    pub(crate) fn bytes(&self) -> &Slice {
        &self.bytes
    }

    /// The end of the entries.
    pub(crate) fn entries_bytes(&self) -> usize {
        self.entries_bytes as usize
    }

    /// The offset of the entry of a restart.
    #[inline]
    fn restart_of(&self, payload: &[u8], index: u32) -> Read<usize> {
        let restarts = payload.get(self.entries_bytes()..).unwrap_or_default();
        let index = index as usize;
        let offset = if self.is_wide {
            restarts.as_chunks().0.get(index).map(|&bytes| u32::from_le_bytes(bytes) as usize)
        } else {
            restarts.as_chunks().0.get(index).map(|&bytes| u16::from_le_bytes(bytes).into())
        };
        // The decoder of the entry verifies that the offset lies within the entries.
        offset.ok_or(Malformed("expected a restart, found the end of the payload"))
    }

    fn restart(&self, index: u32) -> Read<usize> {
        self.restart_of(&self.bytes, index)
    }

    /// The offset of the last restart at or before `offset`.
    pub(crate) fn restart_before(&self, offset: usize) -> Read<usize> {
        let (mut low, mut high) = (0, self.restart_count);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.restart(middle)? <= offset { low = middle } else { high = middle }
        }
        let restart = self.restart(low)?;
        if restart > offset {
            return Err(Malformed("expected the first restart at the first entry"));
        }
        Ok(restart)
    }

    /// The entry at `offset`.
    #[inline]
    pub(crate) fn entry(&self, offset: usize) -> Read<EntryAt> {
        decode(&self.bytes, self.entries_bytes(), offset).ok_or(NO_ENTRY)
    }

    /// The first entry at or after (`key`, `sequence`); `None` if there is none in this payload.
    /// O(log restarts + restart interval) comparisons.
    pub(crate) fn seek(&self, key: &[u8], sequence: u64) -> Read<Option<Found>> {
        let payload = self.bytes.as_bytes();
        let low = self.restarts_before(key, sequence)?;
        let Some(before) = low.checked_sub(1) else {
            return self.walk(self.restart_of(payload, 0)?, key, sequence);
        };
        let start = self.restart_of(payload, before)?;
        // Where every key is whole, as in an index, the next restart is the answer.
        if low < self.restart_count {
            let (_, suffix_end) = whole_key(payload, start).ok_or(NO_ENTRY)?;
            let end = behind(payload, suffix_end).ok_or(NO_ENTRY)?;
            if end == self.restart_of(payload, low)? {
                let entry = self.entry(end)?;
                return Ok(Some(Found { entry, is_key: &payload[entry.suffix()] == key }));
            }
        }
        self.walk(start, key, sequence)
    }

    /// How many restarts begin before the search target. It is a function of its own, and so is its
    /// rare case, so that the loop runs in registers.
    #[inline(never)]
    fn restarts_before(&self, key: &[u8], sequence: u64) -> Read<u32> {
        let payload = self.bytes.as_bytes();
        let (mut low, mut high) = (0, self.restart_count);
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.restart_of(payload, middle)?;
            let (found, _) = whole_key(payload, offset).ok_or(NO_ENTRY)?;
            let is_before = match found.cmp(key) {
                Ordering::Equal => self.sequence_at(offset)? > sequence,
                order => order == Ordering::Less,
            };
            if is_before { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    #[cold]
    #[inline(never)]
    fn sequence_at(&self, offset: usize) -> Read<u64> {
        Ok(self.entry(offset)?.sequence)
    }

    /// The newest version of the key that is not newer than `sequence_max`. `hash` is the key's.
    #[inline]
    pub(crate) fn find(&self, key: &[u8], hash: u64, sequence_max: u64) -> Read<Option<Version>> {
        let found = if self.bucket_count > 0 {
            let buckets = self.bytes.len() - ENTRIES_TAIL_BYTES - usize::from(self.bucket_count);
            match self.bytes[buckets + bucket_of(hash, self.bucket_count)] {
                BUCKET_EMPTY => return Ok(None),
                BUCKET_SHARED => self.seek(key, sequence_max)?,
                index if u32::from(index) < self.restart_count => {
                    self.walk(self.restart(index.into())?, key, sequence_max)?
                }
                _ => return Err(Malformed("expected buckets of restarts that are there")),
            }
        } else {
            self.seek(key, sequence_max)?
        };
        Ok(found.filter(|found| found.is_key).map(|found| self.version(&found.entry)))
    }

    /// The version that an entry holds; shares the payload's memory.
    #[inline]
    pub(crate) fn version(&self, entry: &EntryAt) -> Version {
        let value = self.bytes.slice(entry.value());
        Version { sequence: entry.sequence, kind: entry.kind, value }
    }

    /// The first entry at or after (`key`, `sequence`), searched for from a restart on. The restart
    /// is before the target, or nothing before it is wanted.
    ///
    /// No key is restored. `matched` is the number of bytes of `key` that the previous entry, which
    /// is below the target, has in common with it: an entry that shares more bytes with that one is
    /// below, too.
    fn walk(&self, start: usize, key: &[u8], sequence: u64) -> Read<Option<Found>> {
        let payload = self.bytes.as_bytes();
        let mut matched = 0;
        let mut offset = start;
        while offset < self.entries_bytes() {
            let (shared, suffix) = lengths(payload, offset).ok_or(NO_ENTRY)?;
            let suffix_end = suffix.end;
            if shared <= matched {
                let order = key_order(&key[shared..], payload.get(suffix).ok_or(NO_ENTRY)?);
                match order {
                    (Ordering::Greater, common) => matched = shared + common,
                    (Ordering::Equal, common) => {
                        let entry = self.entry(offset)?;
                        if entry.sequence <= sequence {
                            return Ok(Some(Found { entry, is_key: true }));
                        }
                        matched = shared + common;
                    }
                    (Ordering::Less, _) => {
                        return Ok(Some(Found { entry: self.entry(offset)?, is_key: false }));
                    }
                }
            } else if matched == key.len() {
                // Then the previous key is longer than this one, or shares too much.
                return Err(Malformed("expected keys that ascend"));
            }
            offset = behind(payload, suffix_end).ok_or(NO_ENTRY)?;
        }
        if offset > self.entries_bytes() { Err(NO_ENTRY) } else { Ok(None) }
    }
}
