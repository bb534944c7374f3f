//! Frames: the units of a log.
//!
//! Purpose: to write a frame, and to tell a whole one from anything else. The journal interprets
//! frames together (records, the chain, torn tail or damage).
//! Invariants: a frame takes a multiple of 4 bytes; `append` and `parse` are inverse; any single
//! flipped bit of a frame makes `parse` fail.
//! Thread safety: pure functions.
//!
//! ```text
//! offset size
//!      0    4  crc       CRC32C of bytes 4 .. 20 + len, seeded with the log's seed
//!      4    4  previous  crc of the frame before it in the log's chain
//!      8    3  len       payload bytes, at most FRAME_PAYLOAD_BYTES_MAX
//!     11    1  kind      1 Part, 2 Commit, 3 Switch
//!     12    8  sequence  of the record the frame belongs to (Switch: of the record that follows)
//!     20  len  payload
//!          0-3 zeros to a multiple of 4
//! ```
//!
//! The padding is outside the checksum and must be zero. Keeping it out lets a reader check a
//! frame's CRC over exactly the bytes that its writer meant; requiring zeros closes the gap.

use std::fmt;

use crate::checksum::crc32c;
use crate::le;

/// Bytes of a frame before its payload.
pub const FRAME_HEADER_BYTES: usize = 20;
/// Bytes of the largest payload: a frame with its header is at most 1 MiB.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = (1 << 20) - FRAME_HEADER_BYTES;
/// A frame starts and ends at a multiple of this many bytes.
pub const FRAME_ALIGN_BYTES: usize = 4;

const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(FRAME_ALIGN_BYTES));
const _: () = assert!(FRAME_PAYLOAD_BYTES_MAX.is_multiple_of(FRAME_ALIGN_BYTES));
const _: () = assert!(FRAME_PAYLOAD_BYTES_MAX < 1 << 24, "the length field has 3 bytes");

/// The role of a frame in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A part of a record that continues in the next frame.
    Part = 1,
    /// The last frame of a record: with it the record counts.
    Commit = 2,
    /// The chain continues in the next log file.
    Switch = 3,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Part),
            2 => Some(Self::Commit),
            3 => Some(Self::Switch),
            _ => None,
        }
    }
}

/// The first 20 bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// CRC32C of all that follows it, up to the end of the payload.
    pub crc: u32,
    /// `crc` of the frame before it in the chain.
    pub previous: u32,
    /// Bytes of the payload.
    pub len: u32,
    /// The role of the frame in its record.
    pub kind: Kind,
    /// Sequence number of the record.
    pub sequence: u64,
}

/// The reason why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// The bytes end before the frame does.
    Short {
        /// Bytes that it takes, as far as they can be known, counted from the frame's start.
        needed: usize,
    },
    /// The kind is unknown.
    Kind {
        /// The byte found.
        found: u8,
    },
    /// The payload would be longer than any frame's.
    Length {
        /// Payload bytes found, at most `FRAME_PAYLOAD_BYTES_MAX` expected.
        found: usize,
    },
    /// The checksum does not match.
    Checksum {
        /// Computed over the bytes.
        expected: u32,
        /// Stored in the frame.
        found: u32,
    },
    /// The padding is not zero.
    Padding,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { needed } => write!(f, "the bytes end within a frame of {needed} bytes"),
            Self::Kind { found } => write!(f, "expected a frame of kind 1, 2 or 3, found {found}"),
            Self::Length { found } => write!(
                f,
                "expected a payload of at most {FRAME_PAYLOAD_BYTES_MAX} bytes, found {found}"
            ),
            Self::Checksum { expected, found } => {
                write!(f, "expected the checksum {expected:#010x}, found {found:#010x}")
            }
            Self::Padding => f.write_str("expected zeros after the payload, found other bytes"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The seed of all checksums of a log: differs between pools and between generations, so that old
/// records in recycled log files, and logs of other pools, are never taken for ours.
pub fn log_seed(uuid: &[u8; 16], generation: u64) -> u32 {
    crc32c(crc32c(0, uuid), &generation.to_le_bytes())
}

/// Bytes of a frame with `payload_bytes` of payload: header and padding included.
pub const fn frame_bytes(payload_bytes: usize) -> usize {
    (FRAME_HEADER_BYTES + payload_bytes).next_multiple_of(FRAME_ALIGN_BYTES)
}

/// Appends a frame to `out` and returns its checksum, the `previous` of the frame that follows.
/// The payload is the concatenation of the parts. Allocates only if `out` must grow.
///
/// # Panics
/// If the parts together exceed `FRAME_PAYLOAD_BYTES_MAX`: the caller cuts records into frames.
pub fn append(
    out: &mut Vec<u8>,
    seed: u32,
    previous: u32,
    kind: Kind,
    sequence: u64,
    payload: &[&[u8]],
) -> u32 {
    let len = payload.iter().map(|part| part.len()).sum::<usize>();
    assert!(len <= FRAME_PAYLOAD_BYTES_MAX, "a payload of {len} bytes does not fit a frame");
    let start = out.len();
    out.reserve(frame_bytes(len));
    let mut header = [0; FRAME_HEADER_BYTES];
    header[4..8].copy_from_slice(&previous.to_le_bytes());
    header[8..12].copy_from_slice(&(len as u32 | u32::from(kind as u8) << 24).to_le_bytes());
    header[12..20].copy_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&header);
    for part in payload {
        out.extend_from_slice(part);
    }
    let crc = crc32c(seed, &out[start + 4..]);
    out[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    let padding = frame_bytes(len) - FRAME_HEADER_BYTES - len;
    out.extend_from_slice(&[0; FRAME_ALIGN_BYTES][..padding]);
    crc
}

/// Reads the frame at the start of `bytes`: its header, its payload and the bytes it takes with its
/// padding. The checksum is verified with the stored `previous`, so a frame can be verified alone;
/// the caller compares `previous` with its chain.
///
/// # Errors
/// As `FrameError` says; `Short` when more bytes could make it a frame.
pub fn parse(seed: u32, bytes: &[u8]) -> Result<(Header, &[u8], usize), FrameError> {
    let (header, len) = parse_header(bytes)?;
    let taken = frame_bytes(len);
    let Some(frame) = bytes.get(..taken) else {
        return Err(FrameError::Short { needed: taken });
    };
    let (summed, padding) = frame.split_at(FRAME_HEADER_BYTES + len);
    let expected = crc32c(seed, &summed[4..]);
    if expected != header.crc {
        return Err(FrameError::Checksum { expected, found: header.crc });
    }
    if padding.iter().any(|&byte| byte != 0) {
        return Err(FrameError::Padding);
    }
    Ok((header, &summed[FRAME_HEADER_BYTES..], taken))
}

/// The header at the start of `bytes` and the payload's length; no checksum is verified yet.
fn parse_header(bytes: &[u8]) -> Result<(Header, usize), FrameError> {
    const SHORT: FrameError = FrameError::Short { needed: FRAME_HEADER_BYTES };
    let crc = le::u32_at(bytes, 0).ok_or(SHORT)?;
    let previous = le::u32_at(bytes, 4).ok_or(SHORT)?;
    let len_and_kind = le::u32_at(bytes, 8).ok_or(SHORT)?;
    let sequence = le::u64_at(bytes, 12).ok_or(SHORT)?;
    let found = (len_and_kind >> 24) as u8;
    let kind = Kind::from_byte(found).ok_or(FrameError::Kind { found })?;
    let len = len_and_kind & 0x00FF_FFFF;
    if len as usize > FRAME_PAYLOAD_BYTES_MAX {
        return Err(FrameError::Length { found: len as usize });
    }
    Ok((Header { crc, previous, len, kind, sequence }, len as usize))
}
