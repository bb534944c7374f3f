//! Values that scans return lazily.
//!
//! Purpose: a scan reads no blob file; the receiver of an entry reads its value, keeps its
//! location, or does without.
//! Invariants: a file stays while a value in it may still be read, even if its tree is destroyed; a
//! value can be read repeatedly, and is the same each time.
//! Thread safety: plain data, shared freely.

use std::sync::Arc;

use adamant_slice::Slice;

use crate::error::Result;
use crate::key::BlobPointer;
use crate::version::tree_version::{Blob, TreeVersion, read_blob};

/// The value of a scanned entry.
#[derive(Clone, Copy, Debug)]
pub enum Scanned<'s> {
    /// Its bytes; none in a scan of keys.
    Bytes(&'s [u8]),
    /// It lies in a blob file, which was not read.
    Blob(ScannedBlob<'s>),
}

/// The location of a scanned value.
#[derive(Clone, Copy, Debug)]
pub struct ScannedBlob<'s> {
    tree_version: &'s TreeVersion,
    pointer: BlobPointer,
}

/// A value in a blob file, which stays until this is dropped.
#[derive(Clone, Debug)]
pub struct LaterValue {
    /// `None`: no such file is listed.
    blob: Option<Arc<Blob>>,
    pointer: BlobPointer,
}

impl Scanned<'_> {
    /// Passes the value of a key to a closure; reads it first if it lies in a blob file.
    ///
    /// # Errors
    /// Those of blob files.
    #[inline]
    pub fn with<T>(self, key: &[u8], reader: impl FnOnce(&[u8]) -> T) -> Result<T> {
        match self {
            Self::Bytes(bytes) => Ok(reader(bytes)),
            Self::Blob(blob) => Ok(reader(&blob.tree_version.blob_value(key, &blob.pointer)?)),
        }
    }
}

impl<'s> ScannedBlob<'s> {
    pub(crate) fn new(tree_version: &'s TreeVersion, pointer: BlobPointer) -> Self {
        Self { tree_version, pointer }
    }

    /// The value, to be read later. O(log blob files).
    pub fn later(&self) -> LaterValue {
        let listed = self.tree_version.blobs.get(&self.pointer.file);
        LaterValue { blob: listed.map(|listed| Arc::clone(&listed.blob)), pointer: self.pointer }
    }
}

impl LaterValue {
    /// Reads the value of the key that it was found under.
    ///
    /// # Errors
    /// Those of blob files.
    pub fn read(&self, key: &[u8]) -> Result<Slice> {
        read_blob(self.blob.as_deref(), key, &self.pointer)
    }
}
