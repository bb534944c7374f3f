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
use crate::storage::{File, StartedSync};
use crate::system::handle::{Handle, source_of};
use crate::system::sync_beside::sync_beside;

/// The longest file: an offset is a signed number.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

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

    /// The end of a range, which must be one that a file can have: one place beyond those means the
    /// end of the file, others mean nothing.
    fn end(&self, operation: &'static str, offset: u64, bytes: u64) -> Result<u64> {
        let end = offset.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX);
        end.ok_or_else(|| self.error(operation, offset, bytes, io::ErrorKind::FileTooLarge.into()))
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
        let expected_bytes = buffer.len() as u64;
        self.end("read", offset, expected_bytes)?;
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            let rest = &mut buffer[filled..];
            let read = self.file.with(|file| match file.seek_read(rest, at) {
                Err(error) if error.raw_os_error() == Some(ERROR_HANDLE_EOF as i32) => Ok(0),
                read => read,
            });
            match read {
                Ok(0) => {
                    let (path, found_bytes) = (self.path.clone(), filled as u64);
                    return Err(Error::Truncated { path, offset, expected_bytes, found_bytes });
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error("read", at, expected_bytes, error)),
            }
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.end("write", offset, bytes.len() as u64)?;
        let mut written = 0;
        while written < bytes.len() {
            let (at, rest) = (offset + written as u64, &bytes[written..]);
            match self.file.with(|file| file.seek_write(rest, at)) {
                Ok(0) => {
                    let source = io::ErrorKind::WriteZero.into();
                    return Err(self.error("write", at, rest.len() as u64, source));
                }
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error("write", at, rest.len() as u64, error)),
            }
        }
        Ok(())
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
