//! The blob file stream: all records in order.
//!
//! Purpose: serves checks and salvage. It has its own descriptor, uses no cache and reads 256 KiB
//! at a time.
//! Invariants: every record is verified, and their number equals the footer's, or the stream ends
//! with an error.
//! Thread safety: one thread at a time.

use std::sync::Arc;

use adamant_medium::storage::Directory;
use adamant_slice::Slice;
use zerocopy::FromBytes;

use super::layout::{BLOB, BLOB_FOOTER_BYTES, RECORD_HEADER_BYTES, RecordHeader};
use super::reader::read_meta;
use super::record::value_of;
use super::writer::BlobMeta;
use crate::error::{Error, Result};
use crate::file::{FILE_HEADER_BYTES, Identity, ReadAhead};
use crate::key::BlobPointer;

/// A value in a blob file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its key.
    pub key: Slice,
    /// Its location.
    pub pointer: BlobPointer,
    /// The value.
    pub value: Slice,
}

/// All values of a blob file, in the order in which they were added.
#[derive(Debug)]
pub struct BlobStream {
    bytes: ReadAhead,
    identity: Identity,
    seed: u32,
    meta: BlobMeta,
    values: u64,
    stored_bytes: u64,
    is_over: bool,
}

/// Reads and verifies all of the blob file with that identity in the directory of blob files:
/// checksums and counts.
///
/// # Errors
/// `Missing`, `Unsupported`, `Damaged` for the first fault; those of the storage backend.
pub fn check_blob_file(directory: &Arc<dyn Directory>, identity: Identity) -> Result<BlobMeta> {
    let mut stream = BlobStream::open(directory, identity)?;
    stream.try_for_each(|blob| blob.map(drop))?;
    Ok(stream.meta)
}

impl BlobStream {
    /// Opens the file with that identity in the directory of blob files.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn open(directory: &Arc<dyn Directory>, identity: Identity) -> Result<Self> {
        let file = identity.open(&**directory, BLOB)?;
        let meta = read_meta(&*file, &identity)?;
        let end = meta.file_bytes - BLOB_FOOTER_BYTES as u64;
        let bytes = ReadAhead::new(file, FILE_HEADER_BYTES as u64, end);
        let seed = identity.seed();
        Ok(Self { bytes, identity, seed, meta, values: 0, stored_bytes: 0, is_over: false })
    }

    fn step(&mut self) -> Result<Option<Blob>> {
        if self.bytes.left() == 0 {
            let meta = &self.meta;
            if (self.values, self.stored_bytes) != (meta.values, meta.stored_bytes) {
                let what = format!(
                    "expected {} values of {} bytes before here, found {} of {}",
                    meta.values, meta.stored_bytes, self.values, self.stored_bytes
                );
                return Err(self.damaged(self.bytes.offset(), &what));
            }
            return Ok(None);
        }
        let offset = self.bytes.offset();
        let head = self.bytes.take(RECORD_HEADER_BYTES)?;
        let Ok(header) = RecordHeader::read_from_bytes(&head) else {
            return Err(self.damaged(offset, &"expected a record"));
        };
        let key = self.bytes.take(header.key_bytes.get().into())?;
        let stored_bytes = header.stored_bytes.get();
        let stored = self.bytes.take(stored_bytes as usize)?;
        let value = value_of(self.seed, offset, &header, &key, stored)
            .map_err(|fault| fault.at(self.bytes.file().path(), offset))?;
        self.values += 1;
        self.stored_bytes += u64::from(stored_bytes);
        let pointer = BlobPointer { file: self.identity.number, offset, stored_bytes };
        Ok(Some(Blob { key, pointer, value }))
    }

    fn damaged(&self, offset: u64, what: &dyn ToString) -> Error {
        Error::damaged(self.bytes.file().path(), offset, what.to_string())
    }
}

impl Iterator for BlobStream {
    type Item = Result<Blob>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let blob = self.step().transpose();
        self.is_over = !matches!(blob, Some(Ok(_)));
        blob
    }
}
