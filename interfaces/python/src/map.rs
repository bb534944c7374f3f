//! What a mapping is over: a keyspace, or one whose entries end.

use adamant::{Error, Expiring, Keyspace};

use crate::errors::{Failure, Result};

/// A keyspace with either kind of entries.
#[derive(Clone)]
pub(crate) enum Map {
    /// All that is there.
    Plain(Keyspace),
    /// What is not over.
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

    /// The keyspace of entries that end, if it is one.
    pub(crate) fn expiring(&self) -> Result<&Expiring> {
        match self {
            Self::Ending(expiring) => Ok(expiring),
            Self::Plain(keyspace) => {
                let name = keyspace.name().to_owned();
                Err(Failure::Store(Error::NotExpiring { name }))
            }
        }
    }

    /// Milliseconds since 1970, by the clock of entries that end; nothing else asks.
    pub(crate) fn now(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Ending(expiring) => expiring.now(),
        }
    }

    /// The same, at one moment for ever.
    pub(crate) fn at_time(&self, now: u64) -> Self {
        match self {
            Self::Plain(keyspace) => Self::Plain(keyspace.clone()),
            Self::Ending(expiring) => Self::Ending(expiring.with_clock(move || now)),
        }
    }
}
