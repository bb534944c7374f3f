//! Expiring entries and their deadlines in the rescue of a damaged store.
//!
//! Purpose: the two halves of an expiring keyspace are saved separately, and each may have lost
//! what the other has.
//! Invariants: in the new store each entry with a deadline has its row, and there are no other
//! rows.

use std::collections::HashMap;

use adamant_heap::durability::Durability;
use adamant_slice::Slice;

use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::expiring::{deadline_of, row};
use crate::keyspace::handle::Keyspace;
use crate::kind::{deadlines_of, entries_of};
use crate::layout::{DEADLINE_BYTES, KIND_DEADLINES, KIND_EXPIRING};
use crate::own_options::OwnOptions;
use crate::store::handle::Store;

/// Changes per commit.
const BATCH_ENTRIES: usize = 1000;

/// A keyspace of the new store, created if there is none; its kind is given by the number in the
/// catalogue.
pub(super) fn keyspace_in(
    target: &Store,
    name: &str,
    engine: Engine,
    kind: u16,
) -> Result<Keyspace> {
    let state = match target.shared.open_keyspace(name)? {
        Some(state) => Some(state),
        None => target.shared.create_keyspace(name, (engine, kind), &OwnOptions::default())?,
    };
    let state = state.ok_or_else(|| Error::KeyspaceExists { name: name.into() })?;
    Ok(Keyspace::new(&target.shared, state))
}

/// Both halves of an expiring keyspace, for writing.
fn halves_in(target: &Store, name: &str) -> Result<(Keyspace, Keyspace)> {
    let beside = deadlines_of(name);
    Ok((
        keyspace_in(target, name, Engine::default(), KIND_EXPIRING)?,
        keyspace_in(target, &beside, Engine::default(), KIND_DEADLINES)?,
    ))
}

/// Whether all pairs belong to a half of such a keyspace: the other half, as far as it was saved or
/// is among the lost pairs, has their counterparts.
pub(super) fn are_halves(
    target: &Store,
    name: &str,
    pairs: &[(Slice, Slice)],
    lost: &HashMap<Slice, Slice>,
) -> Result<bool> {
    let (entries, deadlines) = halves_in(target, entries_of(name))?;
    for (key, value) in pairs {
        let is_known = if name == deadlines.name() {
            has_entry(key, value, |key| match entries.get(key)? {
                Some(stored) => Ok(Some(stored)),
                None => Ok(lost.get(key).cloned()),
            })?
        } else {
            match deadline_of(name, value) {
                Ok(None) => true,
                Ok(Some(deadline)) => {
                    let row = row(deadline, key);
                    lost.get(&row[..]).is_some_and(|value| value.is_empty())
                        || deadlines.contains(&row)?
                }
                Err(_) => false,
            }
        };
        if !is_known {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a pair is the row of an entry with that deadline.
fn has_entry(
    key: &[u8],
    value: &[u8],
    stored: impl FnOnce(&[u8]) -> Result<Option<Slice>>,
) -> Result<bool> {
    let Some((_, of_entry)) = key.split_first_chunk::<DEADLINE_BYTES>() else { return Ok(false) };
    if !value.is_empty() || of_entry.is_empty() {
        return Ok(false);
    }
    let Ok(Some(deadline)) = deadline_of("", key) else { return Ok(false) };
    let Some(stored) = stored(of_entry)? else { return Ok(false) };
    Ok(matches!(deadline_of("", &stored), Ok(Some(found)) if found == deadline))
}

/// Removes rows whose entries were lost, and adds missing rows of entries; returns how many of
/// each.
pub(super) fn match_deadlines(target: &Store, name: &str) -> Result<(u64, u64)> {
    let (entries, deadlines) = halves_in(target, name)?;
    let (mut removed, mut added) = (0, 0);
    let new_batch = || {
        let mut batch = target.batch();
        batch.durability(Durability::Deferred);
        batch
    };
    let mut batch = new_batch();
    for pair in deadlines.iter() {
        let (key, value) = pair?;
        if !has_entry(&key, &value, |key| entries.get(key))? {
            batch.delete(&deadlines, &key)?;
            removed += 1;
        }
        if batch.len() >= BATCH_ENTRIES {
            std::mem::replace(&mut batch, new_batch()).commit()?;
        }
    }
    for pair in entries.iter() {
        let (key, stored) = pair?;
        let Ok(Some(deadline)) = deadline_of(name, &stored) else { continue };
        let row = row(deadline, &key);
        if !deadlines.contains(&row)? {
            batch.put(&deadlines, &row, [])?;
            added += 1;
        }
        if batch.len() >= BATCH_ENTRIES {
            std::mem::replace(&mut batch, new_batch()).commit()?;
        }
    }
    batch.commit()?;
    Ok((removed, added))
}
