//! Errors of the tables and blob files of a log-structured merge tree.

use std::fmt;
use std::path::{Path, PathBuf};

use adamant_heap::Error as HeapError;
use adamant_medium::error::{Error as MediumError, NOT_AUTHENTIC};

/// What was expected and found where a build without zstd reads what is compressed by it.
pub(crate) const NOT_BUILT: &str = "expected bytes that are not compressed or compressed by lz4, \
    found zstd, and this program is built without the feature zstd; build it with that feature";

/// The result of an operation of the tree or of one of its files.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the tree or of one of its files.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The storage backend failed.
    Medium(MediumError),
    /// The heap failed, or a heap object is not what a tree keeps there.
    Heap(HeapError),
    /// File numbers are exhausted.
    FilesExhausted,
    /// The work was told to stop.
    Stopped,
    /// One transaction wrote more than a memtable can hold.
    TransactionTooLarge,
    /// The key is too long.
    KeyTooLong {
        /// Bytes of the key.
        bytes: usize,
        /// Maximum bytes of a key.
        bytes_max: usize,
    },
    /// The value is too long for where it was to be stored.
    ValueTooLong {
        /// Bytes of the value.
        bytes: u64,
        /// Maximum bytes of a value there.
        bytes_max: u64,
    },
    /// The sequence number is larger than any commit's.
    SequenceTooLarge {
        /// The number.
        sequence: u64,
        /// The maximum.
        sequence_max: u64,
    },
    /// Entries to be written in order are not in order.
    NotAscending {
        /// The file that was being written.
        file: PathBuf,
        /// The position of the entry that is not above the previous one.
        position: u64,
    },
    /// The value of an entry of kind `Blob` is no pointer.
    NotPointer {
        /// Bytes of the value.
        bytes: usize,
    },
    /// The value of an entry of kind `Merge` is no stored operand.
    NotOperand {
        /// The expected content.
        what: &'static str,
    },
    /// A key has operands, and there is no operator that merges them.
    NoOperator {
        /// The name under which none is registered; `None`: the tree has no operator.
        operator: Option<Box<str>>,
    },
    /// The merge operator failed. The operands stay as they are.
    MergeFailed {
        /// The name of the operator.
        operator: Box<str>,
        /// Why, as the operator says.
        reason: String,
    },
    /// A table was to be finished without any entry.
    TableEmpty,
    /// The start of a range is not below its end.
    RangeEmpty,
    /// A file of the store is missing.
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// The file is intact but cannot be used here: it has another kind, format, pool or number.
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The expected and the found state, and what to do.
        what: String,
    },
    /// The file may be intact, but this build cannot read all of it: a part is compressed by a
    /// method whose feature was off when the program was built.
    NotBuilt {
        /// The file.
        file: PathBuf,
        /// Offset of the part in the file, in bytes.
        offset: u64,
        /// The expected and the found method, and what to do.
        what: &'static str,
    },
    /// An option has a value that it cannot have.
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// The values that it can have.
        expected: String,
        /// Its value.
        found: String,
    },
    /// The content of the file is not what was written to it.
    Damaged {
        /// The file.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The expected and the found content.
        what: String,
    },
}

impl Error {
    /// The content at `offset` of `file` cannot have been written there.
    pub fn damaged(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), offset, what: what.into() }
    }

    /// What is at `offset` of `file` cannot be restored: it is damaged, or this build is without
    /// its compression.
    pub(crate) fn unreadable(
        file: &Path,
        offset: u64,
        is_built: bool,
        what: &dyn fmt::Display,
    ) -> Self {
        match is_built {
            true => Self::damaged(file, offset, what.to_string()),
            false => Self::NotBuilt { file: file.into(), offset, what: NOT_BUILT },
        }
    }

    /// Whether more space on the device would cure the error.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::Heap(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// The file that cannot be read, if the error is the damage of a file or what this build lacks.
    pub(crate) fn unreadable_file(&self) -> Option<&Path> {
        match self {
            Self::Medium(MediumError::Truncated { path, .. }) => Some(path),
            Self::Missing { file }
            | Self::Unsupported { file, .. }
            | Self::NotBuilt { file, .. }
            | Self::Damaged { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether a file is missing, truncated, or has other content than was written to it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Medium(error) => matches!(error, MediumError::Truncated { .. }),
            Self::Heap(error) => {
                matches!(error, HeapError::Damaged { .. } | HeapError::InvalidPointer { .. })
            }
            Self::Missing { .. }
            | Self::Unsupported { .. }
            | Self::Damaged { .. }
            | Self::NotOperand { .. } => true,
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
            Self::NotOperand { what } => {
                write!(f, "{what}, found other bytes; restore a backup, or repair the store")
            }
            Self::NoOperator { operator: None } => f.write_str(
                "expected a merge operator, found none; open the keyspace with one",
            ),
            Self::NoOperator { operator: Some(operator) } => write!(
                f,
                "expected a merge operator registered as {operator:?}, found none; register it in \
                 the options of the store"
            ),
            Self::MergeFailed { operator, reason } => {
                write!(f, "the merge operator {operator:?} failed: {reason}")
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
            Self::NotBuilt { file, offset, what } => {
                write!(f, "{} at byte {offset}: {what}", file.display())
            }
            Self::InvalidOption { option, expected, found } => {
                write!(f, "option {option}: expected {expected}, found {found}")
            }
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
