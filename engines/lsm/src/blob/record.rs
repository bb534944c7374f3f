//! The record codec of blob files: a header with a checksum, the key, the value.
//!
//! Purpose: the format that writer, reader and stream share.
//! Invariants: a record verifies only at the place where it was written: its checksum covers pool,
//! file and offset.
//! Thread safety: pure functions.

use std::fmt;
use std::path::Path;

use adamant_slice::Slice;
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{BLOB_FOOTER_BYTES, BlobFooter, FOOTER_MAGIC, RecordHeader};
use crate::compression::{Method, Refused, restore};
use crate::error::{Error, NOT_BUILT};

/// Larger values are stored uncompressed: compression needs as much memory again.
pub(super) const COMPRESSED_BYTES_MAX: usize = 16 << 20;

/// The fault of a record.
#[derive(Debug)]
pub(crate) enum Fault {
    Lengths { key_bytes: usize, stored_bytes: u32 },
    Checksum { expected: u32, found: u32 },
    Key,
    Value { compression: u8 },
    NotBuilt,
}

impl Fault {
    /// The error of a record at `offset` of a file.
    pub(crate) fn at(&self, file: &Path, offset: u64) -> Error {
        Error::unreadable(file, offset, !matches!(self, Self::NotBuilt), self)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lengths { key_bytes, stored_bytes } => write!(
                f,
                "expected a record with a key of {key_bytes} and a value of {stored_bytes} bytes, \
                 found other lengths"
            ),
            Self::Checksum { expected, found } => {
                write!(f, "expected the record's checksum {expected:#010x}, found {found:#010x}")
            }
            Self::Key => {
                f.write_str("expected a record of the key that points here, found another")
            }
            Self::Value { compression } => {
                write!(f, "expected a value of compression {compression}, found other bytes")
            }
            Self::NotBuilt => f.write_str(NOT_BUILT),
        }
    }
}

/// The checksum of a record at `offset`.
pub(crate) fn record_checksum(
    seed: u32,
    offset: u64,
    header: &RecordHeader,
    key: &[u8],
    stored: &[u8],
) -> u32 {
    let seed = crc32c(seed, &offset.to_le_bytes());
    let seed = crc32c(seed, &header.as_bytes()[size_of::<u32>()..]);
    crc32c(crc32c(seed, key), stored)
}

/// The value of a record at `offset`, whose parts were all read and have the lengths that the
/// header gives. Shares their memory unless the value was compressed.
pub(crate) fn value_of(
    seed: u32,
    offset: u64,
    header: &RecordHeader,
    key: &[u8],
    stored: Slice,
) -> Result<Slice, Fault> {
    let expected = record_checksum(seed, offset, header, key, &stored);
    let found = header.checksum.get();
    if found != expected {
        return Err(Fault::Checksum { expected, found });
    }
    let plain_bytes = header.plain_bytes.get() as usize;
    let compression = header.compression;
    let Some(method) = Method::from_byte(compression) else {
        return Err(Fault::Value { compression });
    };
    // Zstd expands so far that its own bound is none for values, which may have 4 GiB.
    if method == Method::Zstd && plain_bytes > COMPRESSED_BYTES_MAX {
        return Err(Fault::Value { compression });
    }
    restore(method, stored, plain_bytes).map_err(|refused| match refused {
        Refused::Malformed => Fault::Value { compression },
        Refused::NotBuilt => Fault::NotBuilt,
    })
}

/// The footer of a file with that seed.
pub(crate) fn footer(seed: u32, file_bytes: u64, values: u64, stored_bytes: u64) -> BlobFooter {
    let mut footer = BlobFooter {
        magic: FOOTER_MAGIC,
        file_bytes: file_bytes.into(),
        values: values.into(),
        stored_bytes: stored_bytes.into(),
        checksum: 0.into(),
    };
    footer.checksum = footer_checksum(seed, &footer).into();
    footer
}

fn footer_checksum(seed: u32, footer: &BlobFooter) -> u32 {
    let bytes = footer.as_bytes();
    crc32c(seed, &bytes[..bytes.len() - size_of::<u32>()])
}

/// Decodes the footer; `None` if the bytes are no footer of the file with that seed.
pub(crate) fn parse_footer(seed: u32, bytes: &[u8; BLOB_FOOTER_BYTES]) -> Option<BlobFooter> {
    let footer = BlobFooter::read_from_bytes(bytes).ok()?;
    let is_sound = footer.checksum.get() == footer_checksum(seed, &footer);
    let is_ours = footer.magic == FOOTER_MAGIC;
    (is_ours && is_sound).then_some(footer)
}
