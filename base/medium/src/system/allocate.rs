//! Allocation of space for a range of a file (posix_fallocate), system by system.
//!
//! Purpose: a write to the range cannot run out of space behind it (R5), as far as the file system
//! can promise that: one that writes each block elsewhere cannot.
//! Invariants: a file never becomes shorter, and none of its bytes change. Where there is no such
//! call, the file grows by zeros that are written; a range below its end is left as it is, since
//! another thread may write to it, and such systems make no holes either.
//! Thread safety: one thread at a time lets a file grow.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, Result, retry_on_intr};

/// Bytes of zeros that one call writes.
const ZEROS_BYTES: u64 = 256 << 10;
/// The longest file: an offset is a signed number.
const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Backs `len` bytes at `offset` with space; the file grows to their end if it is shorter.
pub(crate) fn allocate(file: &OwnedFd, offset: u64, len: u64) -> Result<()> {
    let end = offset.checked_add(len).filter(|end| *end <= FILE_BYTES_MAX).ok_or(Errno::FBIG)?;
    allocate_by_call(file, offset, end)
}

/// What has no such call refuses it in one of these ways: ZFS of FreeBSD by `INVAL`, which says
/// nothing else there for such a range.
#[cfg(not(target_vendor = "apple"))]
fn allocate_by_call(file: &OwnedFd, offset: u64, end: u64) -> Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::empty();
    match retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, end - offset)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => grow_by_zeros(file, offset, end),
        Err(Errno::INVAL) if cfg!(target_os = "freebsd") => grow_by_zeros(file, offset, end),
        allocated => allocated,
    }
}

/// Space behind the end of the file, which then grows into it. There is a way that asks for a range
/// within the file as well, but it sets the length to the end of that, downwards, too.
#[cfg(target_vendor = "apple")]
fn allocate_by_call(file: &OwnedFd, offset: u64, end: u64) -> Result<()> {
    use std::os::fd::AsRawFd;
    let found = len(file)?;
    if end <= found {
        return Ok(());
    }
    let mut store = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: (end - found) as i64,
        fst_bytesalloc: 0,
    };
    // SAFETY: an open descriptor, and a place of ours that the call fills.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PREALLOCATE, &raw mut store) };
    if done == -1 {
        let error = std::io::Error::last_os_error();
        return match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::NOTSUP | Errno::INVAL) | None => {
                grow_by_zeros(file, offset, end)
            }
            Some(error) => Err(error),
        };
    }
    retry_on_intr(|| rustix::fs::ftruncate(file, end))
}

fn len(file: &OwnedFd) -> Result<u64> {
    Ok(rustix::fs::fstat(file)?.st_size.unsigned_abs())
}

/// Writes zeros from the end of the file, or from `offset` if that is behind it, to `end`.
fn grow_by_zeros(file: &OwnedFd, offset: u64, end: u64) -> Result<()> {
    let mut at = len(file)?.max(offset);
    let zeros = vec![0; end.saturating_sub(at).min(ZEROS_BYTES) as usize];
    while at < end {
        let count = (end - at).min(ZEROS_BYTES) as usize;
        match retry_on_intr(|| rustix::io::pwrite(file, &zeros[..count], at))? {
            0 => return Err(Errno::NOSPC),
            written => at += written as u64,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Either way the file only grows, and keeps its bytes: a way of the system that cut it at the
    /// end of the range would have lost all pages behind the tables of a zone.
    #[test]
    fn allocation_never_cuts_and_never_changes_bytes() {
        for way in [allocate_by_call, grow_by_zeros] {
            let mut expected: Vec<u8> = (0..300_000_u32).map(|at| at as u8 | 1).collect();
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), &expected).expect("bytes");
            let open = std::fs::OpenOptions::new().read(true).write(true).open(file.path());
            let descriptor = OwnedFd::from(open.expect("open"));
            let ranges = [
                (0, 1),
                (4096, 8192),
                (0, 300_000),
                (299_999, 300_001),
                (4096, 8192),
                (900_000, 1_000_000),
            ];
            for (offset, end) in ranges {
                way(&descriptor, offset, end).expect("allocated");
                expected.resize(expected.len().max(end as usize), 0);
                let mut found = Vec::new();
                file.reopen().expect("open").read_to_end(&mut found).expect("read");
                assert_eq!(found.len(), expected.len(), "{offset}..{end}");
                assert!(found == expected, "{offset}..{end}");
            }
        }
    }

    #[test]
    fn no_file_is_longer_than_offsets_can_say() {
        let file = OwnedFd::from(tempfile::tempfile().expect("a file"));
        for (offset, len) in [(u64::MAX, 1), (1 << 63, 1), ((1 << 63) - 4096, 4097)] {
            assert_eq!(allocate(&file, offset, len), Err(Errno::FBIG));
        }
    }
}
