//! The persistent layout of a log file, and nothing volatile. See `docs/format/log.md`.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of every log file in use.
pub(in crate::journal) const LOG_MAGIC: [u8; 8] = *b"ADAMLOG\x01";
/// The format that this code writes: the pool beside it may have tables of doubt.
pub(in crate::journal) const LOG_FORMAT_VERSION: u32 = 2;
/// The oldest format that it reads: beside it a checkpoint alone said which pages may be torn.
pub(in crate::journal) const LOG_FORMAT_VERSION_MIN: u32 = 1;
/// Bytes of a log file before its first frame: one sector, which a disk writes whole or not.
pub(in crate::journal) const LOG_HEAD_BYTES: u64 = 512;
/// Bytes of the smallest log file.
pub(in crate::journal) const LOG_FILE_BYTES_MIN: u64 = 1 << 20;
/// Bytes of the largest log file.
pub(in crate::journal) const LOG_FILE_BYTES_MAX: u64 = 16 << 20;
/// Payload bytes of a frame that this code writes at most. Less than the format allows, because the
/// end of a log file where a frame does not fit is wasted: 1/8 of the smallest at worst.
pub(in crate::journal) const PAYLOAD_BYTES_MAX: usize = 128 << 10;

/// The header of a log file, written when the file is taken into use.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(in crate::journal) struct LogHeader {
    /// `LOG_MAGIC`.
    pub(in crate::journal) magic: [u8; 8],
    /// Format version.
    pub(in crate::journal) version: U32,
    /// Identity of the pool.
    pub(in crate::journal) uuid: [u8; 16],
    /// Generation of the log: grows by at least one whenever a log is started.
    pub(in crate::journal) generation: U64,
    /// Ordinal of this file in the log: grows by one with each use of a file, over generations too.
    pub(in crate::journal) ordinal: U64,
    /// CRC of the last frame before this file; the log's seed if there is none.
    pub(in crate::journal) previous: U32,
    /// Bytes of the file.
    pub(in crate::journal) length: U64,
    /// CRC32C of all bytes before this field.
    pub(in crate::journal) checksum: U32,
}

const _: () = assert!(size_of::<LogHeader>() == 60);
const _: () = assert!(size_of::<LogHeader>() as u64 <= LOG_HEAD_BYTES);
const _: () = assert!(PAYLOAD_BYTES_MAX + 64 <= adamant_wire::frame::FRAME_PAYLOAD_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX as u64 * 4 < LOG_FILE_BYTES_MIN);
