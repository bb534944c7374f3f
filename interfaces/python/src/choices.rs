//! Words that choose: durability, journal, engine.

use adamant::{Durability, Engine, Flushing, JournalKind};
use pyo3::prelude::*;

use crate::errors;

/// The durability of that name.
pub(crate) fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "sync" => Ok(Durability::Sync),
        "buffered" => Ok(Durability::Buffered),
        "deferred" => Ok(Durability::Deferred),
        _ => Err(unknown("durability", name, "sync, buffered, deferred")),
    }
}

/// The journal of that name.
pub(crate) fn journal(name: &str) -> PyResult<JournalKind> {
    match name {
        "redo" => Ok(JournalKind::Redo),
        "undo" => Ok(JournalKind::Undo),
        _ => Err(unknown("journal", name, "redo, undo")),
    }
}

/// Which memory the undo journal accepts.
pub(crate) fn flushing(name: &str) -> PyResult<Flushing> {
    match name {
        "auto" => Ok(Flushing::Auto),
        "volatile" => Ok(Flushing::Volatile),
        "none" => Ok(Flushing::None),
        _ => Err(unknown("flushing", name, "auto, volatile, none")),
    }
}

/// The engine of that name.
pub(crate) fn engine(name: &str) -> PyResult<Engine> {
    name.parse().map_err(errors::of_store)
}

fn unknown(what: &str, name: &str, known: &str) -> PyErr {
    errors::named(
        "InvalidArgument",
        format!("there is no {what} {name:?}; those that there are: {known}"),
    )
}
