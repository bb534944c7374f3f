//! The encoding of changes: what a commit did, in the history of a store.
//!
//! Purpose: changes become bytes and back. Invariants: bytes that were not written like that are an
//! error, and no panic. Numbers are little-endian; see `docs/format/changes.md`.
//! Thread safety: values.

use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;

use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;

/// The first byte of each change.
const KEYSPACE: u8 = 1;
const PUT: u8 = 2;
const REMOVED: u8 = 3;
const MOVED: u8 = 4;
const SWAPPED: u8 = 5;
const RANGE_REMOVED: u8 = 6;
const CLEARED: u8 = 7;
const CREATED: u8 = 8;
const DROPPED: u8 = 9;
const RENAMED: u8 = 10;
const EXCHANGED: u8 = 11;
const LOADED: u8 = 12;
/// The first byte of a bound.
const UNBOUNDED: u8 = 0;
const INCLUDED: u8 = 1;
const EXCLUDED: u8 = 2;

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

/// The changes of a commit, as they are encoded.
#[derive(Debug, Default)]
pub(crate) struct ChangeEncoder {
    pub(crate) bytes: Vec<u8>,
    /// Number of the keyspace that was named last.
    named: Option<u64>,
}

impl ChangeEncoder {
    fn key(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(key);
    }

    fn keyspace(&mut self, keyspace: &ChangedKeyspace) {
        self.bytes.extend_from_slice(&keyspace.id.to_le_bytes());
        self.bytes.extend_from_slice(&keyspace.kind.number().to_le_bytes());
        self.name(&keyspace.name);
    }

    fn name(&mut self, name: &str) {
        self.bytes.push(name.len() as u8);
        self.bytes.extend_from_slice(name.as_bytes());
    }

    /// A keyspace that the next changes are of.
    fn in_keyspace(&mut self, keyspace: &ChangedKeyspace) {
        if self.named.replace(keyspace.id) != Some(keyspace.id) {
            self.bytes.push(KEYSPACE);
            self.keyspace(keyspace);
        }
    }

    fn begin(&mut self, keyspace: &ChangedKeyspace, kind: u8) {
        self.in_keyspace(keyspace);
        self.bytes.push(kind);
    }

    /// A key that has this value, or none.
    pub(crate) fn entry(&mut self, keyspace: &ChangedKeyspace, key: &[u8], value: Option<&[u8]>) {
        self.begin(keyspace, if value.is_some() { PUT } else { REMOVED });
        self.key(key);
        if let Some(value) = value {
            self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(value);
        }
    }

    /// A value that moved, or was swapped with another one.
    pub(crate) fn pair(
        &mut self,
        is_swap: bool,
        (keyspace, key): (&ChangedKeyspace, &[u8]),
        (target, target_key): (&ChangedKeyspace, &[u8]),
    ) {
        self.begin(keyspace, if is_swap { SWAPPED } else { MOVED });
        self.key(key);
        self.keyspace(target);
        self.key(target_key);
    }

    /// A range without entries.
    pub(crate) fn range(
        &mut self,
        keyspace: &ChangedKeyspace,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
    ) {
        self.begin(keyspace, RANGE_REMOVED);
        for bound in [bounds.0, bounds.1] {
            let (kind, key) = match bound {
                Bound::Unbounded => (UNBOUNDED, &[][..]),
                Bound::Included(key) => (INCLUDED, key),
                Bound::Excluded(key) => (EXCLUDED, key),
            };
            self.bytes.push(kind);
            self.key(key);
        }
    }

    /// A range of entries that were loaded.
    pub(crate) fn loaded(&mut self, keyspace: &ChangedKeyspace, first: &[u8], last: &[u8]) {
        self.begin(keyspace, LOADED);
        self.key(first);
        self.key(last);
    }

    /// A keyspace without entries.
    pub(crate) fn cleared(&mut self, keyspace: &ChangedKeyspace) {
        self.begin(keyspace, CLEARED);
    }

    /// A keyspace that was made.
    pub(crate) fn created(&mut self, keyspace: &ChangedKeyspace) {
        self.begin(keyspace, CREATED);
    }

    /// A keyspace that is gone.
    pub(crate) fn dropped(&mut self, keyspace: &ChangedKeyspace) {
        self.begin(keyspace, DROPPED);
    }

    /// A keyspace that has another name.
    pub(crate) fn renamed(&mut self, keyspace: &ChangedKeyspace, new_name: &str) {
        self.begin(keyspace, RENAMED);
        self.name(new_name);
        self.named = None;
    }

    /// Keyspaces that have exchanged their names.
    pub(crate) fn exchanged(&mut self, keyspace: &ChangedKeyspace, target: &ChangedKeyspace) {
        self.begin(keyspace, EXCHANGED);
        self.keyspace(target);
        self.named = None;
    }
}

/// Reads changes from bytes.
struct ChangeDecoder<'b> {
    bytes: &'b [u8],
    keyspace: Option<ChangedKeyspace>,
}

impl ChangeDecoder<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn key(&mut self) -> Option<Slice> {
        let len = u16::from_le_bytes(self.array()?);
        self.take(len.into()).map(Slice::from)
    }

    fn value(&mut self) -> Option<Slice> {
        let len = u32::from_le_bytes(self.array()?);
        self.take(usize::try_from(len).ok()?).map(Slice::from)
    }

    fn name(&mut self) -> Option<Arc<str>> {
        let [len] = self.array()?;
        std::str::from_utf8(self.take(len.into())?).ok().map(Arc::from)
    }

    fn keyspace(&mut self) -> Option<ChangedKeyspace> {
        let id = u64::from_le_bytes(self.array()?);
        let kind = KeyspaceKind::numbered(u16::from_le_bytes(self.array()?))?;
        Some(ChangedKeyspace { id, name: self.name()?, kind })
    }

    fn bound(&mut self) -> Option<Bound<Slice>> {
        let [kind] = self.array()?;
        let key = self.key()?;
        match kind {
            UNBOUNDED => Some(Bound::Unbounded),
            INCLUDED => Some(Bound::Included(key)),
            EXCLUDED => Some(Bound::Excluded(key)),
            _ => None,
        }
    }

    /// The next change; names of keyspaces come before it.
    fn next(&mut self) -> Option<Change> {
        let [mut kind] = self.array()?;
        if kind == KEYSPACE {
            self.keyspace = Some(self.keyspace()?);
            [kind] = self.array()?;
        }
        let keyspace = self.keyspace.clone()?;
        Some(match kind {
            PUT => Change::Put { keyspace, key: self.key()?, value: self.value()? },
            REMOVED => Change::Removed { keyspace, key: self.key()? },
            MOVED | SWAPPED => {
                let (key, target, target_key) = (self.key()?, self.keyspace()?, self.key()?);
                match kind {
                    MOVED => Change::Moved { keyspace, key, target, target_key },
                    _ => Change::Swapped { keyspace, key, target, target_key },
                }
            }
            RANGE_REMOVED => {
                Change::RangeRemoved { keyspace, bounds: (self.bound()?, self.bound()?) }
            }
            CLEARED => Change::Cleared { keyspace },
            CREATED => Change::Created { keyspace },
            DROPPED => Change::Dropped { keyspace },
            RENAMED => Change::Renamed { keyspace, new_name: self.name()? },
            EXCHANGED => Change::Exchanged { keyspace, target: self.keyspace()? },
            LOADED => Change::Loaded { keyspace, first: self.key()?, last: self.key()? },
            _ => return None,
        })
    }
}

/// The changes of the commit of a number.
///
/// # Errors
/// [`Error::Damaged`] for bytes that are no changes.
pub(crate) fn decode(number: u64, bytes: &[u8]) -> Result<Vec<Change>> {
    let mut decoder = ChangeDecoder { bytes, keyspace: None };
    let mut changes = Vec::new();
    while !decoder.bytes.is_empty() {
        let at = bytes.len() - decoder.bytes.len();
        changes.push(decoder.next().ok_or_else(|| Error::Damaged {
            what: format!(
                "expected a change at byte {at} of commit {number} in the history of changes, \
                 found other bytes; have changes recorded anew"
            ),
        })?);
    }
    Ok(changes)
}
