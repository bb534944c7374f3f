//! The file writer: writes to a temporary name and renames on completion.
//!
//! Purpose: writes large pieces to a file with a temporary name, which gets its own name once it is
//! complete and durable.
//! Invariants: a file under its own name is complete and synced. A file that is dropped earlier is
//! removed. Nothing is written once a write or sync is known to have failed: the next sync would
//! not write what the failed one lost. A sync may run beside writes; the next one waits for it.
//! Thread safety: one thread at a time.

use std::io;
use std::path::Path;
use std::sync::Arc;

use adamant_medium::error::Error as MediumError;
use adamant_medium::storage::{Directory, File, StartedSync};

use super::identity::{FileFormat, Identity};
use crate::error::{Error, Result};

/// Bytes of a piece: a call costs about 20 us with the copy, which is negligible at this size.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes between two syncs. The writer does not leave all to a sync at the end, because a commit
/// that syncs at the same time waits for what the device has to write then. Beside tables of 64 MiB
/// the longest of such waits was 36 ms with one sync at the end, and 17 ms with one for each 8 MiB
/// or less.
const SYNC_BYTES: u64 = 4 << 20;

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct FileWriter {
    directory: Arc<dyn Directory>,
    identity: Identity,
    file: Arc<dyn File>,
    /// The bytes after those that were written.
    piece: Vec<u8>,
    written_bytes: u64,
    /// Those that the last sync covers, which may still run.
    synced_bytes: u64,
    sync: Option<StartedSync>,
    is_failed: bool,
    is_finished: bool,
}

impl FileWriter {
    /// Begins a file with its header.
    ///
    /// # Errors
    /// `Unsupported` if a finished file with that number exists; those of the storage backend.
    pub(crate) fn create(
        directory: &Arc<dyn Directory>,
        identity: Identity,
        kind: FileFormat,
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
        // Left by an attempt that failed and could not remove it.
        match directory.open(&name_new) {
            Ok(None) => {}
            // It is there, whatever it is.
            Ok(Some(_)) | Err(MediumError::NotAuthentic { .. }) => directory.remove(&name_new)?,
            Err(error) => return Err(error.into()),
        }
        let file = directory.create_once(&name_new)?;
        Ok(Self {
            directory: Arc::clone(directory),
            identity,
            file,
            piece: identity.header(kind).to_vec(),
            written_bytes: 0,
            synced_bytes: 0,
            sync: None,
            is_failed: false,
            is_finished: false,
        })
    }

    /// The path, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Offset of the next byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.written_bytes + self.piece.len() as u64
    }

    /// The write buffer. Call [`FileWriter::flush_full`] after appending to keep it short.
    pub(crate) fn piece(&mut self) -> &mut Vec<u8> {
        &mut self.piece
    }

    /// Writes the buffer, if it is full.
    ///
    /// # Errors
    /// Those of the storage backend.
    pub(crate) fn flush_full(&mut self) -> Result<()> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Appends bytes; many are written without a copy.
    ///
    /// # Errors
    /// Those of the storage backend.
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
        // One large value must not hold memory for ever.
        piece.shrink_to(2 * PIECE_BYTES);
        self.piece = piece;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.is_failed {
            let source = io::Error::other("writing it failed before");
            return Err(MediumError::io("write", self.file.path(), None, 0, source).into());
        }
        // Cleared when all of it has succeeded.
        self.is_failed = true;
        self.file.write_at(bytes, self.written_bytes)?;
        self.written_bytes += bytes.len() as u64;
        if self.written_bytes - self.synced_bytes >= SYNC_BYTES {
            self.wait_for_sync()?;
            self.sync = Some(Arc::clone(&self.file).start_sync());
            self.synced_bytes = self.written_bytes;
        }
        self.is_failed = false;
        Ok(())
    }

    /// Waits for the sync that runs beside the writes, if there is one.
    fn wait_for_sync(&mut self) -> Result<()> {
        Ok(self.sync.take().map_or(Ok(()), StartedSync::wait)?)
    }

    /// Makes the file durable and gives it its name, which is durable once the directory was
    /// synced. Returns the file's length.
    ///
    /// # Errors
    /// Those of the storage backend; then the file is removed.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        let (name_new, name) = (self.identity.name_new(), self.identity.name());
        self.wait_for_sync()?;
        self.file.sync()?;
        self.directory.rename(&name_new, &name)?;
        self.is_finished = true;
        Ok(self.written_bytes)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // Its result is of no interest: the file goes.
            let _ = self.wait_for_sync();
            // Best effort: a leftover is removed when the number is used or the store opened.
            let _ = self.directory.remove(&self.identity.name_new());
        }
    }
}
