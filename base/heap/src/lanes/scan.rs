//! Reading entries: those of a lane, from its start, and what lies behind them.
//!
//! Purpose: find what the watermark does not cover; tell an entry whose fence never completed,
//! which is an ordinary crash, from one that is damaged.
//! Invariants: work is bounded by the bytes of the lane, whatever they are.
//! Thread safety: runs alone, when a heap is opened.
//!
//! In a lane an entry is written only after the fence of the one before it. So an invalid entry
//! that a valid one of this round follows was durable once: it is damaged. What is left of the
//! round before is covered by the watermark, all of it.

use std::path::{Path, PathBuf};

use adamant_wire::checksum::{Advance, crc32c};
use adamant_wire::le;

use super::entry::{Head, entry_span, parse, peek};
use super::lanes_file::ADVICE;
use super::layout::{ENTRY_ALIGN, ENTRY_HEADER_BYTES};
use super::mapped::Mapped;
use crate::error::{Error, Result};

/// Bytes checksummed in search of entries behind the end of a lane, beside four times its bytes:
/// beyond that, nobody but an attacker wrote it, and it counts as damage.
const SEARCH_BYTES_MAX: u64 = 64 << 20;
/// A checksum is kept for so many bytes of a lane: a sixteenth of its size.
const SUM_BYTES: usize = 64;

/// Where entries are read from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) mapped: &'a Mapped,
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) path: &'a Path,
}

/// An entry that the watermark does not cover.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) head: Head,
    pub(super) changes: &'a [u8],
    pub(super) path: &'a Path,
    /// Where in that file the entry begins.
    pub(super) offset: u64,
}

impl Found<'_> {
    /// Damage of this entry.
    pub(super) fn damaged(&self, what: impl std::fmt::Display) -> Error {
        Error::Damaged {
            file: PathBuf::from(self.path),
            offset: self.offset,
            what: format!("{what} (in entry {}); {ADVICE}", self.head.sequence),
        }
    }
}

/// Adds all entries of a lane beyond the watermark to `found`. Returns where they end: bytes from
/// the start of the lane.
///
/// # Errors
/// `Error::Damaged` for an invalid entry that must have been durable.
pub(super) fn scan<'a>(
    source: &Source<'a>,
    seed: u32,
    watermark: u64,
    found: &mut Vec<Found<'a>>,
) -> Result<u64> {
    let bytes = source.mapped.bytes(source.start, source.len);
    let (mut at, mut last) = (0, 0);
    while let Some((head, changes)) = parse(seed, &bytes[at..]) {
        if head.sequence <= last {
            break;
        }
        last = head.sequence;
        // The changes end where the entry does.
        let start = changes.as_ptr().addr() - bytes.as_ptr().addr();
        let next = entry_span((start + changes.len()) as u64) as usize;
        if head.sequence > watermark {
            let offset = source.start + at as u64;
            found.push(Found { head, changes, path: source.path, offset });
        }
        at = next.min(bytes.len());
    }
    let Some(later) = search(bytes, at, seed, last.max(watermark)) else {
        return Ok(at as u64);
    };
    Err(Error::Damaged {
        file: source.path.into(),
        offset: source.start + at as u64,
        what: format!("expected an entry of the lane, found none; {later}; {ADVICE}"),
    })
}

/// Adds every entry beyond the watermark to `found`, wherever one can begin: also what lies behind
/// damage. Work is bounded by the bytes; whether all of them were looked at.
pub(super) fn scan_all<'a>(
    source: &Source<'a>,
    seed: u32,
    watermark: u64,
    found: &mut Vec<Found<'a>>,
) -> bool {
    let bytes = source.mapped.bytes(source.start, source.len);
    let mut left = bytes.len() as u64 * 4 + SEARCH_BYTES_MAX;
    let mut sums = None;
    let mut at = 0;
    while at + ENTRY_HEADER_BYTES <= bytes.len() {
        let mut span = ENTRY_ALIGN;
        if let Some((_, sequence, len)) = peek(&bytes[at..])
            && sequence > watermark
            && sums.get_or_insert_with(|| Sums::of(bytes)).fit(seed, at, len)
        {
            let Some(rest) = left.checked_sub(len as u64) else { return false };
            left = rest;
            if let Some((head, changes)) = parse(seed, &bytes[at..]) {
                let offset = source.start + at as u64;
                found.push(Found { head, changes, path: source.path, offset });
                // What lies within it is somebody's bytes.
                span = entry_span(len as u64);
            }
        }
        at += span as usize;
    }
    true
}

/// Looks for an entry above `last` behind `at`, and says what was found.
fn search(bytes: &[u8], at: usize, seed: u32, last: u64) -> Option<String> {
    let mut left = bytes.len() as u64 * 4 + SEARCH_BYTES_MAX;
    let mut sums = None;
    let mut next = at + ENTRY_ALIGN as usize;
    while next + ENTRY_HEADER_BYTES <= bytes.len() {
        if let Some((_, sequence, len)) = peek(&bytes[next..])
            && sequence > last
            && sums.get_or_insert_with(|| Sums::of(bytes)).fit(seed, next, len)
        {
            let Some(rest) = left.checked_sub(len as u64) else {
                return Some("more entries than anybody writes follow".into());
            };
            left = rest;
            if parse(seed, &bytes[next..]).is_some() {
                return Some(format!("entry {sequence} behind it proves that it was there"));
            }
        }
        next += ENTRY_ALIGN as usize;
    }
    None
}

/// Checksums of all that lies before places of a lane. What users store can look like the starts of any
/// number of entries: whether one is sound takes the same time for every length.
struct Sums<'a> {
    bytes: &'a [u8],
    /// Before every multiple of `SUM_BYTES`.
    before: Vec<u32>,
    advance: Advance,
}

impl<'a> Sums<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut crc = 0;
        let sums = bytes.chunks(SUM_BYTES).map(|bytes| {
            crc = crc32c(crc, bytes);
            crc
        });
        Self { bytes, before: std::iter::once(0).chain(sums).collect(), advance: Advance::new() }
    }

    fn before(&self, at: usize) -> u32 {
        let start = at / SUM_BYTES * SUM_BYTES;
        crc32c(self.before[at / SUM_BYTES], &self.bytes[start..at])
    }

    /// Whether the bytes from a place on have the checksum that they begin with.
    fn fit(&self, seed: u32, at: usize, len: usize) -> bool {
        let (summed, end) = (at + size_of::<u32>(), at + len);
        let crc = self.advance.by(seed ^ self.before(summed), (end - summed) as u32);
        le::u32_at(self.bytes, at) == Some(crc ^ self.before(end))
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::build;
    use super::super::layout::KIND_COMMIT;
    use super::*;
    use crate::lanes::layout::stamp;

    /// Of a user's value, torn by a power cut: once so many of them were called damage.
    #[test]
    fn what_looks_like_entries_is_none_and_an_entry_behind_it_is_found() {
        const SEED: u32 = 99;
        let mut look_alike = vec![0x5A; ENTRY_ALIGN as usize];
        look_alike[4..8].copy_from_slice(&500_000_u32.to_le_bytes());
        look_alike[8..16].copy_from_slice(&stamp(KIND_COMMIT, 50).to_le_bytes());
        let mut bytes = look_alike.repeat(20_000);
        assert_eq!(search(&bytes, 0, SEED, 7), None);
        let mut entry = Vec::new();
        let head = Head { kind: KIND_COMMIT, sequence: 8, ..Head::default() };
        build(&mut entry, SEED, &head, &[1; 40]);
        let at = 64 * 15_000;
        bytes[at..at + entry.len()].copy_from_slice(&entry);
        assert!(search(&bytes, 0, SEED, 7).is_some_and(|found| found.contains("entry 8")));
        assert_eq!(search(&bytes, 0, SEED, 8), None, "one that is known already");
    }
}
