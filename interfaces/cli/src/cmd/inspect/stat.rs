//! `adamant stat STORE`: the figures of a store as it lies on disk. What a process counted that had
//! it open is not there.

use adamant::{KeyspaceInfo, KeyspaceStats};
use serde_json::{Map, Value, json};

use crate::args::StatArgs;
use crate::failure::Result;
use crate::figures::{bytes, thousands};
use crate::opening::Stores;
use crate::output::Output;

/// Prints the figures.
pub(crate) fn run(args: &StatArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = stores.readable(&args.store)?;
    let (stats, is_encrypted) = (store.stats()?, store.is_encrypted());
    let keyspaces = store.keyspaces()?.into_iter().map(|info| {
        let stats = store.open_stored(&info.name)?.stats()?;
        Ok((info, stats))
    });
    let keyspaces = keyspaces.collect::<Result<Vec<_>>>()?;
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
        let by_name = keyspaces.iter().map(|(info, stats)| in_json(info, stats));
        object.insert("by_keyspace".into(), by_name.collect());
        return output.line(&Value::Object(object).to_string());
    }
    for (name, value) in figures {
        output.line(&format!("{name:<20} {:>22}", thousands(value)))?;
    }
    output.line(&format!("{:<20} {:>22}", "encrypted", if is_encrypted { "yes" } else { "no" }))?;
    for (info, stats) in &keyspaces {
        output.line(&in_words(info, stats))?;
    }
    Ok(())
}

/// The figures of a keyspace.
fn in_json(info: &KeyspaceInfo, stats: &KeyspaceStats) -> Value {
    let lsm = stats.lsm.as_ref();
    json!({
        "name": info.name, "engine": info.engine.name(), "entries": stats.entries,
        "heap_bytes": stats.heap_bytes, "table_bytes": stats.table_bytes,
        "blob_bytes": stats.blob_bytes,
        "tables": lsm.map(|lsm| lsm.levels.iter().map(|it| it.tables).collect::<Vec<_>>()),
    })
}

/// The same in a line.
fn in_words(info: &KeyspaceInfo, stats: &KeyspaceStats) -> String {
    let (entries, engine, name) = (thousands(stats.entries), info.engine.name(), &info.name);
    let about = if stats.lsm.is_some() { "" } else { "about " };
    let mut line = format!(
        "{entries:>15}  {engine:<8}  {name:?}  {about}{} in the pool",
        bytes(stats.heap_bytes)
    );
    if let Some(lsm) = &stats.lsm {
        let tables: Vec<String> = lsm.levels.iter().map(|it| it.tables.to_string()).collect();
        line += &format!(
            ", {} in tables ({} by level), {} in blob files",
            bytes(stats.table_bytes),
            tables.join("/"),
            bytes(stats.blob_bytes)
        );
    }
    line
}
