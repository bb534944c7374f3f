//! What the calls of every system are made whole by: reads, writes, and new directories.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::names::parent_of;
use crate::storage::Directory;
use crate::system::handle::{Failure, source_of};

/// Fills a buffer from an offset on by calls that may read less, and read nothing at the end.
pub(crate) fn read_all(
    path: &Path,
    buffer: &mut [u8],
    offset: u64,
    read: impl Fn(&mut [u8], u64) -> std::result::Result<usize, Failure>,
) -> Result<()> {
    let expected_bytes = buffer.len() as u64;
    let mut filled = 0;
    while filled < buffer.len() {
        let at = offset.saturating_add(filled as u64);
        match read(&mut buffer[filled..], at) {
            Ok(0) => {
                let (path, found_bytes) = (path.into(), filled as u64);
                return Err(Error::Truncated { path, offset, expected_bytes, found_bytes });
            }
            Ok(count) => filled += count,
            Err(error) => {
                return Err(Error::io("read", path, Some(at), expected_bytes, source_of(error)));
            }
        }
    }
    Ok(())
}

/// Writes all bytes from an offset on by calls that may write less.
pub(crate) fn write_all(
    path: &Path,
    bytes: &[u8],
    offset: u64,
    write: impl Fn(&[u8], u64) -> std::result::Result<usize, Failure>,
) -> Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let (at, rest) = (offset.saturating_add(written as u64), &bytes[written..]);
        let failed = |source| Error::io("write", path, Some(at), rest.len() as u64, source);
        match write(rest, at) {
            Ok(0) => return Err(failed(io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) => return Err(failed(source_of(error))),
        }
    }
    Ok(())
}

/// Opens a directory, creating it (but not its parents) if missing. Its name is durable when this
/// returns, also if it was made before: by a call that could not make it so, or by the user.
pub(crate) fn create_directory<D: Directory>(
    path: &Path,
    open: impl Fn(&Path) -> Result<D>,
) -> Result<D> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("create directory", path, None, 0, error));
        }
        _ => {}
    }
    let opened = open(path)?;
    // Where links lead.
    let place = fs::canonicalize(path);
    let place = place.map_err(|error| Error::io("find", path, None, 0, error))?;
    match open(parent_of(&place)) {
        Ok(parent) => parent.sync()?,
        // Nothing can be done about it, and what is in there may be used.
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {}
        Err(error) => return Err(error),
    }
    Ok(opened)
}
