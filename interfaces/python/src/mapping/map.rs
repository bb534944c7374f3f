//! The map behind a mapping: a plain keyspace, or an expiring one.

use adamant::{Error, Expiring, Keyspace};

use crate::errors::{Failure, Result};

/// A keyspace with either kind of entries.
#[derive(Clone)]
pub(crate) enum Map {
    /// All entries.
    Plain(Keyspace),
    /// The entries that have not expired.
    Ending(Expiring),
}

impl Map {
    /// The keyspace of the entries.
    pub(crate) fn keyspace(&self) -> &Keyspace {
        match self {
            Self::Plain(keyspace) => keyspace,
            Self::Ending(expiring) => expiring.keyspaces().0,
        }
    }

    /// The expiring keyspace, if it is one.
    pub(crate) fn expiring(&self) -> Result<&Expiring> {
        match self {
            Self::Ending(expiring) => Ok(expiring),
            Self::Plain(keyspace) => {
                let name = keyspace.name().to_owned();
                Err(Failure::Store(Error::NotExpiring { name }))
            }
        }
    }

    /// Milliseconds since 1970, by the clock of an expiring keyspace; unused otherwise.
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Ending(expiring) => expiring.now(),
        }
    }

    /// The same map, with its clock fixed at one moment.
    pub(crate) fn at_time(&self, now: u64) -> Self {
        match self {
            Self::Plain(keyspace) => Self::Plain(keyspace.clone()),
            Self::Ending(expiring) => Self::Ending(expiring.with_clock(move || now)),
        }
    }
}
