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
    /// Where the rest of the key begins and ends.
    suffix_start: usize,
    suffix_end: usize,
    value_start: usize,
    /// Where the value ends, and the next entry begins.
    pub(crate) end: usize,
    pub(crate) sequence: u64,
    pub(crate) kind: EntryKind,
}

impl EntryAt {
    pub(crate) fn suffix(&self) -> Range<usize> {
        self.suffix_start..self.suffix_end
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
    fn restart_of(&self, payload: &[u8], index: u32) -> Read<usize> {
        let start = self.entries_bytes();
        let offset = if self.is_wide {
            le::u32_at(payload, start + index as usize * 4).map(|offset| offset as usize)
        } else {
            le::u16_at(payload, start + index as usize * 2).map(usize::from)
        };
        // Restarts lie within the entries: whoever reads one there judges that.
        offset.ok_or(Malformed("expected a restart, found the end of the payload"))
    }

    fn restart(&self, index: u32) -> Read<usize> {
        self.restart_of(&self.bytes, index)
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
        decode(&self.bytes, self.entries_bytes(), offset).ok_or(NO_ENTRY)
    }

    /// The first entry at or behind (`key`, `sequence`); `None` if there is none in this payload.
    /// O(log restarts + restart interval) comparisons.
    pub(crate) fn seek(&self, key: &[u8], sequence: u64) -> Read<Option<Found>> {
        let payload = self.bytes.as_bytes();
        let (mut low, mut high) = (0, self.restart_count);
        let mut before = None;
        // The restarts below `low` begin before what is searched for, those from `high` on do not.
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.restart_of(payload, middle)?;
            let (_, suffix) = lengths(payload, offset).ok_or(NO_ENTRY)?;
            let suffix_end = suffix.end;
            let order = payload.get(suffix).ok_or(NO_ENTRY)?.cmp(key);
            let is_before = match order {
                Ordering::Equal => self.entry(offset)?.sequence > sequence,
                order => order == Ordering::Less,
            };
            if is_before {
                low = middle + 1;
                before = Some((offset, suffix_end));
            } else {
                high = middle;
            }
        }
        let Some((start, suffix_end)) = before else {
            return self.walk(self.restart_of(payload, 0)?, key, sequence);
        };
        // Where every key is whole, as in an index, the next restart is the answer.
        if low < self.restart_count {
            let end = behind(payload, suffix_end).ok_or(NO_ENTRY)?;
            if end == self.restart_of(payload, low)? {
                let entry = self.entry(end)?;
                return Ok(Some(Found { entry, is_key: &payload[entry.suffix()] == key }));
            }
        }
        self.walk(start, key, sequence)
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
        let payload = self.bytes.as_bytes();
        let mut matched = 0;
        let mut offset = start;
        while offset < self.entries_bytes() {
            let (shared, suffix) = lengths(payload, offset).ok_or(NO_ENTRY)?;
            let suffix_end = suffix.end;
            if shared <= matched {
                let rest = &key[shared..];
                let suffix = payload.get(suffix).ok_or(NO_ENTRY)?;
                let common = common_prefix(rest, suffix);
                match (rest.get(common), suffix.get(common)) {
                    (Some(wanted), Some(found)) if wanted > found => {}
                    (Some(_), None) => {}
                    (None, None) => {
                        let entry = self.entry(offset)?;
                        if entry.sequence <= sequence {
                            return Ok(Some(Found { entry, is_key: true }));
                        }
                    }
                    _ => return Ok(Some(Found { entry: self.entry(offset)?, is_key: false })),
                }
                matched = shared + common;
            } else if matched == key.len() {
                // Then the key before is longer than this key, or shares too much.
                return Err(Malformed("expected keys that ascend"));
            }
            offset = behind(payload, suffix_end).ok_or(NO_ENTRY)?;
        }
        if offset > self.entries_bytes() { Err(NO_ENTRY) } else { Ok(None) }
    }
}

/// The bit of each byte of a varint that says whether another follows.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

const NO_ENTRY: Malformed = Malformed("expected an entry, found other bytes");

/// How much the entry at `offset` shares, and where the rest of its key lies. Most lengths are of
/// one byte.
#[inline(always)]
fn lengths(payload: &[u8], offset: usize) -> Option<(usize, Range<usize>)> {
    if let [shared @ ..0x80, suffix_bytes @ ..0x80, ..] = *payload.get(offset..)? {
        let start = offset + 2;
        return Some((shared.into(), start..start + usize::from(suffix_bytes)));
    }
    let mut rest = payload.get(offset..)?;
    let shared = varint::take(&mut rest)?;
    let suffix_bytes = varint::take(&mut rest)?;
    let start = payload.len() - rest.len();
    let end = start.checked_add(usize::try_from(suffix_bytes).ok()?)?;
    Some((usize::try_from(shared).ok()?, start..end))
}

/// Where the entry ends, and the next one begins, whose key ends at `at`.
#[inline(always)]
fn behind(payload: &[u8], at: usize) -> Option<usize> {
    let word = u64::from_le_bytes(*payload.get(at..)?.first_chunk()?);
    let ends = !word & CONTINUED;
    // The kind is in the lowest two bits.
    if ends != 0 && word & 3 != EntryKind::Tombstone as u64 {
        let at = at + ends.trailing_zeros() as usize / 8 + 1;
        if let short @ ..0x80 = *payload.get(at)? {
            return Some(at + 1 + usize::from(short));
        }
    }
    behind_slowly(payload, at)
}

fn behind_slowly(payload: &[u8], at: usize) -> Option<usize> {
    let (tag, at) = take_word(payload, at)?;
    match EntryKind::from_number(tag & 3)? {
        EntryKind::Tombstone => Some(at),
        EntryKind::Value | EntryKind::Blob => {
            let (value_bytes, at) = take_word(payload, at)?;
            at.checked_add(usize::try_from(value_bytes).ok()?)
        }
    }
}

/// The entry at `offset`, if one can lie there: whole, and within the first `entries_bytes`.
#[inline(always)]
fn decode(payload: &[u8], entries_bytes: usize, offset: usize) -> Option<EntryAt> {
    let (shared, suffix) = lengths(payload, offset)?;
    let (tag, mut value_start) = take_word(payload, suffix.end)?;
    let kind = EntryKind::from_number(tag & 3)?;
    let mut value_bytes = 0;
    if kind != EntryKind::Tombstone {
        match *payload.get(value_start)? {
            short @ ..0x80 => {
                value_bytes = u64::from(short);
                value_start += 1;
            }
            _ => {
                let mut rest = &payload[value_start..];
                value_bytes = varint::take(&mut rest)?;
                value_start = payload.len() - rest.len();
            }
        }
    }
    let left = entries_bytes.checked_sub(value_start)?;
    let value_bytes = usize::try_from(value_bytes).ok().filter(|&bytes| bytes <= left)?;
    Some(EntryAt {
        offset,
        shared,
        suffix_start: suffix.start,
        suffix_end: suffix.end,
        value_start,
        end: value_start + value_bytes,
        sequence: tag >> 2,
        kind,
    })
}

/// The varint at `at`, and where it ends. Up to 8 bytes of it are taken at once: sequence numbers and
/// offsets have 3 or 4, of which a loop would guess the end wrong. There are always so many bytes:
/// restart and tail follow the last entry.
#[inline(always)]
pub(crate) fn take_word(payload: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*payload.get(at..)?.first_chunk()?);
    let ends = !word & CONTINUED;
    if ends == 0 {
        let mut rest = &payload[at..];
        let tag = varint::take(&mut rest)?;
        return Some((tag, payload.len() - rest.len()));
    }
    let end_bit = ends.trailing_zeros();
    // Groups of 7 bits, up to the last one, are moved together: pairs, pairs of these, and both halves.
    let groups = word & (u64::MAX >> (63 - end_bit)) & 0x7F7F_7F7F_7F7F_7F7F;
    let pairs = groups & 0x007F_007F_007F_007F | (groups & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
    let tag = fours & 0x0FFF_FFFF | (fours & 0x0FFF_FFFF_0000_0000) >> 4;
    Some((tag, at + end_bit as usize / 8 + 1))
}

/// Bytes at the start that both have.
#[inline]
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let bytes = left.len().min(right.len());
    let (left, right) = (&left[..bytes], &right[..bytes]);
    let (words, left_rest) = left.as_chunks::<8>();
    let (others, right_rest) = right.as_chunks::<8>();
    for (index, (word, other)) in words.iter().zip(others).enumerate() {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return index * 8 + differing.trailing_zeros() as usize / 8;
        }
    }
    let mut common = bytes - left_rest.len();
    for (left, right) in left_rest.iter().zip(right_rest) {
        if left != right {
            break;
        }
        common += 1;
    }
    common
}

/// The bucket of a key's hash. Of its upper half the filters use other bits.
#[inline]
pub(crate) fn bucket_of(hash: u64, bucket_count: u16) -> usize {
    let upper = (hash.rotate_left(16)) >> 32;
    ((upper * u64::from(bucket_count)) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_all_lengths_are_taken_like_varints() {
        for shift in 0..64 {
            for tag in [(1_u64 << shift) - 1, 1 << shift, (1 << shift) + 1, u64::MAX >> shift] {
                for behind in [0, 0x7F, 0x80, 0xFF] {
                    let mut bytes = vec![0xAA];
                    varint::put(&mut bytes, tag);
                    let end = bytes.len();
                    bytes.extend([behind; 9]);
                    assert_eq!(take_word(&bytes, 1), Some((tag, end)), "{tag:#x}");
                }
            }
        }
        assert_eq!(take_word(&[0xFF; 20], 3), None);
        assert_eq!(take_word(&[1; 7], 0), None);
        assert_eq!(take_word(&[1; 7], 8), None);
    }

    #[test]
    fn common_prefixes_of_all_lengths() {
        let bytes: Vec<u8> = (0..40).collect();
        for length in 0..40 {
            for differing in 0..=length {
                let mut other = bytes[..length].to_vec();
                if let Some(byte) = other.get_mut(differing) {
                    *byte ^= 0x80;
                }
                assert_eq!(common_prefix(&bytes, &other), differing);
                assert_eq!(common_prefix(&other, &bytes), differing);
            }
        }
    }
}
