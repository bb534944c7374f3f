//! Errors of a store.

mod classes;
mod conversions;
mod messages;

use std::path::PathBuf;

use adamant_heap::error::Error as HeapError;
use adamant_lsm::Error as LsmError;
use adamant_medium::error::Error as MediumError;
use adamant_trees::error::Error as TreeError;

use crate::kind::KeyspaceKind;
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
