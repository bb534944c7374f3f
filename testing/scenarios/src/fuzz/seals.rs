//! Log files as bytes (`docs/format/log.md`): the locations of checksums, and their correction
//! after changes.

use std::ops::Range;

use adamant_wire::checksum::crc32c;
use adamant_wire::frame::{FRAME_HEADER_BYTES, log_seed, parse};

/// Bytes of the header of a log file, of those before its checksum, and the offset of its first
/// frame.
const LOG_HEADER_SUMMED: usize = 56;
const LOG_HEAD_BYTES: usize = 512;
/// The bytes that identify its store and generation.
const IDENTITY: Range<usize> = 12..36;

/// A log file, with the ranges of its checksummed parts.
pub(super) struct Sealed {
    is_cut: bool,
    pub(super) bytes: Vec<u8>,
    /// The header first, then frames.
    pub(super) spans: Vec<(usize, usize)>,
}

impl Sealed {
    /// Finds the intact parts.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let mut sealed = Self { is_cut: false, bytes, spans: Vec::new() };
        if sealed.bytes.len() >= LOG_HEADER_SUMMED + 4 {
            sealed.spans.push((0, LOG_HEADER_SUMMED + 4));
            sealed.find_frames();
        }
        sealed
    }

    /// The seed of its checksums.
    fn seed(&self) -> u32 {
        let (uuid, generation) = (&self.bytes[12..28], &self.bytes[28..36]);
        let uuid = uuid.try_into().expect("16 bytes");
        log_seed(uuid, u64::from_le_bytes(generation.try_into().expect("8 bytes")))
    }

    fn find_frames(&mut self) {
        let (seed, mut at) = (self.seed(), LOG_HEAD_BYTES);
        while at < self.bytes.len()
            && let Ok((.., taken)) = parse(seed, &self.bytes[at..])
        {
            self.spans.push((at, at + taken));
            at += taken;
        }
    }

    /// The end of the frame at an offset, according to the frame itself.
    fn end_of(&self, at: usize) -> Option<usize> {
        let len = FRAME_HEADER_BYTES + (self.u32_at(at + 8)? & 0xff_ffff) as usize;
        (at + len <= self.bytes.len()).then_some(at + len)
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at + 4)?;
        bytes.try_into().ok().map(u32::from_le_bytes)
    }

    fn put(&mut self, at: usize, number: u32) {
        self.bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }

    /// Truncates it at an offset, or after its header.
    pub(super) fn cut(&mut self, at: usize) {
        let at = at.max(self.spans.first().map_or(0, |span| span.1));
        self.bytes.truncate(at);
        self.spans.retain(|span| span.1 <= at);
        self.is_cut = true;
    }

    /// Whether it was truncated.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Gives it the identity of another one's store.
    pub(super) fn belong_to(&mut self, other: &Sealed) {
        if !self.spans.is_empty() && !other.spans.is_empty() {
            self.bytes[IDENTITY].copy_from_slice(&other.bytes[IDENTITY]);
        }
    }

    /// Corrects all checksums, and the chain of its frames.
    pub(super) fn seal(&mut self) {
        let Some((&(_, header_end), spans)) = self.spans.split_first() else { return };
        let (spans, summed) = (spans.to_vec(), header_end - 4);
        let seed = self.seed();
        let mut previous = seed;
        self.put(44, seed);
        let checksum = crc32c(0, &self.bytes[..summed]);
        self.put(summed, checksum);
        for (start, end) in spans {
            let end = self.end_of(start).unwrap_or(end);
            self.put(start + 4, previous);
            previous = crc32c(seed, &self.bytes[start + 4..end]);
            self.put(start, previous);
        }
    }
}
