//! Errors of the medium: failures of the system below.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of asking the medium for something.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the medium. Holds plain data: the operation, its object, and the system's answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io {
        /// The operation: a verb, such as "write".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Byte offset in the file where the operation began, if it has one.
        offset: Option<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// No space left on the device, quota or file size limit reached.
    OutOfSpace {
        /// The operation that needed space.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Bytes asked for.
        bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// A read reached the end of the file.
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// Bytes expected there.
        expected_bytes: u64,
        /// Bytes that are there.
        found_bytes: u64,
    },
    /// Bytes of an encrypted file are not what was written there: changed, or moved from elsewhere.
    NotAuthentic {
        /// The file.
        path: PathBuf,
        /// Byte offset in the file, encrypted as it is.
        offset: u64,
    },
    /// The key does not open the store.
    WrongKey {
        /// The key file.
        path: PathBuf,
    },
    /// Another process, or another handle of this process, has the lock.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder's name in it, such as "process 4711 (adamant)".
        holder: Option<String>,
    },
    /// The system refused advice on memory that it had just given.
    Advice {
        /// The advice, as the system calls it.
        advice: &'static str,
        /// Bytes of memory.
        bytes: u64,
        /// The system's error.
        source: io::Error,
    },
    /// No address range large enough could be reserved.
    AddressSpace {
        /// Bytes needed at least.
        needed_bytes: u64,
        /// The system's error.
        source: io::Error,
    },
}

/// What is wrong with bytes that are not authentic.
pub const NOT_AUTHENTIC: &str = "expected bytes that were encrypted for this place, found others: \
                                 they were changed, or moved here; restore a backup, or let \
                                 `adamant repair` save what can be read";

impl Error {
    /// An I/O failure, sorted into `OutOfSpace` where the system says so.
    pub fn io(
        operation: &'static str,
        path: &Path,
        offset: Option<u64>,
        bytes: u64,
        source: io::Error,
    ) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                Self::OutOfSpace { operation, path: path.into(), bytes, source }
            }
            _ => Self::Io { operation, path: path.into(), offset, source },
        }
    }

    /// Whether more space on the device would cure it.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::OutOfSpace { .. })
    }

    /// Whether the system refused: the state of the file is then unknown, and not necessarily
    /// damaged.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Io { .. }
                | Self::OutOfSpace { .. }
                | Self::AddressSpace { .. }
                | Self::Advice { .. }
        )
    }

    /// Whether the system cannot do the operation, there or at all.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::Unsupported)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path, offset: Some(offset), source } => {
                write!(f, "could not {operation} {} at byte {offset}: {source}", path.display())
            }
            Self::Io { operation, path, offset: None, source } => {
                write!(f, "could not {operation} {}: {source}", path.display())
            }
            Self::OutOfSpace { operation, path, bytes, source } => write!(
                f,
                "could not {operation} {}: {bytes} bytes do not fit on the device ({source}); free some space and try again",
                path.display()
            ),
            Self::Truncated { path, offset, expected_bytes, found_bytes } => write!(
                f,
                "{} is too short: expected {expected_bytes} bytes at offset {offset}, found {found_bytes}",
                path.display()
            ),
            Self::NotAuthentic { path, offset } => {
                write!(f, "{} is damaged at byte {offset}: {NOT_AUTHENTIC}", path.display())
            }
            Self::WrongKey { path } => write!(
                f,
                "{}: expected the key that encrypts this store, found another one; nothing was changed",
                path.display()
            ),
            Self::Locked { path, holder: Some(holder) } => {
                write!(f, "{} is held by {holder}; close it there first", path.display())
            }
            Self::Locked { path, holder: None } => {
                write!(f, "{} is held by another process; close it there first", path.display())
            }
            Self::Advice { advice, bytes, source } => write!(
                f,
                "the system refused {advice} for {bytes} bytes of memory ({source}); allow the process more \
                 mappings (vm.max_map_count), or the call madvise where a sandbox forbids it"
            ),
            Self::AddressSpace { needed_bytes, source } => write!(
                f,
                "could not reserve {needed_bytes} bytes of address space ({source}); raise the limit on virtual memory (ulimit -v)"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. }
            | Self::OutOfSpace { source, .. }
            | Self::Advice { source, .. }
            | Self::AddressSpace { source, .. } => Some(source),
            _ => None,
        }
    }
}
