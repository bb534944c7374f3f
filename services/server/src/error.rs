//! Errors of the server itself. Errors of clients are replies to them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The result of starting or ending a server.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server could not start, or did not end well.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The store could not be opened or closed, or has failed.
    Store(adamant::Error),
    /// The address is reachable by others, and requires neither a password nor a certificate.
    Unprotected {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address for other nodes is reachable by others, and requires no secret.
    UnprotectedNode {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The node cannot be opened, or cannot become or stay a member of its cluster.
    Cluster {
        /// The fault, and what to do.
        cause: String,
    },
    /// The address cannot be listened on.
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// A file of certificates or keys cannot be used.
    Tls {
        /// The file.
        file: PathBuf,
        /// The expected content.
        expected: &'static str,
        /// The fault.
        found: String,
    },
    /// The system provided no threads, or no signals.
    System(io::Error),
    /// An option is out of its range.
    Option {
        /// Its name on the command line.
        name: &'static str,
        /// The allowed values.
        expected: &'static str,
    },
    /// The store refused a commit after the device had failed; everything acknowledged is there.
    Poisoned {
        /// The failure.
        cause: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => write!(f, "{error}"),
            Self::Unprotected { address } => write!(
                f,
                "{address} can be reached by others, and whoever does reads and changes everything; \
                 set a password (--password-file), ask for certificates of clients \
                 (--tls-client-ca), or listen on 127.0.0.1"
            ),
            Self::UnprotectedNode { address } => write!(
                f,
                "{address} can be reached by others, and whoever does could act as a node of the \
                 cluster; give all nodes a secret (--cluster-secret-file), or listen on 127.0.0.1"
            ),
            Self::Cluster { cause } => write!(f, "{cause}"),
            Self::Listen { address, error } => write!(
                f,
                "cannot listen on {address}: {error}; choose another port (--port, --http, \
                 --cluster-listen)"
            ),
            Self::Tls { file, expected, found } => {
                write!(f, "{} is to be {expected}: {found}", file.display())
            }
            Self::System(error) => write!(f, "the system refused what the server needs: {error}"),
            Self::Option { name, expected } => write!(f, "{name} is to be {expected}"),
            Self::Poisoned { cause } => write!(
                f,
                "the device failed, and the store takes no more writes: {cause}; what was \
                 acknowledged is there. Look at the device, then start the server again"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Listen { error, .. } | Self::System(error) => Some(error),
            _ => None,
        }
    }
}

impl From<adamant::Error> for Error {
    fn from(error: adamant::Error) -> Self {
        Self::Store(error)
    }
}
