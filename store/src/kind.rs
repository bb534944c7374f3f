//! What kind of entries a keyspace holds, and by which door it is opened.
//!
//! Purpose: entries that end take two keyspaces, which only `expiring` writes. The catalogue says
//! which these are, so that no other door opens them to write.

use std::fmt;

use crate::layout::{KIND_DEADLINES, KIND_EXPIRING, KIND_PLAIN, KIND_UNSAID};

/// What the keyspace of deadlines is called: as that of the entries, and so.
const DEADLINES: &str = ".deadlines";

/// What kind of entries a keyspace holds.
///
/// ```
/// use adamant::{KeyspaceKind, Store};
///
/// let store = Store::in_memory()?;
/// store.expiring("sessions")?;
/// let kinds: Vec<_> = store.keyspaces()?.into_iter().map(|info| info.kind).collect();
/// assert_eq!(kinds, [KeyspaceKind::Expiring, KeyspaceKind::Deadlines]);
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyspaceKind {
    /// Entries as they are: [`Store::keyspace`](crate::Store::keyspace).
    Plain,
    /// Entries that end: [`Store::expiring`](crate::Store::expiring).
    Expiring,
    /// The deadlines of a keyspace of entries that end, whose name is this one's without
    /// `.deadlines`.
    Deadlines,
}

impl KeyspaceKind {
    /// The name that the command and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Expiring => "expiring",
            Self::Deadlines => "deadlines",
        }
    }

    /// The number that the catalogue has for it.
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Plain => KIND_PLAIN,
            Self::Expiring => KIND_EXPIRING,
            Self::Deadlines => KIND_DEADLINES,
        }
    }

    /// The kind with a number of the catalogue; a keyspace of which none is said is opened as any
    /// other.
    pub(crate) fn numbered(number: u16) -> Option<Self> {
        match number {
            KIND_UNSAID | KIND_PLAIN => Some(Self::Plain),
            KIND_EXPIRING => Some(Self::Expiring),
            KIND_DEADLINES => Some(Self::Deadlines),
            _ => None,
        }
    }
}

impl fmt::Display for KeyspaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The keyspace of the deadlines of one of entries that end.
pub(crate) fn deadlines_of(name: &str) -> String {
    format!("{name}{DEADLINES}")
}

/// The keyspace of the entries that deadlines belong to.
pub(crate) fn entries_of(deadlines: &str) -> &str {
    deadlines.strip_suffix(DEADLINES).unwrap_or(deadlines)
}
