//! The blob file writer.
//!
//! Purpose: appends large values one after the other; tables point to them.
//! Invariants: as of [`FileWriter`]: a finished file is complete and durable. A value larger than
//! the write buffer is not copied.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use zerocopy::IntoBytes;

use super::layout::{BLOB, BLOB_FOOTER_BYTES, RecordHeader};
use super::record::{COMPRESSED_BYTES_MAX, footer, record_checksum};
use crate::compression::{Compression, Compressor};
use crate::error::{Error, Result};
use crate::file::{FileWriter, Identity};
use crate::key::{BlobPointer, check_key};

/// Maximum bytes of a value: a slice can hold as many, and the length has 32 bits.
pub(crate) const BLOB_BYTES_MAX: u64 = u32::MAX as u64;

/// How a blob file is written. Readers do not depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobOptions {
    /// How values are stored.
    pub compression: Compression,
}

/// Properties of a whole blob file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobMeta {
    /// Its number.
    pub number: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Values in it.
    pub values: u64,
    /// Sum of their stored bytes, the unit of the blob references of tables, too.
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
    /// Begins the file with that identity in the directory of blob files.
    ///
    /// # Errors
    /// `Unsupported` if a file with that number exists; those of the storage backend.
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

    /// Bytes of the file so far.
    pub fn file_bytes(&self) -> u64 {
        self.file.offset()
    }

    /// Adds the value of a key and returns its location.
    ///
    /// # Errors
    /// Those of keys and values; those of the storage backend, after which the writer can only be
    /// dropped.
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
        let (stored, method) = self.compressor.compress(value, compression);
        let offset = self.file.offset();
        let mut header = RecordHeader {
            checksum: 0.into(),
            stored_bytes: (stored.len() as u32).into(),
            plain_bytes: (value.len() as u32).into(),
            key_bytes: (key.len() as u16).into(),
            compression: method as u8,
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

    /// Completes the file: makes it durable and gives it its name. The name is durable once the
    /// directory was synced, which is left to the caller, because it may have written several
    /// files.
    ///
    /// # Errors
    /// Those of the storage backend; then the file is removed.
    pub fn finish(mut self) -> Result<BlobMeta> {
        let file_bytes = self.file.offset() + BLOB_FOOTER_BYTES as u64;
        let footer = footer(self.seed, file_bytes, self.meta.values, self.meta.stored_bytes);
        self.file.append(footer.as_bytes())?;
        self.meta.file_bytes = self.file.finish()?;
        Ok(self.meta)
    }
}
