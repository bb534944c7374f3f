//! The error type of the heap.

use std::fmt;
use std::path::PathBuf;

use adamant_medium::error::{Error as MediumError, NOT_AUTHENTIC};

/// The result of a heap operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a heap.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The medium failed; nothing was changed.
    Medium(MediumError),
    /// A write or sync failed after the commit was visible: memory may differ from what is durable.
    /// Reads go on; reopening recovers.
    Poisoned {
        /// The first failure, in words.
        cause: String,
    },
    /// Something durable is not what was written.
    Damaged {
        /// The file.
        file: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// Expected and found.
        what: String,
    },
    /// This is not a pool, or not one that this version can open.
    Unsupported {
        /// The file or directory.
        file: PathBuf,
        /// Expected and found, and what to do.
        what: String,
    },
    /// A heap offset that is no block, or a range beyond its block.
    InvalidPointer {
        /// The heap offset.
        offset: u64,
        /// The mismatch, in words.
        what: &'static str,
    },
    /// More was asked for than a heap can hold.
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes at most.
        bytes_max: u64,
    },
    /// The pool has no addresses left for its growth.
    AddressesExhausted {
        /// Bytes that the pool would have.
        bytes: u64,
        /// Bytes that it has addresses for.
        bytes_max: u64,
    },
    /// A name or a pointer has another type, or another version of it, than was asked for.
    WrongLayout {
        /// The name or pointer.
        place: String,
        /// The layout asked for.
        expected: String,
        /// The layout found.
        found: String,
        /// The way out, in words.
        advice: &'static str,
    },
    /// The heap was opened for reading only.
    ReadOnly,
    /// The call is not allowed here, such as a transaction within a transaction.
    Misuse {
        /// The misuse, and what to do instead.
        what: &'static str,
    },
}

impl Error {
    /// Whether more space would cure it: on the device, or of addresses.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::AddressesExhausted { .. } => true,
            _ => false,
        }
    }
}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Self {
        match error {
            MediumError::NotAuthentic { path: file, offset } => {
                Self::Damaged { file, offset, what: NOT_AUTHENTIC.into() }
            }
            other => Self::Medium(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Medium(error) => error.fmt(f),
            Self::Poisoned { cause } => write!(
                f,
                "a write or sync failed ({cause}); writes are refused until the store is reopened"
            ),
            Self::Damaged { file, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}", file.display())
            }
            Self::Unsupported { file, what } => write!(f, "{}: {what}", file.display()),
            Self::InvalidPointer { offset, what } => {
                write!(f, "heap offset {offset:#x} {what}; the pool may be damaged, run a check")
            }
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "{bytes} bytes were asked for, at most {bytes_max} are possible")
            }
            Self::AddressesExhausted { bytes, bytes_max } => write!(
                f,
                "the pool needs {bytes} bytes of addresses and has {bytes_max}, and none are free \
                 behind these; open the store with a larger address_bytes_max; without one it takes \
                 sixteen times what the pool has by then"
            ),
            Self::WrongLayout { place, expected, found, advice } => {
                write!(f, "{place}: expected {expected}, found {found}; {advice}")
            }
            Self::ReadOnly => f.write_str(
                "this was opened for reading only, so nothing can be changed; open it for writing",
            ),
            Self::Misuse { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Medium(error) => Some(error),
            _ => None,
        }
    }
}
