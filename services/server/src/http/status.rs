//! The JSON of the status page.

use std::sync::atomic::Ordering;

use adamant::{Durability, Latencies, LsmStats, Result};
use serde_json::{Value, json};

use super::heap_map::{HeapMap, Look, PAGE_BYTES};
use crate::serving::clients::Client;
use crate::serving::figures;
use crate::serving::shared::Shared;

/// Maximum number of clients that are shown, the oldest first.
const CLIENTS_SHOWN: usize = 100;

/// All figures.
///
/// # Errors
/// The store is closed, or its catalogue damaged.
pub(crate) fn status(shared: &Shared, heap_map: &HeapMap) -> Result<Value> {
    let store = shared.world.databases.store();
    let (stats, look) = (store.stats()?, heap_map.look(&store)?);
    let is_sync = shared.world.durability() == Durability::Sync;
    let commits = &stats.commits;
    let databases = figures::databases(shared).into_iter().map(|database| {
        json!({
            "number": database.number,
            "engine": database.engine.to_string(),
            "keys": database.keys,
            "expires": database.expires,
        })
    });
    let lsm = figures::lsm(&store)?;
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_seconds": shared.started.elapsed().as_secs(),
        "trouble": shared.trouble().map(|trouble| trouble.words),
        "durability": if is_sync { "sync" } else { "buffered" },
        "is_encrypted": shared.tls.is_some(),
        "commands": shared.commands.load(Ordering::Relaxed),
        "keyspaces": stats.keyspaces,
        "entries": stats.entries,
        "clients": clients(shared),
        "databases": databases.collect::<Value>(),
        "commits": {
            "count": commits.commits,
            "conflicts": commits.conflicts,
            "synced": latencies(&commits.synced),
            "unsynced": latencies(&commits.unsynced),
        },
        "snapshots": {
            "open": stats.snapshots.open,
            "oldest_seconds": stats.snapshots.oldest.as_secs_f64(),
            "versions": stats.snapshots.versions,
            "bytes": stats.snapshots.bytes,
            "opened": commits.snapshots,
            "expired": stats.snapshots.expired,
        },
        "heap": heap(&look),
        "pool": {
            "pool_bytes": stats.heap.pool_bytes,
            "used_bytes": stats.heap.used_bytes,
            "dirty_bytes": stats.heap.memory.dirty_bytes,
            "quarantined": stats.heap.quarantined,
        },
        "log": {
            "used_bytes": stats.heap.journal.log_used_bytes,
            "allocated_bytes": stats.heap.journal.log_allocated_bytes,
            "appended_bytes": stats.heap.journal.log_appended_bytes,
            "syncs": stats.heap.journal.syncs,
            "checkpoints": stats.heap.journal.checkpoints,
        },
        "lsm": lsm.iter().map(|(name, stats)| lsm_keyspace(name, stats)).collect::<Value>(),
    }))
}

fn clients(shared: &Shared) -> Value {
    let all = shared.clients.all();
    json!({
        "connected": all.len(),
        "most": shared.settings.lock().clients_max,
        "entered": shared.clients.entered(),
        "refused": shared.clients.refused.load(Ordering::Relaxed),
        "failed_handshakes": shared.clients.unshaken.load(Ordering::Relaxed),
        "held_bytes": shared.held.bytes(),
        "waiting_units": shared.queue.len(),
        "shown": all.iter().take(CLIENTS_SHOWN).map(|client| one_client(client)).collect::<Value>(),
    })
}

fn one_client(client: &Client) -> Value {
    let (age, idle) = client.seconds();
    let names = client.names.lock().clone();
    json!({
        "id": client.id,
        "address": client.address.to_string(),
        "name": String::from_utf8_lossy(&names.name),
        "library": String::from_utf8_lossy(&names.library),
        "database": client.database.load(Ordering::Relaxed),
        "command": client.command(),
        "age_seconds": age,
        "idle_seconds": idle,
    })
}

fn latencies(all: &Latencies) -> Value {
    let micros = |percent| all.percentile(percent).as_nanos() as f64 / 1e3;
    let mut before = 0;
    let buckets: Vec<Value> = figures::within_bounds(all)
        .map(|(bound, count)| {
            let of_bucket = count - before;
            before = count;
            json!([bound, of_bucket])
        })
        .collect();
    json!({
        "count": all.count(),
        "mean_us": all.mean().as_nanos() as f64 / 1e3,
        "p50_us": micros(50.0),
        "p99_us": micros(99.0),
        "p999_us": micros(99.9),
        "max_us": all.max().as_nanos() as f64 / 1e3,
        "buckets": buckets,
        "slower": all.count() - before,
    })
}

fn heap(look: &Look) -> Value {
    let heap = &look.occupancy;
    let classes = look.classes().iter().map(|class| {
        json!({
            "block_bytes": class.block_bytes,
            "runs": class.runs,
            "blocks": class.blocks,
            "allocated": class.allocated,
        })
    });
    json!({
        "age_seconds": look.age().as_secs_f64(),
        "fragmentation": look.fragmentation,
        "allocated_bytes": heap.allocated_bytes(),
        "unused_run_bytes": heap.unused_run_bytes(),
        "free_bytes": look.free_bytes(),
        "free_bytes_largest": heap.free_pages_largest * PAGE_BYTES,
        "extents": heap.extents,
        "extent_bytes": heap.extent_pages * PAGE_BYTES,
        "classes": classes.collect::<Value>(),
        "bytes_per_cell": look.pages_per_cell * PAGE_BYTES,
        "usage": look.usage,
        "fill": look.fill,
    })
}

fn lsm_keyspace(name: &str, stats: &LsmStats) -> Value {
    let levels = stats.levels.iter().map(
        |level| json!({"tables": level.tables, "bytes": level.bytes, "entries": level.entries}),
    );
    json!({
        "keyspace": name,
        "memtables": stats.memtables.len(),
        "memtable_bytes": stats.memtables.iter().map(|memtable| memtable.bytes).sum::<u64>(),
        "memtable_entries": stats.memtables.iter().map(|memtable| memtable.entries).sum::<u64>(),
        "levels": levels.collect::<Value>(),
        "blob_bytes": stats.blobs.bytes,
        "blob_stale_bytes": stats.blobs.stale_bytes,
        "flushes": stats.flushes,
        "compactions": stats.compactions,
        "debt": stats.debt,
        "damaged_tables": stats.damaged_tables.len(),
    })
}
