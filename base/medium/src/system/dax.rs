//! Detection of direct access (DAX): whether a directory's files are durable memory.
//!
//! Purpose: to refuse media that are not durable memory. A shared mapping of an ordinary file is
//! memory of the page cache: flushing its lines makes nothing durable.
//! Thread safety: pure functions over descriptors.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use crate::address::lines::lines;
use crate::address::persist::{Flushing, Persist};
use crate::address::tmpfs::is_tmpfs;
use crate::error::{Error, Result};
use crate::names::name_of;

/// The medium of a directory's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Medium {
    /// Memory that survives a loss of power.
    PersistentMemory,
    /// Memory that lives as long as the system runs.
    Tmpfs,
    /// Files behind a page cache.
    Cached,
}

/// The way to make stores to shared mappings of this directory's files durable; `None` when they
/// never are, or not as `how` asks. `name` is that of a file that may be there.
///
/// # Errors
/// Those of the system.
pub(crate) fn persist(
    directory: &OwnedFd,
    path: &Path,
    how: Flushing,
    name: &str,
) -> Result<Option<Arc<dyn Persist>>> {
    match (medium(directory, path, name)?, how) {
        (Medium::Cached, _) | (Medium::Tmpfs, Flushing::Auto) => Ok(None),
        _ => Ok(lines(how)),
    }
}

/// The medium of a directory's files; `name` is that of a file that may be there.
fn medium(directory: &OwnedFd, path: &Path, name: &str) -> Result<Medium> {
    use rustix::fs::{Mode, OFlags};
    /// Bytes of the file that is mapped on trial.
    const TRIAL_BYTES: u64 = 4096;
    let failed = |error: rustix::io::Errno| Error::io("examine", path, None, 0, error.into());
    if is_tmpfs(directory).map_err(failed)? {
        return Ok(Medium::Tmpfs);
    }
    // That file, else one without a name, gone with its descriptor; all file systems with DAX
    // support these. A failure here is not reported: this only asks, and the real call will report
    // it.
    let open = |name: &std::ffi::OsStr, flags: OFlags| {
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::openat(directory, name, flags | OFlags::RDWR | OFlags::CLOEXEC, mode)
    };
    let found = open(&name_of(name), OFlags::empty()).or_else(|_| {
        let made = open(".".as_ref(), OFlags::TMPFILE)?;
        rustix::fs::ftruncate(&made, TRIAL_BYTES)?;
        Ok::<_, rustix::io::Errno>(made)
    });
    let is_direct = found.is_ok_and(|file| can_map_sync(&file, TRIAL_BYTES as usize));
    Ok(if is_direct { Medium::PersistentMemory } else { Medium::Cached })
}

/// Whether the file can be mapped so that its stores need no sync.
fn can_map_sync(file: &impl AsFd, len: usize) -> bool {
    use rustix::mm::{MapFlags, ProtFlags};
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: without MAP_FIXED the kernel picks addresses that nothing else uses.
    let mapped = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, access, flags, file, 0) };
    let Ok(address) = mapped else { return false };
    // SAFETY: just mapped, and no other code knows the address.
    let unmapped = unsafe { rustix::mm::munmap(address, len) };
    debug_assert!(unmapped.is_ok(), "munmap of our own mapping: {unmapped:?}");
    true
}
