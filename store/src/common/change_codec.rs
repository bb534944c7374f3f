//! The encoding of changes in the history of a store.
//!
//! Purpose: changes become bytes and back. Invariants: bytes that were not written like that are an
//! error, and no panic. Numbers are little-endian; see `docs/format/changes.md`.
//! Thread safety: values.

use std::ops::Bound;
use std::sync::Arc;

use adamant_slice::Slice;

use crate::common::change::{Change, ChangedKeyspace};
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

#[cfg(test)]
mod tests {
    use super::*;

    fn keyspace(id: u64, name: &str) -> ChangedKeyspace {
        ChangedKeyspace { id, name: name.into(), kind: KeyspaceKind::Plain }
    }

    /// One of each kind, and its bytes.
    fn all() -> (Vec<Change>, Vec<u8>) {
        let (one, other) = (keyspace(1, "one"), keyspace(700, "\u{e9}"));
        let mut encoder = ChangeEncoder::default();
        encoder.created(&one);
        encoder.entry(&one, b"key", Some(&[7; 300]));
        encoder.entry(&one, b"", None);
        encoder.pair(false, (&one, b"a"), (&other, b"b"));
        encoder.pair(true, (&other, b"a"), (&other, b"b"));
        encoder.range(&one, (Bound::Included(b"a"), Bound::Unbounded));
        encoder.range(&one, (Bound::Unbounded, Bound::Excluded(b"z")));
        encoder.loaded(&one, b"a", b"z");
        encoder.cleared(&one);
        encoder.renamed(&one, "two");
        encoder.exchanged(&keyspace(1, "two"), &other);
        encoder.dropped(&keyspace(1, "\u{e9}"));
        let (key, target_key) = (Slice::from(&b"a"[..]), Slice::from(&b"b"[..]));
        let range = |bounds| Change::RangeRemoved { keyspace: one.clone(), bounds };
        let changes = vec![
            Change::Created { keyspace: one.clone() },
            Change::Put { keyspace: one.clone(), key: "key".into(), value: [7; 300][..].into() },
            Change::Removed { keyspace: one.clone(), key: "".into() },
            Change::Moved {
                keyspace: one.clone(),
                key: key.clone(),
                target: other.clone(),
                target_key: target_key.clone(),
            },
            Change::Swapped {
                keyspace: other.clone(),
                key: key.clone(),
                target: other.clone(),
                target_key,
            },
            range((Bound::Included(key.clone()), Bound::Unbounded)),
            range((Bound::Unbounded, Bound::Excluded("z".into()))),
            Change::Loaded { keyspace: one.clone(), first: key, last: "z".into() },
            Change::Cleared { keyspace: one.clone() },
            Change::Renamed { keyspace: one, new_name: "two".into() },
            Change::Exchanged { keyspace: keyspace(1, "two"), target: other },
            Change::Dropped { keyspace: keyspace(1, "\u{e9}") },
        ];
        (changes, encoder.bytes)
    }

    #[test]
    fn changes_round_trip() {
        let (changes, bytes) = all();
        assert_eq!(decode(5, &bytes).expect("changes"), changes);
        assert!(decode(5, &[]).expect("none").is_empty());
    }

    #[test]
    fn damaged_changes_are_errors_or_others() {
        let (changes, bytes) = all();
        for len in 0..bytes.len() {
            match decode(5, &bytes[..len]) {
                Ok(found) => assert_eq!(found[..], changes[..found.len()], "{len} bytes"),
                Err(error) => assert!(error.to_string().contains("commit 5"), "{error}"),
            }
        }
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..damaged.len());
                damaged[at] ^= 1 << random.u8(..8);
            }
            // No panic, and no more memory than there are bytes.
            let _ = decode(5, &damaged);
        }
    }
}
