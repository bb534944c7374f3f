//! One process, one handle: the exclusive lock on a directory.
//!
//! Purpose: a lock file held by `flock`, with the holder's name in it for those who are refused.
//! Invariants: the lock belongs to the open file, so a second open is refused in the same process
//! too, and the kernel releases it with the process, however that ends. The file is closed on
//! exec. A fork's child shares the open file: its drop of the handle does not unlock, but its
//! living on keeps the lock until it ends too.
//! Thread safety: a value that only waits to be dropped.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::storage::Lock;

/// Bytes of a lock file that are read for the holder's name.
const HOLDER_BYTES_MAX: usize = 256;

/// A lock file that we hold.
#[derive(Debug)]
pub(crate) struct OsLock {
    file: OwnedFd,
    process: Pid,
}

impl OsLock {
    /// Takes the lock on the file `name` of a directory, creating the file if missing.
    pub(crate) fn take(directory: impl AsFd, name: &str, path: PathBuf) -> Result<OsLock> {
        let failed = |operation, error: Errno| Error::io(operation, &path, None, 0, error.into());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o666))
            .map_err(|error| failed("open", error))?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = read_holder(&file);
                return Err(Error::Locked { path, holder });
            }
            Err(error) => return Err(failed("lock", error)),
        }
        write_holder(&file, &holder_of_this_process());
        Ok(OsLock { file, process: rustix::process::getpid() })
    }
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // In a fork's child this handle is a copy: unlocking would take the lock from the parent.
        if rustix::process::getpid() == self.process {
            write_holder(&self.file, "");
            // Closing the file unlocks as well, but only when no fork's child has it open.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// What this process calls itself in a lock, such as "process 4711 (adamant)".
pub(crate) fn holder_of_this_process() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| path.file_name().map(OsString::from))
        .map_or_else(|| "unknown program".into(), |name| name.to_string_lossy().into_owned());
    format!("process {} ({program})", std::process::id())
}

/// Puts the holder's name into the file. Failing (a full disk) is no reason to refuse the lock:
/// the name is for messages only, the lock is the kernel's.
fn write_holder(file: &OwnedFd, holder: &str) {
    let _ = rustix::fs::ftruncate(file, 0);
    let _ = rustix::io::pwrite(file, holder.as_bytes(), 0);
}

/// The name in the file; `None` while the holder has not written it yet.
fn read_holder(file: &OwnedFd) -> Option<String> {
    let mut buffer = [0; HOLDER_BYTES_MAX];
    let count = rustix::io::pread(file, &mut buffer[..], 0).ok()?;
    let holder = String::from_utf8_lossy(&buffer[..count]);
    let holder: String = holder.chars().filter(|character| !character.is_control()).collect();
    (!holder.is_empty()).then_some(holder)
}

/// The error for a lock that another handle of this process has.
pub(crate) fn held_here(path: &Path) -> Error {
    Error::Locked { path: path.into(), holder: Some(holder_of_this_process()) }
}
