//! Errors of the store as Python exceptions.
//!
//! Purpose: each kind of failure gets the class of `adamant._errors` by which a program would catch
//! it.
//! Invariants: every exception caused by the store is an `adamant.Error`; its text is that of the
//! store. The classes are looked up only after a failure: successful calls do not pay for them.

use std::error::Error as _;
use std::io;
use std::path::Path;

use adamant::{Error, KeyspaceKind, LsmError};
use pyo3::exceptions::{PyKeyError, PySystemError};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Errors while detached from the interpreter, where no exception can be made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the store.
    Store(Error),
    /// A snapshot was used after its end.
    SnapshotClosed,
    /// A transaction was used after its end.
    TransactionEnded,
    /// A batch was used after its end.
    BatchEnded,
    /// A feed of changes was used after its end.
    ChangesClosed,
    /// An argument that cannot be taken, and why.
    Invalid(String),
    /// A key that is missing, where all are needed.
    NoKey(Vec<u8>),
}

/// A result with such a failure.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let ended = |what: &str| named("Closed", format!("{what}; open a new one"));
        match failure {
            Failure::Store(error) => of_store(error),
            Failure::SnapshotClosed => ended("the snapshot was closed"),
            Failure::TransactionEnded => ended("the transaction was committed or rolled back"),
            Failure::ChangesClosed => ended("the feed of changes was closed"),
            Failure::Invalid(words) => named("InvalidArgument", words),
            Failure::NoKey(key) => PyKeyError::new_err((key,)),
            Failure::BatchEnded => ended("the batch was committed or discarded"),
        }
    }
}

/// An exception of a class of `adamant._errors`.
pub(crate) fn named(class: &str, words: impl Into<String>) -> PyErr {
    let words: String = words.into();
    of_class(class, |class| PyErr::from_type(class, (words,)))
}

fn of_class(class: &str, make: impl FnOnce(Bound<'_, PyType>) -> PyErr) -> PyErr {
    Python::attach(|py| {
        let found =
            PyModule::import(py, "adamant._errors").and_then(|module| module.getattr(class));
        match found.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
            Ok(class) => make(class),
            Err(error) => PySystemError::new_err(format!("there is no class {class}: {error}")),
        }
    })
}

/// The class for an error.
fn class(error: &Error) -> &'static str {
    match error {
        Error::KeyTooLong { .. }
        | Error::PairTooLong { .. }
        | Error::ValueTooLong { .. }
        | Error::KeyspaceName { .. }
        | Error::OtherStore { .. }
        | Error::NotAscending { .. }
        | Error::EngineName { .. }
        | Error::WrongMergeOperator { .. }
        | Error::Lsm {
            error:
                LsmError::InvalidOption { .. }
                | LsmError::NoOperator { .. }
                | LsmError::MergeFailed { .. },
            ..
        }
        | Error::TargetInside { .. }
        | Error::NotAParent { .. }
        | Error::TypeName { .. }
        | Error::PlainValues { .. }
        | Error::SavepointExists { .. }
        | Error::SavepointName { .. }
        | Error::HasSavepoints { .. } => "InvalidArgument",
        Error::UnknownKeyspace { .. } => "UnknownKeyspace",
        Error::KeyspaceExists { .. } => "KeyspaceExists",
        Error::KeyspaceDropped { .. } => "KeyspaceDropped",
        Error::WrongEngine { .. } => "WrongEngine",
        Error::NotExpiring { .. } => "NotExpiring",
        Error::WrongKind { .. } => "WrongKind",
        Error::WrongTypes { .. } => "WrongTypes",
        Error::Missing { .. }
        | Error::MissingLink { .. }
        | Error::UnknownSavepoint { .. }
        | Error::SavepointLost { .. } => "Missing",
        Error::TargetExists { .. } => "TargetExists",
        Error::Locked { .. } => "Locked",
        Error::Conflict { .. } => "Conflict",
        Error::SnapshotExpired { .. } => "SnapshotExpired",
        Error::ChangesNotRecorded => "ChangesNotRecorded",
        Error::ChangesUnknown { .. } => "ChangesUnknown",
        Error::KeyNeeded { .. } => "KeyNeeded",
        Error::WrongKey { .. } => "WrongKey",
        Error::NotEncrypted { .. } => "NotEncrypted",
        Error::Closed => "Closed",
        _ if error.is_out_of_space() => "OutOfSpace",
        _ if error.is_poisoned() => "Poisoned",
        _ if error.is_read_only() => "ReadOnly",
        _ if error.is_damaged() => "Damaged",
        _ if error.is_unsupported() => "Unsupported",
        _ => match system(error).map(io::Error::kind) {
            Some(io::ErrorKind::PermissionDenied) => "Denied",
            Some(_) => "Refused",
            None => "Error",
        },
    }
}

/// The system's error, if it is the cause.
fn system(error: &Error) -> Option<&io::Error> {
    let mut cause = error.source();
    while let Some(found) = cause {
        if let Some(system) = found.downcast_ref() {
            return Some(system);
        }
        cause = found.source();
    }
    None
}

/// The path that an error is about, if the store itself names one.
fn path(error: &Error) -> Option<&Path> {
    match error {
        Error::Missing { path, .. }
        | Error::MissingLink { path, .. }
        | Error::WrongLink { path, .. }
        | Error::Increment { path }
        | Error::NotAParent { path, .. }
        | Error::TargetExists { path }
        | Error::KeyNeeded { path }
        | Error::WrongKey { path }
        | Error::NotEncrypted { path }
        | Error::NotAStore { path, .. }
        | Error::NotWhole { path, .. }
        | Error::Locked { path, .. } => Some(path),
        _ => None,
    }
}

/// The exception for an error of the store.
pub(crate) fn of_store(error: Error) -> PyErr {
    let words = match &error {
        // The store's texts use Rust's names.
        Error::Conflict { keyspace } => format!(
            "another commit changed what this transaction read of the keyspace {keyspace:?}; run it \
             again (Store.run does)"
        ),
        Error::UnknownKeyspace { name } => format!(
            "there is no keyspace {name:?}; list those that exist (Store.keyspaces) or create it"
        ),
        Error::WrongTypes { name, recorded, asked } => format!(
            "the keyspace {name:?} has {recorded}, and was asked for with {asked}; ask for what it \
             has (Keyspace.typed without arguments), or use it as bytes"
        ),
        Error::TypeName { bytes, bytes_max } => format!(
            "the name of a type of keys or values has 1 to {bytes_max} bytes, this one has {bytes}"
        ),
        Error::NotExpiring { name } => format!(
            "the keyspace {name:?} is needed for entries that may end, and holds others; open it by \
             Store.keyspace, or name another one"
        ),
        Error::WrongKind { name, found: KeyspaceKind::Expiring } => {
            format!("the keyspace {name:?} holds entries that end; open it by Store.expiring")
        }
        Error::WrongKind { name, found: KeyspaceKind::Multimap } => {
            format!("the keyspace {name:?} is a multimap; open it by Store.multimap")
        }
        Error::WrongKind { name, found: KeyspaceKind::Plain } => {
            format!("the keyspace {name:?} holds plain entries; open it by Store.keyspace")
        }
        Error::WrongKind { name, found: KeyspaceKind::Changes } => {
            format!("the keyspace {name:?} is the history of changes; read it by Store.changes")
        }
        Error::KeyNeeded { path } => format!(
            "{}: expected a store that is not encrypted, or its key, found an encrypted one and no \
             key; give the key (encryption_key, key_file)",
            path.display()
        ),
        Error::ChangesNotRecorded => {
            "the store does not record changes; begin by Store.record_changes".into()
        }
        Error::ChangesUnknown { after, first, last } if after <= last => format!(
            "expected the commits behind {after}, found those from {first} on: the others were \
             removed to keep within the bound; begin anew, or have more bytes kept \
             (Store.record_changes)"
        ),
        Error::WrongKind { name, .. } => format!(
            "the keyspace {name:?} holds the deadlines of another one; open, rename and drop that, by \
             Store.expiring"
        ),
        other => other.to_string(),
    };
    let number = system(&error).and_then(io::Error::raw_os_error);
    let filename = path(&error).map(Path::to_path_buf);
    if let Error::ChangesUnknown { after, first, last } = error {
        let said = (words, after, first, last);
        return of_class("ChangesUnknown", |class| PyErr::from_type(class, said));
    }
    of_class(class(&error), |class| match class.hasattr("_errno") {
        Ok(true) => PyErr::from_type(class, (words, number, filename)),
        Ok(false) | Err(_) => PyErr::from_type(class, (words,)),
    })
}

/// The exception that mappings raise for a missing key.
pub(crate) fn missing_key(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err((key.clone().unbind(),))
}

/// The exception of `popitem` for an empty keyspace.
pub(crate) fn nothing_to_pop() -> PyErr {
    PyKeyError::new_err("popitem(): the keyspace is empty")
}
