//! The search beyond an invalid frame: was it a torn tail, or damage? (R3)
//!
//! Purpose: records that were not synced reach the disk in any order, so whole records beyond a
//! torn one are ordinary. But each states the record up to which all was durable when it was
//! written: if that covers the invalid one, durable data is gone.
//! Invariants: the work is bounded by a multiple of the log's size, whatever the bytes are: an
//! offset where a frame may start costs some 0.1 us, however long that frame would be, and no call
//! of the medium. Memory is bounded by two frames.
//! Thread safety: reads only.
//!
//! A frame is found by trying every offset where one can start. Old frames of recycled files carry
//! lower sequence numbers (same generation) or fail their checksum (others). User values can look
//! like the starts of any number of frames, so computing the checksum of each would take forever:
//! the checksum of a range follows from those of all bytes before its start and before its end.

use std::sync::Arc;

use adamant_wire::checksum::{Advance, crc32c};
use adamant_wire::frame::{
    self, FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, Kind,
};
use adamant_wire::le;

use crate::error::Result;
use crate::journal::records::chain::End;
use crate::journal::records::files::Used;
use crate::journal::records::layout::LOG_HEAD_BYTES;
use crate::journal::records::log_file::LogFile;
use crate::journal::records::record::CommitHead;

/// Bytes searched at once.
const SEARCH_BYTES: usize = 1 << 20;
/// Bytes behind these that a frame may have which begins in them.
const BEHIND_BYTES: usize = FRAME_HEADER_BYTES + FRAME_PAYLOAD_BYTES_MAX;
/// Bytes without a frame that are skipped at once.
const SKIP_BYTES: usize = 256;
/// Offset of the kind in a frame's header.
const KIND_AT: usize = 11;
/// Sequence numbers beyond the expected one that are plausible: a log of 1 TiB of empty records.
const SEQUENCE_REACH: u64 = 1 << 36;
/// The running checksum is kept at each multiple of this many bytes: 128 KiB of them.
const CHECKSUM_BYTES: usize = 64;

/// The finding beyond an invalid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::journal) enum Beyond {
    /// No record says that the invalid one was durable.
    Nothing,
    /// A record says so: its sequence number.
    LaterRecord(u64),
}

/// Searches for a record that proves record `sequence` to have been durable: from the end of the
/// chain on, in that file and all later ones, and in those that lost their header. O(log).
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn search(
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
    let search = Search { seed, sequence, advance: Advance::new() };
    for (file, start) in places {
        let found = search.file(file, start.max(LOG_HEAD_BYTES))?;
        if found != Beyond::Nothing {
            return Ok(found);
        }
    }
    Ok(Beyond::Nothing)
}

/// Whether no frame starts in the next `SKIP_BYTES` bytes, because there are zeros where its kind
/// would be. Most of a log was never written, or only with zeros: 20 times as fast as trying every
/// fourth byte.
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
        let mut position = start.next_multiple_of(FRAME_ALIGN_BYTES as u64);
        while file.bytes.saturating_sub(position) >= FRAME_HEADER_BYTES as u64 {
            let left = (file.bytes - position) as usize;
            let searched = left.min(SEARCH_BYTES);
            piece.resize(searched, 0);
            file.file.read_with_lost_at(&mut piece, position)?;
            let (mut at, mut checksums) = (0, None);
            while at + FRAME_HEADER_BYTES <= searched {
                if at.is_multiple_of(SKIP_BYTES) && has_no_kind(&piece[at..searched]) {
                    at += SKIP_BYTES;
                    continue;
                }
                if let Some(len) = self.promising(&piece[at..], left - at) {
                    let checksums = match &checksums {
                        Some(checksums) => checksums,
                        None => {
                            let end = left.min(searched + BEHIND_BYTES);
                            piece.resize(end, 0);
                            let behind = position + searched as u64;
                            file.file.read_with_lost_at(&mut piece[searched..], behind)?;
                            checksums.insert(checksums_before(&piece))
                        }
                    };
                    let found = self.verify(checksums, &piece, at, len);
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

    /// Bytes of the payload of the commit frame that may start here, if its header allows it.
    /// Cheap: this is asked for every fourth byte of a log.
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

    /// The verdict of a commit frame at an offset, if it is one: `len` is the length of its
    /// payload, and all of it is in the piece.
    fn verify(&self, checksums: &[u32], piece: &[u8], start: usize, len: usize) -> Beyond {
        let (summed, payload) = (start + 4, start + FRAME_HEADER_BYTES);
        let (end, frame_end) = (payload + len, start + frame::frame_bytes(len));
        let before = |place: usize| {
            let known = place / CHECKSUM_BYTES;
            crc32c(checksums[known], &piece[known * CHECKSUM_BYTES..place])
        };
        let advanced = self.advance.by(self.seed ^ before(summed), (end - summed) as u32);
        let is_sound = le::u32_at(piece, start) == Some(advanced ^ before(end));
        if !is_sound {
            return Beyond::Nothing;
        }
        let (Some(head), Some(sequence)) =
            (CommitHead::take(&mut &piece[payload..end]), le::u64_at(piece, start + 12))
        else {
            return Beyond::Nothing;
        };
        let proves = sequence.saturating_sub(head.lag) >= self.sequence;
        let is_whole = piece[end..frame_end].iter().all(|byte| *byte == 0);
        if is_whole && proves { Beyond::LaterRecord(sequence) } else { Beyond::Nothing }
    }
}

/// The checksums of all bytes before each multiple of `CHECKSUM_BYTES`.
fn checksums_before(piece: &[u8]) -> Vec<u32> {
    let mut checksums = Vec::with_capacity(piece.len() / CHECKSUM_BYTES + 1);
    checksums.push(0);
    let mut crc = 0;
    for bytes in piece.chunks_exact(CHECKSUM_BYTES) {
        crc = crc32c(crc, bytes);
        checksums.push(crc);
    }
    checksums
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
