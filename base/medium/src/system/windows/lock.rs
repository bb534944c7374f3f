//! The directory lock of Windows: exclusive for one handle, or shared by readers.
//!
//! Purpose: a lock file of which one byte is locked, far behind the holder's name: bytes that are
//! locked cannot be read, and other processes are to read the name.
//! Invariants: the lock belongs to the open file, so a second open is refused in the same process
//! too, and the system releases it with the process, however that ends.
//! Thread safety: a value that only waits to be dropped.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use crate::error::{Error, Result};
use crate::storage::Lock;
use crate::system::holder::{HOLDER_BYTES_MAX, holder_of_this_process, name_in};

/// Upper half of the offset of the locked byte: 2^62.
const LOCKED_HIGH: u32 = 1 << 30;

/// A lock file that this process holds, or has a share of.
#[derive(Debug)]
pub(crate) struct OsLock {
    file: File,
    is_shared: bool,
}

/// The place of the locked byte.
fn place() -> OVERLAPPED {
    let mut at = OVERLAPPED::default();
    at.Anonymous.Anonymous.OffsetHigh = LOCKED_HIGH;
    at
}

/// Locks the byte; false if another handle has it.
fn try_lock(file: &File, flags: u32) -> io::Result<bool> {
    let (handle, mut at) = (file.as_raw_handle(), place());
    let flags = flags | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: an open handle, and a place of ours that outlives the call, which does not wait.
    if unsafe { LockFileEx(handle, flags, 0, 1, 0, &raw mut at) } != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error().map(|code| code as u32) {
        Some(ERROR_LOCK_VIOLATION | ERROR_IO_PENDING) => Ok(false),
        _ => Err(error),
    }
}

impl OsLock {
    /// Takes the lock on the file at a path, creating the file if missing; `path` is for messages.
    pub(crate) fn take(at: &Path, path: PathBuf) -> Result<OsLock> {
        let failed = |operation, error| Error::io(operation, &path, None, 0, error);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(at);
        let file = file.map_err(|error| failed("open", error))?;
        if !try_lock(&file, LOCKFILE_EXCLUSIVE_LOCK).map_err(|error| failed("lock", error))? {
            let holder = read_holder(&file);
            return Err(Error::Locked { path, holder });
        }
        let lock = OsLock { file, is_shared: false };
        lock.write_holder(&holder_of_this_process());
        Ok(lock)
    }

    /// Takes a share of the lock on the file at a path, which need not be writable. Creates the
    /// file if it is missing, as in a copied directory; `None` if the medium is read-only, so that
    /// no process can create it: then none can write either.
    pub(crate) fn share(at: &Path, path: PathBuf) -> Result<Option<OsLock>> {
        let failed = |operation, error| Error::io(operation, &path, None, 0, error);
        let file = match File::open(at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match OpenOptions::new().write(true).create(true).truncate(false).open(at) {
                    Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                        return Ok(None);
                    }
                    made => drop(made.map_err(|error| failed("create", error))?),
                }
                File::open(at).map_err(|error| failed("open", error))?
            }
            found => found.map_err(|error| failed("open", error))?,
        };
        if !try_lock(&file, 0).map_err(|error| failed("lock", error))? {
            let holder = read_holder(&file);
            return Err(Error::Locked { path, holder });
        }
        Ok(Some(OsLock { file, is_shared: true }))
    }

    /// Puts the holder's name into the file. Failing (a full disk) is no reason to refuse the lock:
    /// the name is for messages only.
    fn write_holder(&self, holder: &str) {
        let _ = self.file.set_len(0);
        let _ = self.file.seek_write(holder.as_bytes(), 0);
    }
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        if !self.is_shared {
            self.write_holder("");
        }
        // Closing the file unlocks as well, but some time later.
        let (handle, mut at) = (self.file.as_raw_handle(), place());
        // SAFETY: an open handle, and a place of ours that outlives the call.
        let _ = unsafe { UnlockFileEx(handle, 0, 1, 0, &raw mut at) };
    }
}

/// The name in the file; `None` while the holder has not written it yet.
fn read_holder(file: &File) -> Option<String> {
    let mut buffer = [0; HOLDER_BYTES_MAX];
    let count = file.seek_read(&mut buffer, 0).ok()?;
    name_in(&buffer[..count])
}
