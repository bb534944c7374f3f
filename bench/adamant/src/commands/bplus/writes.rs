//! Inserts, overwrites and deletes.

use adamant_heap::Transaction;
use adamant_trees::{Bplus, OrderedMap};

use crate::commands::bplus::ground::{DELETES, Ground, OVERWRITES};
use crate::commands::bplus::records::Records;
use crate::harness::error::{Result, ensure};

/// Fills a heap that has never been larger: its pages are touched for the first time.
pub(super) fn fill(ground: &mut Ground<'_>) -> Result<()> {
    insert_all(ground, "fill", 0)
}

/// Fills a heap that was as large before.
pub(super) fn refill(ground: &mut Ground<'_>) -> Result<()> {
    insert_all(ground, "refill", 2)
}

/// Inserts pairs in index order: ascending keys, or random ones.
fn insert_all(ground: &mut Ground<'_>, row: &str, version: u64) -> Result<()> {
    let (records, pairs) = (ground.records, ground.settings.pairs);
    let visits: Vec<u32> = (0..pairs as u32).collect();
    ground.changed(row, &visits, |tx, map, index| {
        let replaced = put(tx, map, records, index, version)?;
        ensure(!replaced, || "a key was there".into())
    })?;
    ground.verify(pairs, version)
}

pub(super) fn overwrite(ground: &mut Ground<'_>) -> Result<()> {
    let (records, pairs) = (ground.records, ground.settings.pairs);
    let visits = records.visits(pairs, OVERWRITES);
    ground.changed("overwrite", &visits, |tx, map, index| {
        let replaced = put(tx, map, records, index, 1)?;
        ensure(replaced, || "a key is missing".into())
    })?;
    ground.verify(pairs, 1)
}

pub(super) fn delete(ground: &mut Ground<'_>) -> Result<()> {
    let (records, pairs) = (ground.records, ground.settings.pairs);
    let visits = records.visits(pairs, DELETES);
    ground.changed("delete", &visits, |tx, map, index| {
        let removed = map.remove(tx, &records.key(index))?;
        ensure(removed, || "a key is missing".into())
    })?;
    ground.verify(0, 0)
}

/// Puts a version of a pair; returns whether its key was there.
pub(super) fn put(
    tx: &mut Transaction<'_>,
    map: Bplus,
    records: &Records,
    index: u64,
    version: u64,
) -> Result<bool> {
    Ok(map.insert(tx, &records.key(index), records.value(index, version))?)
}
