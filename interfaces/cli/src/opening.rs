//! Opening stores and keyspaces as verbs need them.

use std::path::Path;

use adamant::{Keyspace, Options, Store};

use crate::args::Target;
use crate::failure::Result;

/// A store that must exist.
pub(crate) fn existing(path: &Path) -> Result<Store> {
    Ok(Store::open_with(path, Options::default().create(false))?)
}

/// A store that is made if there is none.
pub(crate) fn created(path: &Path) -> Result<Store> {
    Ok(Store::open(path)?)
}

/// A keyspace that must exist, and its store.
pub(crate) fn existing_keyspace(target: &Target) -> Result<(Store, Keyspace)> {
    let store = existing(&target.store)?;
    let keyspace = store.open_keyspace(&target.keyspace)?;
    Ok((store, keyspace))
}

/// A keyspace that is made if there is none, and its store.
pub(crate) fn created_keyspace(target: &Target) -> Result<(Store, Keyspace)> {
    let store = created(&target.store)?;
    let keyspace = store.keyspace(&target.keyspace)?;
    Ok((store, keyspace))
}
