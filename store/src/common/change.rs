//! Changes: what a commit did to a store.
//!
//! Thread safety: values.

use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;

use crate::kind::KeyspaceKind;

/// A keyspace, as it was called when a change was made.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// store.record_changes(Some(1 << 20))?;
/// store.keyspace("towns")?;
/// let commit = store.changes(0)?.try_next()?.expect("made just now");
/// assert_eq!(commit.changes[0].keyspace().name, "towns".into());
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedKeyspace {
    /// Its number: no other keyspace of the store ever has it, and renaming does not change it.
    pub id: u64,
    /// Its name then.
    pub name: Arc<str>,
    /// Its kind. A value of the kind [`KeyspaceKind::Expiring`] begins with its deadline: see
    /// [`ChangedKeyspace::split`].
    pub kind: KeyspaceKind,
}

/// A change that a commit made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A key has a value.
    Put {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The key.
        key: Slice,
        /// The value that the commit left.
        value: Slice,
    },
    /// A key has no value; it may have had none before.
    Removed {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The key.
        key: Slice,
    },
    /// The value of a key became that of another one, and the key has none: by a
    /// [`rename`](crate::Keyspace::rename) or the like.
    Moved {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The key.
        key: Slice,
        /// The keyspace of the other key.
        target: ChangedKeyspace,
        /// The other key.
        target_key: Slice,
    },
    /// Two keys have exchanged their values.
    Swapped {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The key.
        key: Slice,
        /// The keyspace of the other key.
        target: ChangedKeyspace,
        /// The other key.
        target_key: Slice,
    },
    /// No key within bounds has a value.
    RangeRemoved {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The bounds.
        bounds: (Bound<Slice>, Bound<Slice>),
    },
    /// The keyspace has no entries.
    Cleared {
        /// The keyspace.
        keyspace: ChangedKeyspace,
    },
    /// The keyspace was made.
    Created {
        /// The keyspace.
        keyspace: ChangedKeyspace,
    },
    /// The keyspace is gone, with its entries.
    Dropped {
        /// The keyspace.
        keyspace: ChangedKeyspace,
    },
    /// The keyspace has another name.
    Renamed {
        /// The keyspace, with its name before.
        keyspace: ChangedKeyspace,
        /// Its name since.
        new_name: Arc<str>,
    },
    /// Two keyspaces have exchanged their names.
    Exchanged {
        /// The keyspace, with its name before.
        keyspace: ChangedKeyspace,
        /// The other one, with its name before.
        target: ChangedKeyspace,
    },
    /// Entries were loaded in bulk, between two keys and including them, where there were none.
    /// They are not listed here: read them.
    Loaded {
        /// The keyspace.
        keyspace: ChangedKeyspace,
        /// The first key.
        first: Slice,
        /// The last key.
        last: Slice,
    },
}

impl Change {
    /// The keyspace that was changed, or the first one of two.
    pub fn keyspace(&self) -> &ChangedKeyspace {
        match self {
            Self::Put { keyspace, .. }
            | Self::Removed { keyspace, .. }
            | Self::Moved { keyspace, .. }
            | Self::Swapped { keyspace, .. }
            | Self::RangeRemoved { keyspace, .. }
            | Self::Cleared { keyspace }
            | Self::Created { keyspace }
            | Self::Dropped { keyspace }
            | Self::Renamed { keyspace, .. }
            | Self::Exchanged { keyspace, .. }
            | Self::Loaded { keyspace, .. } => keyspace,
        }
    }

    /// What happened, in a word: that of the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Put { .. } => "put",
            Self::Removed { .. } => "removed",
            Self::Moved { .. } => "moved",
            Self::Swapped { .. } => "swapped",
            Self::RangeRemoved { .. } => "range removed",
            Self::Cleared { .. } => "cleared",
            Self::Created { .. } => "created",
            Self::Dropped { .. } => "dropped",
            Self::Renamed { .. } => "renamed",
            Self::Exchanged { .. } => "exchanged",
            Self::Loaded { .. } => "loaded",
        }
    }
}
