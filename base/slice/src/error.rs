//! Errors of slices.

use core::fmt;

/// The result of making a slice.
pub type Result<T> = core::result::Result<T, Error>;

/// The reason why a slice cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// More bytes than a slice can hold.
    TooLong {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes at most.
        bytes_max: u64,
    },
    /// The range does not lie within the bytes.
    OutOfRange {
        /// Bytes there are.
        bytes: u64,
    },
    /// The bytes are no UTF-8.
    NotUtf8 {
        /// Bytes from the start that are.
        valid_bytes: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, bytes_max } => {
                write!(f, "a slice holds at most {bytes_max} bytes, not {bytes}; cut it in pieces")
            }
            Self::OutOfRange { bytes } => {
                write!(f, "expected a range within {bytes} bytes, found one that leaves them")
            }
            Self::NotUtf8 { valid_bytes } => {
                write!(f, "expected UTF-8, found other bytes at byte {valid_bytes}; use a Slice")
            }
        }
    }
}

impl core::error::Error for Error {}
