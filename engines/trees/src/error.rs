//! Errors of the trees.

use std::fmt;

use adamant_heap::error::Error as HeapError;

/// The result of a tree operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a tree.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The heap failed. Within a transaction the caller must let the transaction fail, too.
    Heap(HeapError),
    /// The key is too long.
    KeyTooLong {
        /// Bytes of the key.
        bytes: usize,
        /// Maximum bytes of a key.
        bytes_max: usize,
    },
    /// The value is too long.
    ValueTooLong {
        /// Bytes of the value.
        bytes: usize,
        /// Maximum bytes of a value.
        bytes_max: u64,
    },
    /// The tree holds pairs of 8-byte keys and 8-byte values only.
    NotWords {
        /// Bytes of the key.
        key_bytes: usize,
        /// Bytes of the value.
        value_bytes: usize,
    },
    /// Pairs to be loaded in order are not in order.
    NotAscending {
        /// The position of the pair whose key is not above the previous one.
        position: u64,
    },
    /// The block is not the head of a tree of this kind.
    NotThisTree {
        /// Heap offset of the block.
        head: u64,
        /// The kind of tree that was expected there.
        expected: &'static str,
    },
    /// A block of the tree has invalid content.
    Damaged {
        /// Heap offset of the block.
        block: u64,
        /// The fault.
        what: &'static str,
    },
    /// The tree would exceed the maximum number of levels.
    TooHigh {
        /// The maximum.
        height_max: usize,
    },
}

impl Error {
    /// Whether more space on the device would cure the error.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Heap(error) if error.is_out_of_space())
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
            Self::Heap(error) => error.fmt(f),
            Self::KeyTooLong { bytes, bytes_max } => {
                write!(f, "the key has {bytes} bytes, a key may have {bytes_max}")
            }
            Self::ValueTooLong { bytes, bytes_max } => {
                write!(f, "the value has {bytes} bytes, a value may have {bytes_max}")
            }
            Self::NotWords { key_bytes, value_bytes } => write!(
                f,
                "expected a key and a value of 8 bytes each, found {key_bytes} and {value_bytes}; a \
                 tree that was created for words takes no others"
            ),
            Self::NotAscending { position } => write!(
                f,
                "expected keys that ascend, found that of pair {position} (counted from 0) at or \
                 below the one before it; sort them first"
            ),
            Self::NotThisTree { head, expected } => write!(
                f,
                "heap offset {head:#x} is not the head of a {expected} tree; \
                 open it with the engine that created it"
            ),
            Self::Damaged { block, what } => {
                write!(f, "the tree's block at heap offset {block:#x} {what}; run a check")
            }
            Self::TooHigh { height_max } => {
                write!(f, "the tree would need more than {height_max} levels; copy it to a new one")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Heap(error) => Some(error),
            _ => None,
        }
    }
}
