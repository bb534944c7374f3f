//! Writing a blob file.
//!
//! Purpose: large values one behind the other; tables point to them.
//! Invariants: as of [`FileWriter`]: a finished file is complete and durable. A value above the size of
//! a piece is not copied.
//! Thread safety: one thread at a time.

use std::path::Path;
use std::sync::Arc;

use adamant_medium::storage::Directory;
use zerocopy::IntoBytes;

use super::layout::{BLOB, BLOB_FOOTER_BYTES, RecordHeader};
use super::record::{footer, record_checksum};
use crate::block::{Compression, Compressor};
use crate::error::{Error, Result};
use crate::file::{FileWriter, Identity};
use crate::key::{BlobPointer, check_key};

/// Larger values are stored as they are: compressing takes as much memory again.
const COMPRESSED_BYTES_MAX: usize = 16 << 20;
/// Bytes that a value may have: what a slice holds, and a length of 32 bits says.
pub(crate) const BLOB_BYTES_MAX: u64 = u32::MAX as u64;

/// How a blob file is written. It does not matter to who reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobOptions {
    /// How values are stored.
    pub compression: Compression,
}

/// What is known of a blob file as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its number.
    pub number: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Values in it.
    pub values: u64,
    /// Sum of their stored bytes: what blob references of tables are counted in, too.
    pub stored_bytes: u64,
}

/// Writes a blob file.
#[derive(Debug)]
pub struct BlobWriter {
    file: FileWriter,
    identity: Identity,
    seed: u32,
    options: BlobOptions,
    compressor: Compressor,
    meta: BlobMeta,
}

impl BlobWriter {
    /// Begins the file of that identity in the directory of blob files.
    ///
    /// # Errors
    /// `Unsupported` if there is one of that number; those of the medium.
    pub fn create(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        options: BlobOptions,
    ) -> Result<Self> {
        Ok(Self {
            file: FileWriter::create(directory, identity, BLOB)?,
            identity,
            seed: identity.seed(),
            options,
            compressor: Compressor::new(),
            meta: BlobMeta { number: identity.number, ..BlobMeta::default() },
        })
    }

    /// The file that is being written, for messages.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes that the file has so far.
    pub fn file_bytes(&self) -> u64 {
        self.file.offset()
    }

    /// Adds the value of a key and says where it lies.
    ///
    /// # Errors
    /// Those of keys and values; those of the medium, after which the writer can only be dropped.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<BlobPointer> {
        check_key(key)?;
        if value.len() as u64 > BLOB_BYTES_MAX {
            let (bytes, bytes_max) = (value.len() as u64, BLOB_BYTES_MAX);
            return Err(Error::ValueTooLong { bytes, bytes_max });
        }
        let compression = match self.options.compression {
            _ if value.len() > COMPRESSED_BYTES_MAX => Compression::None,
            compression => compression,
        };
        let (stored, compression) = self.compressor.compress(value, compression);
        let offset = self.file.offset();
        let mut header = RecordHeader {
            checksum: 0.into(),
            stored_bytes: (stored.len() as u32).into(),
            plain_bytes: (value.len() as u32).into(),
            key_bytes: (key.len() as u16).into(),
            compression: compression as u8,
        };
        header.checksum = record_checksum(self.seed, offset, &header, key, stored).into();
        let piece = self.file.piece();
        piece.extend_from_slice(header.as_bytes());
        piece.extend_from_slice(key);
        let stored_bytes = stored.len() as u32;
        self.file.append(stored)?;
        self.meta.values += 1;
        self.meta.stored_bytes += u64::from(stored_bytes);
        Ok(BlobPointer { file: self.identity.number, offset, stored_bytes })
    }

    /// Completes the file: durable and under its name, which is durable once the directory was
    /// synced. (That is left to the caller, who may have written several.)
    ///
    /// # Errors
    /// Those of the medium; then the file is removed.
    pub fn finish(mut self) -> Result<BlobMeta> {
        let file_bytes = self.file.offset() + BLOB_FOOTER_BYTES as u64;
        let footer = footer(self.seed, file_bytes, self.meta.values, self.meta.stored_bytes);
        self.file.append(footer.as_bytes())?;
        self.meta.file_bytes = self.file.finish()?;
        Ok(self.meta)
    }
}
