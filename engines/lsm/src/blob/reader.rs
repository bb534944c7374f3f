//! The blob file reader: point reads of values.
//!
//! Purpose: resolves a pointer to its value, in one read unless the value is huge.
//! Invariants: a value is returned only from a record of exactly that key, with a correct checksum
//! and the length that the pointer gives.
//! Thread safety: immutable, shared freely.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_slice::Slice;
use zerocopy::FromBytes;

use super::layout::{BLOB, BLOB_FOOTER_BYTES, RECORD_HEADER_BYTES, RecordHeader};
use super::record::{Fault, parse_footer, value_of};
use super::writer::BlobMeta;
use crate::block::read_bytes;
use crate::cache::{BlockUse, Cache, CachedBlock, CachedFile, Holds};
use crate::error::{Error, Result};
use crate::file::{FILE_HEADER_BYTES, FileKind, Identity};
use crate::key::BlobPointer;

/// Larger values are read apart from their keys, so that a value does not share its memory.
const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// An open blob file.
#[derive(Debug)]
pub struct BlobFile {
    file: CachedFile,
    meta: BlobMeta,
}

/// Reads the footer.
///
/// # Errors
/// `Damaged`; those of the storage backend.
pub(super) fn read_meta(file: &dyn File, identity: &Identity) -> Result<BlobMeta> {
    let file_bytes = file.len()?;
    let damaged = |offset, what: String| Err(Error::damaged(file.path(), offset, what));
    if file_bytes < (FILE_HEADER_BYTES + BLOB_FOOTER_BYTES) as u64 {
        return damaged(0, format!("expected a blob file, found {file_bytes} bytes"));
    }
    let offset = file_bytes - BLOB_FOOTER_BYTES as u64;
    let mut bytes = [0; BLOB_FOOTER_BYTES];
    file.read_at(&mut bytes, offset)?;
    let Some(footer) = parse_footer(identity.seed(), &bytes) else {
        let what =
            "expected the footer of this blob file, found other bytes: it was cut or changed";
        return damaged(offset, what.into());
    };
    if footer.file_bytes.get() != file_bytes {
        let expected = footer.file_bytes.get();
        return damaged(offset, format!("expected {expected} bytes, found {file_bytes}"));
    }
    Ok(BlobMeta {
        number: identity.number,
        file_bytes,
        values: footer.values.get(),
        stored_bytes: footer.stored_bytes.get(),
    })
}

impl BlobFile {
    /// Opens the file with that identity in the directory of blob files, of a tree that uses the
    /// cache like this.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn open(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        cache: &Arc<Cache>,
        used: &Arc<BlockUse>,
    ) -> Result<Self> {
        let kind = (FileKind::Blobs, BLOB);
        let (file, opened) = CachedFile::open(directory, kind, identity, (cache, used))?;
        let meta = read_meta(&*opened, &identity)?;
        Ok(Self { file, meta })
    }

    /// The value of a key, through the cache: read once, then shared. A cached value is not
    /// compared with the key again, because pointers come from tables, which have checksums.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub fn get(&self, pointer: &BlobPointer, key: &[u8]) -> Result<Slice> {
        let read = || Ok(CachedBlock::Bytes(self.get_uncached(pointer, key)?));
        match self.file.block(Holds::Data, pointer.offset, read)? {
            CachedBlock::Bytes(value) => Ok(value),
            CachedBlock::Entries(_) => Err(self.file.damaged(pointer.offset, "expected a value")),
        }
    }

    /// As [`BlobFile::get`], but bypasses the cache.
    ///
    /// # Errors
    /// As [`BlobFile::get`].
    pub fn get_uncached(&self, pointer: &BlobPointer, key: &[u8]) -> Result<Slice> {
        let head_bytes = RECORD_HEADER_BYTES + key.len();
        let stored_bytes = pointer.stored_bytes as usize;
        let records_end = self.meta.file_bytes - BLOB_FOOTER_BYTES as u64;
        let record_bytes = (head_bytes + stored_bytes) as u64;
        if pointer.file != self.meta.number
            || pointer.offset.checked_add(record_bytes).is_none_or(|end| end > records_end)
        {
            let what = "expected a pointer to a record in this file";
            return Err(self.file.damaged(pointer.offset, what));
        }
        let file = self.file.file()?;
        let (head, stored) = if stored_bytes <= TOGETHER_BYTES_MAX {
            let record = read_bytes(&*file, pointer.offset, head_bytes + stored_bytes)?;
            (record.slice(..head_bytes), record.slice(head_bytes..))
        } else {
            let head = read_bytes(&*file, pointer.offset, head_bytes)?;
            (head, read_bytes(&*file, pointer.offset + head_bytes as u64, stored_bytes)?)
        };
        let verified = self.verify(pointer, key, &head, stored);
        verified.map_err(|fault| fault.at(&self.file.path, pointer.offset))
    }

    fn verify(
        &self,
        pointer: &BlobPointer,
        key: &[u8],
        head: &[u8],
        stored: Slice,
    ) -> std::result::Result<Slice, Fault> {
        let (key_bytes, stored_bytes) = (key.len(), pointer.stored_bytes);
        let lengths = || Fault::Lengths { key_bytes, stored_bytes };
        let (header, found) = RecordHeader::read_from_prefix(head).map_err(|_| lengths())?;
        if usize::from(header.key_bytes.get()) != key_bytes
            || header.stored_bytes.get() != stored_bytes
        {
            return Err(lengths());
        }
        let value = value_of(self.file.seed, pointer.offset, &header, found, stored)?;
        if found != key {
            return Err(Fault::Key);
        }
        Ok(value)
    }
}
