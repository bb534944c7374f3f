//! Errors of a store on objects.

use std::any::Any;
use std::fmt;

use slatedb::{CloseReason, ErrorKind};

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure: plain data. Errors that `adamant` also has have the same names.
///
/// ```
/// use adamant_remote::{Error, Store};
///
/// let store = Store::in_memory()?;
/// let error = store.keyspace("towns")?.put([b'z'; 70_000], "nobody").unwrap_err();
/// assert!(matches!(error, Error::KeyTooLong { .. }));
/// assert!(!error.is_fenced() && !error.is_conflict());
/// # Ok::<(), adamant_remote::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The key is too long.
    KeyTooLong {
        /// Bytes of the key.
        bytes: u64,
        /// Maximum bytes of a key.
        bytes_max: u64,
    },
    /// The value is too long.
    ValueTooLong {
        /// Bytes of the value.
        bytes: u64,
        /// Maximum bytes of a value.
        bytes_max: u64,
    },
    /// The name of a keyspace is empty or too long.
    KeyspaceName {
        /// Bytes of the name.
        bytes: u64,
        /// Maximum bytes of a name.
        bytes_max: u64,
    },
    /// There is no keyspace with that name.
    UnknownKeyspace {
        /// The name asked for.
        name: String,
    },
    /// A keyspace with that name exists already.
    KeyspaceExists {
        /// The name asked for.
        name: String,
    },
    /// The keyspace of this handle was dropped.
    KeyspaceDropped {
        /// Its name.
        name: String,
    },
    /// The keyspace belongs to another store than the one it was used with.
    OtherStore {
        /// Its name.
        name: String,
    },
    /// The text is no location of a store.
    Location {
        /// The text.
        url: String,
        /// The fault.
        why: String,
    },
    /// There is no store, and none was to be created.
    Missing {
        /// The URL.
        url: String,
    },
    /// Something is there, but no store of this crate.
    NotAStore {
        /// The URL.
        url: String,
    },
    /// The store was written by another version.
    Format {
        /// The format of the store.
        found: u32,
        /// The format that this version supports.
        known: u32,
    },
    /// A copy into the store has begun and not ended.
    Unfinished {
        /// The URL.
        url: String,
    },
    /// Another commit changed something that the transaction read or wrote.
    Conflict,
    /// Another process has opened the store for writing since: this writer is fenced.
    Fenced {
        /// The URL.
        url: String,
    },
    /// The store was opened for reading only.
    ReadOnly {
        /// The attempted operation.
        what: &'static str,
    },
    /// The store was closed.
    Closed,
    /// Stored data is not what was written.
    Damaged {
        /// Expected and found.
        what: String,
    },
    /// The objects cannot be reached. The outcome of a commit is unknown.
    Unavailable {
        /// The failure.
        what: String,
    },
    /// Any other error of SlateDB. The outcome of a commit is unknown.
    Slate {
        /// SlateDB's message.
        what: String,
    },
}

impl Error {
    /// Whether another process has opened the store for writing since: this writer is fenced, and
    /// none of its later writes takes effect. Open the store again to become the writer.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    /// Whether a transaction failed because of another commit: it did nothing, and may be run
    /// again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict)
    }

    /// Whether stored data is not what was written.
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// The error for unexpected bytes.
    pub(crate) fn damaged(where_: &str, expected: &str, found: &[u8]) -> Self {
        const SHOWN_MAX: usize = 40;
        let (shown, more) = found.split_at(found.len().min(SHOWN_MAX));
        let dots = if more.is_empty() { "" } else { "..." };
        let found = format!("{} bytes \"{}{dots}\"", found.len(), shown.escape_ascii());
        Self::Damaged { what: format!("{where_}: expected {expected}, found {found}") }
    }

    /// The error for a panic of SlateDB, which has found something that it never writes.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
        let words = words.unwrap_or("no words");
        Self::Damaged { what: format!("SlateDB gave up ({words})") }
    }

    /// Converts the errors of SlateDB, with the place of the store.
    pub(crate) fn of_slate(url: &str) -> impl Fn(slatedb::Error) -> Self {
        move |error| {
            let what = error.to_string();
            match error.kind() {
                ErrorKind::Transaction => Self::Conflict,
                ErrorKind::Closed(CloseReason::Fenced) => Self::Fenced { url: url.to_owned() },
                ErrorKind::Closed(CloseReason::Clean) => Self::Closed,
                ErrorKind::Unavailable => Self::Unavailable { what },
                ErrorKind::Data => Self::Damaged { what },
                _ => Self::Slate { what },
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyTooLong { bytes, bytes_max } => write!(
                f,
                "a key has at most {bytes_max} bytes, this one has {bytes}; use a digest of it"
            ),
            Self::ValueTooLong { bytes, bytes_max } => write!(
                f,
                "a value has at most {bytes_max} bytes, this one has {bytes}; store it in parts"
            ),
            Self::KeyspaceName { bytes, bytes_max } => write!(
                f,
                "the name of a keyspace has 1 to {bytes_max} bytes of UTF-8, this one has {bytes}"
            ),
            Self::UnknownKeyspace { name } => write!(
                f,
                "there is no keyspace {name:?}; list those that exist (`Store::keyspaces`) or create it"
            ),
            Self::KeyspaceExists { name } => {
                write!(f, "there is a keyspace {name:?} already; open it or drop it first")
            }
            Self::KeyspaceDropped { name } => write!(
                f,
                "the keyspace {name:?} of this handle was dropped; open or create it again"
            ),
            Self::OtherStore { name } => write!(
                f,
                "the keyspace {name:?} belongs to another store; use a batch or transaction of its \
                 own store"
            ),
            Self::Location { url, why } => write!(
                f,
                "{url:?} does not say where a store is: {why}; expected slatedb+s3://BUCKET/PREFIX, \
                 slatedb+file:///DIRECTORY or slatedb+memory://"
            ),
            Self::Missing { url } => write!(
                f,
                "there is no store at {url}; check the place, or let it be created (by opening it \
                 for writing)"
            ),
            Self::NotAStore { url } => write!(
                f,
                "what is at {url} is a database of SlateDB, but no store of Adamant: expected its \
                 head under the key 00000000 00; name another place"
            ),
            Self::Format { found, known } => write!(
                f,
                "the store is of format {found}, this version knows {known}; use a newer one"
            ),
            Self::Unfinished { url } => write!(
                f,
                "a copy into {url} has begun and not ended, so what is there is not whole; run it \
                 again (`adamant copy`), which begins anew"
            ),
            Self::Conflict => f.write_str(
                "another commit changed what this transaction read or wrote; run it again \
                 (`Store::transaction` does)",
            ),
            Self::Fenced { url } => write!(
                f,
                "another writer has opened {url} since, and this one is none any more: one writer a \
                 store; close this handle, and open the store again if it is to take over"
            ),
            Self::ReadOnly { what } => write!(
                f,
                "{what} takes a store that is opened for writing, this one is for reading only"
            ),
            Self::Closed => f.write_str("the store was closed; open it again"),
            Self::Damaged { what } => {
                write!(
                    f,
                    "{what}; the store is damaged: use the copy or version of it that you have"
                )
            }
            Self::Unavailable { what } => write!(
                f,
                "{what}; the objects cannot be reached: if this was a commit, open the store again and \
                 see whether it took place"
            ),
            Self::Slate { what } => write!(
                f,
                "{what}; if this was a commit, open the store again and see whether it took place"
            ),
        }
    }
}

impl std::error::Error for Error {}
