//! Salvage of a damaged buffer.
//!
//! Purpose: a damaged record costs only itself, not the keyspace. The records after it are found
//! again, because a checksum verifies each together with its location.
//! Invariants: nothing is handed on that no checksum verifies. The work is bounded by the bytes
//! that exist, whatever their content.
//! Thread safety: pure functions, on a heap that does not change.

use std::ops::Range;

use adamant_heap::Salvage;
use adamant_heap::access::Read;

use super::buffer::{chunks_and_end, place};
use super::record::{END_BYTES, Form, Record};
use crate::error::Result;

/// A search tries every byte as the start of a record. It may compute checksums over this many
/// times the bytes that it searches: false lengths make it read the same bytes again and again.
const SEARCH_FACTOR: usize = 64;

/// Bytes of a memtable that are damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRecords {
    /// Heap offset.
    pub offset: u64,
    /// Number of bytes; 0 where it is unknown: for a chunk, or for a memtable and the full ones
    /// before it.
    pub bytes: u64,
}

/// Hands on the intact records of a buffer, in the order in which they were appended.
pub(super) fn salvage(
    heap: &Salvage,
    block: u64,
    each: &mut dyn FnMut(Record<'_>) -> Result<()>,
    lost: &mut dyn FnMut(LostRecords),
) -> Result<()> {
    let (chunks, used) = chunks_and_end(heap, block)?;
    for (index, &chunk) in chunks.iter().enumerate() {
        let is_last = index + 1 == chunks.len();
        let (bytes, parts) = heap.whole_parts(chunk).unwrap_or_default();
        let end = if is_last { used as usize } else { bytes };
        let mut chunk = Chunk { buffer: block, chunk, index, is_last, next: 0, is_ended: false };
        for part in parts {
            let part = part.start..part.end.min(end);
            if part.start < part.end && !chunk.is_ended {
                let bytes = heap.part(chunk.chunk, part.start, part.len())?;
                chunk.salvage(bytes, part, each, lost)?;
            }
        }
        // Too short for an end record.
        let is_all = is_last || bytes == 0 || end - chunk.next >= END_BYTES;
        if !chunk.is_ended && (chunk.next < end || bytes == 0) && is_all {
            lost(chunk.lost_until(end));
        }
    }
    Ok(())
}

/// A chunk, and the position in it.
struct Chunk {
    buffer: u64,
    chunk: u64,
    index: usize,
    is_last: bool,
    /// Where the next record should begin.
    next: usize,
    /// Whether its end record was read.
    is_ended: bool,
}

impl Chunk {
    fn lost_until(&self, end: usize) -> LostRecords {
        let bytes = end.saturating_sub(self.next) as u64;
        LostRecords { offset: self.chunk + self.next as u64, bytes }
    }

    /// Whether an end record is at this position.
    fn ends(&self, at: usize, rest: &[u8]) -> bool {
        !self.is_last && rest.starts_with(&place(self.buffer, self.index, at).end())
    }

    /// Reads an undamaged part, the range `part` of the chunk.
    fn salvage(
        &mut self,
        bytes: &[u8],
        part: Range<usize>,
        each: &mut dyn FnMut(Record<'_>) -> Result<()>,
        lost: &mut dyn FnMut(LostRecords),
    ) -> Result<()> {
        let mut at = self.next.max(part.start);
        let mut budget = bytes.len().saturating_mul(SEARCH_FACTOR);
        while at < part.end {
            let rest = &bytes[at - part.start..];
            let is_end = self.ends(at, rest);
            let form = Form::of(rest);
            let proved = form.as_ref().and_then(|form| {
                let record = place(self.buffer, self.index, at).prove(form)?;
                Some((record, form.bytes.len()))
            });
            if is_end || proved.is_some() {
                if at > self.next {
                    lost(self.lost_until(at));
                }
                self.next = at;
                self.is_ended = is_end;
            }
            match proved {
                _ if is_end => return Ok(()),
                Some((record, len)) => {
                    each(record)?;
                    at += len;
                    self.next = at;
                }
                None => match self.search(bytes, part.start, at, &mut budget) {
                    Some(found) => at = found,
                    None => break,
                },
            }
        }
        Ok(())
    }

    /// Where the next record or the end record begins after `at`, where there is none.
    fn search(&self, bytes: &[u8], start: usize, at: usize, budget: &mut usize) -> Option<usize> {
        let begins = |at: usize, budget: &mut usize| {
            let rest = bytes.get(at - start..).filter(|rest| !rest.is_empty())?;
            let form = Form::of(rest);
            *budget = budget.checked_sub(form.as_ref().map_or(0, |form| form.bytes.len()))?;
            let record = form.and_then(|form| place(self.buffer, self.index, at).prove(&form));
            Some(record.is_some() || self.ends(at, rest))
        };
        // Most damage leaves the lengths intact, and a value may contain what looks like a record.
        let behind = Form::of(&bytes[at - start..]).map(|form| at + form.bytes.len());
        if let Some(behind) = behind
            && begins(behind, budget) == Some(true)
        {
            return Some(behind);
        }
        for at in at + 1..start + bytes.len() {
            if begins(at, budget)? {
                return Some(at);
            }
        }
        None
    }
}
