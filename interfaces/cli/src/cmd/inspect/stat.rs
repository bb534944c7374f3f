//! `adamant stat STORE`: the figures of a store as it lies on disk. What a process counted that had
//! it open is not there.

use serde_json::{Map, Value};

use crate::args::StatArgs;
use crate::failure::Result;
use crate::figures::thousands;
use crate::opening::Stores;
use crate::output::Output;

/// Prints the figures.
pub(crate) fn run(args: &StatArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(&args.store)?;
    let (stats, is_encrypted) = (store.stats()?, store.is_encrypted());
    store.close()?;
    let heap = &stats.heap;
    let figures = [
        ("keyspaces", stats.keyspaces),
        ("entries", stats.entries),
        ("pool_bytes", heap.pool_bytes),
        ("used_bytes", heap.used_bytes),
        ("address_bytes", heap.address_bytes),
        ("log_allocated_bytes", heap.journal.log_allocated_bytes),
        ("last_sequence", heap.journal.last_sequence),
        ("durable_sequence", heap.journal.durable_sequence),
        ("applied_sequence", heap.journal.applied_sequence),
        ("checkpoints", heap.journal.checkpoints),
    ];
    if output.is_json() {
        let object = figures.iter().map(|&(name, value)| (name.to_owned(), value.into()));
        let mut object: Map<String, Value> = object.collect();
        object.insert("encrypted".into(), is_encrypted.into());
        return output.line(&Value::Object(object).to_string());
    }
    for (name, value) in figures {
        output.line(&format!("{name:<20} {:>22}", thousands(value)))?;
    }
    output.line(&format!("{:<20} {:>22}", "encrypted", if is_encrypted { "yes" } else { "no" }))
}
