//! What can go wrong in a store.

use std::fmt;
use std::path::PathBuf;

use adamant_heap::error::Error as HeapError;
use adamant_lsm::Error as LsmError;
use adamant_medium::error::Error as MediumError;
use adamant_trees::error::Error as TreeError;

use crate::kind::{KeyspaceKind, entries_of};
use crate::types::KeyspaceTypes;

/// The result of a store's operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of a store: plain data, or the failure of a layer below.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use adamant::Error;
///
/// let error = store.keyspace("towns")?.insert([b'z'; 70_000], "nobody").unwrap_err();
/// assert!(matches!(error, Error::KeyTooLong { bytes: 70_000, .. }));
/// println!("{error}");
/// // Those that a program meets without a mistake of its own are sorted by methods.
/// assert!(!error.is_out_of_space() && !error.is_poisoned() && !error.is_damaged());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A key that is longer than keys can be.
    KeyTooLong {
        /// Bytes of the key.
        bytes: u64,
        /// Bytes that a key may have.
        bytes_max: u64,
    },
    /// A value that is longer than values can be.
    ValueTooLong {
        /// Bytes of the value.
        bytes: u64,
        /// Bytes that a value may have.
        bytes_max: u64,
    },
    /// A keyspace's name that is empty or too long.
    KeyspaceName {
        /// Bytes of the name.
        bytes: u64,
        /// Bytes that a name may have.
        bytes_max: u64,
    },
    /// There is no keyspace of that name.
    UnknownKeyspace {
        /// The name asked for.
        name: String,
    },
    /// A keyspace of that name exists already.
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
    /// Entries that were to be loaded in order are not.
    NotAscending {
        /// How many entries come before the one whose key is not above the key before it.
        position: u64,
    },
    /// The keyspace was written by something that this version does not know.
    UnknownEngine {
        /// Its name.
        name: String,
        /// The engine's number in the catalogue.
        engine: u16,
        /// The version of the engine's format in the catalogue.
        format: u16,
    },
    /// The keyspace is kept by another engine than the one asked for.
    WrongEngine {
        /// Its name.
        name: String,
        /// The engine asked for.
        expected: &'static str,
        /// The engine that keeps it.
        found: &'static str,
    },
    /// There is no engine of that name.
    EngineName {
        /// The name asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The path holds something, but no store.
    NotAStore {
        /// The path.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// There is no store, and `Options::create` was set to false; or no folder for a store or a
    /// copy to be made in.
    Missing {
        /// The path.
        path: PathBuf,
        /// What was expected and found there, and what to do.
        what: &'static str,
    },
    /// Something is where a new store is to be made.
    TargetExists {
        /// The path.
        path: PathBuf,
    },
    /// A copy of a store was to be made within the store.
    TargetInside {
        /// Where it was to be.
        path: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// What was to be copied is not whole.
    NotWhole {
        /// The store.
        path: PathBuf,
        /// Things that a check finds wrong.
        findings: u64,
        /// The first of them.
        first: String,
    },
    /// The heap of the store holds objects of a program's own, which a copy by keyspaces would lose.
    OtherObjects {
        /// The store.
        store: PathBuf,
    },
    /// Another process, or another handle of this process, has the store open.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, such as "process 4711 (adamant)".
        holder: Option<String>,
    },
    /// Something that a transaction read was changed by another commit before its own.
    Conflict {
        /// The keyspace in which that was.
        keyspace: String,
    },
    /// The snapshot was ended, because what was kept for snapshots took too much memory.
    SnapshotExpired {
        /// Bytes that this may take.
        bytes_max: u64,
    },
    /// A key or value of a typed keyspace is not of its type.
    Encoding {
        /// The keyspace.
        keyspace: String,
        /// What would have been right, such as "8 bytes of a u64".
        expected: String,
        /// What is there.
        found: String,
    },
    /// The keyspace, or the one that would have its deadlines, exists, with entries that were not
    /// made to end.
    NotExpiring {
        /// Its name.
        name: String,
    },
    /// The keyspace holds entries that end, or their deadlines: only
    /// [`Store::expiring`](crate::Store::expiring) opens it to write.
    WrongKind {
        /// Its name.
        name: String,
        /// What it holds.
        found: KeyspaceKind,
    },
    /// The keyspace is of a kind that this version does not know.
    UnknownKind {
        /// Its name.
        name: String,
        /// The kind's number in the catalogue.
        kind: u16,
    },
    /// The keyspace holds keys and values of other types than those asked for.
    WrongTypes {
        /// Its name.
        name: String,
        /// The types that it was made with.
        recorded: Box<KeyspaceTypes>,
        /// Those asked for.
        asked: Box<KeyspaceTypes>,
    },
    /// A type's name that is empty or too long to be recorded.
    TypeName {
        /// Bytes of the name.
        bytes: u64,
        /// Bytes that a name may have.
        bytes_max: u64,
    },
    /// The store was closed.
    Closed,
    /// The store was used by a closure that holds its lock.
    Reentrant,
    /// A thread wrote beside its own exclusive transaction, for whose end it would wait.
    WithinExclusive,
    /// What the store keeps about itself is not what was written.
    Damaged {
        /// Expected and found.
        what: String,
    },
    /// The system below failed.
    Medium(MediumError),
    /// The heap failed.
    Heap(HeapError),
    /// A tree failed.
    Tree(TreeError),
    /// A log-structured merge tree or one of its files failed.
    Lsm {
        /// The keyspace that it keeps; empty where none was asked for.
        keyspace: String,
        /// What failed.
        error: LsmError,
    },
}

impl Error {
    /// Whether more space on the device would cure it. Nothing was changed by the call that
    /// failed; reads and removes still work.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::Heap(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// Whether a transaction failed because of another commit: it did nothing, and may be run again.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// let apples = transaction.contains(&stock, "apples")?;
    /// transaction.insert(&stock, "any", if apples { "yes" } else { "no" })?;
    /// stock.insert("apples", "7")?;
    /// assert!(transaction.commit().unwrap_err().is_conflict());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the store refuses writes until it is opened again, because a write or sync failed
    /// after a commit had become visible.
    pub fn is_poisoned(&self) -> bool {
        matches!(self, Self::Heap(HeapError::Poisoned { .. }))
    }

    /// Whether the store was opened for reading only, and the call would write.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// adamant::Store::open(&path)?.keyspace("towns")?.insert("Bern", "134,000")?;
    /// let store = adamant::Store::open_read_only(&path)?;
    /// let towns = store.open_keyspace("towns")?;
    /// assert!(towns.insert("Basel", "173,000").unwrap_err().is_read_only());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Heap(HeapError::ReadOnly))
    }

    /// Whether something durable is not what was written: run a check, restore a copy.
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::NotWhole { .. }
            | Self::Medium(MediumError::Truncated { .. }) => true,
            Self::Heap(error) => {
                matches!(error, HeapError::Damaged { .. } | HeapError::InvalidPointer { .. })
            }
            Self::Tree(error) => {
                matches!(error, TreeError::Damaged { .. } | TreeError::NotThisTree { .. })
            }
            Self::Lsm { error, .. } => error.is_damage(),
            _ => false,
        }
    }

    /// Whether this is no store, or not one that this version knows.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// std::fs::write(&path, "some other file")?;
    /// assert!(adamant::Store::open(&path).unwrap_err().is_unsupported());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            Self::NotAStore { .. }
                | Self::UnknownEngine { .. }
                | Self::UnknownKind { .. }
                | Self::Heap(HeapError::Unsupported { .. })
        )
    }

    /// Whether the call cannot be made here, whatever its arguments, as in the child of a fork.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let only = store.begin_exclusive()?;
    /// assert!(stock.insert("pears", "1").unwrap_err().is_misuse(), "this thread would wait for itself");
    /// only.commit()?;
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn is_misuse(&self) -> bool {
        matches!(self, Self::WithinExclusive | Self::Heap(HeapError::Misuse { .. }))
    }
}

impl From<MediumError> for Error {
    fn from(error: MediumError) -> Self {
        match error {
            MediumError::Locked { path, holder } => Self::Locked { path, holder },
            other => Self::Medium(other),
        }
    }
}

impl From<HeapError> for Error {
    fn from(error: HeapError) -> Self {
        match error {
            HeapError::Medium(error) => Self::from(error),
            other => Self::Heap(other),
        }
    }
}

impl Error {
    /// Makes the errors of a log-structured merge tree the store's, with the name of the keyspace.
    pub(crate) fn of_lsm(keyspace: &str) -> impl Fn(LsmError) -> Self {
        move |error| match error {
            LsmError::Heap(error) => Self::from(error),
            LsmError::Medium(error) => Self::from(error),
            other => Self::Lsm { keyspace: keyspace.into(), error: other },
        }
    }
}

impl From<TreeError> for Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Heap(error) => Self::from(error),
            other => Self::Tree(other),
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
                "there is no keyspace {name:?}; list those that exist (`adamant keyspace list`, \
                 `Store::keyspaces`) or create it"
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
                "the keyspace {name:?} belongs to another store; batches and moves stay within one: \
                 use a batch of its own store, or copy the entries"
            ),
            Self::NotAscending { position } => write!(
                f,
                "expected keys that ascend, found that of entry {position} (counted from 0) at or \
                 below the one before it; use `extend`, which sorts"
            ),
            Self::UnknownEngine { name, engine, format } => write!(
                f,
                "the keyspace {name:?} is kept by engine {engine} in format {format}, which this \
                 version does not know; open it with a newer version"
            ),
            Self::WrongEngine { name, expected, found } => write!(
                f,
                "the keyspace {name:?} was asked for with engine {expected} and is kept by \
                 {found}; ask for no engine, or convert it (`adamant keyspace convert`)"
            ),
            Self::EngineName { name, known } => {
                write!(f, "there is no engine {name:?}; those that there are: {known}")
            }
            Self::NotAStore { path, found } => write!(
                f,
                "{} is not a store: expected a directory with a file named pool, found {found}; \
                 name a store, or a path where nothing is for a new one",
                path.display()
            ),
            Self::Missing { path, what } => write!(f, "{}: {what}", path.display()),
            Self::TargetExists { path } => write!(
                f,
                "there is something at {} already; name a path where nothing is, or remove it",
                path.display()
            ),
            Self::TargetInside { path, store } => write!(
                f,
                "{} lies within the store {}; name a path outside of it",
                path.display(),
                store.display()
            ),
            Self::NotWhole { path, findings, first } => write!(
                f,
                "{} is damaged ({findings} findings, the first one: {first}); use another backup, or \
                 let `adamant repair` save what can be read",
                path.display()
            ),
            Self::OtherObjects { store } => write!(
                f,
                "the heap of {} holds named roots beside the keyspaces, which would be lost; copy \
                 its directory while it is closed",
                store.display()
            ),
            Self::Locked { path, holder: Some(holder) } => write!(
                f,
                "the store is already open: {} is held by {holder}; close it there first",
                path.display()
            ),
            Self::Locked { path, holder: None } => write!(
                f,
                "the store is already open: {} is held by another process; close it there first",
                path.display()
            ),
            Self::Conflict { keyspace } => write!(
                f,
                "another commit changed what this transaction read of the keyspace {keyspace:?}; \
                 run it again (`Store::transaction` does)"
            ),
            Self::SnapshotExpired { bytes_max } => write!(
                f,
                "the snapshot was ended: what changed since it was opened takes more than \
                 {bytes_max} bytes; open a new one, close snapshots sooner, or allow more \
                 (`Options::snapshot_bytes_max`)"
            ),
            Self::Encoding { keyspace, expected, found } => write!(
                f,
                "keyspace {keyspace:?}: expected {expected}, found {found}; use the types that it \
                 was written with"
            ),
            Self::NotExpiring { name } => write!(
                f,
                "the keyspace {name:?} is needed for entries that may end, and holds others; open it by \
                 `Store::keyspace`, or name another one"
            ),
            Self::WrongKind { name, found: KeyspaceKind::Deadlines } => write!(
                f,
                "the keyspace {name:?} holds the deadlines of the keyspace {:?}; open, rename and drop that, \
                 by `Store::expiring`",
                entries_of(name)
            ),
            Self::WrongKind { name, found } => write!(
                f,
                "the keyspace {name:?} holds entries of the kind {found}; open it by `Store::{found}`"
            ),
            Self::UnknownKind { name, kind } => write!(
                f,
                "the keyspace {name:?} is of kind {kind}, which this version does not know; open it with a \
                 newer version"
            ),
            Self::WrongTypes { name, recorded, asked } => write!(
                f,
                "the keyspace {name:?} has {recorded}, and was asked for with {asked}; ask for \
                 what it has, read it as bytes (by the `Keyspace`), or, once its entries are of the \
                 other types, say so by `Keyspace::retype`"
            ),
            Self::TypeName { bytes, bytes_max } => write!(
                f,
                "the name of a type of keys or values has 1 to {bytes_max} bytes, this one has \
                 {bytes}; give it another one (`typed::Named`)"
            ),
            Self::Closed => f.write_str("the store was closed; open it again"),
            Self::Reentrant => f.write_str(
                "the store was used within a closure that runs under its lock (`get_with`, \
                 `on_heap`); let the closure return what it found and go on after it",
            ),
            Self::WithinExclusive => f.write_str(
                "this thread has an exclusive transaction: write through it, or commit or drop it \
                 first",
            ),
            Self::Damaged { what } => write!(f, "{what}; the store may be damaged, run a check"),
            Self::Medium(error) => error.fmt(f),
            Self::Heap(error) => error.fmt(f),
            Self::Tree(error) => error.fmt(f),
            Self::Lsm { keyspace, error } if keyspace.is_empty() => error.fmt(f),
            Self::Lsm { keyspace, error } => write!(f, "keyspace {keyspace:?}: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Medium(error) => Some(error),
            Self::Heap(error) => Some(error),
            Self::Tree(error) => Some(error),
            Self::Lsm { error, .. } => Some(error),
            _ => None,
        }
    }
}
