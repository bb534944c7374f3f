//! The directory lock: exclusive for one handle, or shared by readers.
//!
//! Purpose: a lock file held by `flock`, with the holder's name in it for callers that are refused.
//! A holder of a share only reads, and may not even be able to write: the system says which
//! processes those are.
//! Invariants: the lock belongs to the open file, so a second open is refused in the same process
//! too, and the kernel releases it with the process, however that ends. The file is closed on exec.
//! A fork's child shares the open file: its drop of the handle does not unlock, but while it lives
//! it keeps the lock.
//! Thread safety: a value that only waits to be dropped.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::{Error, Result};
use crate::storage::Lock;
use crate::system::holder::{HOLDER_BYTES_MAX, holder_of_this_process, name_in};

/// The list of locks on Linux; other systems have no such file.
const LOCKS_PATH: &str = "/proc/locks";

/// A lock file that this process holds, or has a share of.
#[derive(Debug)]
pub(crate) struct OsLock {
    file: OwnedFd,
    process: Pid,
    is_shared: bool,
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
                let holder = sharers(&file).or_else(|| read_holder(&file));
                return Err(Error::Locked { path, holder });
            }
            Err(error) => return Err(failed("lock", error)),
        }
        write_holder(&file, &holder_of_this_process());
        Ok(OsLock { file, process: rustix::process::getpid(), is_shared: false })
    }

    /// Takes a share of the lock on the file `name` of a directory, which need not be writable.
    /// Creates the file if it is missing, as in a copied directory; `None` if the medium is
    /// read-only, so that no process can create it: then none can write either.
    pub(crate) fn share(directory: impl AsFd, name: &str, path: PathBuf) -> Result<Option<OsLock>> {
        let failed = |operation, error: Errno| Error::io(operation, &path, None, 0, error.into());
        let open = |flags| {
            let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o666))
        };
        let file = match open(OFlags::empty()) {
            Err(Errno::NOENT) => match open(OFlags::CREATE) {
                Err(Errno::ROFS) => return Ok(None),
                made => made.map_err(|error| failed("create", error))?,
            },
            found => found.map_err(|error| failed("open", error))?,
        };
        let process = rustix::process::getpid();
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(Some(OsLock { file, process, is_shared: true })),
            Err(Errno::WOULDBLOCK) => {
                let holder = read_holder(&file);
                Err(Error::Locked { path, holder })
            }
            Err(error) => Err(failed("lock", error)),
        }
    }
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // In a fork's child this handle is a copy: unlocking would take the lock from the parent.
        if rustix::process::getpid() == self.process {
            if !self.is_shared {
                write_holder(&self.file, "");
            }
            // Closing the file unlocks as well, but only when no fork's child has it open.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// The processes that have a share of the lock on a file, as far as the system tells: they must not
/// write their names into it. `None` if none is known.
fn sharers(file: &OwnedFd) -> Option<String> {
    let stat = rustix::fs::fstat(file).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let place = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let locks = std::fs::read_to_string(LOCKS_PATH).ok()?;
    let holders: Vec<&str> = locks.lines().filter_map(|line| sharer_in(line, &place)).collect();
    let first = holders.first()?;
    let program = std::fs::read_link(format!("/proc/{first}/exe"));
    let program = program.as_ref().ok().and_then(|path| path.file_name());
    let program = program.map_or("unknown program".into(), |name| name.to_string_lossy());
    let others = match holders.len() - 1 {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    Some(format!("process {first} ({program}){others}, which only reads"))
}

/// The process of a line of the system's list of locks, if it has a share of one on the file at
/// this device and inode. Such as `4: FLOCK  ADVISORY  READ 4711 fd:01:1835 0 EOF`.
fn sharer_in<'l>(line: &'l str, place: &str) -> Option<&'l str> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let is_share = words.next() == Some("FLOCK") && words.nth(1) == Some("READ");
    let (process, found) = (words.next()?, words.next()?);
    (is_share && found == place).then_some(process)
}

/// Puts the holder's name into the file. Failing (a full disk) is no reason to refuse the lock: the
/// name is for messages only, the lock is the kernel's.
fn write_holder(file: &OwnedFd, holder: &str) {
    let _ = rustix::fs::ftruncate(file, 0);
    let _ = rustix::io::pwrite(file, holder.as_bytes(), 0);
}

/// The name in the file; `None` while the holder has not written it yet.
fn read_holder(file: &OwnedFd) -> Option<String> {
    let mut buffer = [0; HOLDER_BYTES_MAX];
    let count = rustix::io::pread(file, &mut buffer[..], 0).ok()?;
    name_in(&buffer[..count])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_found_in_the_list_of_locks() {
        let place = "fd:01:1835";
        let sharer = |line| sharer_in(line, place);
        assert_eq!(sharer("4: FLOCK  ADVISORY  READ 4711 fd:01:1835 0 EOF"), Some("4711"));
        assert_eq!(sharer("4: FLOCK  ADVISORY  WRITE 4711 fd:01:1835 0 EOF"), None);
        assert_eq!(sharer("4: POSIX  ADVISORY  READ 4711 fd:01:1835 0 EOF"), None);
        assert_eq!(sharer("4: FLOCK  ADVISORY  READ 4711 fd:01:18351 0 EOF"), None);
        assert_eq!(sharer("4: -> FLOCK  ADVISORY  READ 4711 fd:01:1835 0 EOF"), None);
        assert_eq!(sharer("4: FLOCK"), None);
        assert_eq!(sharer(""), None);
    }
}
