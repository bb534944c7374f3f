//! Opening stores and keyspaces for subcommands.

use std::path::Path;

use adamant::{Expiring, KeyBounds, Keyspace, KeyspaceKind, Options, Slice, Store};

use crate::args::Target;
use crate::failure::Result;

/// Opens an existing store.
pub(crate) fn existing(path: &Path) -> Result<Store> {
    Ok(Store::open_with(path, Options::default().create(false))?)
}

/// Opens a store, or creates it if there is none.
pub(crate) fn created(path: &Path) -> Result<Store> {
    Ok(Store::open(path)?)
}

/// Opens an existing store for reading only: it may be on a read-only medium, and other processes
/// may read it too. Beside a process that writes it, as it is now.
pub(crate) fn readable(path: &Path) -> Result<Store> {
    match Store::open_read_only(path) {
        // Where that is not allowed, the first error is the one to act on.
        Err(locked @ adamant::Error::Locked { .. }) => {
            Store::open_beside(path).or(Err(locked.into()))
        }
        opened => Ok(opened?),
    }
}

/// Opens an existing keyspace and its store, for reading only.
pub(crate) fn readable_keyspace(target: &Target) -> Result<(Store, Readable)> {
    let store = readable(&target.store)?;
    let stored = store.open_stored(&target.keyspace)?;
    let keyspace = match stored.kind() {
        KeyspaceKind::Expiring => Readable::Ending(store.open_expiring(&target.keyspace)?),
        _ => Readable::Plain(stored),
    };
    Ok((store, keyspace))
}

/// A keyspace for reading: of an expiring one the entries that have not expired, without their
/// deadlines.
pub(crate) enum Readable {
    Plain(Keyspace),
    Ending(Expiring),
}

/// Entries in order, from both ends.
pub(crate) type Entries = Box<dyn DoubleEndedIterator<Item = adamant::Result<(Slice, Slice)>>>;

impl Readable {
    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> adamant::Result<Option<Slice>> {
        match self {
            Self::Plain(keyspace) => keyspace.get(key),
            Self::Ending(expiring) => expiring.get(key),
        }
    }

    /// The entries of a range.
    pub(crate) fn range(&self, range: impl KeyBounds) -> Entries {
        match self {
            Self::Plain(keyspace) => Box::new(keyspace.range(range)),
            Self::Ending(expiring) => Box::new(
                expiring.range(range).map(|entry| entry.map(|(key, value, _)| (key, value))),
            ),
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> adamant::Result<u64> {
        match self {
            Self::Plain(keyspace) => keyspace.len(),
            Self::Ending(expiring) => expiring.len(),
        }
    }
}

/// Opens an existing keyspace and its store.
pub(crate) fn existing_keyspace(target: &Target) -> Result<(Store, Keyspace)> {
    let store = existing(&target.store)?;
    let keyspace = store.open_keyspace(&target.keyspace)?;
    Ok((store, keyspace))
}

/// Opens a keyspace and its store, or creates them if there are none.
pub(crate) fn created_keyspace(target: &Target) -> Result<(Store, Keyspace)> {
    let store = created(&target.store)?;
    let keyspace = store.keyspace(&target.keyspace)?;
    Ok((store, keyspace))
}
