//! Reads of many keys in one call.
//!
//! Purpose: one hold of the shared lock looks up some keys, where a `get` takes it for each. In the
//! engine `lsm` the lock is released before tables are read.

use adamant_slice::Slice;

use crate::common::shared::OpenStore;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;

/// The most keys that are looked up in one hold of the lock, which is the longest a writer waits.
const HOLD_KEYS: usize = 64;

impl Keyspace {
    /// The values of many keys, in the order of the keys; a key may occur more than once.
    ///
    /// Each 64 keys, from the first on, are read under one hold of the lock, as of one moment; for
    /// all of them at one moment use [`Snapshot::multi_get`]. O(log n) a key, as
    /// [`Keyspace::get`], and copies what that copies.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let towns = store.keyspace("towns")?;
    /// towns.extend([("Bern", "134,000"), ("Chur", "38,000")])?;
    /// let found = towns.multi_get(["Chur", "Rome", "Bern"])?;
    /// assert_eq!(found, [Some("38,000".into()), None, Some("134,000".into())]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Keyspace::get`].
    pub fn multi_get<Q: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        in_holds(keys, |keys| {
            let view = self.shared.view()?;
            let map = self.state.map(&view, self.shared.catalogue())?;
            self.state.counts().note_lookups(keys.len() as u64);
            map.get_many(view, keys, None, Vec::new())
        })
    }
}

impl Snapshot {
    /// The values of many keys, in the order of the keys. Like [`Keyspace::multi_get`], and all as
    /// of the moment of the snapshot.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// let stock = store.keyspace("stock")?;
    /// stock.put("apples", "7")?;
    /// let before = store.snapshot()?;
    /// stock.extend([("apples", "8"), ("pears", "3")])?;
    /// assert_eq!(before.multi_get(&stock, ["pears", "apples"])?, [None, Some("7".into())]);
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    pub fn multi_get<Q: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = Q>,
    ) -> Result<Vec<Option<Slice>>> {
        in_holds(keys, |keys| {
            keyspace.state.counts().note_lookups(keys.len() as u64);
            self.with(
                OpenStore::view,
                keyspace,
                |seen| keys.iter().map(|key| seen.version(key.as_ref())).collect(),
                |view, map, at, seen| map.get_many(view, keys, Some(at), seen),
            )
        })
    }
}

/// Reads the values of some keys after the other.
fn in_holds<Q>(
    keys: impl IntoIterator<Item = Q>,
    read: impl Fn(&[Q]) -> Result<Vec<Option<Slice>>>,
) -> Result<Vec<Option<Slice>>> {
    let keys: Vec<Q> = keys.into_iter().collect();
    let mut values = Vec::with_capacity(keys.len());
    for keys in keys.chunks(HOLD_KEYS) {
        values.extend(read(keys)?);
    }
    Ok(values)
}
