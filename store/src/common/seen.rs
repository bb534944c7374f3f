//! A snapshot's view of the kept versions.
//!
//! Purpose: looks up versions (`kept.rs`) as of the number of a snapshot.
//! Invariants: for each snapshot `s` and key, it sees the oldest version with a number above `s`,
//! up to the commit that took the tree away; if there is none, what the tree holds.
//! Thread safety: holds the lock of `versions.rs`, shared, for as long as it lives.

use std::collections::VecDeque;
use std::ops::Bound;

use adamant_heap::access::Read;
use adamant_slice::Slice;
use parking_lot::RwLockReadGuard;

use crate::bounds::Direction;
use crate::common::catalogue::Catalogue;
use crate::common::kept::{Keyspace, State, Version};
use crate::engine::map::Map;
use crate::error::Result;

/// Keys in order with what a snapshot sees; and the key where the search stopped.
pub(crate) type SeenVersions = (VecDeque<(Slice, Option<Slice>)>, Option<Slice>);

/// A snapshot's view beside the trees.
pub(crate) struct Seen<'v> {
    pub(crate) state: RwLockReadGuard<'v, State>,
    pub(crate) number: u64,
}

impl Seen<'_> {
    /// Its view of one keyspace.
    ///
    /// # Errors
    /// Those of the catalogue lookup, for a keyspace that may have been dropped or converted.
    pub(crate) fn keyspace<R: Read>(
        &self,
        heap: &R,
        catalogue: &Catalogue,
        id: u64,
    ) -> Result<SeenKeyspace<'_>> {
        let keyspace = self.state.keyspaces.get(&id);
        let (mut until, mut tree) = (u64::MAX, None);
        let dropped = keyspace.into_iter().flat_map(|keyspace| &keyspace.dropped);
        for (number, dropped) in dropped.filter(|(number, _)| *number > self.number) {
            // The commit that was to drop it may have failed.
            if catalogue.is_retired(heap, id, dropped)? {
                (until, tree) = (*number, Some(dropped.clone()));
                break;
            }
        }
        let state = &*self.state;
        Ok(SeenKeyspace { state, keyspace, id, number: self.number, until, tree })
    }
}

/// A snapshot's view of a keyspace, beside its tree.
pub(crate) struct SeenKeyspace<'s> {
    state: &'s State,
    keyspace: Option<&'s Keyspace>,
    id: u64,
    number: u64,
    /// The commit that took the tree away: later ones changed another tree.
    until: u64,
    tree: Option<Map>,
}

impl SeenKeyspace<'_> {
    /// The tree that the keyspace had, if it was dropped or cleared since.
    pub(crate) fn map(&self) -> Option<Map> {
        self.tree.clone()
    }

    /// The number of entries that the keyspace had, if it is not that of the tree.
    pub(crate) fn len(&self) -> Option<u64> {
        oldest_within(&self.keyspace?.lens, self.number, self.until).copied()
    }

    /// The value that a key had, if it is not that of the tree; `Some(None)` if the key did not
    /// exist.
    pub(crate) fn version(&self, key: &[u8]) -> Option<Option<Slice>> {
        oldest_within(self.keyspace?.keys.get(key)?, self.number, self.until).cloned()
    }

    /// Versions of keys within bounds, in order, after visiting up to `keys_max` keys; with the key
    /// where it stopped if there may be more beyond it.
    pub(crate) fn versions(
        &self,
        direction: Direction,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        keys_max: usize,
    ) -> SeenVersions {
        let Some(keyspace) = self.keyspace else { return SeenVersions::default() };
        let of_snapshot = (self.number, self.id);
        let looked_up = self.state.since(of_snapshot, keyspace.keys.len(), |changed| {
            let changed = changed.range::<[u8], _>(bounds);
            let kept = changed.filter_map(|key| keyspace.keys.get_key_value(key));
            self.first_of(direction, kept, keys_max)
        });
        looked_up.unwrap_or_else(|| {
            self.first_of(direction, keyspace.keys.range::<[u8], _>(bounds), keys_max)
        })
    }

    /// Its versions of the first of some keys.
    fn first_of<'k>(
        &self,
        direction: Direction,
        mut kept: impl DoubleEndedIterator<Item = (&'k Slice, &'k VecDeque<Version>)>,
        keys_max: usize,
    ) -> SeenVersions {
        let (mut found, mut looked_at, mut stopped) = (VecDeque::new(), 0, None);
        while stopped.is_none() {
            let next = match direction {
                Direction::Up => kept.next(),
                Direction::Down => kept.next_back(),
            };
            let Some((key, versions)) = next else { break };
            looked_at += 1;
            let seen = oldest_within(versions, self.number, self.until);
            found.extend(seen.map(|value| (key.clone(), value.clone())));
            stopped = (looked_at == keys_max).then(|| key.clone());
        }
        self.state.walk(looked_at);
        (found, stopped)
    }
}

/// The version that a snapshot sees: the oldest with a number above the snapshot's and below
/// `until`.
fn oldest_within<T>(all: &VecDeque<(u64, T)>, number: u64, until: u64) -> Option<&T> {
    let (at, found) = all.get(all.partition_point(|(at, _)| *at <= number))?;
    (*at < until).then_some(found)
}
