//! Looking beyond an invalid frame: was it a torn tail, or damage? (R3)
//!
//! Purpose: records that were not synced reach the disk in any order, so whole records beyond a
//! torn one are ordinary. But each says up to which record all was durable when it was written:
//! if that covers the invalid one, something durable is gone.
//! Invariants: the work is bounded by a multiple of the log's size, whatever the bytes are: a place
//! where a frame may start costs some 2 us, however long that frame would be.
//! Thread safety: reads only.
//!
//! A frame is found by trying every place where one can start. Old frames of recycled files carry
//! lower sequence numbers (same generation) or fail their checksum (others). What users store can look
//! like the starts of any number of frames, so that to sum each of them up would take for ever: the
//! checksum of a range follows from those of all that lies before its start and before its end.

use std::sync::Arc;

use adamant_wire::checksum::{Advance, crc32c};
use adamant_wire::frame::{
    self, FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Kind,
};
use adamant_wire::le;
use adamant_wire::mutants::is_planted;

use super::chain::End;
use super::files::Used;
use super::layout::LOG_HEAD_BYTES;
use super::log_file::LogFile;
use super::record::{COMMIT_HEAD_BYTES_MAX, CommitHead};
use crate::error::Result;

/// Bytes searched at once.
const SEARCH_BYTES: usize = 1 << 20;
/// Bytes without a frame that are passed over at once.
const SKIP_BYTES: usize = 256;
/// The byte of a frame's header that is its kind.
const KIND_AT: usize = 11;
/// Sequence numbers beyond the expected one that are believed: a log of 1 TiB of empty records.
const SEQUENCE_REACH: u64 = 1 << 36;
/// The checksum of all that lies before is kept for every so many bytes of a file: 128 KiB for the
/// largest.
const SUM_BYTES: u64 = 512;

/// What lies beyond an invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// No record that says that the invalid one was durable.
    Nothing,
    /// A record that says so: its sequence number.
    LaterRecord(u64),
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
    let headless =
        if is_planted("R3.files-without-header-are-passed-over") { &[] } else { headless };
    let places = later.chain(headless.iter().map(|file| (file, 0)));
    let search = Search { seed, sequence, advance: Advance::new() };
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
    advance: Advance,
}

impl Search {
    fn file(&self, file: &LogFile, start: u64) -> Result<Beyond> {
        let mut piece = Vec::new();
        let mut sums = None;
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
                if let Some(len) = self.promising(&piece[at..], left - at) {
                    let sums = match &sums {
                        Some(sums) => sums,
                        None => sums.insert(Sums::of(file)?),
                    };
                    let found = self.judge(sums, position + at as u64, &piece[at..], len)?;
                    if found != Beyond::Nothing {
                        return Ok(found);
                    }
                }
                at += FRAME_ALIGN_BYTES;
            }
            position += at as u64;
        }
        Ok(Beyond::Nothing)
    }

    /// Bytes of the payload of the commit frame that may start here, if its header allows it. Cheap: this is
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
        (len <= FRAME_PAYLOAD_BYTES_MAX && frame::frame_bytes(len) <= left).then_some(len)
    }

    /// What a commit frame at a place says, if it is one: `bytes` are the first of it, `len` those of
    /// its payload.
    fn judge(&self, sums: &Sums<'_>, start: u64, bytes: &[u8], len: usize) -> Result<Beyond> {
        let (summed, end) = (start + 4, start + (FRAME_HEADER_BYTES + len) as u64);
        let (before, until) = (sums.before(summed)?, sums.before(end)?);
        let expected = self.advance.by(self.seed ^ before, (end - summed) as u32) ^ until;
        let is_sound = le::u32_at(bytes, 0) == Some(expected);
        if !is_sound && !is_planted("checksum.log-frame-beyond") {
            return Ok(Beyond::Nothing);
        }
        let mut padding = [0; FRAME_ALIGN_BYTES];
        let padding = &mut padding[..frame::frame_bytes(len) - FRAME_HEADER_BYTES - len];
        sums.file.file.read_at(padding, end)?;
        let mut head = [0; COMMIT_HEAD_BYTES_MAX];
        let head = &mut head[..len.min(COMMIT_HEAD_BYTES_MAX)];
        sums.file.file.read_at(head, start + FRAME_HEADER_BYTES as u64)?;
        let (Some(head), Some(sequence)) = (CommitHead::take(&mut &*head), le::u64_at(bytes, 12))
        else {
            return Ok(Beyond::Nothing);
        };
        let proves = sequence.saturating_sub(head.lag) >= self.sequence
            || is_planted("R3.every-later-record-is-proof");
        let is_whole = padding.iter().all(|byte| *byte == 0);
        Ok(if is_whole && proves { Beyond::LaterRecord(sequence) } else { Beyond::Nothing })
    }
}

/// Checksums of all that lies before places of a file.
struct Sums<'f> {
    file: &'f LogFile,
    /// Before every multiple of `SUM_BYTES`.
    before: Vec<u32>,
}

impl<'f> Sums<'f> {
    /// Reads the file once.
    fn of(file: &'f LogFile) -> Result<Self> {
        let (mut before, mut crc) = (vec![0], 0);
        let mut piece = Vec::new();
        let mut position = 0;
        while position < file.bytes {
            piece.resize((file.bytes - position).min(SEARCH_BYTES as u64) as usize, 0);
            file.file.read_at(&mut piece, position)?;
            for bytes in piece.chunks(SUM_BYTES as usize) {
                crc = crc32c(crc, bytes);
                before.push(crc);
            }
            position += piece.len() as u64;
        }
        Ok(Self { file, before })
    }

    /// Of all before a place in the file.
    fn before(&self, position: u64) -> Result<u32> {
        let crc = self.before[(position / SUM_BYTES) as usize];
        let mut bytes = [0; SUM_BYTES as usize];
        let bytes = &mut bytes[..(position % SUM_BYTES) as usize];
        self.file.file.read_at(bytes, position - bytes.len() as u64)?;
        Ok(crc32c(crc, bytes))
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
