//! Errors of a store.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use adamant_heap::error::Error as HeapError;
use adamant_lsm::Error as LsmError;
use adamant_medium::error::Error as MediumError;
use adamant_trees::error::Error as TreeError;

use crate::kind::{KeyspaceKind, entries_of};
use crate::types::KeyspaceTypes;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a store: either its own, as plain data, or one of a layer below.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use adamant::Error;
///
/// let error = store.keyspace("towns")?.put([b'z'; 70_000], "nobody").unwrap_err();
/// assert!(matches!(error, Error::KeyTooLong { bytes: 70_000, .. }));
/// println!("{error}");
/// // Those that a program meets without a mistake of its own are sorted by methods.
/// assert!(!error.is_out_of_space() && !error.is_poisoned() && !error.is_damaged());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The key is longer than a key may be.
    KeyTooLong {
        /// Bytes of the key.
        bytes: u64,
        /// Bytes that a key may have.
        bytes_max: u64,
    },
    /// The value is longer than a value may be.
    ValueTooLong {
        /// Bytes of the value.
        bytes: u64,
        /// Bytes that a value may have.
        bytes_max: u64,
    },
    /// A key of a multimap and its value are longer together than a key may be.
    PairTooLong {
        /// Bytes of both, as they are stored.
        bytes: u64,
        /// Bytes that both may have.
        bytes_max: u64,
    },
    /// The keyspace's name is empty or too long.
    KeyspaceName {
        /// Bytes of the name.
        bytes: u64,
        /// Bytes that a name may have.
        bytes_max: u64,
    },
    /// There is no keyspace with that name.
    UnknownKeyspace {
        /// The requested name.
        name: String,
    },
    /// A keyspace with that name exists already.
    KeyspaceExists {
        /// The requested name.
        name: String,
    },
    /// The keyspace of this handle was dropped.
    KeyspaceDropped {
        /// Its name.
        name: String,
    },
    /// The store does not record changes.
    ChangesNotRecorded,
    /// The history of changes does not have all commits behind that one, or it was undone.
    ChangesUnknown {
        /// The number of the commit.
        after: u64,
        /// That of the first commit in the history.
        first: u64,
        /// That of the last one.
        last: u64,
    },
    /// The keyspace belongs to a different store.
    OtherStore {
        /// Its name.
        name: String,
    },
    /// The entries for a sorted load are not in ascending order.
    NotAscending {
        /// The number of entries before the one whose key is not above its predecessor.
        position: u64,
    },
    /// This version does not know the keyspace's engine or its format.
    UnknownEngine {
        /// Its name.
        name: String,
        /// The engine's number in the catalogue.
        engine: u16,
        /// The version of the engine's format in the catalogue.
        format: u16,
    },
    /// The keyspace uses another engine than the requested one, or than the call is for.
    WrongEngine {
        /// Its name.
        name: String,
        /// The requested engine.
        expected: &'static str,
        /// The engine of the keyspace.
        found: &'static str,
    },
    /// The keyspace records another merge operator than the requested one. Its operands are of that
    /// one.
    WrongMergeOperator {
        /// Its name.
        name: String,
        /// The requested operator.
        expected: String,
        /// The operator of the keyspace.
        found: String,
    },
    /// There is no engine of that name.
    EngineName {
        /// The name asked for.
        name: String,
        /// The known names.
        known: String,
    },
    /// The path exists, but is no store.
    NotAStore {
        /// The path.
        path: PathBuf,
        /// The thing found there.
        found: String,
    },
    /// There is no store, and `Options::create` was set to false; or the folder is missing in which
    /// a store or a copy was to be made.
    Missing {
        /// The path.
        path: PathBuf,
        /// The expected and the found, and what to do.
        what: &'static str,
    },
    /// The path for a new store exists already.
    TargetExists {
        /// The path.
        path: PathBuf,
    },
    /// The target of a copy lies inside the store.
    TargetInside {
        /// The target.
        path: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// The store to be copied is not intact.
    NotWhole {
        /// The store.
        path: PathBuf,
        /// The number of a check's findings.
        findings: u64,
        /// The first of them.
        first: String,
    },
    /// The path holds an increment, which is only read: see
    /// [`Store::backup_since`](crate::Store::backup_since).
    Increment {
        /// The path.
        path: PathBuf,
    },
    /// An increment cannot be made against this parent.
    NotAParent {
        /// The parent's path.
        path: PathBuf,
        /// The thing found there.
        found: String,
    },
    /// A backup is missing that an increment is the difference from.
    MissingLink {
        /// Path of the backup.
        path: PathBuf,
        /// The increment.
        needed_by: PathBuf,
    },
    /// A backup is not the one that an increment is the difference from, or was changed since.
    WrongLink {
        /// Path of the backup.
        path: PathBuf,
        /// The increment.
        needed_by: PathBuf,
        /// The backup that the increment names.
        expected: String,
        /// The backup found.
        found: String,
    },
    /// The name of a savepoint is empty or too long.
    SavepointName {
        /// Bytes of the name.
        bytes: u64,
        /// Bytes that a name may have.
        bytes_max: u64,
    },
    /// A savepoint with that name exists already.
    SavepointExists {
        /// The requested name.
        name: String,
    },
    /// There is no savepoint with that name.
    UnknownSavepoint {
        /// The requested name.
        name: String,
    },
    /// The device had no space for what the savepoint needed, so it was given up.
    SavepointLost {
        /// Its name.
        name: String,
    },
    /// The store has savepoints, which would be lost if its files were made anew.
    HasSavepoints {
        /// The store.
        path: PathBuf,
        /// Their names.
        names: Vec<String>,
    },
    /// The heap of the store holds application objects, which a copy by keyspaces would lose.
    OtherObjects {
        /// The store.
        store: PathBuf,
    },
    /// Another process, or another handle of this process, has the store open.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, such as "process 4711 (adamant)".
        holder: Option<String>,
    },
    /// Another commit changed something that the transaction had read.
    Conflict {
        /// The keyspace of the conflict.
        keyspace: String,
    },
    /// The snapshot expired, because old values for snapshots took too much memory.
    SnapshotExpired {
        /// Bytes that they may take.
        bytes_max: u64,
    },
    /// A key or value of a typed keyspace does not decode as its type.
    Encoding {
        /// The keyspace.
        keyspace: String,
        /// The expected encoding, such as "8 bytes of a u64".
        expected: String,
        /// The bytes found.
        found: String,
    },
    /// The keyspace, or the one for its deadlines, exists already and holds entries that do not
    /// expire.
    NotExpiring {
        /// Its name.
        name: String,
    },
    /// The keyspace holds entries of another kind than those that the call is for: expiring ones,
    /// or their deadlines, are only written through
    /// [`Store::expiring`](crate::Store::expiring), the pairs of a multimap through
    /// [`Store::multimap`](crate::Store::multimap).
    WrongKind {
        /// Its name.
        name: String,
        /// The kind of its entries.
        found: KeyspaceKind,
    },
    /// This version does not know the keyspace's kind.
    UnknownKind {
        /// The keyspace's name.
        name: String,
        /// The kind's number in the catalogue.
        kind: u16,
    },
    /// This version does not know an option that the keyspace has.
    UnknownOption {
        /// The keyspace's name.
        name: String,
        /// The option's tag in the catalogue.
        tag: u16,
    },
    /// The keyspace has values that are stored plain, and is opened for compressed ones.
    PlainValues {
        /// Its name.
        name: String,
    },
    /// The keyspace's recorded types differ from the requested ones.
    WrongTypes {
        /// Its name.
        name: String,
        /// The recorded types.
        recorded: Box<KeyspaceTypes>,
        /// The requested types.
        asked: Box<KeyspaceTypes>,
    },
    /// The name of a type is empty or too long to be recorded.
    TypeName {
        /// Bytes of the name.
        bytes: u64,
        /// Bytes that a name may have.
        bytes_max: u64,
    },
    /// The store is encrypted, and no key was given.
    KeyNeeded {
        /// The store.
        path: PathBuf,
    },
    /// The store is encrypted by another key than was given. Nothing was read or changed.
    WrongKey {
        /// Its key file.
        path: PathBuf,
    },
    /// A key was given, and the store is not encrypted.
    NotEncrypted {
        /// The store.
        path: PathBuf,
    },
    /// The store is closed.
    Closed,
    /// A closure that holds the store's lock called the store, or a closure that a view of a shared
    /// transaction runs used another view of it.
    Reentrant,
    /// A thread wrote beside its own exclusive transaction; the write would wait for that
    /// transaction's end.
    WithinExclusive,
    /// The store's own records are damaged.
    Damaged {
        /// The expected and the found.
        what: String,
    },
    /// The storage backend failed.
    Medium(MediumError),
    /// The heap failed.
    Heap(HeapError),
    /// A tree failed.
    Tree(TreeError),
    /// An LSM tree or one of its files failed.
    Lsm {
        /// The tree's keyspace; empty where none was asked for.
        keyspace: String,
        /// The error.
        error: LsmError,
    },
}

impl Error {
    /// Whether more space on the device would help. The failed call changed nothing; reads and
    /// removes still work.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Medium(error) => error.is_out_of_space(),
            Self::Heap(error) => error.is_out_of_space(),
            _ => false,
        }
    }

    /// Whether a transaction failed because of another commit. It changed nothing and may be run
    /// again.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let mut transaction = store.begin()?;
    /// let apples = transaction.contains(&stock, "apples")?;
    /// transaction.put(&stock, "any", if apples { "yes" } else { "no" })?;
    /// stock.put("apples", "7")?;
    /// assert!(transaction.commit().unwrap_err().is_conflict());
    /// # Ok::<(), adamant::Error>(())
    /// ```
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether the store is poisoned: it refuses writes until it is opened again, because a write
    /// or sync failed after a commit had become visible.
    pub fn is_poisoned(&self) -> bool {
        matches!(self, Self::Heap(HeapError::Poisoned { .. }))
    }

    /// Whether the store is open for reading only and the call would write.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("app.adamant");
    /// adamant::Store::open(&path)?.keyspace("towns")?.put("Bern", "134,000")?;
    /// let store = adamant::Store::open_read_only(&path)?;
    /// let towns = store.open_keyspace("towns")?;
    /// assert!(towns.put("Basel", "173,000").unwrap_err().is_read_only());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::Heap(HeapError::ReadOnly))
    }

    /// Whether durable data is damaged: run a check, or restore a copy.
    pub fn is_damaged(&self) -> bool {
        match self {
            Self::Damaged { .. }
            | Self::NotWhole { .. }
            | Self::Medium(MediumError::Truncated { .. }) => true,
            // A block of an increment.
            Self::Medium(MediumError::Io { source, .. }) => source.kind() == ErrorKind::InvalidData,
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

    /// Whether this is no store, or one of an unknown version or for a build with other features.
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
                | Self::Increment { .. }
                | Self::WrongLink { .. }
                | Self::UnknownEngine { .. }
                | Self::UnknownKind { .. }
                | Self::UnknownOption { .. }
                | Self::Lsm { error: LsmError::NotBuilt { .. }, .. }
                | Self::Heap(HeapError::Unsupported { .. })
        )
    }

    /// Whether this build is without what the keyspace needs; one with that feature can read it. Of
    /// the catalogue's options only those that ask for such a thing are invalid: others are damage.
    pub(crate) fn is_not_built(&self) -> bool {
        let lacks = |error: &LsmError| {
            matches!(error, LsmError::NotBuilt { .. } | LsmError::InvalidOption { .. })
        };
        matches!(self, Self::Lsm { error, .. } if lacks(error))
    }

    /// Whether the call is impossible here, whatever its arguments, as in the child of a fork.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// let only = store.begin_exclusive()?;
    /// assert!(stock.put("pears", "1").unwrap_err().is_misuse(), "this thread would wait for itself");
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
            MediumError::WrongKey { path } => Self::WrongKey { path },
            MediumError::NotAuthentic { .. } => Self::Heap(error.into()),
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
    /// Maps errors of an LSM tree to the store's, with the name of the keyspace.
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

/// What to do about an encrypted store.
const KEY_ADVICE: &str = match cfg!(feature = "encryption") {
    true => "give the key (`Options::encryption_key`, `--key-file`)",
    false => "use a build with the feature \"encryption\", and give the key",
};

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
            Self::PairTooLong { bytes, bytes_max } => write!(
                f,
                "a key of a multimap and its value have at most {bytes_max} bytes together, as they \
                 are stored, these have {bytes}; use digests of them, or the key of a keyspace that \
                 holds the value"
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
            Self::KeyNeeded { path } => write!(
                f,
                "{}: expected a store that is not encrypted, or its key, found an encrypted one and no \
                 key; {KEY_ADVICE}",
                path.display()
            ),
            Self::WrongKey { path } => write!(
                f,
                "{}: expected the key of this store, found another one; nothing was changed",
                path.display()
            ),
            Self::NotEncrypted { path } => write!(
                f,
                "{}: expected an encrypted store, since there is a key, found one that is not; open it \
                 without a key, or encrypt it first (`adamant encrypt`)",
                path.display()
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
                 {found}; ask for that one or for none, or convert it (`adamant keyspace convert`)"
            ),
            Self::WrongMergeOperator { name, expected, found } => write!(
                f,
                "the keyspace {name:?} was asked for with the merge operator {expected:?} and has \
                 {found:?}; ask for that one or for none, or copy its entries to another keyspace"
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
            Self::Increment { path } => write!(
                f,
                "{} is an increment, a backup of what changed since another one, and is only read; \
                 to write, restore it to a path of its own (`adamant restore`)",
                path.display()
            ),
            Self::NotAParent { path, found } => write!(
                f,
                "expected a backup of this store at {}, beside the new one, found {found}; name a \
                 full backup or an increment in the same folder",
                path.display()
            ),
            Self::MissingLink { path, needed_by } => write!(
                f,
                "expected the backup {}, which {} is the difference from, found nothing; put it \
                 back there, or use a backup that does not need it",
                path.display(),
                needed_by.display()
            ),
            Self::WrongLink { path, needed_by, expected, found } => write!(
                f,
                "{} is not the backup that {} is the difference from, or was changed since: \
                 expected {expected}, found {found}; put that one back there, or use a backup that \
                 does not need it",
                path.display(),
                needed_by.display()
            ),
            Self::SavepointName { bytes, bytes_max } => write!(
                f,
                "the name of a savepoint has 1 to {bytes_max} bytes of UTF-8, this one has {bytes}"
            ),
            Self::SavepointExists { name } => {
                write!(f, "there is a savepoint {name:?} already; delete it first")
            }
            Self::UnknownSavepoint { name } => write!(
                f,
                "there is no savepoint {name:?} that can be read; list those that exist (`adamant \
                 savepoint list`, `Store::savepoints`)"
            ),
            Self::SavepointLost { name } => write!(
                f,
                "the device had no space for what savepoint {name:?} needed, so it was given up; \
                 delete it"
            ),
            Self::HasSavepoints { path, names } => write!(
                f,
                "{} has savepoints ({}), which would be lost if its files were made anew; delete \
                 them first",
                path.display(),
                names.join(", ")
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
            Self::WrongKind { name, found: KeyspaceKind::Changes } => write!(
                f,
                "the keyspace {name:?} holds the history of changes; read it by `Store::changes`, \
                 and end it by `Store::record_changes`"
            ),
            Self::ChangesNotRecorded => write!(
                f,
                "expected a history of changes, found none; have changes recorded by \
                 `Store::record_changes` (`adamant changes STORE --keep 64MiB`)"
            ),
            Self::ChangesUnknown { after, first, last } if after > last => write!(
                f,
                "expected a commit of the history of changes, up to {last}, found {after}: it is \
                 that of another store, or of a later state of this one; begin anew"
            ),
            Self::ChangesUnknown { after, first, .. } if after + 1 >= *first => write!(
                f,
                "expected a commit of the history of changes, found {after}: it was undone when \
                 the store went back to a savepoint; begin anew"
            ),
            Self::ChangesUnknown { after, first, .. } => write!(
                f,
                "expected the commits behind {after}, found those from {first} on: the others were \
                 removed to keep within the bound; begin anew, or have more bytes kept \
                 (`Store::record_changes`)"
            ),
            Self::WrongKind { name, found: KeyspaceKind::Plain } => write!(
                f,
                "the keyspace {name:?} holds plain entries; open it by `Store::keyspace`, or name \
                 another one"
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
            Self::UnknownOption { name, tag } => write!(
                f,
                "the keyspace {name:?} has an option with the tag {tag}, which this version does not \
                 know; open it with a newer version"
            ),
            Self::PlainValues { name } => write!(
                f,
                "expected compressed values in the keyspace {name:?}, found plain ones; convert it \
                 first (`Store::compress_values`, `adamant keyspace convert --value-compression`)"
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
                 `on_heap`), or a shared transaction within a closure of one of its views; let the \
                 closure return what it found and go on after it",
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
