//! Kinds of keyspaces: plain, expiring, deadlines, multimaps.
//!
//! Purpose: expiring entries take two keyspaces, which only `expiring` writes, and the rows of a
//! multimap are only written by `multimap`. The catalogue records their kinds, so that no other
//! function opens them for writing.

use std::fmt;

use crate::layout::{
    KIND_CHANGES, KIND_DEADLINES, KIND_EXPIRING, KIND_MULTIMAP, KIND_PLAIN, KIND_UNSAID,
};

/// The suffix that makes the name of an expiring keyspace that of its deadlines.
const DEADLINES: &str = ".deadlines";

/// The kind of a keyspace's entries.
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
    /// Plain entries: [`Store::keyspace`](crate::Store::keyspace).
    Plain,
    /// Expiring entries: [`Store::expiring`](crate::Store::expiring).
    Expiring,
    /// The deadlines of an expiring keyspace, whose name is this one's without `.deadlines`.
    Deadlines,
    /// The history of changes: [`Store::record_changes`](crate::Store::record_changes).
    Changes,
    /// Pairs of a key and one of its values: [`Store::multimap`](crate::Store::multimap).
    Multimap,
}

impl KeyspaceKind {
    /// The name that the command line and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Expiring => "expiring",
            Self::Deadlines => "deadlines",
            Self::Changes => "changes",
            Self::Multimap => "multimap",
        }
    }

    /// The kind's number in the catalogue.
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::Plain => KIND_PLAIN,
            Self::Expiring => KIND_EXPIRING,
            Self::Deadlines => KIND_DEADLINES,
            Self::Changes => KIND_CHANGES,
            Self::Multimap => KIND_MULTIMAP,
        }
    }

    /// The kind with this number in the catalogue. A keyspace without a recorded kind counts as
    /// plain.
    pub(crate) fn numbered(number: u16) -> Option<Self> {
        match number {
            KIND_UNSAID | KIND_PLAIN => Some(Self::Plain),
            KIND_EXPIRING => Some(Self::Expiring),
            KIND_DEADLINES => Some(Self::Deadlines),
            KIND_CHANGES => Some(Self::Changes),
            KIND_MULTIMAP => Some(Self::Multimap),
            _ => None,
        }
    }
}

impl fmt::Display for KeyspaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of the deadlines of an expiring keyspace.
pub(crate) fn deadlines_of(name: &str) -> String {
    format!("{name}{DEADLINES}")
}

/// The name of the expiring keyspace with these deadlines.
pub(crate) fn entries_of(deadlines: &str) -> &str {
    deadlines.strip_suffix(DEADLINES).unwrap_or(deadlines)
}
