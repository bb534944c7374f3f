//! Enumerations given by name: durability, flushing, engine.

use adamant::{Durability, Engine, Flushing, ImageKind};
use pyo3::prelude::*;

use crate::errors;

/// The durability with this name.
pub(crate) fn durability(name: &str) -> PyResult<Durability> {
    match name {
        "sync" => Ok(Durability::Sync),
        "buffered" => Ok(Durability::Buffered),
        "deferred" => Ok(Durability::Deferred),
        _ => Err(unknown("durability", name, "sync, buffered, deferred")),
    }
}

/// The name of a durability.
pub(crate) fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Buffered => "buffered",
        Durability::Deferred => "deferred",
    }
}

/// The durability with this name that a keyspace is to have; `None` for that of the store.
pub(crate) fn default_durability(name: &str) -> PyResult<Option<Durability>> {
    match name {
        "store" => Ok(None),
        _ => durability(name).map(Some),
    }
}

/// Which directories count as memory.
pub(crate) fn flushing(name: &str) -> PyResult<Flushing> {
    match name {
        "auto" => Ok(Flushing::Auto),
        "volatile" => Ok(Flushing::Volatile),
        "none" => Ok(Flushing::None),
        _ => Err(unknown("flushing", name, "auto, volatile, none")),
    }
}

/// How pages get into memory.
pub(crate) fn image(name: &str) -> PyResult<ImageKind> {
    match name {
        "mapped" => Ok(ImageKind::Mapped),
        "filled" => Ok(ImageKind::Filled),
        _ => Err(unknown("image", name, "mapped, filled")),
    }
}

/// The engine with this name.
pub(crate) fn engine(name: &str) -> PyResult<Engine> {
    name.parse().map_err(errors::of_store)
}

fn unknown(what: &str, name: &str, known: &str) -> PyErr {
    errors::named(
        "InvalidArgument",
        format!("there is no {what} {name:?}; those that there are: {known}"),
    )
}
