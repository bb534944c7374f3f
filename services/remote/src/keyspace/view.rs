//! Read views: the newest state, a held one, or a snapshot.

use std::sync::Arc;

use adamant::{KEY_BYTES_MAX, Slice};
use slatedb::config::{DurabilityLevel, ReadOptions};
use slatedb::{DbReadOps, DbSnapshot};

use crate::error::Result;
use crate::keyspace::ends::{Ends, Pair};
use crate::layout::{ID_BYTES, decode_keyspace, entry_key, keyspace_key};
use crate::shared::{Database, KeyspaceState, Shared};

/// A view.
#[derive(Clone)]
pub(crate) enum View {
    /// The newest state.
    Now,
    /// One moment, for keyspaces that have not been dropped since.
    Held(Arc<DbSnapshot>),
    /// One moment, for all keyspaces that existed.
    Snapshot(Arc<DbSnapshot>),
}

impl View {
    /// Holds the newest state, so that reads in several steps are consistent. For a reader, each
    /// scan has the state that it began with.
    ///
    /// Commits of other threads that are not durable yet could be lost after they were seen. So
    /// they are made durable here.
    pub(crate) fn hold(shared: &Shared) -> Result<Self> {
        shared.check_open()?;
        let Database::Writer(db) = &shared.database else { return Ok(Self::Now) };
        let snapshot = shared.wait(db.snapshot())?;
        shared.sync()?;
        Ok(Self::Held(snapshot))
    }

    /// The value of a key.
    pub(crate) fn get(
        &self,
        shared: &Shared,
        keyspace: &KeyspaceState,
        key: &[u8],
    ) -> Result<Option<Slice>> {
        shared.check_open()?;
        if key.len() > KEY_BYTES_MAX {
            // Only writes refuse such a key: it cannot be there.
            self.check_there(shared, keyspace)?;
            return Ok(None);
        }
        let key = entry_key(keyspace.id, key);
        let found = match (self, &shared.database) {
            (Self::Held(snapshot) | Self::Snapshot(snapshot), _) => {
                shared.wait(snapshot.get(&key))?
            }
            (Self::Now, Database::Writer(db)) => {
                shared.wait(db.get_with_options(&key, &durable()))?
            }
            (Self::Now, Database::Reader(reader)) => shared.wait(reader.get(&key))?,
        };
        self.check_there(shared, keyspace)?;
        Ok(found.map(|value| Slice::from(&value[..])))
    }

    /// The next entry of a range, from its lower or its upper end.
    pub(crate) fn step(
        &self,
        shared: &Shared,
        keyspace: &KeyspaceState,
        ends: &mut Ends,
        is_up: bool,
    ) -> Result<Option<Pair>> {
        shared.check_open()?;
        let begins = ends.begins(is_up);
        let found = match (self, &shared.database) {
            (Self::Held(snapshot) | Self::Snapshot(snapshot), _) => {
                shared.wait(step(&**snapshot, ends, is_up))?
            }
            (Self::Now, Database::Writer(db)) => shared.wait(step(db, ends, is_up))?,
            (Self::Now, Database::Reader(reader)) => shared.wait(step(&**reader, ends, is_up))?,
        };
        // A scan of a reader stays with the state that it began with.
        if begins || matches!(self, Self::Held(_)) {
            self.check_there(shared, keyspace)?;
        }
        Ok(found)
    }

    /// Fails if a keyspace was dropped. Called after each read, because entries are removed only
    /// after the drop.
    pub(crate) fn check_there(&self, shared: &Shared, keyspace: &KeyspaceState) -> Result<()> {
        if matches!(self, Self::Snapshot(_)) {
            return Ok(());
        }
        let Database::Reader(reader) = &shared.database else { return keyspace.check() };
        let found = shared.wait(reader.get(keyspace_key(&keyspace.name)))?;
        let id = found.map(|found| decode_keyspace(&found)).transpose()?.map(|(id, _)| id);
        if id != Some(keyspace.id) {
            return Err(crate::Error::KeyspaceDropped { name: keyspace.name.clone() });
        }
        Ok(())
    }
}

/// Options of reads: commits that are not yet in the objects could be lost after they were seen.
fn durable() -> ReadOptions {
    ReadOptions::default().with_durability_filter(DurabilityLevel::Remote)
}

/// The next entry from one end.
pub(crate) async fn step(
    reader: &(impl DbReadOps + Sync),
    ends: &mut Ends,
    is_up: bool,
) -> std::result::Result<Option<Pair>, slatedb::Error> {
    if is_up { ends.next(reader).await } else { ends.next_back(reader).await }
}

/// Converts an entry for callers.
pub(crate) fn entry((key, value): Pair) -> (Slice, Slice) {
    (Slice::from(&key[ID_BYTES.min(key.len())..]), Slice::from(&value[..]))
}
