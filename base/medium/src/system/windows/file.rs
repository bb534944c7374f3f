//! Files of Windows.
//!
//! Invariants: reads and writes are complete or fail, and name their offset; syncs are never
//! repeated.
//! Thread safety: any thread.

use std::io;
use std::os::windows::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windows_sys::Win32::Foundation::ERROR_HANDLE_EOF;

use crate::error::{Error, Result};
use crate::storage::{File, StartedSync, end_of_range};
use crate::system::complete::{read_all, write_all};
use crate::system::handle::{Handle, source_of};
use crate::system::sync_beside::sync_beside;

/// A file of a file system.
#[derive(Debug)]
pub(crate) struct OsFile {
    file: Arc<Handle>,
    path: PathBuf,
}

impl OsFile {
    pub(super) fn new(file: Arc<Handle>, path: PathBuf) -> Self {
        Self { file, path }
    }

    fn error(&self, operation: &'static str, offset: u64, bytes: u64, error: io::Error) -> Error {
        Error::io(operation, &self.path, Some(offset), bytes, source_of(error))
    }

    /// The end of a range: one place beyond those that a file can have means its end, others mean
    /// nothing.
    fn end(&self, operation: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        end_of_range(operation, &self.path, offset, bytes)
    }
}

impl File for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        let found = self.file.with(|file| file.metadata());
        Ok(found.map_err(|error| self.error("measure", 0, 0, error))?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.end("read", offset, buffer.len() as u64)?;
        read_all(&self.path, buffer, offset, |rest, at| {
            self.file.with(|file| match file.seek_read(rest, at) {
                Err(error) if error.raw_os_error() == Some(ERROR_HANDLE_EOF as i32) => Ok(0),
                read => read,
            })
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.end("write", offset, bytes.len() as u64)?;
        write_all(&self.path, bytes, offset, |rest, at| {
            self.file.with(|file| file.seek_write(rest, at))
        })
    }

    /// A file that is not sparse, and none here is, has space for all bytes below its end.
    fn allocate(&self, offset: u64, len: u64) -> Result<()> {
        let end = self.end("allocate space in", offset, len)?;
        if len > 0 && self.len()? < end {
            self.set_len(end)?;
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> Result<()> {
        match len {
            0 => Ok(()),
            _ => {
                let source = io::ErrorKind::Unsupported.into();
                Err(self.error("give back space of", offset, len, source))
            }
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.end("set the length of", 0, len)?;
        let done = self.file.with(|file| file.set_len(len));
        done.map_err(|error| self.error("set the length of", len, len, error))
    }

    fn sync(&self) -> Result<()> {
        // Never repeated: after a failure the system may have dropped what it could not write.
        let flushed = self.file.with(|file| file.sync_data());
        flushed.map_err(|error| Error::io("sync", &self.path, None, 0, source_of(error)))
    }

    fn start_sync(self: Arc<Self>) -> StartedSync {
        sync_beside(self)
    }
}
