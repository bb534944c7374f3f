//! Tests of the whole crate that use its internals.

mod durability;
mod kinds;
mod options;
mod pops;
mod renames;
mod serializability;
mod surface;
mod values;

use adamant_heap::Durability;

use crate::store::handle::Store;

/// Writes the catalogue's entry of a keyspace.
fn write_entry(store: &Store, name: &str, bytes: &[u8]) {
    let (shared, catalogue) = (&store.shared, store.shared.catalogue());
    let written = shared.transaction(Durability::Sync, |transaction| {
        catalogue.tree().insert(transaction, name.as_bytes(), bytes)
    });
    assert!(written.unwrap());
}
