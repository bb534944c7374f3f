//! `adamant stat STORE`: the figures of a store as it lies on disk. What a process counted that had
//! it open is not there.

use serde_json::{Map, Value};

use crate::args::StatArgs;
use crate::failure::Result;
use crate::figures::thousands;
use crate::opening;
use crate::output::Output;

/// Prints the figures.
pub(crate) fn run(args: &StatArgs, output: &Output) -> Result<()> {
    let store = opening::readable(&args.store)?;
    let stats = store.stats()?;
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
        return output.line(&Value::Object(Map::from_iter(object)).to_string());
    }
    for (name, value) in figures {
        output.line(&format!("{name:<20} {:>22}", thousands(value)))?;
    }
    Ok(())
}
