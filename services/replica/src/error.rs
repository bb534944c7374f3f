//! Errors of a replica's storage.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of an operation on a node's storage.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a node's storage.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// One of the node's stores failed.
    Store(adamant::Error),
    /// The system refused an operation on a snapshot's file.
    System {
        /// A verb, such as "write".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Something is at the path, but no node.
    NotANode {
        /// The path.
        path: PathBuf,
        /// The content found there.
        found: String,
    },
    /// The directory belongs to another node of the cluster.
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// The node to be opened.
        expected: u64,
        /// The node for which the directory was created.
        found: u64,
    },
    /// The directory was written by a version that this one does not know.
    Format {
        /// The directory.
        path: PathBuf,
        /// The supported format.
        expected: u32,
        /// The one found.
        found: u32,
    },
    /// Durable data is damaged or missing.
    Damaged {
        /// The place.
        place: String,
        /// The expected content.
        expected: String,
        /// The content.
        found: String,
    },
    /// A snapshot has other content than announced, or is incomplete.
    Snapshot {
        /// The expected state.
        expected: String,
        /// The state found.
        found: String,
    },
    /// Entries to be applied do not follow the last applied one.
    Order {
        /// The last applied entry.
        applied: String,
        /// The entry to be applied.
        found: String,
    },
    /// An entry followed a snapshot that was not installed.
    NotInstalled {
        /// The entry.
        entry: u64,
    },
    /// A value to be stored has no encoding.
    Encoding {
        /// The encoder's message.
        found: String,
    },
    /// The runtime was shut down before the call was made.
    Stopped,
}

impl Error {
    /// For files of snapshots: the operation, and its path.
    pub(crate) fn system(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { operation, path: path.into(), source }
    }

    pub(crate) fn damaged(
        place: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Damaged { place: place.into(), expected: expected.into(), found: found.into() }
    }

    pub(crate) fn snapshot(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Snapshot { expected: expected.into(), found: found.into() }
    }

    /// Whether durable data is missing or damaged. The node may have voted for or acknowledged what
    /// is lost, so it must not continue under its number with less: remove it from the cluster, and
    /// let it join with an empty directory under a new number.
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Store(error) => error.is_damaged(),
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::System { operation, path, source } => {
                write!(f, "could not {operation} {}: {source}", path.display())
            }
            Self::NotANode { path, found } => write!(
                f,
                "{} is to be a node's directory, or a name that nothing has: found {found}; choose \
                 another path",
                path.display()
            ),
            Self::OtherNode { path, expected, found } => write!(
                f,
                "{} is node {found}'s, and was opened as node {expected}'s; two nodes never share a \
                 directory: choose the right one",
                path.display()
            ),
            Self::Format { path, expected, found } => write!(
                f,
                "{} has format {found} of a node, and this version knows format {expected}; open it \
                 with the version that wrote it",
                path.display()
            ),
            Self::Damaged { place, expected, found } => write!(
                f,
                "{place} is damaged: expected {expected}, found {found}; the node must not go on \
                 with less than it promised: remove it from the cluster, and let it join with an \
                 empty directory under a new number"
            ),
            Self::Snapshot { expected, found } => write!(
                f,
                "a snapshot is not what it should be: expected {expected}, found {found}; nothing of \
                 it was installed. Remove the file of the node that sent it, which makes a new one \
                 when it starts"
            ),
            Self::Order { applied, found } => write!(
                f,
                "entries are applied in order: expected what comes behind {applied}, found {found}"
            ),
            Self::NotInstalled { entry } => write!(
                f,
                "entry {entry} comes behind a snapshot that could not be installed; start the node \
                 again when what failed there is mended"
            ),
            Self::Encoding { found } => write!(f, "what was to be stored has no encoding: {found}"),
            Self::Stopped => write!(f, "the runtime was shut down; start the node again"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<adamant::DirectoryError> for Error {
    fn from(error: adamant::DirectoryError) -> Self {
        Self::Store(error.into())
    }
}

impl From<adamant::Error> for Error {
    fn from(error: adamant::Error) -> Self {
        Self::Store(error)
    }
}
