//! A file that is being written.
//!
//! Purpose: bytes in large pieces to a file of a temporary name, which gets its own name when it is
//! complete and durable.
//! Invariants: a file under its own name is complete and synced. One that is dropped before is
//! removed. Nothing follows a write or sync that failed: what a sync that failed should have written is
//! not written by the next one either.
//! Thread safety: one thread at a time.

use std::io;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File};
use adamant_wire::mutants::is_planted;

use super::identity::{FileKind, Identity};
use crate::error::{Error, Result};

/// Bytes of the pieces: a call costs some 20 us with the copy, so this is far from counting.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes after which what was written is synced, without waiting for the end: a commit that is synced
/// beside it waits for what the device has to write at that time. Beside tables of 64 MiB the longest
/// of such waits was 36 ms with one sync at the end, and 17 ms with one for each 8 MiB or less.
const SYNC_BYTES: u64 = 4 << 20;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileWriter {
    directory: Arc<dyn Directory>,
    identity: Identity,
    file: Arc<dyn File>,
    /// What follows the bytes that were written.
    piece: Vec<u8>,
    written_bytes: u64,
    synced_bytes: u64,
    is_failed: bool,
    is_finished: bool,
}

impl FileWriter {
    /// Begins a file with its header.
    ///
    /// # Errors
    /// `Unsupported` if there is a finished file of that number; those of the medium.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        kind: FileKind,
    ) -> Result<Self> {
        let name = identity.name();
        if directory.open(&name)?.is_some() {
            return Err(Error::Unsupported {
                file: directory.path().join(name),
                what: format!(
                    "expected no {} of a number that is about to be used, found one; move it away",
                    kind.name
                ),
            });
        }
        let name_new = identity.name_new();
        // Left by an attempt that failed and could not even remove it.
        if directory.open(&name_new)?.is_some() {
            directory.remove(&name_new)?;
        }
        let file = directory.create(&name_new)?;
        Ok(Self {
            directory: Arc::clone(directory),
            identity,
            file,
            piece: identity.header(kind).to_vec(),
            written_bytes: 0,
            synced_bytes: 0,
            is_failed: false,
            is_finished: false,
        })
    }

    /// For messages.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where the next byte will lie in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.written_bytes + self.piece.len() as u64
    }

    /// What is appended to; [`FileWriter::flush_full`] after that keeps it short.
    pub(crate) fn piece(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    /// Writes what was appended, if it is enough.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn flush_full(&mut self) -> Result<()> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Appends bytes that may be many: these are written without a copy.
    ///
    /// # Errors
    /// Those of the medium.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() < PIECE_BYTES {
            self.piece.extend_from_slice(bytes);
            return self.flush_full();
        }
        self.flush()?;
        self.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        let mut piece = std::mem::take(&mut self.piece);
        let written = self.write(&piece);
        piece.clear();
        // One large value is no reason to keep memory for ever.
        piece.shrink_to(2 * PIECE_BYTES);
        self.piece = piece;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.is_failed {
            let source = io::Error::other("writing it failed before");
            return Err(MediumError::io("write", self.file.path(), None, 0, source).into());
        }
        // Unless all of it succeeds.
        self.is_failed = true;
        self.file.write_at(bytes, self.written_bytes)?;
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes - self.synced_bytes >= SYNC_BYTES {
            self.file.sync()?;
            self.synced_bytes = self.written_bytes;
        }
        self.is_failed = false;
        Ok(())
    }

    /// Makes the file durable and gives it its name, which is durable once the directory was
    /// synced. Returns the file's bytes.
    ///
    /// # Errors
    /// Those of the medium; then the file is removed.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        let (name_new, name) = (self.identity.name_new(), self.identity.name());
        if is_planted("rename.a-table-before-it-is-durable") {
            self.directory.rename(&name_new, &name)?;
            self.directory.sync()?;
            self.file.sync()?;
        } else {
            self.file.sync()?;
            self.directory.rename(&name_new, &name)?;
        }
        self.is_finished = true;
        Ok(self.written_bytes)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // Best effort: what is left is removed when the number is used or the store opened.
            let _ = self.directory.remove(&self.identity.name_new());
        }
    }
}
