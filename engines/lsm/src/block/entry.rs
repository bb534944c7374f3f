//! The entry decoder: one entry in a payload.
//!
//! Purpose: the inner loops of every search. Lengths nearly always have one byte, and tags a few.
//! Invariants: any bytes are safe to decode: bytes that cannot be an entry give `None`, and no
//! offset lies outside the payload.
//! Thread safety: pure functions.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use adamant_wire::key::common_len;
use adamant_wire::varint;

use crate::key::EntryKind;

/// The fault of a payload whose checksum is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The result of decoding within a payload.
pub(crate) type Read<T> = Result<T, Malformed>;

/// One entry, as offsets in its payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryAt {
    /// Start of the entry.
    pub(crate) offset: usize,
    /// Bytes that its key shares with the previous key.
    pub(crate) shared: usize,
    /// Range of the rest of the key.
    suffix_start: usize,
    suffix_end: usize,
    value_start: usize,
    /// End of the value, where the next entry begins.
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

/// The continuation bit of each byte of a varint.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

pub(super) const NO_ENTRY: Malformed = Malformed("expected an entry, found other bytes");

/// How many bytes the entry at `offset` shares, and the range of the rest of its key. Most lengths
/// have one byte.
#[inline(always)]
pub(super) fn lengths(payload: &[u8], offset: usize) -> Option<(usize, Range<usize>)> {
    if let [shared @ ..0x80, suffix_bytes @ ..0x80, ..] = *payload.get(offset..)? {
        let start = offset + 2;
        return Some((shared.into(), start..start + usize::from(suffix_bytes)));
    }
    lengths_slowly(payload, offset)
}

// The rare case is a function of its own: otherwise its stack slots slow down the common case.
#[cold]
#[inline(never)]
fn lengths_slowly(payload: &[u8], offset: usize) -> Option<(usize, Range<usize>)> {
    let mut rest = payload.get(offset..)?;
    let shared = varint::take(&mut rest)?;
    let suffix_bytes = varint::take(&mut rest)?;
    let start = payload.len() - rest.len();
    let end = start.checked_add(usize::try_from(suffix_bytes).ok()?)?;
    Some((usize::try_from(shared).ok()?, start..end))
}

/// The end of the entry whose key ends at `at`, where the next entry begins.
#[inline(always)]
pub(super) fn behind(payload: &[u8], at: usize) -> Option<usize> {
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

#[cold]
#[inline(never)]
fn behind_slowly(payload: &[u8], at: usize) -> Option<usize> {
    let (tag, at) = take_word(payload, at)?;
    match EntryKind::from_number(tag & 3)? {
        EntryKind::Tombstone => Some(at),
        EntryKind::Value | EntryKind::Blob | EntryKind::Merge => {
            let (value_bytes, at) = take_word(payload, at)?;
            at.checked_add(usize::try_from(value_bytes).ok()?)
        }
    }
}

/// The key of the entry at a restart, and the offset of its end.
#[inline(always)]
pub(super) fn whole_key(payload: &[u8], offset: usize) -> Option<(&[u8], usize)> {
    if let [0, bytes @ ..0x80, rest @ ..] = payload.get(offset..)? {
        let bytes = usize::from(*bytes);
        return Some((rest.get(..bytes)?, offset + 2 + bytes));
    }
    let (shared, suffix) = lengths(payload, offset)?;
    let end = suffix.end;
    Some((payload.get(suffix).filter(|_| shared == 0)?, end))
}

/// The entry at `offset`; `None` unless all of it fits into the first `entries_bytes`.
#[inline(always)]
pub(super) fn decode(payload: &[u8], entries_bytes: usize, offset: usize) -> Option<EntryAt> {
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
            _ => (value_bytes, value_start) = take_word(payload, value_start)?,
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

/// The varint at `at`, and the offset of its end. Loads up to 8 bytes at once: sequence numbers and
/// offsets have 3 or 4, and a loop would mispredict their end. So many bytes always exist, because
/// restarts and tail follow the last entry.
#[inline(always)]
pub(crate) fn take_word(payload: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*payload.get(at..)?.first_chunk()?);
    let ends = !word & CONTINUED;
    if ends == 0 {
        return take_slowly(payload, at);
    }
    let end_bit = ends.trailing_zeros();
    // Compact the groups of 7 bits, up to the last one: in pairs, pairs of pairs, and both halves.
    let groups = word & (u64::MAX >> (63 - end_bit)) & 0x7F7F_7F7F_7F7F_7F7F;
    let pairs = groups & 0x007F_007F_007F_007F | (groups & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
    let tag = fours & 0x0FFF_FFFF | (fours & 0x0FFF_FFFF_0000_0000) >> 4;
    Some((tag, at + end_bit as usize / 8 + 1))
}

#[cold]
#[inline(never)]
fn take_slowly(payload: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut rest = payload.get(at..)?;
    let value = varint::take(&mut rest)?;
    Some((value, payload.len() - rest.len()))
}

/// The order of `wanted` relative to `found`, and the length of their common prefix. Within a run
/// most keys differ from the wanted one in the first byte after the shared prefix.
#[inline(always)]
pub(super) fn key_order(wanted: &[u8], found: &[u8]) -> (Ordering, usize) {
    if let ([wanted, ..], [found, ..]) = (wanted, found)
        && wanted != found
    {
        return (wanted.cmp(found), 0);
    }
    let common = common_len(wanted, found);
    let order = match (wanted.get(common), found.get(common)) {
        (Some(wanted), Some(found)) => wanted.cmp(found),
        (wanted, found) => wanted.is_some().cmp(&found.is_some()),
    };
    (order, common)
}

/// The bucket of a key's hash. The filters use other bits of its upper half.
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
}
