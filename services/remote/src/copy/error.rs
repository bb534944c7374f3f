//! Errors of copies.

use std::fmt;
use std::path::PathBuf;

use super::digest::Digest;

/// A failure of a copy. The source is unchanged; the target is no store until a copy has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum CopyError {
    /// The store on a machine failed.
    Local(adamant::Error),
    /// The store on objects failed.
    Remote(crate::Error),
    /// Something exists at the target.
    TargetExists {
        /// The target.
        target: String,
    },
    /// The heap of the store holds objects of a program, which a copy by keyspaces would lose.
    OtherObjects {
        /// The store.
        source: String,
    },
    /// The copy, read again, differs from the source.
    Differs {
        /// The copy.
        target: String,
        /// The digest of the source.
        expected: Digest,
        /// The digest of the copy.
        found: Digest,
    },
    /// A directory could not be created, renamed or removed.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
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
