//! Messages of errors: what was expected, what was found, where, and what to do.

use std::fmt;

use super::Error;
use crate::kind::{KeyspaceKind, entries_of};

/// What to do about an encrypted store.
const KEY_ADVICE: &str = match cfg!(feature = "encryption") {
    true => "give the key (`Options::encryption_key`, `--key-file`)",
    false => "use a build with the feature \"encryption\", and give the key",
};

impl fmt::Display for Error {
    // One match, however long: an error without a message does not compile.
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
            Self::Locked { path, holder } => write!(
                f,
                "the store is already open: {} is held by {}; close it there first",
                path.display(),
                holder.as_deref().unwrap_or("another process")
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
