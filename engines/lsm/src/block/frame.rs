//! The block frame: a header with a checksum, and the payload.
//!
//! Purpose: seals payloads, and opens blocks without trusting any byte.
//! Invariants: a block opens only at the place where it was sealed: its checksum covers pool, file
//! and offset. No length is used before it was checked against the bytes that exist or a block's
//! maximum.
//! Thread safety: pure functions; a sealer belongs to one thread.

use std::fmt;
use std::path::Path;

use adamant_medium::storage::File;
use adamant_slice::{Builder, Slice};
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, PAYLOAD_BYTES_MAX};
use crate::compression::{Compression, Compressor, Method, Refused, restore};
use crate::error::{Error, NOT_BUILT, Result};

/// The location of a block in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockHandle {
    pub(crate) offset: u64,
    /// Including the header.
    pub(crate) bytes: u32,
}

impl BlockHandle {
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes))
    }
}

/// Seals payloads into blocks.
#[derive(Debug)]
pub(crate) struct Sealer {
    seed: u32,
    compressor: Compressor,
}

impl Sealer {
    /// A sealer for the file with that seed.
    pub(crate) fn new(seed: u32) -> Self {
        Self { seed, compressor: Compressor::new() }
    }

    /// Appends the block of `payload` to `out`; it will lie at `offset` of the file.
    pub(crate) fn seal(
        &mut self,
        out: &mut Vec<u8>,
        offset: u64,
        kind: BlockKind,
        compression: Compression,
        payload: &[u8],
    ) -> BlockHandle {
        debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX, "checked when entries were added");
        let (stored, method) = self.compressor.compress(payload, compression);
        let mut header = BlockHeader {
            checksum: 0.into(),
            stored_bytes: (stored.len() as u32).into(),
            plain_bytes: (payload.len() as u32).into(),
            kind: kind as u8,
            compression: method as u8,
        };
        header.checksum = block_checksum(self.seed, offset, &header, stored).into();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(stored);
        BlockHandle { offset, bytes: (BLOCK_HEADER_BYTES + stored.len()) as u32 }
    }
}

fn block_checksum(seed: u32, offset: u64, header: &BlockHeader, stored: &[u8]) -> u32 {
    let seed = crc32c(seed, &offset.to_le_bytes());
    crc32c(crc32c(seed, &header.as_bytes()[size_of::<u32>()..]), stored)
}

/// Why bytes are not the block that was sealed at their place.
#[derive(Debug)]
pub(crate) enum Fault {
    Length { expected: u64, found: u64 },
    TooLong { found: u64 },
    Checksum { expected: u32, found: u32 },
    Kind { expected: BlockKind, found: u8 },
    Compression { found: u8 },
    Compressed,
    NotBuilt,
}

impl Fault {
    /// The error of a block at `offset` of a file.
    pub(crate) fn at(&self, file: &Path, offset: u64) -> Error {
        Error::unreadable(file, offset, !matches!(self, Self::NotBuilt), self)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { expected, found } => {
                write!(f, "expected a block of {expected} bytes, found {found}")
            }
            Self::TooLong { found } => {
                write!(f, "expected a block of at most {PAYLOAD_BYTES_MAX} bytes, found {found}")
            }
            Self::Checksum { expected, found } => {
                write!(f, "expected the block's checksum {expected:#010x}, found {found:#010x}")
            }
            Self::Kind { expected, found } => {
                write!(f, "expected a block of kind {}, found {found}", *expected as u8)
            }
            Self::Compression { found } => {
                write!(f, "expected a block of compression 0, 1 or 2, found {found}")
            }
            Self::Compressed => f.write_str("expected compressed bytes, found others"),
            Self::NotBuilt => f.write_str(NOT_BUILT),
        }
    }
}

/// The header at the start of `bytes`, if it is complete, and the bytes of the whole block.
/// Verifies only that the lengths are possible for a block.
pub(crate) fn peek(bytes: &[u8]) -> std::result::Result<Option<(BlockHeader, usize)>, Fault> {
    let Ok((header, _)) = BlockHeader::read_from_prefix(bytes) else { return Ok(None) };
    let longest = header.stored_bytes.get().max(header.plain_bytes.get());
    if longest as usize > PAYLOAD_BYTES_MAX {
        return Err(Fault::TooLong { found: longest.into() });
    }
    Ok(Some((header, BLOCK_HEADER_BYTES + header.stored_bytes.get() as usize)))
}

/// The payload of a block, and its kind. `frame` is exactly the block, and lies at `offset`. Shares
/// the frame's memory unless the block was compressed.
pub(crate) fn open_any(
    frame: &Slice,
    seed: u32,
    offset: u64,
) -> std::result::Result<(Slice, BlockKind), Fault> {
    let found = frame.len() as u64;
    let short = Fault::Length { expected: BLOCK_HEADER_BYTES as u64, found };
    let (header, bytes) = peek(frame)?.ok_or(short)?;
    if bytes != frame.len() {
        return Err(Fault::Length { expected: bytes as u64, found });
    }
    let stored = &frame[BLOCK_HEADER_BYTES..];
    let expected = block_checksum(seed, offset, &header, stored);
    if header.checksum.get() != expected {
        return Err(Fault::Checksum { expected, found: header.checksum.get() });
    }
    let Some(kind) = BlockKind::from_byte(header.kind) else {
        return Err(Fault::Kind { expected: BlockKind::Data, found: header.kind });
    };
    let plain_bytes = header.plain_bytes.get() as usize;
    let Some(method) = Method::from_byte(header.compression) else {
        return Err(Fault::Compression { found: header.compression });
    };
    if method == Method::None && plain_bytes != stored.len() {
        let (expected, found) = (plain_bytes as u64, stored.len() as u64);
        return Err(Fault::Length { expected, found });
    }
    let stored = frame.slice(BLOCK_HEADER_BYTES..);
    let payload = restore(method, stored, plain_bytes).map_err(|refused| match refused {
        Refused::Malformed => Fault::Compressed,
        Refused::NotBuilt => Fault::NotBuilt,
    })?;
    Ok((payload, kind))
}

/// Reads the payload of a block of that kind.
///
/// # Errors
/// `Damaged`; those of the storage backend.
pub(crate) fn read(
    file: &dyn File,
    seed: u32,
    handle: BlockHandle,
    kind: BlockKind,
) -> Result<Slice> {
    let damaged = |fault: Fault| fault.at(file.path(), handle.offset);
    if handle.bytes as usize > BLOCK_HEADER_BYTES + PAYLOAD_BYTES_MAX {
        return Err(damaged(Fault::TooLong { found: handle.bytes.into() }));
    }
    let frame = read_bytes(file, handle.offset, handle.bytes as usize)?;
    open(&frame, seed, handle.offset, kind).map_err(damaged)
}

/// As [`open_any`], for a block of that kind.
pub(crate) fn open(
    frame: &Slice,
    seed: u32,
    offset: u64,
    kind: BlockKind,
) -> std::result::Result<Slice, Fault> {
    match open_any(frame, seed, offset)? {
        (payload, found) if found == kind => Ok(payload),
        (_, found) => Err(Fault::Kind { expected: kind, found: found as u8 }),
    }
}

/// Reads `bytes` bytes of a file. The caller has bounded `bytes`.
///
/// # Errors
/// Those of the storage backend.
pub(crate) fn read_bytes(file: &dyn File, offset: u64, bytes: usize) -> Result<Slice> {
    let mut buffer = Builder::zeroed(bytes).expect("bounded below 4 GiB");
    file.read_at(&mut buffer, offset)?;
    Ok(buffer.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u32 = 0x1234_5678;

    fn sealed(compression: Compression, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let handle = Sealer::new(SEED).seal(&mut out, 40, BlockKind::Data, compression, payload);
        assert_eq!(handle, BlockHandle { offset: 40, bytes: out.len() as u32 });
        out
    }

    #[test]
    fn a_block_opens_where_it_was_sealed_and_nowhere_else() {
        let payload = [7; 500];
        for compression in [Compression::None, Compression::Lz4, Compression::zstd()] {
            let frame = Slice::from(sealed(compression, &payload));
            let (found, kind) = open_any(&frame, SEED, 40).unwrap();
            assert_eq!((found, kind), (Slice::new(&payload), BlockKind::Data));
            assert!(open_any(&frame, SEED, 41).is_err());
            assert!(open_any(&frame, SEED ^ 1, 40).is_err());
            assert!(open_any(&frame.slice(..frame.len() - 1), SEED, 40).is_err());
        }
    }

    /// Checksums are right and only the claims are false: nothing is allocated for them.
    #[test]
    fn no_claim_about_compressed_bytes_is_believed() {
        let bomb = [b"\x28\xB5\x2F\xFD\xA0\0\0\0\x05".as_slice(), &[3, 0, 0, 7]].concat();
        let claims = [0, 1, 8, 4096, 128 << 10, 64 << 20, PAYLOAD_BYTES_MAX];
        for (compression, stored, plain_bytes) in (0..=4_u8)
            .flat_map(|compression| [&[][..], b"x", &[0; 100], &bomb].map(|s| (compression, s)))
            .flat_map(|(compression, stored)| claims.map(|claim| (compression, stored, claim)))
        {
            let mut header = BlockHeader {
                checksum: 0.into(),
                stored_bytes: (stored.len() as u32).into(),
                plain_bytes: (plain_bytes as u32).into(),
                kind: BlockKind::Data as u8,
                compression,
            };
            header.checksum = block_checksum(SEED, 40, &header, stored).into();
            let frame = Slice::from([header.as_bytes(), stored].concat());
            let opened = open_any(&frame, SEED, 40);
            let is_plain = compression == 0 && plain_bytes == stored.len();
            // LZ4 has a byte for no bytes.
            let is_empty = compression == 1 && plain_bytes == 0;
            assert!(opened.is_err() || is_plain || is_empty, "{compression}, {plain_bytes} bytes");
            if compression == 2 && !Compression::zstd().is_built() {
                assert!(matches!(opened, Err(Fault::NotBuilt)));
            }
        }
    }

    #[test]
    fn no_bit_can_flip_and_no_length_is_believed() {
        for compression in [Compression::None, Compression::Lz4, Compression::zstd()] {
            let mut frame = sealed(compression, &[7; 100]);
            for bit in 0..frame.len() * 8 {
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(open_any(&Slice::new(&frame), SEED, 40).is_err(), "bit {bit}");
                frame[bit / 8] ^= 1 << (bit % 8);
            }
        }
        let mut huge = sealed(Compression::None, b"x");
        huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(peek(&huge), Err(Fault::TooLong { .. })));
    }
}
