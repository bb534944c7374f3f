//! The index of a table: which blocks hold which keys.
//!
//! Purpose: separators and handles. A separator is at or after the last entry of its block and
//! before the first of the next, and as short as that allows.
//! Invariants: separators ascend like entries, by key and then by descending sequence number. So
//! the block of an entry is the first whose separator is at or after it.
//! Thread safety: pure functions.

use std::ops::Range;

use adamant_wire::key::common_len;
use adamant_wire::varint;

use crate::block::{BlockHandle, Malformed, Read, take_word};

/// The location of the index block and the filter of a part of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) index: BlockHandle,
    /// `None` in a table without filters.
    pub(crate) filter: Option<BlockHandle>,
}

pub(crate) fn put_handle(out: &mut Vec<u8>, handle: BlockHandle) {
    varint::put(out, handle.offset);
    varint::put(out, handle.bytes.into());
}

/// Decodes the handle at `at` of a payload of entries; returns it and the offset of its end.
#[inline]
fn take_handle(payload: &[u8], at: usize) -> Option<(BlockHandle, usize)> {
    let (offset, at) = take_word(payload, at)?;
    let (bytes, at) = take_word(payload, at)?;
    Some((BlockHandle { offset, bytes: u32::try_from(bytes).ok()? }, at))
}

/// Decodes the handle at `value` of an index block.
///
/// # Errors
/// `Malformed` if it is none.
#[inline]
pub(crate) fn handle_at(payload: &[u8], value: Range<usize>) -> Read<BlockHandle> {
    match take_handle(payload, value.start) {
        Some((handle, end)) if end == value.end => Ok(handle),
        _ => Err(Malformed("expected the place of a block, found other bytes")),
    }
}

pub(crate) fn put_partition(out: &mut Vec<u8>, partition: &Partition) {
    put_handle(out, partition.index);
    if let Some(filter) = partition.filter {
        put_handle(out, filter);
    }
}

/// Decodes the partition at `value` of the top.
///
/// # Errors
/// `Malformed` if it is none.
#[inline]
pub(crate) fn partition_at(payload: &[u8], value: Range<usize>) -> Read<Partition> {
    let taken = take_handle(payload, value.start).and_then(|(index, at)| {
        if at == value.end {
            return Some(Partition { index, filter: None });
        }
        let (filter, end) = take_handle(payload, at)?;
        (end == value.end).then_some(Partition { index, filter: Some(filter) })
    });
    taken.ok_or(Malformed("expected the places of a part of the index, found other bytes"))
}

/// A key and sequence number at or after (`last`, `sequence`) and before any version of `next`, or
/// the next version of `last` itself; the key is as short as possible.
pub(crate) fn separator<'a>(
    last: &'a [u8],
    sequence: u64,
    next: Option<&[u8]>,
    scratch: &'a mut Vec<u8>,
) -> (&'a [u8], u64) {
    let Some(next) = next else { return (last, 0) };
    let common = common_len(last, next);
    if common == last.len() && common == next.len() {
        return (last, sequence);
    }
    scratch.clear();
    if next.len() > common + 1 {
        // The common prefix and one more byte of the next key: after `last`, and a prefix of
        // `next`.
        scratch.extend_from_slice(&next[..=common]);
    } else {
        // Incrementing the first byte after it that is not the maximum makes `last` shorter and
        // higher.
        let Some(at) = (common + 1..last.len()).find(|&at| last[at] < u8::MAX) else {
            return (last, 0);
        };
        scratch.extend_from_slice(&last[..=at]);
        scratch[at] += 1;
    }
    if scratch.len() < last.len() { (scratch, 0) } else { (last, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back() {
        let index = BlockHandle { offset: 1 << 50, bytes: u32::MAX };
        let filter = BlockHandle { offset: 3, bytes: 200 };
        let mut payload = Vec::new();
        put_handle(&mut payload, index);
        let one = payload.len();
        put_partition(&mut payload, &Partition { index: filter, filter: Some(index) });
        let end = payload.len();
        payload.extend([0xFF; 9]);
        assert_eq!(handle_at(&payload, 0..one), Ok(index));
        assert_eq!(partition_at(&payload, 0..one), Ok(Partition { index, filter: None }));
        let both = Partition { index: filter, filter: Some(index) };
        assert_eq!(partition_at(&payload, one..end), Ok(both));
        for end in (one..end + 9).filter(|&other| other != end && other != one + 3) {
            assert!(partition_at(&payload, one..end).is_err(), "{end}");
        }
        assert!(handle_at(&payload, 0..one - 1).is_err());
        assert!(handle_at(&payload, end..end + 9).is_err());
    }

    #[test]
    fn separators_stand_between_their_neighbours() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut scratch = Vec::new();
        let mut shorter = 0;
        for _ in 0..200_000 {
            let mut key = || -> Vec<u8> {
                let length = random.usize(0..6);
                (0..length).map(|_| [0, 1, 7, 254, 255][random.usize(0..5)]).collect()
            };
            let (last, next) = (key(), key());
            if last > next {
                continue;
            }
            let (found, sequence) = separator(&last, 5, Some(&next), &mut scratch);
            if last == next {
                assert_eq!((found, sequence), (&last[..], 5));
                continue;
            }
            assert!(last.as_slice() <= found && found < next.as_slice(), "{last:?} {next:?}");
            assert_eq!(sequence, 0, "behind all versions of its key");
            shorter += usize::from(found.len() < last.len());
        }
        assert!(shorter > 20_000, "only {shorter} were shorter");
        assert_eq!(separator(b"abc", 5, None, &mut scratch), (&b"abc"[..], 0));
    }
}
