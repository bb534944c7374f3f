//! Looking beyond an invalid frame: was it a torn tail, or damage? (R3)
//!
//! Purpose: records that were not synced reach the disk in any order, so whole records beyond a
//! torn one are ordinary. But each says up to which record all was durable when it was written:
//! if that covers the invalid one, something durable is gone.
//! Invariants: the work is bounded by a multiple of the log's size, whatever the bytes are.
//! Thread safety: reads only.
//!
//! A frame is found by trying every place where one can start. Old frames of recycled files carry
//! lower sequence numbers (same generation) or fail their checksum (others).

use std::sync::Arc;

use adamant_wire::frame::{
    self, FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Kind,
};
use adamant_wire::le;

use super::chain::End;
use super::files::Used;
use super::layout::LOG_HEAD_BYTES;
use super::log_file::LogFile;
use super::record::CommitHead;
use crate::error::Result;

/// Bytes searched at once.
const SEARCH_BYTES: usize = 1 << 20;
/// Bytes without a frame that are passed over at once.
const SKIP_BYTES: usize = 256;
/// The byte of a frame's header that is its kind.
const KIND_AT: usize = 11;
/// Sequence numbers beyond the expected one that are believed: a log of 1 TiB of empty records.
const SEQUENCE_REACH: u64 = 1 << 36;
/// Bytes checksummed at most, for each byte of log...
const WORK_FACTOR: u64 = 4;
/// ...and beside that.
const WORK_BYTES: u64 = 64 << 20;

/// What lies beyond an invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// No record that says that the invalid one was durable.
    Nothing,
    /// A record that says so: its sequence number.
    LaterRecord(u64),
    /// Too much that looks like frames, and is none: nobody writes such a log.
    TooMuch,
}

/// Looks for a record that proves record `sequence` to have been durable: from the end of the
/// chain on, in that file and all later ones, and in those that lost their header. O(log).
///
/// # Errors
/// Those of the medium.
pub(super) fn search(
    files: &[Used],
    headless: &[Arc<LogFile>],
    seed: u32,
    end: &End,
    sequence: u64,
) -> Result<Beyond> {
    let later = files.iter().filter(|used| used.ordinal >= end.ordinal).map(|used| {
        let start = if used.ordinal == end.ordinal { end.offset } else { 0 };
        (&used.file, start)
    });
    let places = later.chain(headless.iter().map(|file| (file, 0)));
    let bytes = places.clone().map(|(file, _)| file.bytes).sum::<u64>();
    let mut search = Search { seed, sequence, work_left: bytes * WORK_FACTOR + WORK_BYTES };
    for (file, start) in places {
        let found = search.file(file, start.max(LOG_HEAD_BYTES))?;
        if found != Beyond::Nothing {
            return Ok(found);
        }
    }
    Ok(Beyond::Nothing)
}

/// Whether no frame starts in the next `SKIP_BYTES` bytes, because where its kind would be there are
/// zeros. Most of a log was never written, or only with zeros: 20 times as fast as looking at
/// every fourth byte.
fn has_no_kind(bytes: &[u8]) -> bool {
    const { assert!(Kind::Part as u32 != 0 && Kind::Commit as u32 != 0) };
    let kinds = KIND_AT..KIND_AT + SKIP_BYTES;
    bytes.get(kinds).is_some_and(|kinds| *kinds == [0; SKIP_BYTES])
}

struct Search {
    seed: u32,
    sequence: u64,
    work_left: u64,
}

impl Search {
    fn file(&mut self, file: &LogFile, start: u64) -> Result<Beyond> {
        let mut piece = Vec::new();
        let mut frame = Vec::new();
        let mut position = start.next_multiple_of(FRAME_ALIGN_BYTES as u64);
        while file.bytes.saturating_sub(position) >= FRAME_HEADER_BYTES as u64 {
            let left = (file.bytes - position) as usize;
            piece.resize(left.min(SEARCH_BYTES), 0);
            file.file.read_at(&mut piece, position)?;
            let mut at = 0;
            while at + FRAME_HEADER_BYTES <= piece.len() {
                if at.is_multiple_of(SKIP_BYTES) && has_no_kind(&piece[at..]) {
                    at += SKIP_BYTES;
                    continue;
                }
                let Some(bytes) = self.promising(&piece[at..], left - at) else {
                    at += FRAME_ALIGN_BYTES;
                    continue;
                };
                if bytes as u64 > self.work_left {
                    return Ok(Beyond::TooMuch);
                }
                self.work_left -= bytes as u64;
                frame.resize(bytes, 0);
                file.file.read_at(&mut frame, position + at as u64)?;
                if let Some(found) = self.judge(&frame) {
                    return Ok(found);
                }
                at += FRAME_ALIGN_BYTES;
            }
            position += at as u64;
        }
        Ok(Beyond::Nothing)
    }

    /// Bytes of the commit frame that may start here, if its header allows it. Cheap: this is
    /// asked for every fourth byte of a log.
    fn promising(&self, bytes: &[u8], left: usize) -> Option<usize> {
        let len_and_kind = le::u32_at(bytes, 8)?;
        if len_and_kind >> 24 != Kind::Commit as u32 {
            return None;
        }
        let sequence = le::u64_at(bytes, 12)?;
        if sequence <= self.sequence || sequence - self.sequence > SEQUENCE_REACH {
            return None;
        }
        let len = (len_and_kind & 0x00FF_FFFF) as usize;
        let taken = frame::frame_bytes(len);
        (len <= FRAME_PAYLOAD_BYTES_MAX && taken <= left).then_some(taken)
    }

    fn judge(&self, bytes: &[u8]) -> Option<Beyond> {
        let (header, mut payload, _) = frame::parse(self.seed, bytes).ok()?;
        let head = CommitHead::take(&mut payload)?;
        let durable = header.sequence.saturating_sub(head.lag);
        (durable >= self.sequence).then_some(Beyond::LaterRecord(header.sequence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_is_passed_over() {
        for start in (0..4 * SKIP_BYTES).step_by(FRAME_ALIGN_BYTES) {
            let mut piece = vec![0; 8 * SKIP_BYTES];
            piece[start + KIND_AT] = Kind::Commit as u8;
            let within = start / SKIP_BYTES * SKIP_BYTES;
            assert!(!has_no_kind(&piece[within..]), "a frame at {start}");
            assert!(has_no_kind(&piece[within + 2 * SKIP_BYTES..]), "nothing behind {start}");
        }
        let mut frame = [0; FRAME_HEADER_BYTES];
        frame[8..12].copy_from_slice(&((Kind::Commit as u32) << 24).to_le_bytes());
        assert_eq!(frame[KIND_AT], Kind::Commit as u8, "its place, as `promising` reads it");
        assert!(!has_no_kind(&[0; SKIP_BYTES]), "what is cut off is looked at");
    }
}
