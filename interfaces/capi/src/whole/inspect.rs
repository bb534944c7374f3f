//! Figures and checks, as JSON.

use std::ffi::c_int;

use adamant::Durability;
use serde_json::{Value as Json, json};

use crate::border::code::{ADAMANT_DAMAGED, ADAMANT_OK, ADAMANT_SYSTEM};
use crate::border::failure::{Failure, run};
use crate::border::pointers::{In, Out};
use crate::border::value::{Content, Value};
use crate::whole::keyspace::KeyspaceHandle;
use crate::whole::store::StoreHandle;

/// Figures of a store, as the text of a JSON object.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_stats(store: In<StoreHandle>, json: Out<*mut Value>) -> c_int {
    run(|| {
        json.need_handle()?;
        let store = store.store()?;
        let stats = store.stats()?;
        let keyspaces: Vec<Json> = store
            .keyspaces()?
            .into_iter()
            .map(|info| {
                json!({
                    "name": info.name, "engine": info.engine.name(), "entries": info.entries,
                    "value_compression": info.values.map(|values| values.to_string()),
                    "dictionary_bytes": info.dictionary_bytes,
                    "durability": info.durability.map(durability_name),
                })
            })
            .collect();
        let (heap, journal, commits) = (&stats.heap, &stats.heap.journal, &stats.commits);
        let text = json!({
            "keyspaces": keyspaces,
            "entries": stats.entries,
            "pool_bytes": heap.pool_bytes,
            "used_bytes": heap.used_bytes,
            "address_bytes": heap.address_bytes,
            "dirty_bytes": heap.memory.dirty_bytes,
            "log_allocated_bytes": journal.log_allocated_bytes,
            "log_used_bytes": journal.log_used_bytes,
            "last_sequence": journal.last_sequence,
            "durable_sequence": journal.durable_sequence,
            "applied_sequence": journal.applied_sequence,
            "checkpoints": journal.checkpoints,
            "commits": commits.commits,
            "conflicts": commits.conflicts,
            "snapshots": commits.snapshots,
        });
        json.give(Content::copy(text.to_string().as_bytes()));
        Ok(ADAMANT_OK)
    })
}

/// Figures of a keyspace, as the text of a JSON object: "entries"; bytes on the medium,
/// "heap_bytes" (of a tree an estimate), "table_bytes" and "blob_bytes"; since the store was opened
/// "lookups" of keys, entries that were "scanned", and "writes"; of the engine lsm also
/// "cache_hits", "cache_misses" and "levels", for each of which "tables", "bytes" and "entries".
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_stats(
    keyspace: In<KeyspaceHandle>,
    json: Out<*mut Value>,
) -> c_int {
    run(|| {
        json.need_handle()?;
        let stats = keyspace.keyspace()?.stats()?;
        let mut text = json!({
            "entries": stats.entries,
            "heap_bytes": stats.heap_bytes,
            "table_bytes": stats.table_bytes,
            "blob_bytes": stats.blob_bytes,
            "lookups": stats.lookups,
            "scanned": stats.scanned,
            "writes": stats.writes,
        });
        if let Some(lsm) = &stats.lsm {
            text["cache_hits"] = lsm.cache_hits.into();
            text["cache_misses"] = lsm.cache_misses.into();
            let levels = lsm.levels.iter().map(|level| {
                json!({"tables": level.tables, "bytes": level.bytes, "entries": level.entries})
            });
            text["levels"] = levels.collect();
        }
        json.give(Content::copy(text.to_string().as_bytes()));
        Ok(ADAMANT_OK)
    })
}

/// The name of a durability.
fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Buffered => "buffered",
        Durability::Deferred => "deferred",
    }
}

/// Verifies every checksum and every structure of a store. The report is the text of a JSON object,
/// which is there also when it fails with ADAMANT_DAMAGED, or with ADAMANT_SYSTEM if all that it
/// found is what the system refused to read: {"clean": ..., "findings": [{"place": ..., "what":
/// ..., "unread": ...}], "pages_verified": ..., "blocks": ..., "keyspaces": [{"name": ...,
/// "entries": ...}]}. `json` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_check(store: In<StoreHandle>, json: Out<*mut Value>) -> c_int {
    run(|| {
        json.set(std::ptr::null_mut());
        let report = store.store()?.check()?;
        let findings = report.findings.iter();
        let keyspaces = report.keyspaces.iter();
        let text = json!({
            "clean": report.is_clean(),
            "findings": findings
                .map(|finding| {
                    json!({
                        "place": finding.place,
                        "what": finding.what,
                        "unread": finding.is_unread,
                    })
                })
                .collect::<Vec<_>>(),
            "pages_verified": report.heap.pages_verified,
            "blocks": report.heap.blocks,
            "keyspaces": keyspaces
                .map(|keyspace| json!({"name": keyspace.name, "entries": keyspace.entries}))
                .collect::<Vec<_>>(),
        });
        json.give(Content::copy(text.to_string().as_bytes()));
        match report.findings.first() {
            None => Ok(ADAMANT_OK),
            Some(first) => Err(Failure::new(
                if report.is_unread() { ADAMANT_SYSTEM } else { ADAMANT_DAMAGED },
                format!("{} findings, the first one: {first}", report.findings.len()),
            )),
        }
    })
}
