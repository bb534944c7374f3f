//! What can go wrong in the tables and blob files of a log-structured merge tree.

use std::fmt;
use std::path::{Path, PathBuf};

use adamant_heap::Error as HeapError;
use adamant_medium::error::Error as MediumError;

/// The result of an operation of the tree or of one of its files.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the tree or of one of its files.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The medium failed.
    Medium(MediumError),
    /// The heap failed, or what lies there is not what a tree keeps there.
    Heap(HeapError),
    /// There are no more numbers for files.
    FilesExhausted,
    /// The work was told to end.
    Stopped,
    /// One transaction wrote more than a memtable can hold.
    TransactionTooLarge,
    /// The key is longer than a key may be.
    KeyTooLong {
        /// Bytes of the key.
        bytes: usize,
        /// Bytes that a key may have.
        bytes_max: usize,
    },
    /// The value is longer than a value may be where it was to be put.
    ValueTooLong {
        /// Bytes of the value.
        bytes: u64,
        /// Bytes that a value may have there.
        bytes_max: u64,
    },
    /// The sequence number is larger than any commit's.
    SequenceTooLarge {
        /// The number.
        sequence: u64,
        /// The largest there is.
        sequence_max: u64,
    },
    /// Entries that were to be written in order are not.
    NotAscending {
        /// The file that was being written.
        file: PathBuf,
        /// How many entries come before the one that is not above the entry before it.
        position: u64,
    },
    /// The value of an entry of kind `Blob` is no pointer.
    NotPointer {
        /// Bytes of the value.
        bytes: usize,
    },
    /// A table that was to be finished holds nothing.
    TableEmpty,
    /// The start of a range is not below its end.
    RangeEmpty,
    /// A file that belongs to the store is not there.
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file is whole, but none that can be used here: of another kind, format, pool or number.
    Unsupported {
        /// The file.
        file: PathBuf,
        /// What was expected, what was found, and what to do.
        what: String,
    },
    /// The file does not hold what was written to it.
    Damaged {
        /// The file.
        file: PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// What was expected, and what was found.
        what: String,
    },
}

impl Error {
    /// What was found at `offset` of `file` cannot have been written there.
    pub fn damaged(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), offset, what: what.into() }
    }

    /// Whether more space on the device would cure it.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::Heap(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// The file that is damaged, if this is the damage of one.
    pub(crate) fn damaged_file(&self) -> Option<&Path> {
        match self {
            Self::Medium(MediumError::Truncated { path, .. }) => Some(path),
            Self::Missing { file }
            | Self::Unsupported { file, .. }
            | Self::Damaged { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether a file is missing, cut, or does not hold what was written to it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Medium(error) => matches!(error, MediumError::Truncated { .. }),
            Self::Heap(error) => {
                matches!(error, HeapError::Damaged { .. } | HeapError::InvalidPointer { .. })
            }
            Self::Missing { .. } | Self::Unsupported { .. } | Self::Damaged { .. } => true,
            _ => false,
        }
    }
}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        Self::Heap(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Medium(error) => error.fmt(f),
            Self::Heap(error) => error.fmt(f),
            Self::FilesExhausted => f.write_str(
                "the store has made 2^32 files, as many as have numbers; a compacted copy begins anew",
            ),
            Self::Stopped => f.write_str("the work was ended, for the store is being closed"),
            Self::TransactionTooLarge => f.write_str(
                "one transaction writes more to a keyspace than its memtable can hold; make several \
                 of it, or load sorted entries",
            ),
            Self::KeyTooLong { bytes, bytes_max } => {
                write!(f, "the key has {bytes} bytes, a key may have {bytes_max}")
            }
            Self::ValueTooLong { bytes, bytes_max } => {
                write!(f, "the value has {bytes} bytes, a value may have {bytes_max} there")
            }
            Self::SequenceTooLarge { sequence, sequence_max } => {
                write!(f, "expected a sequence number of at most {sequence_max}, found {sequence}")
            }
            Self::NotAscending { file, position } => write!(
                f,
                "expected entries that ascend by key and descend by sequence number, found that \
                 number {position} (counted from 0) for {} is at or below the one before it",
                file.display()
            ),
            Self::NotPointer { bytes } => {
                write!(f, "expected a blob pointer of 20 bytes, found {bytes} bytes")
            }
            Self::TableEmpty => f.write_str(
                "expected a table with an entry or range tombstone, found nothing to write; drop it",
            ),
            Self::RangeEmpty => {
                f.write_str("expected a range that starts below its end, found an empty one")
            }
            Self::Missing { file } => {
                write!(f, "{} is missing; put it back, or restore a backup", file.display())
            }
            Self::Unsupported { file, what } => write!(f, "{}: {what}", file.display()),
            Self::Damaged { file, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}", file.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Medium(error) => Some(error),
            Self::Heap(error) => Some(error),
            _ => None,
        }
    }
}
