//! Detection of tmpfs: files in memory that live as long as the system runs.
//!
//! Thread safety: pure functions over descriptors.

use std::os::fd::AsFd;

/// Whether a file lies on tmpfs; files without a name do.
pub(crate) fn is_tmpfs(file: impl AsFd) -> rustix::io::Result<bool> {
    /// From the kernel's `magic.h`.
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    Ok(rustix::fs::fstatfs(file)?.f_type == TMPFS_MAGIC)
}
