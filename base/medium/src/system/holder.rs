//! The holder of a lock, by the name in the lock file.

use std::ffi::OsString;
use std::path::Path;

use crate::error::Error;

/// Bytes of a lock file that are read for the holder's name.
pub(crate) const HOLDER_BYTES_MAX: usize = 256;

/// The name of this process in a lock, such as "process 4711 (adamant)".
pub(crate) fn holder_of_this_process() -> String {
    let program = std::env::current_exe()
        .ok()
        .and_then(|path| path.file_name().map(OsString::from))
        .map_or_else(|| "unknown program".into(), |name| name.to_string_lossy().into_owned());
    format!("process {} ({program})", std::process::id())
}

/// The name that the bytes of a lock file are; `None` while the holder has not written it yet.
pub(crate) fn name_in(bytes: &[u8]) -> Option<String> {
    let holder = String::from_utf8_lossy(bytes);
    let holder: String = holder.chars().filter(|character| !character.is_control()).collect();
    (!holder.is_empty()).then_some(holder)
}

/// The error for a lock that another handle of this process has.
pub(crate) fn held_here(path: &Path) -> Error {
    Error::Locked { path: path.into(), holder: Some(holder_of_this_process()) }
}
