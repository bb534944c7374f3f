//! Logical copy of a store, keyspace by keyspace.
//!
//! Purpose: a copy by content, which leaves unused space behind.
//! Invariants: the copy is the source at one moment, that of a snapshot. Its keyspaces have the
//! numbers, engines, kinds, types and options of the source's. Memory is bounded: some entries at a
//! time, and what the snapshot keeps.
//! Thread safety: the source is read like by any reader; no other thread has the copy.

use std::sync::Arc;

use adamant_heap::durability::Durability;

use crate::common::catalogue::{dictionary, has_other_objects};
use crate::common::shared::Shared;
use crate::error::{Error, Result};
use crate::keyspace::handle::Keyspace;
use crate::keyspace::snapshot::Snapshot;
use crate::layout::STORE_FORMAT_CHANGES;
use crate::store::handle::Store;

/// Copies all entries of the source, as of one moment, to an empty store, and makes them durable
/// there. O(n).
///
/// # Errors
/// [`Error::OtherObjects`] if the heap of the source holds more than keyspaces,
/// [`Error::SnapshotExpired`] if too much changes meanwhile; those of reading the source and
/// writing the target.
pub(crate) fn rebuild(source: &Arc<Shared>, target: &Store) -> Result<()> {
    refuse_others(source)?;
    let (states, snapshot) = source.all_keyspaces(|| Snapshot::open(source))?;
    let next = source.catalogue().next_id(&source.view()?)?;
    for state in states {
        let keyspace = Keyspace::new(source, state);
        let (name, engine) = (keyspace.name(), keyspace.engine());
        let mut own = source.recorded_options(&keyspace.state)?;
        let place = own.dictionary.take();
        let of = (engine, keyspace.state.kind_number);
        // The history of changes names keyspaces by their numbers.
        set_next_id(target, keyspace.state.id)?;
        let copy = target.shared.create_keyspace(name, of, &own)?;
        let copy = copy.ok_or_else(|| Error::KeyspaceExists { name: name.into() })?;
        if let Some(types) = source.recorded_types(&keyspace.state)? {
            target.shared.record_types(&copy, &types)?;
        }
        if let (Some(place), Some(values)) = (place, own.values) {
            // In a block of the target.
            let bytes = dictionary(&source.view()?, place)?.to_vec();
            target.shared.convert_values(name, (values, Some(&bytes)))?;
        }
        let copy = Keyspace::new(&target.shared, copy);
        let mut failed = None;
        let entries = snapshot
            .iter(&keyspace)
            .map_while(|entry| entry.map_err(|error| failed = Some(error)).ok());
        copy.with_durability(Durability::Deferred).load_sorted(entries)?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    set_next_id(target, next)?;
    keep_changes_format(source, target)?;
    target.sync()
}

fn set_next_id(target: &Store, id: u64) -> Result<()> {
    let shared = &target.shared;
    shared.transaction(Durability::Deferred, |transaction| {
        shared.catalogue().set_next_id(transaction, id)
    })
}

/// Of a history of changes that has ended only the format of the head tells, and that the next one
/// must not give its numbers again.
fn keep_changes_format(source: &Shared, target: &Store) -> Result<()> {
    if source.catalogue().format(&source.view()?)? < STORE_FORMAT_CHANGES {
        return Ok(());
    }
    let shared = &target.shared;
    shared.transaction(Durability::Deferred, |transaction| {
        shared.catalogue().raise_format_to(transaction, STORE_FORMAT_CHANGES)
    })
}

/// Fails if the heap holds objects outside keyspaces.
fn refuse_others(source: &Shared) -> Result<()> {
    let view = source.view()?;
    if !has_other_objects(|index| view.root(index)) {
        return Ok(());
    }
    drop(view);
    Err(Error::OtherObjects { store: source.heap()?.path().into() })
}
