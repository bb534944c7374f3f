//! What can go wrong when a store is copied.

use std::fmt;
use std::path::PathBuf;

use super::digest::Digest;

/// A failure of a copy. What was copied from is as it was; what was copied to is no store until the copy has
/// ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyError {
    /// The store on a machine failed.
    Local(adamant::Error),
    /// The store on objects failed.
    Remote(crate::Error),
    /// Something is where the copy is to be.
    TargetExists {
        /// Where.
        target: String,
    },
    /// The heap of the store holds objects of a program's own, which a copy by keyspaces would lose.
    OtherObjects {
        /// The store.
        source: String,
    },
    /// What is read of the copy is not what was written.
    Differs {
        /// The copy.
        target: String,
        /// What was read of the source.
        expected: Digest,
        /// What was read of the copy.
        found: Digest,
    },
    /// A directory could not be made, renamed or removed.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
}

impl From<adamant::Error> for CopyError {
    fn from(error: adamant::Error) -> Self {
        Self::Local(error)
    }
}

impl From<crate::Error> for CopyError {
    fn from(error: crate::Error) -> Self {
        Self::Remote(error)
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(error) => error.fmt(f),
            Self::Remote(error) => error.fmt(f),
            Self::TargetExists { target } => write!(
                f,
                "there is something at {target} already; name a place where nothing is (or, of a URL, \
                 have it replaced: --replace)"
            ),
            Self::OtherObjects { source } => write!(
                f,
                "the heap of {source} holds objects beside the keyspaces, which a copy would lose; use \
                 `adamant backup`, or move them to a keyspace first"
            ),
            Self::Differs { target, expected, found } => write!(
                f,
                "the copy {target} is not what was read: expected {expected}, found {found}; nothing was \
                 made of it, check the memory and the disk of this machine and run it again"
            ),
            Self::Directory { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Local(error) => Some(error),
            Self::Remote(error) => Some(error),
            _ => None,
        }
    }
}
