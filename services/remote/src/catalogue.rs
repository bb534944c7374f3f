//! The catalogue: the durable directory of keyspaces, each created and dropped by one commit.
//!
//! Invariants: a number is never reused. A keyspace exists from the commit that enters its name
//! until the one that removes it and records its number as doomed; a crash leaves either state.
//! Entries of doomed numbers are invisible and are removed in the background, after a crash by the
//! next writer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use slatedb::{Db, DbReadOps, WriteBatch};

use crate::error::{Error, Result};
use crate::keyspace::bounds::{of_keyspace, of_prefix};
use crate::keyspace::ends::Ends;
use crate::layout::{
    FIRST_ID, decode_doomed_key, decode_head, decode_keyspace, decode_keyspace_key, doomed_key,
    doomed_prefix, encode_head, encode_keyspace, head_key, keyspace_key, unfinished_key,
};
use crate::limits::check_name;
use crate::shared::{Catalogue, Database, KeyspaceState, Shared, SlateResult};

/// Changes of a commit that removes entries of a doomed keyspace.
const DOOMED_CHANGES_MAX: usize = 1_000;

/// All keyspaces.
pub(crate) async fn load(
    reader: &(impl DbReadOps + Sync),
    failed: &impl Fn(slatedb::Error) -> Error,
) -> Result<BTreeMap<String, Arc<KeyspaceState>>> {
    let mut keyspaces = BTreeMap::new();
    let mut ends = Ends::new(Some(of_prefix(&keyspace_key(""))));
    while let Some((key, value)) = ends.next(reader).await.map_err(failed)? {
        let (name, (id, engine)) = (decode_keyspace_key(&key)?, decode_keyspace(&value)?);
        let state = KeyspaceState::new(id, &name, &engine);
        keyspaces.insert(name, state);
    }
    Ok(keyspaces)
}

/// The content of the head, if there is one.
pub(crate) async fn load_head(
    reader: &(impl DbReadOps + Sync),
    failed: &impl Fn(slatedb::Error) -> Error,
) -> Result<Option<u32>> {
    let head = reader.get(head_key()).await.map_err(failed)?;
    head.map(|head| decode_head(&head)).transpose()
}

/// Numbers of dropped keyspaces whose entries may still be there.
pub(crate) async fn load_doomed(
    reader: &(impl DbReadOps + Sync),
    failed: &impl Fn(slatedb::Error) -> Error,
) -> Result<Vec<u32>> {
    let mut doomed = Vec::new();
    let mut ends = Ends::new(Some(of_prefix(&doomed_prefix())));
    while let Some((key, _)) = ends.next(reader).await.map_err(failed)? {
        doomed.push(decode_doomed_key(&key)?);
    }
    Ok(doomed)
}

/// Makes an empty database a store. The same write marks it as unfinished if a copy creates it:
/// otherwise a copy that is killed between two writes would leave an empty store that looks
/// complete.
pub(crate) async fn create(
    db: &Db,
    is_copying: bool,
    failed: &impl Fn(slatedb::Error) -> Error,
) -> Result<u32> {
    let mut batch = WriteBatch::new();
    batch.put(head_key(), encode_head(FIRST_ID));
    if is_copying {
        batch.put(unfinished_key(), []);
    }
    let handle = db.write(batch).await.map_err(failed)?;
    handle.await_durable().await.map_err(failed)?;
    Ok(FIRST_ID)
}

/// Removes the entries of a dropped keyspace, and then its doomed record.
pub(crate) async fn remove_doomed(db: Db, id: u32) -> SlateResult<()> {
    let mut ends = Ends::new(of_keyspace(id, &(..)));
    loop {
        let mut batch = WriteBatch::new();
        let mut count = 0;
        while count < DOOMED_CHANGES_MAX
            && let Some((key, _)) = ends.next(&db).await?
        {
            batch.delete(key);
            count += 1;
        }
        if count == 0 {
            break;
        }
        db.write(batch).await?;
    }
    // It is written after the others: what is durable is a prefix of the writes.
    let mut batch = WriteBatch::new();
    batch.delete(doomed_key(id));
    db.write(batch).await?;
    Ok(())
}

impl Shared {
    /// Looks up a keyspace.
    pub(crate) fn find_keyspace(&self, name: &str) -> Result<Option<Arc<KeyspaceState>>> {
        check_name(name)?;
        self.check_open()?;
        let Database::Reader(reader) = &self.database else {
            return Ok(self.catalogue.read().keyspaces.get(name).cloned());
        };
        let Some(found) = self.wait(reader.get(keyspace_key(name)))? else { return Ok(None) };
        let (id, engine) = decode_keyspace(&found)?;
        Ok(Some(KeyspaceState::new(id, name, &engine)))
    }

    /// Creates a keyspace. `engine`: its engine in the store that it comes from.
    pub(crate) fn create_keyspace(&self, name: &str, engine: &str) -> Result<Arc<KeyspaceState>> {
        check_name(name)?;
        let db = self.writer("creating a keyspace")?;
        let mut catalogue = self.catalogue.write();
        let Catalogue { keyspaces, next_id } = &mut *catalogue;
        if keyspaces.contains_key(name) {
            return Err(Error::KeyspaceExists { name: name.to_owned() });
        }
        let id = *next_id;
        let next = id.checked_add(1).ok_or_else(|| Error::Slate {
            what: "no number is left for a keyspace; copy the store, which numbers anew".to_owned(),
        })?;
        let mut batch = WriteBatch::new();
        batch.put(keyspace_key(name), encode_keyspace(id, engine));
        batch.put(head_key(), encode_head(next));
        let handle = self.wait_for_change(db.write(batch))?;
        let state = KeyspaceState::new(id, name, engine);
        *next_id = next;
        keyspaces.insert(name.to_owned(), Arc::clone(&state));
        drop(catalogue);
        self.await_durable(&handle)?;
        Ok(state)
    }

    /// Drops a keyspace; false if there is none with that name.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        let db = self.writer("dropping a keyspace")?;
        let mut catalogue = self.catalogue.write();
        let Some(state) = catalogue.keyspaces.get(name).cloned() else { return Ok(false) };
        let mut batch = WriteBatch::new();
        batch.delete(keyspace_key(name));
        batch.put(doomed_key(state.id), []);
        let handle = self.wait_for_change(db.write(batch))?;
        catalogue.keyspaces.remove(name);
        state.is_dropped.store(true, Ordering::Release);
        drop(catalogue);
        self.await_durable(&handle)?;
        self.remove_later(db, state.id);
        Ok(true)
    }

    /// Whether a copy into the store has begun and not ended.
    pub(crate) fn is_unfinished(&self) -> Result<bool> {
        let db = self.writer("copying")?;
        Ok(self.wait(db.get(unfinished_key()))?.is_some())
    }

    /// Marks that a copy into the store has begun, or that it has ended.
    pub(crate) fn mark_unfinished(&self, is_unfinished: bool) -> Result<()> {
        let mut batch = WriteBatch::new();
        match is_unfinished {
            true => batch.put(unfinished_key(), []),
            false => batch.delete(unfinished_key()),
        }
        self.write(batch, std::iter::empty())
    }

    /// Removes the entries of a dropped keyspace in the background.
    pub(crate) fn remove_later(&self, db: &Db, id: u32) {
        let db = db.clone();
        self.spawn(async move {
            // If this fails, the next writer does it.
            let _ = remove_doomed(db, id).await;
        });
    }
}
