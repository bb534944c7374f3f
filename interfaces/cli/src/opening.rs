//! Opening stores and keyspaces as verbs need them.

use std::path::Path;

use adamant::{Expiring, KeyBounds, Keyspace, KeyspaceKind, Options, Slice, Store};

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

/// A store that must exist, to be read only: so it may be on a medium that cannot be written, and
/// others may read it too.
pub(crate) fn readable(path: &Path) -> Result<Store> {
    Ok(Store::open_read_only(path)?)
}

/// A keyspace that must exist, to be read only, and its store.
pub(crate) fn readable_keyspace(target: &Target) -> Result<(Store, Readable)> {
    let store = readable(&target.store)?;
    let stored = store.open_stored(&target.keyspace)?;
    let keyspace = match stored.kind() {
        KeyspaceKind::Expiring => Readable::Ending(store.open_expiring(&target.keyspace)?),
        _ => Readable::Plain(stored),
    };
    Ok((store, keyspace))
}

/// A keyspace to be read: of entries that end those that are not over, without their deadlines.
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
