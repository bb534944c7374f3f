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

use super::entry::{Head, entry_span, parse, peek};
use super::lanes_file::ADVICE;
use super::layout::{ENTRY_ALIGN, ENTRY_HEADER_BYTES};
use super::mapped::Mapped;
use crate::error::{Error, Result};

/// Bytes checksummed in search of entries behind the end of a lane, beside four times its bytes:
/// beyond that, nobody but an attacker wrote it, and it counts as damage.
const SEARCH_BYTES_MAX: u64 = 64 << 20;

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
    let mut at = 0;
    while at + ENTRY_HEADER_BYTES <= bytes.len() {
        let mut span = ENTRY_ALIGN;
        if let Some((_, sequence, len)) = peek(&bytes[at..])
            && sequence > watermark
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
    let mut next = at + ENTRY_ALIGN as usize;
    while next + ENTRY_HEADER_BYTES <= bytes.len() {
        if let Some((_, sequence, len)) = peek(&bytes[next..])
            && sequence > last
        {
            let Some(rest) = left.checked_sub(len as u64) else {
                return Some("too much that looks like entries follows".into());
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
