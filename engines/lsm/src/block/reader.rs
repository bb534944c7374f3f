//! Reading a payload of entries.
//!
//! Purpose: to find an entry: by the hash index if there is one, else by binary search among the
//! restarts, and from there one entry after the other, comparing only what keys do not share.
//! Invariants: any bytes can be read: what cannot have been written is `Malformed`. Every step goes
//! forward, so every search ends.
//! Thread safety: immutable, shared freely.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use adamant_slice::Slice;
use adamant_wire::{le, varint};
use zerocopy::FromBytes;

use super::layout::{BUCKET_EMPTY, BUCKET_SHARED, ENTRIES_TAIL_BYTES, EntriesTail};
use crate::key::{EntryKind, Version};

/// What is wrong with a payload whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The result of reading within a payload.
pub(crate) type Read<T> = Result<T, Malformed>;

/// A payload of entries.
#[derive(Clone, Debug)]
pub(crate) struct EntryBlock {
    bytes: Slice,
    /// Where the restarts begin, and the entries end.
    entries_bytes: u32,
    restart_count: u32,
    bucket_count: u16,
    is_wide: bool,
}

/// One entry, as places in its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryAt {
    /// Where it begins.
    pub(crate) offset: usize,
    /// Bytes that its key shares with the key before it.
    pub(crate) shared: usize,
    /// Where the rest of the key begins; it ends where the value begins.
    suffix_start: usize,
    value_start: usize,
    /// Where the value ends, and the next entry begins.
    pub(crate) end: usize,
    pub(crate) sequence: u64,
    pub(crate) kind: EntryKind,
}

impl EntryAt {
    pub(crate) fn suffix(&self) -> Range<usize> {
        self.suffix_start..self.value_start
    }

    pub(crate) fn value(&self) -> Range<usize> {
        self.value_start..self.end
    }
}

/// The first entry at or behind what was searched for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) entry: EntryAt,
    /// Whether it is of the very key.
    pub(crate) is_key: bool,
}

impl EntryBlock {
    /// Takes a payload; looks at its tail only.
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

    /// Where the entries end.
    pub(crate) fn entries_bytes(&self) -> usize {
        self.entries_bytes as usize
    }

    /// Where the entry of a restart begins.
    #[inline]
    fn restart(&self, index: u32) -> Read<usize> {
        let start = self.entries_bytes();
        let offset = if self.is_wide {
            le::u32_at(&self.bytes, start + index as usize * 4).map(|offset| offset as usize)
        } else {
            le::u16_at(&self.bytes, start + index as usize * 2).map(usize::from)
        };
        // Restarts lie within the entries: `entry` judges that.
        offset.ok_or(Malformed("expected a restart, found the end of the payload"))
    }

    /// Where the last restart at or before `offset` begins.
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

    /// The entry that begins at `offset`.
    #[inline]
    pub(crate) fn entry(&self, offset: usize) -> Read<EntryAt> {
        let entries = &self.bytes.as_bytes()[..self.entries_bytes()];
        decode(entries, offset).ok_or(Malformed("expected an entry, found other bytes"))
    }

    /// The first entry at or behind (`key`, `sequence`); `None` if there is none in this payload.
    /// O(log restarts + restart interval) comparisons.
    pub(crate) fn seek(&self, key: &[u8], sequence: u64) -> Read<Option<Found>> {
        let (mut low, mut high) = (0, self.restart_count);
        // The restarts below `low` begin before what is searched for, those from `high` on do not.
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(self.restart(middle)?)?;
            let order = self.bytes[entry.suffix()].cmp(key);
            if order.then(sequence.cmp(&entry.sequence)) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.walk(self.restart(low.saturating_sub(1))?, key, sequence)
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

    /// What an entry says; shares the payload's memory.
    #[inline]
    pub(crate) fn version(&self, entry: &EntryAt) -> Version {
        let value = self.bytes.slice(entry.value());
        Version { sequence: entry.sequence, kind: entry.kind, value }
    }

    /// The first entry at or behind (`key`, `sequence`) from a restart on, which is before that or
    /// nothing before it is wanted.
    ///
    /// No key is put together. `matched` bytes of `key` are those of the entry before, which is
    /// below what is searched for: an entry that shares more than these with it is below, too.
    fn walk(&self, start: usize, key: &[u8], sequence: u64) -> Read<Option<Found>> {
        let mut matched = 0;
        let mut offset = start;
        while offset < self.entries_bytes() {
            let entry = self.entry(offset)?;
            offset = entry.end;
            if entry.shared > matched {
                if matched == key.len() {
                    // Then the key before is longer than this key, or shares too much.
                    return Err(Malformed("expected keys that ascend"));
                }
                continue;
            }
            let rest = &key[entry.shared..];
            let suffix = &self.bytes[entry.suffix()];
            let common = common_prefix(rest, suffix);
            match (rest.get(common), suffix.get(common)) {
                (Some(wanted), Some(found)) if wanted < found => {
                    return Ok(Some(Found { entry, is_key: false }));
                }
                (None, Some(_)) => return Ok(Some(Found { entry, is_key: false })),
                (None, None) if entry.sequence <= sequence => {
                    return Ok(Some(Found { entry, is_key: true }));
                }
                _ => matched = entry.shared + common,
            }
        }
        Ok(None)
    }
}

/// The entry at `offset` of `entries`, if one can lie there.
#[inline]
fn decode(entries: &[u8], offset: usize) -> Option<EntryAt> {
    let mut rest = entries.get(offset..)?;
    let shared = varint::take(&mut rest)?;
    let suffix_bytes = varint::take(&mut rest)?;
    let tag = varint::take(&mut rest)?;
    let kind = EntryKind::from_number(tag & 3)?;
    let value_bytes = if kind == EntryKind::Tombstone { 0 } else { varint::take(&mut rest)? };
    let suffix_start = entries.len() - rest.len();
    let left = rest.len() as u64;
    let value_end = suffix_bytes.checked_add(value_bytes).filter(|&bytes| bytes <= left)?;
    Some(EntryAt {
        offset,
        shared: usize::try_from(shared).ok()?,
        suffix_start,
        value_start: suffix_start + suffix_bytes as usize,
        end: suffix_start + value_end as usize,
        sequence: tag >> 2,
        kind,
    })
}

/// Bytes at the start that both have.
#[inline]
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let mut common = 0;
    for (left, right) in left.chunks_exact(8).zip(right.chunks_exact(8)) {
        if left != right {
            break;
        }
        common += 8;
    }
    let tails = left[common..].iter().zip(&right[common..]);
    common + tails.take_while(|(left, right)| left == right).count()
}

/// The bucket of a key's hash. Of its upper half the filters use other bits.
#[inline]
pub(crate) fn bucket_of(hash: u64, bucket_count: u16) -> usize {
    let upper = (hash.rotate_left(16)) >> 32;
    ((upper * u64::from(bucket_count)) >> 32) as usize
}
